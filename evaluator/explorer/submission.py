"""Submissions to a leaderboard: checked, then added to a board's folder."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from data.errors import MisuseError, StoreError, StpError
from data.progress import NOBODY, Progress
from evaluator.explorer.board import board_rows, result_kind
from evaluator.explorer.opening import open_source
from stp.files import write_error

if TYPE_CHECKING:
    from evaluator.thinkbench.grading import Graded

SUBMISSIONS = "submissions"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_MOST_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found.

    Attributes
    ----------
    check
        Which check: ``"files"``, ``"schema"``, ``"checksums"``, ``"scores"`` or ``"isolation"``.
    holds
        Whether the submission passes it; None if it could not be made.
    detail
        What was seen, in a sentence.
    """

    check: str
    holds: bool | None
    detail: str


def check_submission(
    folder: Path, *, release: Path | None = None, progress: Progress = NOBODY
) -> list[Finding]:
    """Check a result folder as a board's keepers would.

    Parameters
    ----------
    folder
        Results of ``stp otbench run``, ``stp think run`` or ``stp optimal run``.
    release
        Of OTBench rows, what they were measured on: their methods are run again on it.
    progress
        Told of the rows that are made again.

    Returns
    -------
    list of Finding
        In order; a check that rests on one that failed is not made.
    """
    findings: list[Finding] = []
    try:
        kind = result_kind(folder)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        findings.append(
            Finding(
                check="files",
                holds=size <= _MOST_BYTES,
                detail=f"results of {kind}, {size / 2**20:,.1f} MB",
            )
        )
        open_source(folder)
        rows = board_rows([folder])
        findings.append(
            Finding(check="schema", holds=True, detail=f"{len(rows)} rows, all of them whole")
        )
        findings += _of_kind(kind, folder, release, progress)
    except StpError as error:
        check = "schema" if findings else "files"
        findings.append(Finding(check=check, holds=False, detail=str(error)))
    return findings


def _of_kind(
    kind: str, folder: Path, release: Path | None, progress: Progress
) -> Iterator[Finding]:
    if kind == "otbench":
        yield from _methods(folder, release, progress)
    elif kind == "think":
        yield from _think(folder)
    else:
        yield from _optimal(folder, progress)


def _methods(folder: Path, release: Path | None, progress: Progress) -> Iterator[Finding]:
    from baselines.registry import BUILT_IN
    from evaluator.otbench.leaderboard import read_rows
    from evaluator.otbench.session import open_release, regenerate

    rows = read_rows([folder])
    yield Finding(check="checksums", holds=True, detail="every row has the digest of its content")
    others = [row for row in rows if row.method.spec not in BUILT_IN]
    loose = [row.label for row in others if row.run.get("isolation") != "sandbox"]
    yield Finding(
        check="isolation",
        holds=not loose,
        detail=f"not run in a sandbox: {', '.join(loose)}; run them where bubblewrap works"
        if loose
        else f"{len(others)} methods from elsewhere, each run in a sandbox",
    )
    if release is None:
        yield Finding(check="scores", holds=None, detail="not made again: name the --release")
        return
    loaded = open_release(release, progress=progress)
    different = []
    for place, row in enumerate(rows, 1):
        again = regenerate(row, loaded, progress=progress.within(f"row {place} of {len(rows)}"))
        if again.digest != row.digest:
            different.append(row.label)
    yield Finding(
        check="scores",
        holds=not different,
        detail=f"other numbers when made again: {', '.join(different)}"
        if different
        else f"{len(rows)} rows made again, the same to the last digit",
    )


def _think(folder: Path) -> Iterator[Finding]:
    from evaluator.runs.graded import StaleGradesError, read_graded
    from evaluator.thinkbench.grading import Graded, grade_responses
    from evaluator.thinkbench.questions import plan_questions
    from evaluator.thinkbench.stored import graded_source, read_asked, read_responses

    record, config = read_asked(folder)
    try:
        stored = [Graded(**row) for row in read_graded(graded_source(folder, config))[0]]
    except StaleGradesError as error:
        yield Finding(check="checksums", holds=False, detail=str(error))
        return
    yield Finding(check="checksums", holds=True, detail="grades are of the responses that are here")
    items, responses = plan_questions(config), read_responses(folder)
    failed = [item.id for item in items if item.id not in responses or responses[item.id].error]
    fresh = {row.id: row for row in grade_responses(items, responses, record.models.get("model"))}
    changed = [row.id for row in stored if not _same(row, fresh.get(row.id))]
    yield Finding(
        check="scores",
        holds=not changed and len(fresh) == len(stored),
        detail=f"{len(changed)} of {len(stored)} responses are graded otherwise, as {changed[0]}"
        if changed
        else f"{len(stored)} responses graded again, with equal results",
    )
    yield Finding(
        check="responses",
        holds=not failed,
        detail=f"{len(failed)} questions have no response, as {failed[0]}"
        if failed
        else "every question has a response",
    )


def _same(stored: "Graded", fresh: "Graded | None") -> bool:
    """Whether two rows agree; estimates of tokens only where both were made in the same way.

    An encoding of tiktoken may be present on one machine and not on another.
    """
    if fresh is not None and stored.estimated and fresh.estimated_by != stored.estimated_by:
        fresh = replace(fresh, tokens=stored.tokens, estimated_by=stored.estimated_by)
    return stored == fresh


def _optimal(folder: Path, progress: Progress) -> Iterator[Finding]:
    from evaluator.optimal.grading import grade_again
    from evaluator.optimal.stored import load_run

    run = load_run(folder)
    yield Finding(check="checksums", holds=True, detail="grades are of the responses that are here")
    judging = run.judging
    yield Finding(
        check="responses",
        holds=not judging.undecided,
        detail=f"{judging.responses:,} verdicts: {judging.by_rule:,} by rule, {judging.by_judge:,} "
        f"by the judge {judging.judge or '(none)'}, {judging.undecided:,} undecided",
    )
    again, stored = grade_again(run, progress=progress), run.rows.reset_index(drop=True)
    if len(again) != len(stored):
        changed = f"{len(again):,} rows when made again, and {len(stored):,} are here"
    else:
        # Unknown and unknown are the same.
        same = ((again == stored) | (again.isna() & stored.isna())).fillna(False).all(axis=1)
        first = "" if same.all() else stored["question"][int((~same).to_numpy().argmax())]
        changed = f"{int((~same).sum()):,} rows come out otherwise, as {first}" if first else ""
    yield Finding(
        check="scores",
        holds=not changed,
        detail=changed
        or f"{len(stored):,} rows made again from responses and the judge's kept replies, the same",
    )


def add_submission(folder: Path, board: Path, name: str | None = None) -> Path:
    """Copy a result folder into a board's; returns where it is.

    Parameters
    ----------
    folder
        Checked results.
    board
        The board's folder; ``submissions`` in it is made.
    name
        What the submission is called there; left out: the folder's own name.

    Raises
    ------
    data.errors.MisuseError
        If the name cannot name a folder, or is taken.
    data.errors.StoreError
        If it cannot be copied.
    """
    called = name or folder.resolve().name
    if not _NAME.fullmatch(called):
        raise MisuseError(
            f"{called!r} is not a name for a submission: letters, digits, '.', '_' and '-'; give "
            "one "
            "with --name"
        )
    target = board / SUBMISSIONS / called
    if target.exists():
        raise MisuseError(f"{target}: is there already; give another --name")
    partial = target.with_name(f".{called}.tmp")
    try:
        shutil.copytree(folder, partial, ignore=shutil.ignore_patterns("*.lock", ".*"))
        partial.rename(target)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise StoreError(write_error(str(target), error)) from error
    return target


def submissions(board: Path) -> list[Path]:
    """Return the result folders of a board, by name.

    Raises
    ------
    data.errors.MisuseError
        If it has none.
    """
    inside = board / SUBMISSIONS
    found = sorted(path for path in inside.iterdir() if path.is_dir()) if inside.is_dir() else []
    found = [path for path in found if not path.name.startswith(".")]
    if not found:
        raise MisuseError(
            f"{board}: no board (no {SUBMISSIONS} in it); `stp leaderboard add RESULTS "
            f"{quote(str(board))}` begins one"
        )
    return found
