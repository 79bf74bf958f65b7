"""The report of methods on a release: one page that works from disk, figures beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.analysis.frontiers import average_frontiers, cell_frontiers
from evaluator.explorer.otbench import rows_piece
from evaluator.otbench.compare import (
    best_trivial,
    differences_table,
    leaderboard_table,
    order_rows,
    standings,
)
from evaluator.otbench.load import Release
from evaluator.otbench.row import Row
from evaluator.otbench.run import split_curves
from evaluator.present import page
from evaluator.present.numbers import count
from evaluator.present.table import Table

_CODE = ("explorer/app/frontier.js", "explorer/app/frontiers.js", "otbench/page.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePaths:
    """What was written: the page, and PNG and PDF figures."""

    page: Path
    figures: tuple[Path, ...]


def write_page(
    release: Release,
    rows: Sequence[Row],
    folder: Path,
    *,
    notes: Sequence[str] = (),
    plain: bool = False,
) -> PagePaths:
    """Write the report of a release's rows.

    Parameters
    ----------
    release
        What they were measured on.
    rows
        Its rows, in any order.
    folder
        Where ``otbench.html`` and ``figures/`` go.
    notes
        What a reader must know, shown on top.
    plain
        Write figures for articles too, without titles and captions, into ``figures/plain``.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written.
    """
    # matplotlib is needed at the end alone: a run begins, and a row is made again, without it.
    from evaluator.otbench.figures import method_figures
    from evaluator.present.figure_style import save, save_plain

    ordered = order_rows(rows)
    frontiers = average_frontiers(cell_frontiers(split_curves(release, "test")))
    written: list[Path] = []
    files = []
    for named in method_figures(ordered, frontiers, name=release.name):
        png, pdf = save(named.figure, folder / "figures" / named.stem)
        written += [png, pdf]
        files.append((named.title, f"figures/{png.name}", f"figures/{pdf.name}"))
        if plain:
            written += save_plain(named.figure, folder / "figures" / "plain" / named.stem)
    differences, unpaired = _differences(ordered)
    text = page.render(
        "otbench/page.html",
        name=release.name,
        lead=lead(ordered),
        scope=_scope(release, ordered),
        notes=notes,
        code=_CODE,
        page_data=rows_piece(ordered)
        | {
            "frontiers": {
                found.strategy: list(
                    zip(found.budget_fraction.tolist(), found.accuracy.tolist(), strict=True)
                )
                for found in frontiers
            }
        },
        leaderboard=leaderboard_table(ordered),
        differences=differences,
        unpaired=count(unpaired, "row") if unpaired else "",
        files=files,
    )
    return PagePaths(page=page.write_page(folder / "otbench.html", text), figures=tuple(written))


def lead(rows: Sequence[Row]) -> str:
    """Return what the rows say: where methods from elsewhere stand, and the best of all."""
    real = [row for row in rows if not row.method.trivial]
    if not real:
        return "Only trivial methods were run."
    own = "".join(f"{sentence} " for sentence in standings(rows))
    best = max(real, key=lambda row: row.area)
    base = next(row for row in rows if row.label == best_trivial(rows))
    share = best.summary["hypervolume_share"].value
    reached = "" if share is None else f", {100 * share:.0f}% of its frontier's"
    ahead = best.area - base.area
    verdict = f"{100 * abs(ahead):.1f} points of area {'more' if ahead > 0 else 'less'} than"
    return (
        f"{own}{best.label} has the largest area of {count(len(real), 'method')}{reached}: "
        f"{verdict} the best trivial line, {base.label}."
    )


def _scope(release: Release, rows: Sequence[Row]) -> str:
    questions = release.manifest["questions"]
    curves = release.curves
    return (
        f"{questions['train']:,} training, {questions['validation']:,} validation and "
        f"{questions['test']:,} test questions; {count(len(curves.model_names), 'model')}, "
        f"{count(len(curves.benchmark_names), 'benchmark')}; "
        f"P(0) {100 * rows[0].zero_accuracy:.1f}%, P(n) "
        f"{100 * rows[0].full_accuracy:.1f}% on test questions. Release "
        f"{release.checksum[:12]}; {rows[0].resampling.replicates:,} bootstrap replicates."
    )


def _differences(rows: Sequence[Row]) -> tuple[Table | None, int]:
    """Return the rows that can be paired with the best trivial one, less it; how many cannot."""
    label = best_trivial(rows)
    base = next(row for row in rows if row.label == label)
    paired = [row for row in rows if row.resampling == base.resampling]
    if not base.resampling.replicates or len(paired) < 2:
        return None, 0
    return differences_table(paired, label), len(rows) - len(paired)
