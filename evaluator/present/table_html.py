"""A table as HTML for pages of their own: a card that scrolls, the note below it, text escaped."""

import numbers

import pandas as pd

from evaluator.present.table import MISSING, Table
from evaluator.report.text import html

_HEADING, _LABEL, _VALUE = 80, 90, 80


def table_html(table: Table) -> str:
    """Return a table in a ``card``, and its ``note`` below.

    Both are classes of the page's style, and ``label`` is that of the cells with row labels.
    Numbers are written as everywhere else.
    """
    frame = table.frame
    count = frame.index.nlevels
    heads = [*(str(name or "") for name in frame.index.names), *(str(c) for c in frame.columns)]
    head = "".join(
        f'<th scope="col"{_label_class(at < count)}>{html(text, _HEADING)}</th>'
        for at, text in enumerate(heads)
    )
    rows = []
    for label, values in zip(frame.index, frame.to_numpy(object), strict=True):
        parts = label if count > 1 else (label,)
        cells = "".join(f'<td class="label">{html(str(part), _LABEL)}</td>' for part in parts)
        cells += "".join(
            f"<td>{html(_shown(value, table.formats.get(str(column))), _VALUE)}</td>"
            for column, value in zip(frame.columns, values, strict=True)
        )
        rows.append(f"<tr>{cells}</tr>")
    return (
        f'<div class="card"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        f'</table></div><p class="note">{html(table.note)}</p>'
    )


def _label_class(is_label: bool) -> str:
    return ' class="label"' if is_label else ""


def _shown(value: object, spec: str | None) -> str:
    if isinstance(value, str):
        return value
    if value is None or bool(pd.isna(value)):  # type: ignore[call-overload]
        return MISSING
    if isinstance(value, float):
        return format(value, spec or ".2f")
    if isinstance(value, numbers.Integral):
        return format(int(value), spec or ",")
    return str(value)
