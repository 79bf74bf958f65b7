"""A table on a terminal, through :mod:`rich`: no number is cut, and no heading within a word."""

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from evaluator.present.table import Table, neighbours

ROWS = 40
"""Longer tables are thinned to every n-th row."""
_EVERY = (1, 5, 10, 20, 50, 100, 200, 500, 1000)
# Longer labels and texts are folded, at spaces where they have any.
_LABEL_WIDTH = 24
_TEXT_WIDTH = 18
_BETWEEN = 3
"""Characters between two columns."""

TextLine = tuple[list[str], list[str]]


def rich_table(table: Table, width: int = 80) -> Group:
    """Return title, table and note for :mod:`rich`; a long table by every 5th row or so.

    Parameters
    ----------
    table
        What to show.
    width
        Columns of the terminal. A table that is wider is shown in several parts, one below the
        other, each with the rows' labels: no number and no word is cut.
    """
    lines: list[TextLine] = [
        (labels, ["\n".join(filter(None, cell)) for cell in cells])
        for labels, cells in table.lines()
    ]
    every = next((step for step in _EVERY if len(lines) <= ROWS * step), len(lines))
    shown = f"Every {every}th row; the files have all. " if every > 1 else ""
    names, groups = table.index_names, [""] * len(lines)
    if table.grouped:
        groups = [labels[0] for labels, _ in lines]
        lines = [([f"  {labels[1]}", *labels[2:]], cells) for labels, cells in lines]
        names = names[1:]
    rows = list(zip(groups, lines, strict=True))[::every]
    # Title and note outside of the table, where they do not wrap at its width.
    return Group(
        Text(table.title, style="bold"),
        *(
            _part(rows, names, table.labels, part, width)
            for part in _parts(rows, names, table, width)
        ),
        Text(shown + table.note, style="dim"),
        Text(""),
    )


def _longest_word(*texts: str) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=1)


def _label_width(name: str, labels: Sequence[str], width: int) -> int:
    """Return the width of a column of rows' labels: words are whole, up to half the terminal."""
    longest = max(map(cell_len, [name, *labels]))
    return min(longest, max(_LABEL_WIDTH, min(2 + _longest_word(name, *labels), width // 2)))


def _cell_width(label: tuple[str, ...], texts: Sequence[str]) -> int:
    """Return the width of a column: its headings' words whole, its texts up to a limit."""
    longest = max((cell_len(line) for text in texts for line in text.split("\n")), default=1)
    return max(_longest_word(*label), min(longest, _TEXT_WIDTH))


def _parts(
    rows: Sequence[tuple[str, TextLine]], names: Sequence[str], table: Table, width: int
) -> list[list[int]]:
    """Return the columns of each part: as many neighbours as fit, a group kept together."""
    label_columns = zip(*(labels for _, (labels, _) in rows), strict=True) if rows else [()] * 9
    used_by_labels = sum(
        _label_width(name, labels, width) + _BETWEEN
        for name, labels in zip(names, label_columns, strict=bool(rows))
    )
    # One character at either edge.
    room = width - 2 - used_by_labels
    labels = table.labels
    sizes = [
        _BETWEEN + _cell_width(label, [cells[i] for _, (_, cells) in rows])
        for i, label in enumerate(labels)
    ]
    parts: list[list[int]] = []
    for group in neighbours([label[:-1] or (str(i),) for i, label in enumerate(labels)]):
        used = sum(sizes[i] for i in parts[-1]) if parts else room
        whole = sum(sizes[i] for i in group)
        if used + whole <= room:
            parts[-1] += group
        elif whole <= room:
            parts.append(group)
        else:
            parts += [[i] for i in group]
    return parts


def _part(
    rows: Sequence[tuple[str, TextLine]],
    names: Sequence[str],
    labels: Sequence[tuple[str, ...]],
    part: Sequence[int],
    width: int,
) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(names):
        least = _label_width(name, [own[i] for _, (own, _) in rows], width)
        table.add_column(Text(name), overflow="fold", min_width=least)
    for i in part:
        least = _cell_width(labels[i], [cells[i] for _, (_, cells) in rows])
        # Without a most width, headings of several words push the last columns off the edge.
        table.add_column(
            Text("\n".join(labels[i])),
            justify="right",
            overflow="fold",
            min_width=least,
            max_width=least,
        )
    before = ""
    for group, (own, cells) in rows:
        if group != before:
            table.add_row(Text(group, style="bold"))
            before = group
        table.add_row(*map(Text, own), *(Text(cells[i]) for i in part))
    return table
