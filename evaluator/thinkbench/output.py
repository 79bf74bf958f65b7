"""Where comparisons go: files written whole, in folders that are made for them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import StoreError
from evaluator.files import write_atomically

if TYPE_CHECKING:
    from evaluator.table_text import Table
    from evaluator.thinkbench.bridge import Bridge
    from evaluator.thinkbench.comparison import Comparison


def write_output(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; its folder is made.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written there; what was there before is untouched.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path.parent}: cannot be made a folder: {error.strerror}") from error
    write_atomically(path, content)


def write_comparison(
    comparison: "Comparison",
    tables: "Sequence[Table]",
    folder: str | Path,
    *,
    bridge: "Bridge | None" = None,
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
    from evaluator.thinkbench.page import write_page

    target = Path(folder).expanduser()
    for table in tables:
        write_output(target / f"{table.name}.csv", table.to_csv().encode())
        write_output(target / f"{table.name}.md", table.to_markdown().encode())
    return write_page(comparison, target / "index.html", bridge=bridge)
