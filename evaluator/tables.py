"""The tables of paper 002, each a function from measurements to a :class:`Table`.

Percentages and percentage points are made here; everything before is fractions. Rows are models,
columns benchmarks; "Average" gives benchmarks, then models, equal weight.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evaluator.bootstrap import Bootstrap
from evaluator.crossfit import bias_aware
from evaluator.crossfit_frontier import cross_fitted_frontier
from evaluator.findings import pair_differences
from evaluator.frontiers import (
    STRATEGY_LABELS,
    AverageFrontier,
    CellFrontiers,
    FloatArray,
    average_over_models,
    average_savings,
    savings,
)
from evaluator.groups import completeness
from evaluator.names import benchmark_name, model_name, visible
from evaluator.nesting import AVERAGE
from evaluator.overthinking import Summary
from evaluator.table_text import Table
from evaluator.thinning import probe_sensitivity, trajectory_sensitivity
from oracle.actions import STRATEGIES
from stp.curves import Curves

AVERAGE_LABEL = "Average"
POOL_SIZES = (2, 4, 8, 16)
"""Trajectories per question of the paper's appendix B.2."""

ESTIMATOR_LABELS = {
    "measured": "As measured (paper)",
    "cross_fitted": "k* from half of the probes, measured on the rest",
    "leave_one_out": "k* from all probes but one, measured on that one",
    "pieces": "Piecewise constant curve, fitted",
}
Row = Mapping[Hashable, Any]
Value = Callable[[Row], float]


def _percent(name: str) -> Value:
    return lambda row: 100.0 * float(row[name])


def _model(curves: Curves, model: int) -> str:
    return AVERAGE_LABEL if model == AVERAGE else model_name(curves, model)


def _benchmark(curves: Curves, benchmark: int) -> str:
    return AVERAGE_LABEL if benchmark == AVERAGE else benchmark_name(curves, benchmark)


def _by_model_and_benchmark(
    curves: Curves, summary: Summary, columns: Mapping[str, Value]
) -> pd.DataFrame:
    """Return models x (benchmark, column), with averages where there is something to average."""
    cells: Mapping[Hashable, Row] = summary.cells.to_dict("index")
    by_model: Mapping[Hashable, Row] = summary.models.to_dict("index")
    by_benchmark: Mapping[Hashable, Row] = summary.benchmarks.to_dict("index")
    rows: dict[Hashable, Row] = {
        **cells,
        **{(model, AVERAGE): row for model, row in by_model.items()},
        **{(AVERAGE, benchmark): row for benchmark, row in by_benchmark.items()},
        (AVERAGE, AVERAGE): summary.overall.to_dict(),
    }
    models, benchmarks = summary.models.index.tolist(), summary.benchmarks.index.tolist()
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
        index=pd.Index([_model(curves, m) for m in row_keys], name="Model"),
        columns=pd.MultiIndex.from_tuples(
            [(_benchmark(curves, b), column) for b in column_keys for column in columns]
        ),
    )


def _note(curves: Curves, *sentences: str) -> str:
    n = f"n = {curves.trajectories:,} trajectories, {curves.probes} probes per position."
    return " ".join([n, *filter(None, sentences), completeness(curves).note]).strip()


def overthinking_table(curves: Curves, summary: Summary) -> Table:
    """Return OR and AD of every cell (Table 1)."""
    return Table(
        name="overthinking",
        title="Overthinking: OR in % of thinking tokens, AD in percentage points",
        frame=_by_model_and_benchmark(
            curves,
            summary,
            {"OR": _percent("overthinking_ratio"), "AD": _percent("accuracy_degradation")},
        ),
        formats={"OR": ".1f", "AD": ".2f"},
        note=_note(curves),
    )


def baseline_table(curves: Curves, summary: Summary) -> Table:
    """Return the accuracy of the original answers and the mean thinking tokens (Table 3)."""
    return Table(
        name="baselines",
        title="Original full thinking: accuracy in %, mean thinking tokens",
        frame=_by_model_and_benchmark(
            curves,
            summary,
            {
                "Acc.": _percent("original_accuracy"),
                "Tokens": lambda row: float(row["full_tokens"]),
            },
        ),
        formats={"Acc.": ".2f", "Tokens": ",.0f"},
        note=_note(curves, "Accuracy of the models' own final answers, not P(n)."),
    )


def probed_accuracy_table(curves: Curves, summary: Summary) -> Table:
    """Return P(0), P(n) and P(k*) of every cell."""
    return Table(
        name="probed-accuracy",
        title="Probed accuracy in %: without thinking, after all of it, at the reference position",
        frame=_by_model_and_benchmark(
            curves,
            summary,
            {
                "P(0)": _percent("zero_accuracy"),
                "P(n)": _percent("full_accuracy"),
                "P(k*)": _percent("best_accuracy"),
            },
        ),
        formats={"P(0)": ".1f", "P(n)": ".1f", "P(k*)": ".1f"},
        note=_note(curves),
    )


INTERVAL_TITLES = {
    "overthinking_ratio": "OR, %",
    "accuracy_degradation": "AD, percentage points",
    "original_accuracy": "Accuracy of original answers, %",
    "full_accuracy": "P(n), %",
    "full_tokens": "Mean thinking tokens",
}


def interval_table(curves: Curves, bootstrap: Bootstrap, statistic: str) -> Table:
    """Return the 95 % intervals of one statistic (Tables 4 to 6).

    Parameters
    ----------
    curves
        What was resampled.
    bootstrap
        Its replicates.
    statistic
        A key of :data:`INTERVAL_TITLES` that was resampled.
    """
    scale, digits = (1.0, 0) if statistic == "full_tokens" else (100.0, 2)
    intervals: Mapping[Hashable, Row] = bootstrap.intervals().to_dict("index")
    models = [m for m in bootstrap.models if m != AVERAGE or len(bootstrap.models) > 2]
    benchmarks = [b for b in bootstrap.benchmarks if b != AVERAGE or len(bootstrap.benchmarks) > 2]
    values = [
        [
            scale * float(intervals[statistic, model, benchmark][end])
            if (statistic, model, benchmark) in intervals
            else np.nan
            for benchmark in benchmarks
            for end in ("low", "high")
        ]
        for model in models
    ]
    return Table(
        name=f"intervals-{statistic.replace('_', '-')}",
        title=f"95 % intervals: {INTERVAL_TITLES[statistic]}",
        frame=pd.DataFrame(
            values,
            index=pd.Index([_model(curves, m) for m in models], name="Model"),
            columns=pd.MultiIndex.from_tuples(
                [(_benchmark(curves, b), end) for b in benchmarks for end in ("low", "high")]
            ),
        ),
        formats={"low": f",.{digits}f", "high": f",.{digits}f"},
        note=_note(
            curves,
            f"Percentiles of {len(bootstrap.replicates):,} paired bootstrap replicates of "
            f"questions and trajectories, seed {bootstrap.seed}; probe labels are fixed.",
        ),
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
        benchmark name). It is another measurement than P(0) and comes from elsewhere; where it
        is left out there is no such column.
    """
    others = ""
    if direct is None:
        frame = _by_model_and_benchmark(curves, summary, {"Zero-step": _percent("zero_accuracy")})
    else:
        cells = summary.cells.copy()
        names = [(_model(curves, m), _benchmark(curves, b)) for m, b in cells.index.tolist()]
        cells["direct_accuracy"] = [direct.get(name) for name in names]
        cells["direct_accuracy"] = cells["direct_accuracy"].astype(float)
        if unknown := sorted(direct.keys() - set(names)):
            listed = "; ".join(f"{model} on {benchmark}" for model, benchmark in unknown)
            others = f"Direct accuracies that belong to no cell here: {visible(listed)}."
        models = cells.groupby("model").mean()
        with_direct = Summary(
            trajectories=summary.trajectories,
            questions=summary.questions,
            cells=cells,
            models=models,
            benchmarks=cells.groupby("benchmark").mean(),
            overall=models.mean(),
        )
        frame = _by_model_and_benchmark(
            curves,
            with_direct,
            {"Zero-step": _percent("zero_accuracy"), "Direct": _percent("direct_accuracy")},
        )
    return Table(
        name="zero-step",
        title="Answers without thinking: accuracy in %",
        frame=frame,
        formats={"Zero-step": ".2f", "Direct": ".2f"},
        note=_note(
            curves, "Zero-step: probes at k = 0, in the prompt that asks for reasoning.", others
        ),
    )


def savings_table(curves: Curves, cells: tuple[CellFrontiers, ...]) -> Table:
    """Return what each strategy could save at equal accuracy, and reach at best."""
    rows = savings(cells)
    average = average_savings(cells)
    index, values = [], []
    for cell in cells:
        own = rows[(rows["model"] == cell.model) & (rows["benchmark"] == cell.benchmark)]
        index.append(
            (
                _model(curves, cell.model),
                _benchmark(curves, cell.benchmark),
            )
        )
        values.append(own[["equal_tokens_fraction", "best_accuracy"]].to_numpy(float).ravel())
    if len(cells) > 1:
        index.append((AVERAGE_LABEL, ""))
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
        note=_note(
            curves,
            "Exact in every cell; the average is read off the averaged frontiers on a grid of "
            "1,001 budgets."
            if len(cells) > 1
            else "Exact.",
        ),
    )


def spread_table(curves: Curves, summary: Summary) -> Table:
    """Return how much OR and AD differ between a question's trajectories, a row a cell."""
    frame = pair_differences(summary.trajectories)
    keys: list[tuple[int, int]] = frame.index.tolist()
    several = len(summary.cells) > 1
    kept = [key for key in keys if AVERAGE not in key or (several and key == (AVERAGE, AVERAGE))]
    labels = [(_model(curves, m), "" if m == AVERAGE else _benchmark(curves, b)) for m, b in kept]
    return Table(
        name="spread",
        title="Mean absolute difference between two trajectories of a question, points",
        frame=pd.DataFrame(
            100 * frame.loc[kept].to_numpy(float),
            index=pd.MultiIndex.from_tuples(labels, names=["Model", "Benchmark"]),
            columns=["OR", "AD"],
        ),
        formats={"OR": ".2f", "AD": ".2f"},
        note=_note(curves),
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
        note=_note(curves, "Steps of all models and benchmarks are pooled."),
    )


def sensitivity_table(curves: Curves) -> Table:
    """Return OR, AD and the probability of keeping k* with fewer probes (B.2)."""
    wanted = sorted({m for m in (4, 8, 12, 16) if m < curves.probes} | {curves.probes})
    rows: Mapping[Hashable, Row] = probe_sensitivity(curves, wanted).to_dict("index")
    return Table(
        name="probe-sensitivity",
        title="Fewer probes per position: expected OR in %, AD in points, chance to keep k* in %",
        frame=pd.DataFrame(
            [[100 * float(value) for value in rows[m, AVERAGE, AVERAGE].values()] for m in wanted],
            index=pd.Index(wanted, name="Probes"),
            columns=["OR", "AD", "Keeps k*"],
        ),
        note=_note(curves, "Exact expectations over the probes that are kept."),
    )


def trajectory_sensitivity_table(curves: Curves) -> Table:
    """Return OR and AD with fewer trajectories per question, with their ranges (B.2)."""
    most = int(curves.sample.max(initial=0)) + 1
    wanted = sorted({r for r in POOL_SIZES if r < most} | {most})
    rows: Mapping[Hashable, Row] = trajectory_sensitivity(curves, wanted).to_dict("index")
    labels = {"overthinking_ratio": "OR", "accuracy_degradation": "AD"}
    return Table(
        name="trajectory-sensitivity",
        title="Fewer trajectories per question: OR in %, AD in points, with 95 % ranges of draws",
        frame=pd.DataFrame(
            [
                [
                    100 * float(rows[r, statistic, AVERAGE, AVERAGE][column])
                    for statistic in labels
                    for column in ("mean", "low", "high")
                ]
                for r in wanted
            ],
            index=pd.Index(wanted, name="Trajectories"),
            columns=pd.MultiIndex.from_product([labels.values(), ("mean", "low", "high")]),
        ),
        note=_note(
            curves,
            "Subsets of the trajectories at hand, seeded draws; ranges, no confidence intervals.",
        ),
    )


def cross_fitted_table(curves: Curves, steps: int = 20) -> Table:
    """Return averaged frontiers beside what their choices are worth on other probes.

    A frontier that is chosen and scored on the same probes is optimistic; here half of the probes
    choose and the other half score. See :mod:`evaluator.crossfit_frontier`.
    """
    cells = [(model, cell) for model, _, cell in curves.cells()]
    models = np.array([model for model, _ in cells])
    columns = {}
    for strategy in STRATEGIES:
        fitted = [cross_fitted_frontier(cell, strategy, steps=steps) for _, cell in cells]
        for label, values in (
            ("same probes", [f.measured_accuracy for f in fitted]),
            ("other probes", [f.accuracy for f in fitted]),
        ):
            columns[STRATEGY_LABELS[strategy], label] = 100 * average_over_models(models, values)
    frame = pd.DataFrame(columns)
    frame.index = pd.Index([f"{j / steps:.0%}" for j in range(steps + 1)], name="Budget")
    return Table(
        name="cross-fitted-frontiers",
        title="Best accuracy in % by budget: scored on the probes that chose, and on others",
        frame=frame,
        note=_note(curves, "One random split of the probes, used in both directions."),
    )


def bias_aware_table(curves: Curves) -> Table:
    """Return OR and AD by estimators that choose k* and measure at it on different probes.

    The paper's estimate takes the maximum of noisy accuracies for what it measures; see
    :mod:`evaluator.crossfit`.
    """
    rows: Mapping[Hashable, Row] = bias_aware(curves).to_dict("index")
    found = [name for name in ESTIMATOR_LABELS if (name, AVERAGE, AVERAGE) in rows]
    return Table(
        name="bias-aware",
        title="OR in % and AD in points, averaged, by ways to allow for probe noise",
        frame=pd.DataFrame(
            [[100 * float(v) for v in rows[name, AVERAGE, AVERAGE].values()] for name in found],
            index=pd.Index([ESTIMATOR_LABELS[name] for name in found], name="Estimate"),
            columns=["OR", "AD"],
        ),
        note=_note(curves, "The first row is the paper's; beyond the paper are the others."),
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
        note=_note(
            curves,
            f"Pointwise percentiles of {replicates:,} paired bootstrap replicates, each solved "
            "exactly again.",
        ),
    )
