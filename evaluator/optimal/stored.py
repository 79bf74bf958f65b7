"""A run of OptimalThinkingBench on disk, read back.

A run's folder::

    run.json               what was asked of whom; see :mod:`evaluator.runs.record`
    questions.jsonl        the questions, as they were asked
    responses/METHOD.jsonl raw responses of a mode, appended as they come
    responses/router-replies.jsonl, judge-replies.jsonl    what router and judge said
    graded.jsonl           a row for each response under each method
    grading.json           what that was made from, and how verdicts came about
"""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from evaluator.optimal.judge import Agreement, JudgedWith
from evaluator.optimal.methods import MODES
from evaluator.optimal.plan import OptimalPlan, plan_of
from evaluator.runs.graded import GradedFrom, read_graded, write_graded
from evaluator.runs.plain import from_plain
from evaluator.runs.record import RunRecord, read_record

KIND: Final = "stp optimal run"
QUESTIONS: Final = "questions.jsonl"
_TYPES: Final = {
    "right": "boolean",
    "thinking_tokens": "Int64",
    "output_tokens": "Int64",
    "credit": "Float64",
    "size": "Float64",
    "answer": "string",
}


def response_file(folder: Path, mode: str) -> Path:
    """Return where the responses of a mode are."""
    return folder / "responses" / f"{mode}.jsonl"


def route_file(folder: Path) -> Path:
    """Return where the replies of the router model are."""
    return folder / "responses" / "router-replies.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """How the rows of a run got their verdicts.

    Attributes
    ----------
    responses
        Verdicts there are, over all modes.
    by_rule, by_judge, undecided
        How many were decided by rule, by the judge, and not at all.
    agreement
        How repeated judgements agree.
    judge
        Which model judged; ``""`` where none was needed.
    unrouted
        Questions that the router model did not sort; they are thought about.
    judged_with
        What the judge's kept replies depend on; None if none was needed.
    """

    responses: int
    by_rule: int
    by_judge: int
    undecided: int
    agreement: Agreement
    judge: str = ""
    unrouted: int = 0
    judged_with: JudgedWith | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimalRun:
    """A graded run.

    Attributes
    ----------
    folder
        Where it is.
    plan
        What was asked.
    record
        What ``run.json`` says.
    rows
        One row for each response under each method: ``model``, ``method``, ``subset``, ``side``
        (``"ovt"`` or ``"ut"``), ``benchmark``, ``question`` (a key), ``sample``, ``right``
        (missing where undecided), ``thinking_tokens`` and ``output_tokens`` (missing where
        unknown), ``credit`` (Reasoning Gym's own, missing elsewhere), ``answer``, ``reason``,
        ``by_judge``, ``finish``, ``ran_on`` (missing where unknown), ``domain``, ``discipline``,
        ``answer_type``, ``options``, ``size``.
    judging
        How their verdicts came about.
    """

    folder: Path
    plan: OptimalPlan
    record: RunRecord
    rows: pd.DataFrame
    judging: Judging


def read_asked(folder: Path) -> tuple[RunRecord, OptimalPlan]:
    """Return the record of a run, and what it asked.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder, or not one of this version.
    """
    record = read_record(folder, KIND)
    return record, plan_of(folder, record)


def load_run(folder: str | Path) -> OptimalRun:
    """Return a graded run from its folder.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder, it is not graded yet, or its rows are no longer what its
        responses come to.
    data.errors.StoreError
        If a file cannot be read.
    """
    path = Path(folder).expanduser()
    record, plan = read_asked(path)
    rows, notes = read_graded(_source(path, plan))
    judging = from_plain(Judging, notes, str(path))
    return OptimalRun(
        folder=path, plan=plan, record=record, rows=typed_rows(pd.DataFrame(rows)), judging=judging
    )


def store_graded(
    folder: Path, record: RunRecord, plan: OptimalPlan, rows: pd.DataFrame, judging: Judging
) -> OptimalRun:
    """Write a run's graded rows, and return it as it is read.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written, or a file that they are from cannot be read.
    """
    rows = typed_rows(rows)
    write_graded(_source(folder, plan), map(_plain_row, rows.to_dict("records")), asdict(judging))
    return OptimalRun(folder=folder, plan=plan, record=record, rows=rows, judging=judging)


def _source(folder: Path, plan: OptimalPlan) -> GradedFrom:
    files = [response_file(folder, mode) for mode in MODES] + [route_file(folder)]
    return GradedFrom(
        folder=folder,
        asked=plan.rows_from(),
        files=(QUESTIONS, *(path.relative_to(folder).as_posix() for path in files)),
        again=f"stp optimal score {shlex.quote(str(folder))}",
    )


def typed_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return graded rows in the types that they have when they are read."""
    return frame.astype(_TYPES)


def _plain_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): None if value is pd.NA else value for name, value in row.items()}
