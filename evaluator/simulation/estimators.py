"""Statistics checked against worlds whose truth is known.

``docs/statistics.md`` quotes what these functions found; ``scripts/statistics_simulations.py`` runs
them.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from evaluator.analysis.bootstrap import Quantity, bootstrap_curves
from evaluator.analysis.crossfit import estimates
from evaluator.analysis.crossfit_frontier import action_rewards, cross_fitted_frontier
from evaluator.analysis.nesting import AVERAGE, nesting_of, with_averages
from evaluator.analysis.overthinking import per_trajectory
from evaluator.simulation.worlds import Population, World, make_world
from oracle.actions import STRATEGIES
from oracle.frontier import exact_frontier, grid_budgets
from stp.ragged import FloatArray, IntArray, first_where, greatest

_MILLION = 1_000_000
COVERED = ("overthinking_ratio", "accuracy_degradation", "original_accuracy", "full_tokens")


def true_overthinking(world: World, tolerance: float = 0.0) -> pd.DataFrame:
    """Return OR and AD of the accuracies behind the counts.

    Parameters
    ----------
    world
        From :func:`evaluator.simulation.worlds.make_world`.
    tolerance
        The reference is the earliest position whose accuracy is within this of the maximum. AD
        is that of the maximum itself.

    Returns
    -------
    pandas.DataFrame
        One row per trajectory: ``model``, ``benchmark``, ``question``, ``sample``,
        ``overthinking_ratio``, ``accuracy_degradation``.
    """
    curves = world.curves
    best = greatest(world.accuracy, curves.trajectory_offsets)
    near = world.accuracy >= curves.spread(best) - tolerance
    reference = first_where(near, curves.trajectory_offsets)
    full = curves.full_tokens_s
    return pd.DataFrame(
        {
            "model": curves.model,
            "benchmark": curves.benchmark,
            "question": curves.question,
            "sample": curves.sample,
            "overthinking_ratio": (full - curves.tokens[reference]) / np.maximum(full, 1),
            "accuracy_degradation": best - world.accuracy[curves.trajectory_offsets[1:] - 1],
        }
    )


def bias_table(population: Population, seed: int) -> pd.DataFrame:
    """Return the macro-averages of the truth and of every estimator in one world.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``source``: ``truth``, ``truth within 0.05`` (of the maximum), and the
        estimators of :mod:`evaluator.analysis.crossfit`; the fractions ``overthinking_ratio`` and
        ``accuracy_degradation``, and the mean absolute error of each per trajectory
        (``overthinking_ratio_error``, ``accuracy_degradation_error``).
    """
    world = make_world(population, seed)
    columns = ["overthinking_ratio", "accuracy_degradation"]
    truth = true_overthinking(world)
    nesting = nesting_of(truth)
    frames = {
        "truth": truth,
        "truth within 0.05": true_overthinking(world, 0.05),
        **estimates(world.curves),
    }
    rows = {}
    for name, frame in frames.items():
        values = frame[columns].to_numpy(np.float64)
        errors = np.abs(values - truth[columns].to_numpy(np.float64))
        cells = nesting.cell_means(np.concatenate([values, errors], axis=1))
        rows[name] = with_averages(cells)[-1, -1]
    names = [*columns, *(f"{column}_error" for column in columns)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=names).rename_axis("source")


def frontier_bias_table(
    world: World, *, model: int, benchmark: int, steps: int = 20
) -> pd.DataFrame:
    """Return a cell's frontiers, what their actions are worth by the truth, and cross-fitted.

    Parameters
    ----------
    world
        From :func:`evaluator.simulation.worlds.make_world`.
    model, benchmark
        Which cell.
    steps
        Budgets are the fractions j / steps of full thinking, j = 0..steps.

    Returns
    -------
    pandas.DataFrame
        Indexed by (``strategy``, ``source``): ``measured`` frontier, the ``truth`` of its actions,
        and ``cross_fitted``; a column a budget fraction, accuracies as fractions.
    """
    inside = (world.curves.model == model) & (world.curves.benchmark == benchmark)
    cell = world.curves.select(inside)
    accuracy = world.accuracy[world.curves.spread(inside)]
    # Rewards are integers: the true accuracies, to a millionth.
    truth = replace(cell, correct=np.rint(accuracy * _MILLION).astype(np.int32), probes=_MILLION)
    rows = {}
    for strategy in STRATEGIES:
        frontier = exact_frontier(cell, strategy)
        states = frontier.state_within(grid_budgets(frontier.full_cost, steps))
        earned = action_rewards(truth, strategy, frontier.actions)
        worth = np.array([earned[frontier.actions_at(s)].sum() for s in states.tolist()], np.int64)
        fitted = cross_fitted_frontier(cell, strategy, steps=steps)
        rows[strategy, "measured"] = fitted.measured_accuracy
        rows[strategy, "truth"] = worth / (cell.trajectories * _MILLION)
        rows[strategy, "cross_fitted"] = fitted.accuracy
    return pd.DataFrame(
        np.stack(list(rows.values())),
        index=pd.MultiIndex.from_tuples(list(rows), names=["strategy", "source"]),
        columns=np.arange(steps + 1) / steps,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorldIntervals:
    """Estimates and intervals of one world.

    ``estimate``, ``low`` and ``high`` are float64 ``(statistics, benchmarks + 1)``: averages over
    models on each benchmark, and the macro-average last.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray


def world_intervals(population: Population, seed: int, *, replicates: int) -> WorldIntervals:
    """Draw a world and bootstrap it, with the world's seed."""
    curves = make_world(population, seed).curves
    found = bootstrap_curves(
        curves, statistics=COVERED, replicates=replicates, seed=seed, workers=1
    )
    intervals = [
        [
            found.interval(Quantity(statistic=name, model=AVERAGE, benchmark=benchmark))
            for benchmark in found.benchmarks
        ]
        for name in COVERED
    ]
    return WorldIntervals(
        estimate=np.array([[one.estimate for one in row] for row in intervals]),
        low=np.array([[one.low for one in row] for row in intervals]),
        high=np.array([[one.high for one in row] for row in intervals]),
    )


def world_estimates(population: Population, seed: int) -> FloatArray:
    """Draw a world and return its estimates alone, as in :class:`WorldIntervals`."""
    frame = per_trajectory(make_world(population, seed).curves)
    cells = nesting_of(frame).cell_means(frame[list(COVERED)].to_numpy(np.float64))
    return np.asarray(with_averages(cells)[-1].T)


def coverage(low: FloatArray, high: FloatArray, truth: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return in how many worlds the interval holds the truth, and the share.

    Parameters
    ----------
    low, high
        float64 ``(worlds, ...)``.
    truth
        float64 ``(...)``.
    """
    held = ((low <= truth) & (truth <= high)).sum(axis=0)
    return held, held / low.shape[0]
