"""Rows on a terminal of 80 columns: one method a line, its interval below each number."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evaluator.frontiers import STRATEGY_LABELS
from evaluator.names import visible
from evaluator.otbench.compare import order_rows
from evaluator.otbench.leaderboard import Row

if TYPE_CHECKING:
    from rich.console import Group

_SHORT = {
    "hypervolume_share": "of\nfrontier",
    "tokens_saved_fraction": "saved\nat P(n)",
    "selected_tokens_fraction": "tokens",
    "selected_accuracy": "accu-\nracy",
    "selected_gap": "gap",
    "selected_share": "gain\nshare",
    "selected_signal_fraction": "signals",
}
_WITH_INTERVALS = (
    "hypervolume_share",
    "tokens_saved_fraction",
    "selected_accuracy",
    "selected_gap",
)


def terminal_rows(rows: Sequence[Row], *, intervals: bool) -> "Group":
    """Return rows for :mod:`rich`, grouped by release and strategy.

    Parameters
    ----------
    rows
        In any order.
    intervals
        Show fewer numbers, each with its interval.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = []
    ordered = order_rows(rows)
    for checksum in dict.fromkeys(row["release"]["checksum"] for row in ordered):
        mine = [row for row in ordered if row["release"]["checksum"] == checksum]
        first = mine[0]
        title = (
            f"{visible(first['release']['name'], 40)}, test questions: P(0) "
            f"{100 * first['zero_accuracy']:.1f} %, P(n) {100 * first['full_accuracy']:.1f} %"
        )
        parts += [Text(title, style="bold"), _table(mine, intervals), Text("")]
    return Group(*parts, Text(_note(intervals), style="dim"), Text(""))


def _table(rows: Sequence[Row], intervals: bool) -> Any:
    from rich.table import Table
    from rich.text import Text

    keys = _WITH_INTERVALS if intervals else tuple(_SHORT)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("\nmethod", overflow="fold")
    for key in keys:
        table.add_column(Text(_heading(key), justify="right"), justify="right", no_wrap=True)
    before = None
    for row in rows:
        strategy = row["method"]["strategy"]
        if strategy != before:
            table.add_row(Text(STRATEGY_LABELS[strategy], style="bold"))
            before = strategy
        star = " *" if row["method"]["trivial"] else ""
        entries = [_entry(row["summary"][key], intervals) for key in keys]
        table.add_row(Text(f"  {visible(row['label'], 60)}{star}"), *entries)
    return table


def _heading(key: str) -> str:
    text = _SHORT[key]
    return text if "\n" in text else f"\n{text}"


def _entry(summary: dict[str, float | None], intervals: bool) -> str:
    value = summary["value"]
    if value is None:
        return ""
    low, high = summary.get("low"), summary.get("high")
    if not intervals or low is None or high is None:
        return f"{100 * value:.1f}"
    return f"{100 * value:.1f}\n[{100 * low:.1f}, {100 * high:.1f}]"


def _note(intervals: bool) -> str:
    text = (
        "All in per cent or points. Of frontier: the method curve's area above P(0), of its "
        "frontier's. Saved: tokens, at P(n), the best setting. "
    )
    if intervals:
        text += (
            "Accuracy, gap: of the setting that validation selected; the gap is the frontier at "
            "the same tokens less it. In brackets: 95 % intervals. "
        )
    else:
        text += (
            "Then the setting that validation selected: its tokens, accuracy, gap to the frontier "
            "at the same tokens, share of the frontier's gain over P(n), and its signals' tokens. "
        )
    return text + "* trivial."


def terminal_differences(frame: Any, title: str, note: str) -> "Group":
    """Return a table of differences for :mod:`rich`, intervals below the values."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("method", overflow="fold")
    for column in frame.columns:
        table.add_column(str(column), justify="right")
    before = None
    for (strategy, label), values in zip(
        frame.index.tolist(), frame.to_numpy(object).tolist(), strict=True
    ):
        if strategy != before:
            table.add_row(Text(strategy, style="bold"))
            before = strategy
        table.add_row(Text(f"  {label}"), *(str(v).replace(" [", "\n[") for v in values))
    return Group(Text(title, style="bold"), table, Text(note, style="dim"), Text(""))
