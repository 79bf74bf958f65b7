"""From a release and names of methods to rows, replicates and a report; and a row made again."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.errors import MisuseError
from evaluator.otbench.intervals import REPLICATES, SEED, Replicates, bootstrap_methods
from evaluator.otbench.leaderboard import (
    ROWS,
    Resampling,
    Row,
    asked_in,
    make_row,
    read_rows,
    versions,
    write_rows,
)
from evaluator.otbench.load import Release, load_release
from evaluator.otbench.page import write_page
from evaluator.otbench.run import (
    Asked,
    check_apart,
    evaluate,
    methods_for,
    split_curves,
)

Progress = Callable[[str, int, int], None]


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
    seed: int = SEED,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Session:
    """Evaluate methods on a release, and write rows and report.

    Parameters
    ----------
    folder
        The release.
    methods
        See :func:`evaluator.otbench.run.parse_method`; all that the release allows when empty.
    out
        Where rows, replicates and report go. Rows of other methods that are there are kept; the
        trivial ones are not run again where they are there, measured in the same way.
    replicates, seed, workers
        Of the bootstrap; 0 replicates: no intervals.
    progress
        Called with what is done, how much of it, and of how much.

    Raises
    ------
    data.errors.StpError
        If the release is damaged or leaks, or a method cannot be run.
    """
    release = _load(folder, progress)
    resampling = Resampling(replicates=replicates, seed=seed)
    asked, notes = methods_for(release, methods)
    known = _known(out, release, resampling)
    asked = [a for a in asked if not (methods and a.label in known and a.label not in methods)]
    asked, without = _possible(asked, named=bool(methods))
    notes += without
    rows, found = _evaluate(release, asked, resampling, workers, progress)
    path = write_rows(out, rows, found)
    every = read_rows([path])
    notes = [*release.manifest["notes"], *notes]
    pages = write_page(release, every, out, notes=notes)
    return Session(rows=tuple(every), leaderboard=path, page=pages.page, notes=tuple(notes))


def regenerate(row: Row, folder: str | Path, *, progress: Progress | None = None) -> Row:
    """Make a row again from its own settings.

    Parameters
    ----------
    row
        From a leaderboard file.
    folder
        The release that it was measured on.

    Returns
    -------
    dict
        The new row; its ``digest`` is the old one's where nothing differs.

    Raises
    ------
    data.errors.MisuseError
        If the release is another one, or the method is not here or has changed.
    """
    release = _load(folder, progress)
    if release.checksum != row["release"]["checksum"]:
        raise MisuseError(
            f"{folder}: its checksum begins {release.checksum[:12]}, and the row was measured on a "
            f"release whose begins {row['release']['checksum'][:12]}"
        )
    rows, _ = _evaluate(release, [asked_in(row)], Resampling(**row["resampling"]), None, progress)
    return rows[0]


def _possible(asked: Sequence[Asked], *, named: bool) -> tuple[list[Asked], list[str]]:
    """Leave out methods whose packages are not installed, unless they were asked for by name."""
    kept, left_out = [], []
    for method in asked:
        missing = [p for p in method.description.packages if importlib.util.find_spec(p) is None]
        if missing and not named:
            left_out.append(f"{method.label} is left out: it needs {', '.join(missing)}")
        else:
            kept.append(method)
    return kept, left_out


def _known(out: Path, release: Release, resampling: Resampling) -> set[str]:
    """Return the labels of trivial rows that are there already, measured in the same way."""
    if not (out / ROWS).is_file():
        return set()
    return {
        row["label"]
        for row in read_rows([out])
        if row["method"]["trivial"]
        and row["release"]["checksum"] == release.checksum
        and Resampling(**row["resampling"]) == resampling
        and row["versions"] == versions()
    }


def _load(folder: str | Path, progress: Progress | None) -> Release:
    checking = None if progress is None else _named(progress, "checking the release")
    release = load_release(folder, progress=checking)
    check_apart(release)
    return release


def _evaluate(
    release: Release,
    asked: Sequence[Asked],
    resampling: Resampling,
    workers: int | None,
    progress: Progress | None,
) -> tuple[list[Row], dict[str, Replicates]]:
    results = [evaluate(release, method, progress=progress) for method in asked]
    found: dict[str, Replicates] = {}
    if resampling.replicates:
        found = bootstrap_methods(
            split_curves(release, "test"),
            {result.label: result.decided for result in results},
            replicates=resampling.replicates,
            seed=resampling.seed,
            workers=workers,
            progress=None if progress is None else _named(progress, "bootstrap"),
        )
    rows = [make_row(release, r, resampling, found.get(r.label)) for r in results]
    return rows, found


def _named(progress: Progress, what: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(what, done, total)
