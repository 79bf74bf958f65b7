"""A comparison as one HTML page that works from disk: no network, text escaped."""

from pathlib import Path

from evaluator.present import page
from evaluator.present.names import visible
from evaluator.present.numbers import count
from evaluator.thinkbench.bridge import Bridge, bridge_table
from evaluator.thinkbench.comparison import Comparison
from evaluator.thinkbench.insights import Beside, insights
from evaluator.thinkbench.tables import comparison_tables, run_cautions


def write_page(
    comparison: Comparison,
    path: str | Path,
    *,
    bridge: Bridge | None = None,
    beside: Beside | None = None,
) -> Path:
    """Write a comparison as a page; returns where it is.

    Parameters
    ----------
    comparison
        Runs in one pool.
    path
        The HTML file, or a folder for ``index.html``.
    bridge
        A campaign beside the runs: a section with O-Score, OR, AD and frontiers together.
    beside
        Accuracies on other benchmarks; see :func:`evaluator.thinkbench.insights.insights`.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written there.
    """
    target = Path(path).expanduser()
    if target.is_dir() or target.suffix.lower() not in (".html", ".htm"):
        target /= "index.html"
    return page.write_page(target, render_page(comparison, bridge=bridge, beside=beside))


def render_page(
    comparison: Comparison, *, bridge: Bridge | None = None, beside: Beside | None = None
) -> str:
    """Return the page's HTML."""
    tables = comparison_tables(comparison)
    if bridge is not None:
        tables.insert(1, bridge_table(bridge))
    return page.render(
        "thinkbench/page.html",
        runs=count(len(comparison.runs), "run"),
        lead=" ".join([*run_cautions(comparison.runs), _lead(comparison)]),
        pool=comparison.pool.describe(),
        views=insights(comparison, beside),
        tables=tables,
    )


def _lead(comparison: Comparison) -> str:
    best = comparison.runs[0]
    score = comparison.scores[best.name].mean_oscore
    accuracy = max(comparison.runs, key=lambda run: run.measures.overall.accuracy.mean)
    if len(comparison.runs) == 1:
        return f"{visible(best.name, 60)} has an O-Score of {score:.3f}, alone in its pool"
    sentence = f"{visible(best.name, 60)} has the best O-Score, {score:.3f}"
    if accuracy is best:
        return f"{sentence}, and is the most accurate too."
    share = 100 * accuracy.measures.overall.accuracy.mean
    return f"{sentence}; {visible(accuracy.name, 60)} is the most accurate, {share:.1f} %."
