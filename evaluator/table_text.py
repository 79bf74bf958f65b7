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

MISSING = "\u2013"
TERMINAL_ROWS = 40
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
        """Return a LaTeX ``table`` for the package booktabs."""
        count, labels = len(self._index_names()), self._labels()
        grouped = self.frame.columns.nlevels > 1
        lines = []
        if grouped:
            spans = _spans([label[0] for label in labels])
            cells = [rf"\multicolumn{{{n}}}{{c}}{{{_latex(group)}}}" for group, n in spans]
            lines.append(" & ".join([""] * count + cells) + r" \\")
            start = count + 1
            rules = []
            for _, n in spans:
                rules.append(rf"\cmidrule(lr){{{start}-{start + n - 1}}}")
                start += n
            lines.append(" ".join(rules))
        heads = [*self._index_names(), *(label[-1] for label in labels)]
        lines += [" & ".join(map(_latex, heads)) + r" \\", r"\midrule"]
        lines += [" & ".join(map(_latex, row)) + r" \\" for row in self._texts()]
        alignment = "l" * count + "r" * len(labels)
        caption = f"{self.title}. {self.note}".strip()
        return "\n".join(
            [
                r"\begin{table}[t]",
                r"\centering",
                rf"\caption{{{_latex(caption)}}}",
                rf"\label{{tab:{self.name}}}",
                rf"\begin{{tabular}}{{{alignment}}}",
                r"\toprule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def to_rich(self) -> "Group":
        """Return title, table and note for :mod:`rich`; a long table by every 5th row or so."""
        from rich import box
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in self._index_names():
            table.add_column(Text(name), overflow="fold")
        for label in self._labels():
            table.add_column(Text("\n".join(label)), justify="right")
        every = next(
            (step for step in _EVERY if len(self.frame) <= TERMINAL_ROWS * step), len(self.frame)
        )
        for row in self._texts()[::every]:
            table.add_row(*map(Text, row))
        shown = f"Every {every}th row; the files have all. " if every > 1 else ""
        # Outside of the table, where they do not wrap at its width.
        return Group(
            Text(self.title, style="bold"), table, Text(shown + self.note, style="dim"), Text("")
        )

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


def _spans(groups: list[str]) -> list[tuple[str, int]]:
    """Return runs of equal neighbours with their lengths."""
    runs: list[tuple[str, int]] = []
    for group in groups:
        if runs and runs[-1][0] == group:
            runs[-1] = (group, runs[-1][1] + 1)
        else:
            runs.append((group, 1))
    return runs
