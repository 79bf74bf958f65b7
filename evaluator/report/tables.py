"""The page's tables, as HTML. Numbers come ready; only layout and escaping happen here."""

import math
from collections.abc import Iterable, Sequence

import pandas as pd

from evaluator.analysis.frontiers import STRATEGY_LABELS
from evaluator.analysis.headline import percent
from evaluator.analysis.overthinking import Summary
from evaluator.present.names import benchmark_name, cell_name, model_name
from evaluator.report.text import html
from stp.curves import Curves

DASH = "\u2013"


def _number(value: float, kind: str) -> str:
    """Return a number as it is printed: a percentage, points, or a count; a dash for NaN."""
    if math.isnan(value):
        return DASH
    if kind == "percent":
        return percent(value)
    if kind == "points":
        return f"{100 * value:.1f}"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _row(head: str, values: Iterable[str], *, average: bool = False, group: int = 0) -> str:
    """Return a table row; with ``group``, every ``group``-th cell starts a group of columns."""
    cells = "".join(
        f'<td class="{"start" if group and i % group == 0 else ""}">{value}</td>'
        for i, value in enumerate(values)
    )
    kind = ' class="average"' if average else ""
    return f'<tr{kind}><th scope="row">{head}</th>{cells}</tr>'


def _table(caption: str, header: str, rows: Sequence[str]) -> str:
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table>'
        f"<caption>{caption}</caption><thead>{header}</thead><tbody>{''.join(rows)}</tbody>"
        "</table></div>"
    )


def _grouped_header(first: str, groups: Sequence[str], columns: Sequence[str]) -> str:
    top = "".join(
        f'<th class="group" scope="colgroup" colspan="{len(columns)}">{group}</th>'
        for group in groups
    )
    lower = "".join(f'<th scope="col">{column}</th>' for column in columns) * len(groups)
    return f'<tr><th class="first" scope="col" rowspan="2">{first}</th>{top}</tr><tr>{lower}</tr>'


def overthinking_table(curves: Curves, summary: Summary) -> str:
    """Return OR and AD, a row a model and two columns a benchmark, with averages."""
    benchmarks = summary.benchmarks.index.tolist()
    several = len(benchmarks) > 1

    def pair(row: "pd.Series[float] | None") -> list[str]:
        if row is None:
            return [DASH, DASH]
        return [
            _number(float(row["overthinking_ratio"]), "percent"),
            _number(float(row["accuracy_degradation"]), "points"),
        ]

    rows = []
    for model in summary.models.index.tolist():
        values = []
        for benchmark in benchmarks:
            key = (model, benchmark)
            values += pair(summary.cells.loc[key] if key in summary.cells.index else None)
        if several:
            values += pair(summary.models.loc[model])
        rows.append(_row(html(model_name(curves, model)), values, group=2))
    if len(summary.models) > 1:
        values = [v for b in benchmarks for v in pair(summary.benchmarks.loc[b])]
        if several:
            values += pair(summary.overall)
        rows.append(_row("Average", values, average=True, group=2))
    names = [html(benchmark_name(curves, b)) for b in benchmarks]
    header = _grouped_header(
        "Model", [*names, "Average"] if several else names, ["OR", "AD, points"]
    )
    return _table("Overthinking ratio and accuracy degradation", header, rows)


_ACCURACY_COLUMNS = (
    ("zero_accuracy", "P(0)", "percent"),
    ("full_accuracy", "P(n)", "percent"),
    ("best_accuracy", "P(k*)", "percent"),
    ("original_accuracy", "Original", "percent"),
    ("full_tokens", "Thinking tokens", "count"),
    ("positions", "Positions", "count"),
)


def accuracy_table(curves: Curves, summary: Summary) -> str:
    """Return accuracies, tokens and counts, a row a cell, with the average."""
    rows = []
    for model, benchmark in summary.cells.index.tolist():
        cell = summary.cells.loc[(model, benchmark)]
        values = [_number(float(cell[name]), kind) for name, _, kind in _ACCURACY_COLUMNS]
        values += [f"{int(cell['questions']):,}", f"{int(cell['trajectories']):,}"]
        rows.append(_row(html(cell_name(curves, model, benchmark)), values))
    if len(summary.cells) > 1:
        values = [
            _number(float(summary.overall[name]), kind) for name, _, kind in _ACCURACY_COLUMNS
        ]
        rows.append(_row("Average", [*values, "", ""], average=True))
    labels = [*(label for _, label, _ in _ACCURACY_COLUMNS), "Questions", "Trajectories"]
    header = "".join(f'<th scope="col">{label}</th>' for label in labels)
    header = f'<tr><th class="first" scope="col">Model \u00b7 benchmark</th>{header}</tr>'
    return _table("Accuracies and lengths, means", header, rows)


def savings_table(curves: Curves, per_cell: pd.DataFrame, average: pd.DataFrame) -> str:
    """Return, for every cell and strategy, tokens at equal accuracy and the best accuracy."""
    strategies = ("early_exit", "fixed_budget", "routing")

    def values(rows: pd.DataFrame) -> list[str]:
        table = rows.set_index("strategy")
        return [
            percent(float(table.loc[strategy, column]))  # type: ignore[arg-type]
            for strategy in strategies
            for column in ("equal_tokens_fraction", "best_accuracy")
        ]

    rows = [
        _row(html(cell_name(curves, *part[["model", "benchmark"]].iloc[0])), values(part), group=2)
        for _, part in per_cell.groupby(["model", "benchmark"], sort=True)
    ]
    if len(rows) > 1:
        rows.append(_row("Average of all cells", values(average), average=True, group=2))
    keys = [
        f'<svg class="key" viewBox="0 0 34 12" aria-hidden="true"><line class="line {s}" x1="0" '
        f'x2="34" y1="6" y2="6"/></svg>{STRATEGY_LABELS[s]}'
        for s in strategies
    ]
    header = _grouped_header("Model \u00b7 benchmark", keys, ["Tokens for P(n)", "Best accuracy"])
    return _table(
        "Least thinking that keeps the accuracy of full thinking, and the best accuracy in reach",
        header,
        rows,
    )
