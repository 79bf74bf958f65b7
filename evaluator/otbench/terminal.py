"""Rows on a terminal of 80 columns: one method a line, its interval below each number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evaluator.analysis.frontiers import STRATEGY_LABELS
from evaluator.otbench.compare import order_rows
from evaluator.otbench.leaderboard import Row
from evaluator.present.names import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group
    from rich.text import Text

_SHORT = {
    "curve_area": "area",
    "hypervolume_share": "of\nfron-\ntier",
    "tokens_saved_fraction": "saved\nat\nP(n)",
    "selected_tokens_fraction": "tokens",
    "selected_accuracy": "accu-\nracy",
    "selected_gap": "gap",
    "selected_share": "gain\nshare",
    "selected_signal_fraction": "sig-\nnals",
}
_WITH_INTERVALS = {
    "hypervolume_share": "of\nfrontier",
    "tokens_saved_fraction": "saved\nat P(n)",
    "selected_accuracy": "accuracy",
    "selected_gap": "gap",
}
_LABEL = 400
"""Most characters of a label."""


@dataclass(slots=True)
class Lines:
    """A table for :mod:`rich` in which no label is folded within a word.

    A label that leaves no room for the numbers stands on a line of its own, above them.

    Attributes
    ----------
    headings
        Of the columns of numbers; may have several lines.
    rows
        Label and texts of each; a label alone heads a group. Texts may have several lines.
    """

    headings: Sequence[str]
    rows: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def add(self, label: str, *texts: str) -> None:
        """Add a row, or a group's heading."""
        self.rows.append((label, texts))

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["Text"]:
        """Yield the lines, for the console's width."""
        from rich.cells import cell_len
        from rich.text import Text

        columns = zip(self.headings, *(texts for _, texts in self.rows if texts), strict=True)
        widths = [max(cell_len(t) for text in c for t in text.split("\n")) for c in columns]
        room = options.max_width - sum(width + 2 for width in widths)
        fitting = [cell_len(label) for label, _ in self.rows]
        first = max([len("method"), *(length for length in fitting if length <= room)])
        for line in _below(["method"], self.headings, first, widths, bottom=True):
            yield Text(line, style="bold")
        for label, texts in self.rows:
            if not texts:
                yield Text(label, style="bold")
                continue
            alone = cell_len(label) > first
            if alone:
                yield Text(label)
            yield from map(Text, _below([] if alone else [label], texts, first, widths))


def _below(
    label: list[str],
    texts: Sequence[str],
    first: int,
    widths: Sequence[int],
    *,
    bottom: bool = False,
) -> Iterator[str]:
    """Yield the lines of a row, a label's and the texts' side by side."""
    from rich.cells import cell_len

    cells = [label, *(text.split("\n") for text in texts)]
    height = max(map(len, cells))
    for cell in cells:
        missing = [""] * (height - len(cell))
        cell[:] = [*missing, *cell] if bottom else [*cell, *missing]
    for name, *values in zip(*cells, strict=True):
        line = name + " " * (first - cell_len(name))
        for value, width in zip(values, widths, strict=True):
            line += " " * (width + 2 - cell_len(value)) + value
        yield line.rstrip()


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


def _table(rows: Sequence[Row], intervals: bool) -> Lines:
    headings = _WITH_INTERVALS if intervals else _SHORT
    table = Lines(tuple(headings.values()))
    before = None
    for row in rows:
        strategy = row["method"]["strategy"]
        if strategy != before:
            table.add(STRATEGY_LABELS[strategy])
            before = strategy
        star = " *" if row["method"]["trivial"] else ""
        entries = [_entry(row["summary"][key], intervals) for key in headings]
        table.add(f"  {visible(row['label'], _LABEL)}{star}", *entries)
    return table


def _entry(summary: dict[str, float | None], intervals: bool) -> str:
    value = summary["value"]
    if value is None:
        return ""
    low, high = summary.get("low"), summary.get("high")
    if not intervals or low is None or high is None:
        return f"{100 * value:.1f}"
    return f"{100 * value:.1f}\n[{100 * low:.1f}, {100 * high:.1f}]"


def _note(intervals: bool) -> str:
    if intervals:
        return (
            "All in per cent or points. Of frontier: the method curve's area above P(0), of its "
            "frontier's. Saved: tokens, at P(n), the best setting. Accuracy, gap: of the setting "
            "that validation selected; the gap is the frontier at the same tokens less it. In "
            "brackets: 95 % intervals. * trivial."
        )
    return (
        "All in per cent or points. Area: the method curve's above P(0), averaged over budgets. Of "
        "frontier: that, of its frontier's area. Saved: tokens, at P(n), the best setting. Then "
        "the setting that validation selected: its tokens, accuracy, gap to the frontier at the "
        "same tokens, share of the frontier's gain over P(n), its signals' tokens. * trivial."
    )


def terminal_differences(frame: Any, title: str, note: str) -> "Group":
    """Return a table of differences for :mod:`rich`, intervals below the values."""
    from rich.console import Group
    from rich.text import Text

    table = Lines(tuple(map(str, frame.columns)))
    before = None
    for (strategy, label), values in zip(
        frame.index.tolist(), frame.to_numpy(object).tolist(), strict=True
    ):
        if strategy != before:
            table.add(strategy)
            before = strategy
        table.add(f"  {label}", *(str(v).replace(" [", "\n[") for v in values))
    return Group(Text(title, style="bold"), table, Text(note, style="dim"), Text(""))
