"""Results as files: their tables and their page."""

from pathlib import Path

from evaluator.optimal.page import render_page
from evaluator.optimal.results import Results
from evaluator.present.page import write_page
from evaluator.present.table import write_tables


def write_results(results: Results, folder: Path, *, title: str) -> Path:
    """Write tables (CSV, Markdown, LaTeX) and the page; returns the page's path.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written.
    """
    write_tables(results.tables, folder / "tables")
    return write_page(folder / "report.html", render_page(results, title=title))
