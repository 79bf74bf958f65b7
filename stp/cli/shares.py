"""Lines about rows that may mislead, cell by cell."""

from collections.abc import Sequence

from rich.console import Console

from stp.campaign.shares import CellShares
from stp.cli.seen import seen


def print_shares(
    console: Console, cells: Sequence[CellShares], *, only_noticed: bool = False
) -> None:
    """Print which rows of every cell may mislead, and what to do."""
    for cell in cells:
        for share in cell.shares:
            if share.noticed:
                line = f"  caution: {cell.model} on {cell.benchmark}: {share.sentence()}; "
                line += share.kind.advice
                console.print(seen(line), markup=False, style="bold yellow")
            elif share.count and not only_noticed:
                line = f"    {cell.model} on {cell.benchmark}: {share.sentence()}"
                console.print(seen(line), markup=False)
