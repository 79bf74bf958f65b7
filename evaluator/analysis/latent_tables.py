"""Tables of latent curves, always beside what the paper's definitions give on the same counts."""

import numpy as np
import pandas as pd

from data.progress import NOBODY, Progress
from evaluator.analysis.frontiers import STRATEGY_LABELS
from evaluator.analysis.latent import LatentCurves, fit, interval_widths, latent_frontier
from evaluator.analysis.nesting import AVERAGE, averages_of_cells, nesting_of, with_averages
from evaluator.analysis.overthinking import per_trajectory
from evaluator.analysis.table_labels import cell_labels, table_note
from evaluator.present.table import Table
from oracle.actions import STRATEGIES
from stp.curves import Curves
from stp.seeds import PAPER_SEED

TOLERANCE = 0.03
TOLERANCES = (0.01, 0.03, 0.05)


def latent_curves(
    curves: Curves, *, draws: int = 20, workers: int | None = None, progress: Progress = NOBODY
) -> LatentCurves | None:
    """Return the fit behind the tables; None if nothing thinks, so that there is no curve."""
    if not draws or not np.any(curves.full_tokens_s):
        return None
    return fit(curves, draws=draws, workers=workers, progress=progress)


def latent_table(latent: LatentCurves) -> Table:
    """Return measured and latent AD and OR of every cell, with intervals."""
    curves = latent.curves
    keys = _rows(curves)
    raw = _measured(curves)
    averages = latent.averages(TOLERANCE)
    columns = {}
    for short, measure in (("AD", "accuracy_degradation"), ("OR", "overthinking_ratio")):
        columns[short, "measured"] = [raw[key][measure] for key in keys]
        for name, label in (("estimate", "latent"), ("low", "low"), ("high", "high")):
            values = averages.xs(measure, level="measure")[name]
            columns[short, label] = [100 * float(values.loc[key]) for key in keys]
    degraded = averages.xs("degraded", level="measure")["estimate"]
    columns["Degrade", "latent"] = [100 * float(degraded.loc[key]) for key in keys]
    return Table(
        name="latent",
        title="Measured and latent: AD in points, OR in %, trajectories that degrade in %",
        frame=pd.DataFrame(
            columns,
            index=pd.MultiIndex.from_tuples(
                [cell_labels(curves, *key) for key in keys], names=["Model", "Benchmark"]
            ),
        ),
        note=table_note(
            curves,
            "Measured: the paper's definitions on the counts. Latent: on the accuracies behind "
            "them; OR counts thinking after the first position within 3 points of the best, and "
            "so is defined differently from the measured one. Degrade: AD of more than 3 points. "
            "Low and high: 95 % for the average of these trajectories, if accuracies move as the "
            "model says.",
            *latent.notes,
        ),
    )


def tolerance_table(latent: LatentCurves) -> Table:
    """Return latent OR, and the share that degrades, by tolerance."""
    rows = []
    for tolerance in TOLERANCES:
        averages = latent.averages(tolerance).xs((AVERAGE, AVERAGE), level=("model", "benchmark"))
        rows.append(
            [
                100 * float(averages[column].loc[measure])
                for measure in ("overthinking_ratio", "degraded")
                for column in ("estimate", "low", "high")
            ]
        )
    return Table(
        name="latent-tolerances",
        title="Latent OR in %, and trajectories that degrade in %, by tolerance in points",
        frame=pd.DataFrame(
            rows,
            index=pd.Index([round(100 * one) for one in TOLERANCES], name="Tolerance"),
            columns=pd.MultiIndex.from_product([["OR", "Degrade"], ["latent", "low", "high"]]),
        ),
        note=table_note(latent.curves, "Averages over all cells."),
    )


def latent_frontier_table(
    latent: LatentCurves, steps: int = 20, *, progress: Progress = NOBODY
) -> Table:
    """Return averaged frontiers: measured, if P were known, and of the best decisions."""
    curves = latent.curves
    keys = [(model, benchmark) for model, benchmark, _ in curves.cells()]
    columns = {}
    for place, strategy in enumerate(STRATEGIES):
        found = []
        for model, benchmark in keys:
            found.append(
                latent_frontier(latent, strategy, model=model, benchmark=benchmark, steps=steps)
            )
            progress(place * len(keys) + len(found), len(STRATEGIES) * len(keys))
        for label, values in (
            ("measured", [one.measured for one in found]),
            ("knowing P", [one.knowing for one in found]),
            ("deciding", [one.decided for one in found]),
        ):
            average = averages_of_cells(keys, values)[AVERAGE, AVERAGE]
            columns[STRATEGY_LABELS[strategy], label] = 100 * average
    frame = pd.DataFrame(columns)
    frame.index = pd.Index([f"{j / steps:.0%}" for j in range(steps + 1)], name="Budget")
    return Table(
        name="latent-frontiers",
        title="Best accuracy in % by budget: measured, if P were known, deciding on the data",
        frame=frame,
        note=table_note(
            curves,
            "Measured: chosen and scored on the same counts. Knowing P: the mean over drawn curves "
            "of each one's own frontier. Deciding: chosen by the posterior mean, and what that is "
            "worth in expectation.",
        ),
    )


def latent_sentences(latent: LatentCurves) -> tuple[str, ...]:
    """Say what latent AD is, and how much the campaign's probes told."""
    averages = latent.averages(TOLERANCE).xs((AVERAGE, AVERAGE), level=("model", "benchmark"))
    measured = _measured(latent.curves)[AVERAGE, AVERAGE]["accuracy_degradation"]
    estimates = averages["estimate"]
    degradation = 100 * float(estimates.loc["accuracy_degradation"])
    degraded = 100 * float(estimates.loc["degraded"])
    sentences = [
        f"Behind the counts: AD of {degradation:.1f} points (measured {measured:.1f}), and "
        f"{degraded:.0f} % of the trajectories lose more than 3 points by thinking to the end."
    ]
    if latent.curves.probes > 1 and not latent.raw_s.any():
        half = latent.curves.probes // 2
        full, thinner = interval_widths(latent, half, seed=PAPER_SEED)
        if full > 0:
            sentences.append(
                f"Precision: with {half} instead of {latent.curves.probes} probes at "
                f"every position, 95 % intervals of P(k) would be {100 * (thinner / full - 1):.0f} "
                f"% wider ({100 * thinner:.1f} instead of {100 * full:.1f} points)."
            )
    return (*sentences, *latent.notes)


def _rows(curves: Curves) -> list[tuple[int, int]]:
    cells = [(model, benchmark) for model, benchmark, _ in curves.cells()]
    return [*cells, (AVERAGE, AVERAGE)] if len(cells) > 1 else cells


def _measured(curves: Curves) -> dict[tuple[int, int], dict[str, float]]:
    """Return the paper's AD and OR of every cell and average, in points and percent."""
    frame = per_trajectory(curves)
    names = ["accuracy_degradation", "overthinking_ratio"]
    nesting = nesting_of(frame)
    means = with_averages(nesting.cell_means(frame[names].to_numpy(np.float64)))
    models, benchmarks = (
        [*nesting.models.tolist(), AVERAGE],
        [*nesting.benchmarks.tolist(), AVERAGE],
    )
    return {
        (model, benchmark): {
            name: 100 * float(value) for name, value in zip(names, means[m, b], strict=True)
        }
        for m, model in enumerate(models)
        for b, benchmark in enumerate(benchmarks)
    }
