"""A comparison as files: its tables and its page."""

from collections.abc import Sequence
from pathlib import Path

from evaluator.present.table import Table, write_tables
from evaluator.thinkbench.bridge import Bridge
from evaluator.thinkbench.comparison import Comparison
from evaluator.thinkbench.page import write_page


def write_comparison(
    comparison: Comparison,
    tables: Sequence[Table],
    folder: str | Path,
    *,
    bridge: Bridge | None = None,
) -> Path:
    """Write tables as CSV and Markdown, and the comparison's page; returns where the page is.

    Parameters
    ----------
    comparison
        Runs in one pool.
    tables
        What goes into files of their own, ``NAME.csv`` and ``NAME.md``.
    folder
        Made if it is not there.
    bridge
        A campaign beside the runs, for the page.

    Raises
    ------
    data.errors.StoreError
        If a file cannot be written there.
    """
    target = Path(folder).expanduser()
    write_tables(tables, target, ("csv", "md"))
    return write_page(comparison, target / "index.html", bridge=bridge)
