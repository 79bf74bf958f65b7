"""The tables of paper 002, each a function from measurements to a :class:`Table`.

Percentages and percentage points are made here; everything before is fractions. Rows are models,
columns benchmarks; "Average" gives benchmarks, then models, equal weight.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from evaluator.analysis.findings import pair_differences, rank_sentence
from evaluator.analysis.frontiers import STRATEGY_LABELS, CellFrontiers, average_savings, savings
from evaluator.analysis.nesting import AVERAGE, averages_of_cells
from evaluator.analysis.overthinking import Summary
from evaluator.analysis.table_labels import (
    benchmark_label,
    cell_labels,
    model_label,
    table_note,
)
from evaluator.present.names import visible
from evaluator.present.table import Table
from stp.curves import Curves

FrameRow = Mapping[Hashable, Any]
RowValue = Callable[[FrameRow], float]


def _percent(name: str) -> RowValue:
    return lambda row: 100.0 * float(row[name])


def _rows(summary: Summary) -> dict[Hashable, FrameRow]:
    """Return the averages by (model, benchmark)."""
    return {
        **summary.cells.to_dict("index"),
        **{(model, AVERAGE): row for model, row in summary.models.to_dict("index").items()},
        **{(AVERAGE, group): row for group, row in summary.benchmarks.to_dict("index").items()},
        (AVERAGE, AVERAGE): summary.overall.to_dict(),
    }


def _by_model_and_benchmark(
    curves: Curves, rows: Mapping[Hashable, FrameRow], columns: Mapping[str, RowValue]
) -> pd.DataFrame:
    """Return models x (benchmark, column), with averages where there is something to average."""
    models, benchmarks = (sorted(set(found.tolist())) for found in (curves.model, curves.benchmark))
    row_keys = [*models, AVERAGE] if len(models) > 1 else models
    column_keys = [*benchmarks, AVERAGE] if len(benchmarks) > 1 else benchmarks
    values = [
        [
            value(rows[model, benchmark]) if (model, benchmark) in rows else np.nan
            for benchmark in column_keys
            for value in columns.values()
        ]
        for model in row_keys
    ]
    return pd.DataFrame(
        values,
        index=pd.Index([model_label(curves, m) for m in row_keys], name="Model"),
        columns=pd.MultiIndex.from_tuples(
            [(benchmark_label(curves, b), column) for b in column_keys for column in columns]
        ),
    )


def overthinking_table(curves: Curves, summary: Summary) -> Table:
    """Return OR and AD of every cell (Table 1)."""
    return Table(
        name="overthinking",
        title="Overthinking: OR in % of thinking tokens, AD in percentage points",
        frame=_by_model_and_benchmark(
            curves,
            _rows(summary),
            {"OR": _percent("overthinking_ratio"), "AD": _percent("accuracy_degradation")},
        ),
        formats={"OR": ".1f", "AD": ".2f"},
        note=table_note(curves),
        totals=int(len(summary.models) > 1),
    )


def baseline_table(curves: Curves, summary: Summary) -> Table:
    """Return the accuracy of the original answers and the mean thinking tokens (Table 3)."""
    return Table(
        name="baselines",
        title="Original full thinking: accuracy in %, mean thinking tokens",
        frame=_by_model_and_benchmark(
            curves,
            _rows(summary),
            {
                "Acc.": _percent("original_accuracy"),
                "Tokens": lambda row: float(row["full_tokens"]),
            },
        ),
        formats={"Acc.": ".2f", "Tokens": ",.0f"},
        note=table_note(curves, "Accuracy of the models' own final answers, not P(n)."),
    )


def probed_accuracy_table(curves: Curves, summary: Summary) -> Table:
    """Return P(0), P(n) and P(k*) of every cell."""
    return Table(
        name="probed-accuracy",
        title="Probed accuracy in %: without thinking, after all of it, at the reference position",
        frame=_by_model_and_benchmark(
            curves,
            _rows(summary),
            {
                "P(0)": _percent("zero_accuracy"),
                "P(n)": _percent("full_accuracy"),
                "P(k*)": _percent("best_accuracy"),
            },
        ),
        formats={"P(0)": ".1f", "P(n)": ".1f", "P(k*)": ".1f"},
        note=table_note(curves),
    )


def zero_step_table(
    curves: Curves, summary: Summary, direct: Mapping[tuple[str, str], float] | None = None
) -> Table:
    """Return P(0) beside the accuracy of direct answers (Table 7).

    Parameters
    ----------
    curves, summary
        Measured curves and their averages.
    direct
        Accuracy, a fraction, of answers to a prompt that asks for no reasoning, by (model name,
        benchmark name); see :mod:`evaluator.analysis.direct`. It is another measurement than P(0)
        and comes
        from elsewhere; where it is left out there is no such column. An average over a cell whose
        direct accuracy is not known is not known either.
    """
    columns = {"Zero-step": _percent("zero_accuracy")}
    notes = ["Zero-step: probes at k = 0, in the prompt that asks for reasoning."]
    rows: Mapping[Hashable, FrameRow] = _rows(summary)
    if direct is None:
        notes.append("Direct answers were not given (--direct).")
    else:
        columns["Direct"] = _percent("direct_accuracy")
        notes += [
            "Direct: answers to a prompt that asks for no reasoning.",
            *_unmatched(curves, summary, direct),
        ]
        keys: list[tuple[int, int]] = summary.cells.index.tolist()
        values = [
            np.array(
                [zero, direct.get((model_label(curves, m), benchmark_label(curves, b)), np.nan)]
            )
            for (m, b), zero in zip(keys, summary.cells["zero_accuracy"].tolist(), strict=True)
        ]
        rows = {
            key: {"zero_accuracy": zero, "direct_accuracy": answered}
            for key, (zero, answered) in averages_of_cells(keys, values).items()
        }
    return Table(
        name="zero-step",
        title="Answers without thinking: accuracy in %",
        frame=_by_model_and_benchmark(curves, rows, columns),
        formats={"Zero-step": ".2f", "Direct": ".2f"},
        note=table_note(curves, *notes),
    )


def _unmatched(
    curves: Curves, summary: Summary, direct: Mapping[tuple[str, str], float]
) -> list[str]:
    """Say which cells have no direct accuracy, and which direct accuracies have no cell."""
    cells = {
        (model_label(curves, m), benchmark_label(curves, b))
        for m, b in summary.cells.index.tolist()
    }
    sentences = []
    for names, what in (
        (cells - direct.keys(), "No direct accuracy is known of"),
        (direct.keys() - cells, "Direct accuracies that belong to no cell here:"),
    ):
        if names:
            listed = "; ".join(f"{model} on {benchmark}" for model, benchmark in sorted(names))
            sentences.append(f"{what} {visible(listed)}.")
    return sentences


def savings_table(curves: Curves, cells: tuple[CellFrontiers, ...]) -> Table:
    """Return what each strategy could save at equal accuracy, and reach at best."""
    rows = savings(cells)
    average = average_savings(cells)
    index, values = [], []
    for cell in cells:
        own = rows[(rows["model"] == cell.model) & (rows["benchmark"] == cell.benchmark)]
        index.append(cell_labels(curves, cell.model, cell.benchmark))
        values.append(own[["equal_tokens_fraction", "best_accuracy"]].to_numpy(float).ravel())
    if len(cells) > 1:
        # Not the mean of the rows above: what is averaged is the frontiers.
        index.append(("Averaged frontiers", ""))
        values.append(average[["equal_tokens_fraction", "best_accuracy"]].to_numpy(float).ravel())
    return Table(
        name="savings",
        title="Ideal termination: least tokens that keep P(n), % of all; best accuracy, %",
        frame=pd.DataFrame(
            100 * np.array(values),
            index=pd.MultiIndex.from_tuples(index, names=["Model", "Benchmark"]),
            columns=pd.MultiIndex.from_tuples(
                [
                    (STRATEGY_LABELS[strategy], column)
                    for strategy in average["strategy"]
                    for column in ("Tokens", "Best")
                ]
            ),
        ),
        formats={"Tokens": ".1f", "Best": ".1f"},
        note=table_note(
            curves,
            "Exact in every cell; the averaged frontiers are read off a grid of 1,001 budgets."
            if len(cells) > 1
            else "Exact.",
        ),
        totals=int(len(cells) > 1),
    )


def spread_table(curves: Curves, summary: Summary) -> Table:
    """Return how much OR and AD differ between a question's trajectories, a row a cell."""
    frame = pair_differences(summary.trajectories)
    keys: list[tuple[int, int]] = frame.index.tolist()
    several = len(summary.cells) > 1
    kept = [key for key in keys if AVERAGE not in key or (several and key == (AVERAGE, AVERAGE))]
    labels = [cell_labels(curves, m, b) for m, b in kept]
    return Table(
        name="spread",
        title="Mean absolute difference between two trajectories of a question, points",
        frame=pd.DataFrame(
            100 * frame.loc[kept].to_numpy(float),
            index=pd.MultiIndex.from_tuples(labels, names=["Model", "Benchmark"]),
            columns=["OR", "AD"],
        ),
        formats={"OR": ".2f", "AD": ".2f"},
        note=table_note(curves, rank_sentence(summary)),
    )


def changes_table(curves: Curves, changes: pd.DataFrame) -> Table:
    """Return the fractions of rising, falling and flat steps by progress (Figure 2)."""
    return Table(
        name="changes",
        title="Changes of accuracy from step to step, % of the steps, by thinking tokens so far",
        frame=pd.DataFrame(
            {
                "Steps": changes["steps"].to_numpy(),
                "Rise": 100 * changes["positive"].to_numpy(),
                "Fall": 100 * changes["negative"].to_numpy(),
                "Stay": 100 * changes["flat"].to_numpy(),
                "Falls per rise": changes["negative_to_positive"].to_numpy(),
            },
            index=pd.MultiIndex.from_arrays(
                [changes["from_tokens"], changes["to_tokens"]], names=["From", "To"]
            ),
        ),
        formats={"Rise": ".1f", "Fall": ".1f", "Stay": ".1f"},
        note=table_note(curves, "Steps of all models and benchmarks are pooled."),
    )
