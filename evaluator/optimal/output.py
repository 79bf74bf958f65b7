"""Results as files: their tables and their page."""

from pathlib import Path

from evaluator.optimal.page import render_page
from evaluator.optimal.results import Results
from stp.files import write_durably


def write_results(results: Results, folder: Path, *, title: str) -> Path:
    """Write tables (CSV, Markdown, LaTeX) and the page; returns the page's path.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written.
    """
    for table in results.tables:
        texts = {"csv": table.to_csv(), "md": table.to_markdown(), "tex": table.to_latex()}
        for kind, text in texts.items():
            write_durably(folder / "tables" / f"{table.name}.{kind}", text.encode())
    page = folder / "report.html"
    write_durably(page, render_page(results, title=title).encode())
    return page
