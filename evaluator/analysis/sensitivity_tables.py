"""Tables of what fewer probes or trajectories would have shown, and of what probe noise adds."""

from collections.abc import Hashable, Mapping

import pandas as pd

from data.progress import NOBODY, Progress
from evaluator.analysis.crossfit import bias_aware
from evaluator.analysis.crossfit_frontier import cross_fitted_frontier
from evaluator.analysis.frontiers import STRATEGY_LABELS
from evaluator.analysis.nesting import AVERAGE, averages_of_cells
from evaluator.analysis.table_labels import cell_labels, table_note
from evaluator.analysis.tables import FrameRow
from evaluator.analysis.thinning import probe_sensitivity, trajectory_sensitivity
from evaluator.present.table import Table
from oracle.actions import STRATEGIES
from stp.curves import Curves

PROBE_COUNTS = (4, 8, 12, 16)
POOL_SIZES = (2, 4, 8, 16)
"""Probes per position and trajectories per question of the paper's appendix B.2."""

ESTIMATOR_LABELS = {
    "measured": "Measured (paper)",
    "cross_fitted": "Half and half",
    "leave_one_out": "Leave one out",
    "pieces": "Pieces",
}


def sensitivity_table(curves: Curves) -> Table:
    """Return OR, AD and the probability of keeping k* with fewer probes (B.2)."""
    wanted = sorted({m for m in PROBE_COUNTS if m < curves.probes} | {curves.probes})
    rows: Mapping[Hashable, FrameRow] = probe_sensitivity(curves, wanted).to_dict("index")
    return Table(
        name="probe-sensitivity",
        title="Fewer probes per position: expected OR in %, AD in points, chance to keep k* in %",
        frame=pd.DataFrame(
            [[100 * float(value) for value in rows[m, AVERAGE, AVERAGE].values()] for m in wanted],
            index=pd.Index(wanted, name="Probes"),
            columns=["OR", "AD", "Keeps k*"],
        ),
        note=table_note(curves, "Exact expectations over the probes that are kept."),
    )


def trajectory_sensitivity_table(curves: Curves, progress: Progress = NOBODY) -> Table:
    """Return OR and AD with fewer trajectories per question, with their ranges (B.2)."""
    most = int(curves.sample.max(initial=0)) + 1
    wanted = sorted({r for r in POOL_SIZES if r < most} | {most})
    rows: Mapping[Hashable, FrameRow] = trajectory_sensitivity(
        curves, wanted, progress=progress
    ).to_dict("index")
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
        note=table_note(
            curves,
            "Subsets of the observed trajectories, 2,000 seeded draws; ranges, not confidence "
            "intervals.",
        ),
    )


def bias_aware_table(curves: Curves) -> Table:
    """Return OR and AD of every cell by estimators that allow for probe noise.

    The paper's estimate takes the maximum of noisy accuracies as it is; see
    :mod:`evaluator.analysis.crossfit`.
    """
    rows: Mapping[Hashable, FrameRow] = bias_aware(curves).to_dict("index")
    estimators = [name for name in ESTIMATOR_LABELS if (name, AVERAGE, AVERAGE) in rows]
    cells: list[tuple[int, int]] = [(model, benchmark) for model, benchmark, _ in curves.cells()]
    keys = [*cells, (AVERAGE, AVERAGE)] if len(cells) > 1 else cells
    return Table(
        name="bias-aware",
        title="OR in % and AD in points by ways to allow for probe noise",
        frame=pd.DataFrame(
            [
                [100 * float(value) for name in estimators for value in rows[name, m, b].values()]
                for m, b in keys
            ],
            index=pd.MultiIndex.from_tuples(
                [cell_labels(curves, m, b) for m, b in keys], names=["Model", "Benchmark"]
            ),
            columns=pd.MultiIndex.from_product(
                [[ESTIMATOR_LABELS[name] for name in estimators], ["OR", "AD"]]
            ),
        ),
        note=table_note(
            curves,
            "Measured: k* and P(k*) from the same probes. Half and half, leave one out: k* is "
            "chosen on half of the probes, or on all but one, and its accuracy measured on the "
            "rest. Pieces: a piecewise constant curve is fitted. In expectation true AD lies "
            "between measured and leave one out.",
        ),
    )


def bias_sentence(table: Table) -> str:
    """Give bounds of the true AD, from :func:`bias_aware_table`; nothing with one probe."""
    measured, held_out = ((ESTIMATOR_LABELS[n], "AD") for n in ("measured", "leave_one_out"))
    if held_out not in table.frame.columns:
        return ""
    overall = table.frame.iloc[-1]
    return (
        f"Noisy probes make the measured AD too high: in expectation the true AD lies between "
        f"{overall[held_out]:.1f} points (k* chosen on all probes but one and measured on that "
        f"one) and {overall[measured]:.1f}."
    )


def cross_fitted_table(curves: Curves, steps: int = 20, *, progress: Progress = NOBODY) -> Table:
    """Return averaged frontiers, and the accuracy of their choices on other probes.

    A frontier that is chosen and scored on the same probes is optimistic; here half of the probes
    choose and the other half score. See :mod:`evaluator.analysis.crossfit_frontier`.
    """
    cells = list(curves.cells())
    keys = [(model, benchmark) for model, benchmark, _ in cells]
    columns = {}
    done, total = 0, len(STRATEGIES) * len(cells)
    for strategy in STRATEGIES:
        fitted = []
        for _, _, cell in cells:
            fitted.append(cross_fitted_frontier(cell, strategy, steps=steps))
            done += 1
            progress(done, total)
        for label, values in (
            ("same probes", [f.measured_accuracy for f in fitted]),
            ("other probes", [f.accuracy for f in fitted]),
        ):
            average = averages_of_cells(keys, values)[AVERAGE, AVERAGE]
            columns[STRATEGY_LABELS[strategy], label] = 100 * average
    frame = pd.DataFrame(columns)
    frame.index = pd.Index([f"{j / steps:.0%}" for j in range(steps + 1)], name="Budget")
    return Table(
        name="cross-fitted-frontiers",
        title="Best accuracy in % by budget: scored on the probes that chose, and on others",
        frame=frame,
        note=table_note(curves, "One random split of the probes, used in both directions."),
    )
