"""A table of numbers, and its texts: CSV, Markdown, LaTeX, and for a terminal.

A :class:`Table` keeps numbers; they become text here and nowhere else.
"""

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table as RichTable

MISSING = "\u2013"
TERMINAL_ROWS = 40
LATEX_ROWS = 50
# Longer labels and texts are folded on a terminal.
_INDEX_WIDTH = 24
_TEXT_WIDTH = 18
_EVERY = (1, 5, 10, 20, 50, 100, 200, 500, 1000)
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    MISSING: "--",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Numbers with labels.

    Attributes
    ----------
    name
        A short name, used for files.
    title
        What it shows, with units.
    frame
        Rows by label; columns by label, or by (group, label). Numbers or texts.
    formats
        How the values of a column are written, by its last label; a format specification such as
        ``".1f"``. Left out: ``".2f"`` for floats, ``","`` for integers.
    note
        What to know when reading it: n, settings, what is missing.
    """

    name: str
    title: str
    frame: pd.DataFrame
    formats: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def to_csv(self) -> str:
        """Return the numbers in full, comma-separated; grouped columns as ``group label``."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*map(str, self.frame.index.names), *(" ".join(c) for c in self._labels())])
        for index, values in zip(self._rows(), self.frame.to_numpy(object), strict=True):
            writer.writerow([*index, *("" if _absent(value) else value for value in values)])
        return stream.getvalue()

    def to_markdown(self) -> str:
        """Return a Markdown table under its title, the note below."""
        heads = [*self._index_names(), *(" ".join(label) for label in self._labels())]
        count = len(self._index_names())
        rule = ["---"] * count + ["---:"] * (len(heads) - count)
        lines = [heads, rule, *self._texts()]
        body = "\n".join("| " + " | ".join(map(_markdown, line)) + " |" for line in lines)
        note = f"\n\n{self.note}" if self.note else ""
        return f"**{self.title}**\n\n{body}{note}\n"

    def to_latex(self) -> str:
        """Return LaTeX (booktabs): a ``table``, or a ``longtable`` where it is long."""
        count, labels = len(self._index_names()), self._labels()
        heads = [*self._index_names(), *(label[-1] for label in labels)]
        lines = [" & ".join(map(_latex, heads)) + r" \\", r"\midrule"]
        if self.frame.columns.nlevels > 1:
            lines = [*_latex_groups([label[0] for label in labels], count), *lines]
        body = [" & ".join(map(_latex, row)) + r" \\" for row in self._texts()]
        alignment = "l" * count + "r" * len(labels)
        caption = rf"\caption{{{_latex(f'{self.title}. {self.note}'.strip())}}}"
        label = rf"\label{{tab:{self.name}}}"
        if len(self.frame) > LATEX_ROWS:
            return "\n".join(
                [
                    rf"\begin{{longtable}}{{{alignment}}}",
                    rf"{caption}{label} \\",
                    r"\toprule",
                    *lines,
                    r"\endhead",
                    *body,
                    r"\bottomrule",
                    r"\end{longtable}",
                    "",
                ]
            )
        return "\n".join(
            [
                r"\begin{table}[t]",
                r"\centering",
                caption,
                label,
                rf"\begin{{tabular}}{{{alignment}}}",
                r"\toprule",
                *lines,
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def to_rich(self, width: int = 80) -> "Group":
        """Return title, table and note for :mod:`rich`; a long table by every 5th row or so.

        Parameters
        ----------
        width
            Columns of the terminal. A table that is wider is shown in several parts, one below the
            other, each with the rows' labels: no number is cut.
        """
        from rich.console import Group
        from rich.text import Text

        every = next(
            (step for step in _EVERY if len(self.frame) <= TERMINAL_ROWS * step), len(self.frame)
        )
        rows = self._texts()[::every]
        shown = f"Every {every}th row; the files have all. " if every > 1 else ""
        # Title and note outside of the table, where they do not wrap at its width.
        return Group(
            Text(self.title, style="bold"),
            *(self._part(rows, part) for part in self._parts(rows, width)),
            Text(shown + self.note, style="dim"),
            Text(""),
        )

    def _parts(self, rows: list[list[str]], width: int) -> list[list[int]]:
        """Return the columns of each part: as many neighbours as fit, a group kept together."""
        count = len(self._index_names())
        # Three characters between columns, and one at either edge.
        room = (
            width
            - 2
            - sum(
                min(_INDEX_WIDTH, max(map(len, texts))) + 3
                for texts in zip(
                    *[self._index_names(), *(row[:count] for row in rows)], strict=True
                )
            )
        )
        labels = self._labels()
        sizes = [
            3
            + max(
                *(len(word) for text in label for word in text.split()),
                *(min(len(row[count + i]), _TEXT_WIDTH) for row in rows),
                1,
            )
            for i, label in enumerate(labels)
        ]
        parts: list[list[int]] = []
        for group in _neighbours([label[:-1] or (str(i),) for i, label in enumerate(labels)]):
            used = sum(sizes[i] for i in parts[-1]) if parts else room
            whole = sum(sizes[i] for i in group)
            if used + whole <= room:
                parts[-1] += group
            elif whole <= room:
                parts.append(group)
            else:
                parts += [[i] for i in group]
        return parts

    def _part(self, rows: list[list[str]], part: list[int]) -> "RichTable":
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        count = len(self._index_names())
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for i, name in enumerate(self._index_names()):
            longest = max((len(row[i]) for row in rows), default=0)
            least = min(_INDEX_WIDTH, max(longest, len(name)))
            table.add_column(Text(name), overflow="fold", min_width=least)
        labels = self._labels()
        for i in part:
            longest = max((len(row[count + i]) for row in rows), default=0)
            words = max((len(word) for text in labels[i] for word in text.split()), default=1)
            least = max(words, min(longest, _TEXT_WIDTH))
            # Without a most width, headings of several words push the last columns off the edge.
            table.add_column(
                Text("\n".join(labels[i])),
                justify="right",
                overflow="fold",
                min_width=least,
                max_width=least,
            )
        for row in rows:
            table.add_row(*map(Text, row[:count]), *(Text(row[count + i]) for i in part))
        return table

    def _index_names(self) -> list[str]:
        return [str(name or "") for name in self.frame.index.names]

    def _labels(self) -> list[tuple[str, ...]]:
        columns: list[Any] = self.frame.columns.tolist()
        return [tuple(map(str, c)) if isinstance(c, tuple) else (str(c),) for c in columns]

    def _rows(self) -> list[tuple[Any, ...]]:
        rows: list[Any] = self.frame.index.tolist()
        return [index if isinstance(index, tuple) else (index,) for index in rows]

    def _texts(self) -> list[list[str]]:
        specs = [self.formats.get(label[-1]) for label in self._labels()]
        return [
            [*map(str, index), *(_text(v, s) for v, s in zip(values, specs, strict=True))]
            for index, values in zip(self._rows(), self.frame.to_numpy(object), strict=True)
        ]


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _text(value: Any, spec: str | None) -> str:
    if _absent(value):
        return MISSING
    if isinstance(value, str):
        return value
    return format(value, spec or (".2f" if isinstance(value, float) else ","))


def _markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_groups(groups: list[str], before: int) -> list[str]:
    """Return the line of group heads, after ``before`` empty cells, and the rules below it."""
    runs = _neighbours(groups)
    cells = [rf"\multicolumn{{{len(run)}}}{{c}}{{{_latex(groups[run[0]])}}}" for run in runs]
    rules = [rf"\cmidrule(lr){{{before + run[0] + 1}-{before + run[-1] + 1}}}" for run in runs]
    return [" & ".join([""] * before + cells) + r" \\", " ".join(rules)]


def _neighbours(values: list[Any]) -> list[list[int]]:
    """Return the places of runs of equal neighbours.

    Examples
    --------
    >>> _neighbours(["a", "a", "b", "a"])
    [[0, 1], [2], [3]]
    """
    runs: list[list[int]] = []
    for place, value in enumerate(values):
        if runs and values[runs[-1][0]] == value:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs
