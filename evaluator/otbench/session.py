"""From a release and names of methods to rows, replicates and a report; and a row made again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from baselines.registry import BUILT_IN
from data.errors import MisuseError, StpError
from data.progress import NOBODY, Progress
from evaluator.otbench.asked import AskedMethod, Chosen, methods_for
from evaluator.otbench.decisions import write_decisions
from evaluator.otbench.intervals import REPLICATES, Replicates, bootstrap_methods
from evaluator.otbench.leaderboard import (
    ROWS,
    asked_in,
    check_replaceable,
    make_row,
    read_rows,
    versions,
    write_rows,
)
from evaluator.otbench.load import Release, load_release
from evaluator.otbench.page import write_page
from evaluator.otbench.row import Resampling, Row
from evaluator.otbench.run import MethodResult, evaluate, split_curves, try_out
from evaluator.runs.folder import locked_folder
from stp.seeds import PAPER_SEED


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a run gave.

    Attributes
    ----------
    rows
        All rows of the folder, those of this run among them.
    leaderboard, page
        The files.
    notes
        What was left out, and why.
    """

    rows: tuple[Row, ...]
    leaderboard: Path
    page: Path
    notes: tuple[str, ...]


def run_methods(
    folder: str | Path,
    methods: Sequence[str],
    out: Path,
    *,
    replicates: int = REPLICATES,
    seed: int = PAPER_SEED,
    workers: int | None = None,
    plain: bool = False,
    progress: Progress = NOBODY,
) -> Session:
    """Evaluate methods on a release, and write rows and report.

    Parameters
    ----------
    folder
        The release.
    methods
        See :func:`evaluator.otbench.asked.parse_method`; all that the release allows when empty.
    out
        Where rows, replicates and report go. Rows of other methods that are there are kept; the
        trivial ones are not run again where they are there, measured in the same way.
    replicates, seed, workers
        Of the bootstrap; 0 replicates: no intervals.
    plain
        Write figures for articles too; see :func:`evaluator.otbench.page.write_page`.
    progress
        Told of the stages.

    Raises
    ------
    data.errors.StpError
        If the release is damaged or leaks, or a method cannot be run; the rows of those that can
        are written first.
    """
    release = open_release(folder, progress=progress)
    resampling = Resampling(replicates=replicates, seed=seed)
    chosen = methods_for(release, methods)
    known = _known(out, release, resampling) - chosen.named if methods else set()
    asked = [method for method in chosen.asked if method.label not in known]
    check_replaceable(out, release, [(each.label, each.description) for each in asked])
    with locked_folder(out):
        return _run(release, chosen, asked, resampling, out, workers, plain, progress)


def _run(
    release: Release,
    chosen: Chosen,
    asked: Sequence[AskedMethod],
    resampling: Resampling,
    out: Path,
    workers: int | None,
    plain: bool,
    progress: Progress,
) -> Session:
    for method in asked:
        if method.label in chosen.named and method.description.name not in BUILT_IN:
            progress.stage(f"{method.label}, tried on a few questions")
            try_out(release, method)
    results, failed = _evaluated(release, asked, progress)
    refused = [error for label, error in failed.items() if label in chosen.named | set(BUILT_IN)]
    if refused and not results:
        raise refused[0]
    rows, found = _measured(release, results, resampling, workers, progress)
    progress.stage("writing rows and report")
    path = write_rows(out, rows, found)
    write_decisions(out, release, rows, results)
    every = read_rows([path])
    notes = [*release.manifest["notes"], *chosen.notes]
    notes += [f"{label} is left out: {error}" for label, error in failed.items()]
    pages = write_page(release, every, out, notes=notes, plain=plain)
    if refused:
        first = refused[0]
        raise MisuseError(f"{first}; the rows of the other methods are in {out}") from first
    return Session(rows=tuple(every), leaderboard=path, page=pages.page, notes=tuple(notes))


def open_release(folder: str | Path, *, progress: Progress = NOBODY) -> Release:
    """Load a release, verified, and say how far that is.

    Parameters
    ----------
    folder
        The release.
    progress
        Told of the stages.

    Raises
    ------
    data.errors.StpError
        If the release is damaged or leaks.
    """
    return load_release(folder, progress=progress)


def regenerate(row: Row, release: Release | str | Path, *, progress: Progress = NOBODY) -> Row:
    """Make a row again from its own settings.

    Parameters
    ----------
    row
        From a leaderboard file.
    release
        The release that it was measured on, or its folder; for several rows it is opened once, by
        :func:`open_release`.
    progress
        Told of the stages.

    Returns
    -------
    Row
        The new row; its ``digest`` is the old one's where nothing differs.

    Raises
    ------
    data.errors.MisuseError
        If the release is another one, or the method is not here or has changed.
    """
    if not isinstance(release, Release):
        release = open_release(release, progress=progress)
    if release.checksum != row.release.checksum:
        raise MisuseError(
            f"{release.folder}: its checksum begins {release.checksum[:12]}, and the row was "
            f"measured on a release whose begins {row.release.checksum[:12]}"
        )
    asked = asked_in(row, release)
    results = [evaluate(release, asked, progress=progress.within(asked.label))]
    rows, _ = _measured(release, results, row.resampling, None, progress)
    return rows[0]


def _known(out: Path, release: Release, resampling: Resampling) -> set[str]:
    """Return the labels of trivial rows that are there already, measured in the same way."""
    if not (out / ROWS).is_file():
        return set()
    return {
        row.label
        for row in read_rows([out])
        if row.method.trivial
        and row.release.checksum == release.checksum
        and row.resampling == resampling
        and row.versions == versions()
    }


def _evaluated(
    release: Release, asked: Sequence[AskedMethod], progress: Progress
) -> tuple[list[MethodResult], dict[str, StpError]]:
    """Return the results of those methods that can be run, and by label why others cannot."""
    results, failed = [], {}
    for place, method in enumerate(asked, start=1):
        name = method.label if len(asked) == 1 else f"{method.label} ({place} of {len(asked)})"
        try:
            results.append(evaluate(release, method, progress=progress.within(name)))
        except StpError as error:
            failed[method.label] = error
    return results, failed


def _measured(
    release: Release,
    results: Sequence[MethodResult],
    resampling: Resampling,
    workers: int | None,
    progress: Progress,
) -> tuple[list[Row], dict[str, Replicates]]:
    """Return rows of results, and the replicates behind their intervals."""
    found: dict[str, Replicates] = {}
    if resampling.replicates and results:
        found = bootstrap_methods(
            split_curves(release, "test"),
            {result.label: result.decided for result in results},
            replicates=resampling.replicates,
            seed=resampling.seed,
            workers=workers,
            progress=progress.stage(_bootstrap_of(results)),
        )
    return [make_row(release, r, resampling, found.get(r.label)) for r in results], found


def _bootstrap_of(results: Sequence[MethodResult]) -> str:
    return f"{results[0].label}, bootstrap" if len(results) == 1 else "bootstrap"
