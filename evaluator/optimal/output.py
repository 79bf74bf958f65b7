"""Results as files: their tables, their figures and their page."""

from pathlib import Path

from evaluator.optimal.insights import insights
from evaluator.optimal.page import render_page
from evaluator.optimal.results import Results
from evaluator.present.page import write_page
from evaluator.present.table import write_tables


def write_results(results: Results, folder: Path, *, title: str) -> Path:
    """Write tables (CSV, Markdown, LaTeX), figures (PNG, PDF) and the page; returns the last.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written.
    """
    from evaluator.present.drawing import draw
    from evaluator.present.figure_style import save

    write_tables(results.tables, folder / "tables")
    for view in insights(results.rows, results.scores):
        save(draw(view), folder / "figures" / view.stem)
    return write_page(folder / "report.html", render_page(results, title=title))
