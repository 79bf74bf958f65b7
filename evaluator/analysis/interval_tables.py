"""Tables of intervals: of every average, of differences between models, of the frontiers."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evaluator.analysis.bootstrap import CurveBootstrap, Quantity
from evaluator.analysis.frontiers import STRATEGY_LABELS, AverageFrontier
from evaluator.analysis.nesting import AVERAGE
from evaluator.analysis.table_labels import benchmark_label, model_label, table_note
from evaluator.analysis.tables import FrameRow
from evaluator.present.table import Table
from stp.curves import Curves
from stp.ragged import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStatistic:
    """How a statistic is printed: title, column head, factor and decimals."""

    title: str
    head: str
    scale: float = 100.0
    digits: int = 2


INTERVALS = {
    "overthinking_ratio": ShownStatistic(title="OR, %", head="OR"),
    "accuracy_degradation": ShownStatistic(title="AD, percentage points", head="AD"),
    "original_accuracy": ShownStatistic(title="Accuracy of original answers, %", head="Accuracy"),
    "full_accuracy": ShownStatistic(title="P(n), %", head="P(n)"),
    "full_tokens": ShownStatistic(title="Mean thinking tokens", head="Tokens", scale=1.0, digits=0),
}

_ENDS = ("estimate", "low", "high")


def interval_table(curves: Curves, bootstrap: CurveBootstrap, statistic: str) -> Table:
    """Return one statistic with its 95 % intervals (Tables 4 to 6).

    Parameters
    ----------
    curves
        What was resampled.
    bootstrap
        Its replicates.
    statistic
        A key of :data:`INTERVALS` that was resampled.
    """
    shown = INTERVALS[statistic]
    intervals: Mapping[Hashable, FrameRow] = bootstrap.intervals().to_dict("index")
    models = [m for m in bootstrap.models if m != AVERAGE or len(bootstrap.models) > 2]
    benchmarks = [b for b in bootstrap.benchmarks if b != AVERAGE or len(bootstrap.benchmarks) > 2]
    values = [
        [
            shown.scale * float(intervals[statistic, model, benchmark][end])
            if (statistic, model, benchmark) in intervals
            else np.nan
            for benchmark in benchmarks
            for end in _ENDS
        ]
        for model in models
    ]
    return Table(
        name=f"intervals-{statistic.replace('_', '-')}",
        title=f"95 % intervals: {shown.title}",
        frame=pd.DataFrame(
            values,
            index=pd.Index([model_label(curves, m) for m in models], name="Model"),
            columns=pd.MultiIndex.from_tuples(
                [(benchmark_label(curves, b), end) for b in benchmarks for end in _ENDS]
            ),
        ),
        formats=dict.fromkeys(_ENDS, f",.{shown.digits}f"),
        note=table_note(curves, _bootstrap_note(bootstrap)),
    )


def interval_sentence(bootstrap: CurveBootstrap) -> str:
    """Say the macro-averages of OR, AD, original accuracy and tokens with their 95 % intervals."""
    parts = []
    for name, unit in (
        ("overthinking_ratio", "%"),
        ("accuracy_degradation", " points"),
        ("original_accuracy", "%"),
        ("full_tokens", ""),
    ):
        shown = INTERVALS[name]
        found = bootstrap.interval(Quantity(statistic=name))
        if not np.isnan(found.estimate):
            digits = min(shown.digits, 1)
            estimate, low, high = (
                f"{shown.scale * value:,.{digits}f}"
                for value in (found.estimate, found.low, found.high)
            )
            parts.append(f"{_SAID[name]} {estimate}{unit} ({low} to {high})")
    return f"With 95 % intervals: {', '.join(parts)}."


_SAID = {
    "overthinking_ratio": "OR",
    "accuracy_degradation": "AD",
    "original_accuracy": "accuracy of the models' own answers",
    "full_tokens": "thinking tokens",
}


def difference_table(curves: Curves, bootstrap: CurveBootstrap, statistic: str) -> Table:
    """Return the paired differences of one statistic between all pairs of models.

    Parameters are those of :func:`interval_table`. A row a pair and benchmark, then the average
    over benchmarks: estimate and 95 % interval of the first model minus the second.
    """
    shown = INTERVALS[statistic]
    found = shown.scale * bootstrap.model_differences(statistic)
    several = len(bootstrap.benchmarks) > 2
    keys: list[tuple[int, int, int]] = found.index.tolist()
    kept = [key for key in keys if several or key[2] != AVERAGE]
    return Table(
        name=f"differences-{statistic.replace('_', '-')}",
        title=f"Differences between models, with 95 % intervals: {shown.title}",
        frame=pd.DataFrame(
            found.loc[kept].to_numpy(float),
            index=pd.MultiIndex.from_tuples(
                [
                    (model_label(curves, a), model_label(curves, b), benchmark_label(curves, c))
                    for a, b, c in kept
                ],
                names=["Model", "minus", "Benchmark"],
            ),
            columns=["Difference", "low", "high"],
        ),
        formats=dict.fromkeys(("Difference", "low", "high"), f"+,.{shown.digits}f"),
        note=table_note(
            curves,
            _bootstrap_note(bootstrap),
            "Not corrected for the number of comparisons.",
        ),
    )


def _bootstrap_note(bootstrap: CurveBootstrap) -> str:
    return (
        f"Percentiles of {len(bootstrap.replicates):,} paired bootstrap replicates of questions "
        f"and trajectories, seed {bootstrap.seed}; probe labels are fixed."
    )


def frontier_table(curves: Curves, frontiers: Sequence[AverageFrontier]) -> Table:
    """Return the averaged frontiers on their own grid, the paper's of 1,001 budgets (Figure 5)."""
    points = frontiers[0].accuracy.size - 1
    return Table(
        name="frontiers",
        title="Best accuracy in % by budget of thinking tokens",
        frame=pd.DataFrame(
            {STRATEGY_LABELS[f.strategy]: 100 * f.accuracy for f in frontiers},
            index=pd.Index([f"{j / points:.1%}" for j in range(points + 1)], name="Budget"),
        ),
        note=table_note(curves, "Exact in every cell, averaged; no interpolation."),
    )


def frontier_interval_table(
    curves: Curves,
    frontiers: Sequence[AverageFrontier],
    bands: Mapping[str, tuple[FloatArray, FloatArray]],
    replicates: int,
) -> Table:
    """Return averaged frontiers with pointwise intervals at 101 budgets (Figure 5)."""
    columns = {}
    for frontier in frontiers:
        low, high = bands[frontier.strategy]
        every = (frontier.accuracy.size - 1) // (low.size - 1)
        label = STRATEGY_LABELS[frontier.strategy]
        columns[label, "best"] = 100 * frontier.accuracy[::every]
        columns[label, "low"] = 100 * low
        columns[label, "high"] = 100 * high
    frame = pd.DataFrame(columns)
    frame.index = pd.Index(
        [f"{j / (len(frame) - 1):.0%}" for j in range(len(frame))], name="Budget"
    )
    return Table(
        name="frontier-intervals",
        title="Best accuracy in % by budget of thinking tokens, with 95 % intervals",
        frame=frame,
        note=table_note(
            curves,
            f"Pointwise percentiles of {replicates:,} paired bootstrap replicates, each solved "
            "exactly again.",
        ),
    )
