"""A comparison as files: its tables, its figures and its page."""

from collections.abc import Sequence
from pathlib import Path

from evaluator.present.table import Table, write_tables
from evaluator.thinkbench.bridge import Bridge
from evaluator.thinkbench.comparison import Comparison
from evaluator.thinkbench.insights import Beside, insights
from evaluator.thinkbench.page import write_page


def write_comparison(
    comparison: Comparison,
    tables: Sequence[Table],
    folder: str | Path,
    *,
    bridge: Bridge | None = None,
    beside: Beside | None = None,
) -> Path:
    """Write tables (CSV, Markdown, LaTeX), figures (PNG, PDF) and the page; returns the last.

    Parameters
    ----------
    comparison
        Runs in one pool.
    tables
        What goes into files of their own, ``NAME.csv``, ``NAME.md`` and ``NAME.tex``.
    folder
        Made if it is not there.
    bridge
        A campaign beside the runs, for the page.
    beside
        Accuracies on other benchmarks; see :func:`evaluator.thinkbench.insights.insights`.

    Raises
    ------
    data.errors.StoreError
        If a file cannot be written there.
    """
    from evaluator.present.drawing import draw
    from evaluator.present.figure_style import save

    target = Path(folder).expanduser()
    write_tables(tables, target)
    for view in insights(comparison, beside):
        save(draw(view), target / "figures" / view.stem)
    return write_page(comparison, target / "index.html", bridge=bridge, beside=beside)
