"""A table of numbers, and its forms: CSV, Markdown, LaTeX, and a page's.

A :class:`Table` keeps numbers; they become text by :mod:`evaluator.present.numbers` alone.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from evaluator.present.numbers import MISSING, Span, absent, as_text
from stp.files import write_durably

LATEX_ROWS = 50
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
        Rows by label; columns by label, or by (group, label). Numbers, texts, or numbers with
        their intervals (:class:`evaluator.present.numbers.Span`).
    formats
        How the values of a column are written, by its last label; a format specification such as
        ``".1f"``. Left out: ``".2f"`` for floats, ``","`` for integers.
    note
        What to know when reading it: n, settings, what is missing.
    grouped
        The first label of a row names its group: on a terminal and on a page a heading of its own.
    totals
        How many rows at the end sum up those above.
    """

    name: str
    title: str
    frame: pd.DataFrame
    formats: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    grouped: bool = False
    totals: int = 0

    def to_csv(self) -> str:
        """Return the numbers in full, comma-separated; grouped columns as ``group label``.

        A column of values with intervals is three columns.
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        heads = [" ".join(label) for label in self.labels]
        spans = [any(isinstance(value, Span) for value in column) for column in self._columns()]
        ends = [("", " low", " high") if is_span else ("",) for is_span in spans]
        named = [head + end for head, own in zip(heads, ends, strict=True) for end in own]
        writer.writerow([*map(str, self.frame.index.names), *named])
        for index, values in self._values():
            cells = []
            for value, own in zip(values, ends, strict=True):
                if isinstance(value, Span):
                    cells += [value.value, value.low, value.high]
                else:
                    cells += [value, *[None] * (len(own) - 1)]
            writer.writerow([*index, *("" if absent(cell) else cell for cell in cells)])
        return stream.getvalue()

    def to_markdown(self) -> str:
        """Return a Markdown table under its title, the note below."""
        heads = [*self.index_names, *(" ".join(label) for label in self.labels)]
        count = len(self.index_names)
        rule = ["---"] * count + ["---:"] * (len(heads) - count)
        lines = [heads, rule, *self.texts]
        body = "\n".join("| " + " | ".join(map(_markdown, line)) + " |" for line in lines)
        note = f"\n\n{self.note}" if self.note else ""
        return f"**{self.title}**\n\n{body}{note}\n"

    def to_latex(self) -> str:
        """Return LaTeX (booktabs): a ``table``, or a ``longtable`` where it is long."""
        count, labels = len(self.index_names), self.labels
        heads = [*self.index_names, *(label[-1] for label in labels)]
        lines = [" & ".join(map(_latex, heads)) + r" \\", r"\midrule"]
        if self.frame.columns.nlevels > 1:
            lines = [*_latex_groups([label[0] for label in labels], count), *lines]
        body = [" & ".join(map(_latex, row)) + r" \\" for row in self.texts]
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

    @property
    def index_names(self) -> list[str]:
        """Headings of the rows' labels."""
        return [str(name or "") for name in self.frame.index.names]

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """Headings of the columns: each (label,) or (group, label)."""
        columns: list[Any] = self.frame.columns.tolist()
        return [tuple(map(str, c)) if isinstance(c, tuple) else (str(c),) for c in columns]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Groups of columns from left to right, each with its number of columns."""
        firsts = [label[0] for label in self.labels]
        return [(firsts[run[0]], len(run)) for run in neighbours(firsts)]

    @property
    def texts(self) -> list[list[str]]:
        """Rows as texts: labels first."""
        return [
            [*labels, *(" ".join(filter(None, cell)) for cell in cells)]
            for labels, cells in self.lines()
        ]

    def lines(self) -> Iterator[tuple[list[str], list[tuple[str, str]]]]:
        """Yield for each row its labels, and of each cell the text and the interval, if any."""
        specs = [self.formats.get(label[-1]) for label in self.labels]
        for index, values in self._values():
            yield (
                list(map(str, index)),
                [
                    value.parts(spec or ".2f")
                    if isinstance(value, Span)
                    else (as_text(value, spec), "")
                    for value, spec in zip(values, specs, strict=True)
                ],
            )

    def _values(self) -> Iterator[tuple[tuple[Any, ...], Any]]:
        rows: list[Any] = self.frame.index.tolist()
        for index, values in zip(rows, self.frame.to_numpy(object), strict=True):
            yield index if isinstance(index, tuple) else (index,), values

    def _columns(self) -> Any:
        return self.frame.to_numpy(object).T


def write_tables(
    tables: Iterable[Table], folder: Path, forms: Sequence[str] = ("csv", "md", "tex")
) -> list[Path]:
    """Write tables as ``NAME.csv``, ``NAME.md`` and ``NAME.tex``; returns where they are.

    Raises
    ------
    data.errors.StoreError
        If a file cannot be written.
    """
    paths = []
    for table in tables:
        texts = {"csv": table.to_csv, "md": table.to_markdown, "tex": table.to_latex}
        for form in forms:
            paths.append(folder / f"{table.name}.{form}")
            write_durably(paths[-1], texts[form]().encode())
    return paths


def _markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_groups(groups: list[str], before: int) -> list[str]:
    """Return the line of group heads, after ``before`` empty cells, and the rules below it."""
    runs = neighbours(groups)
    cells = [rf"\multicolumn{{{len(run)}}}{{c}}{{{_latex(groups[run[0]])}}}" for run in runs]
    rules = [rf"\cmidrule(lr){{{before + run[0] + 1}-{before + run[-1] + 1}}}" for run in runs]
    return [" & ".join([""] * before + cells) + r" \\", " ".join(rules)]


def neighbours(values: list[Any]) -> list[list[int]]:
    """Return the places of runs of equal neighbours.

    Examples
    --------
    >>> neighbours(["a", "a", "b", "a"])
    [[0, 1], [2], [3]]
    """
    runs: list[list[int]] = []
    for place, value in enumerate(values):
        if runs and values[runs[-1][0]] == value:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs
