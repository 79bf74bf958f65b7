"""Frontiers of the accuracies behind the counts.

A frontier of counts chooses the luckiest counts and reports those same counts. Two frontiers of
the posterior are not flattered by that: what somebody could reach who knew P (the mean over drawn
curves of each one's own frontier), and what the best decisions given the data reach (chosen by
the posterior mean, and worth the posterior mean in expectation).
"""

from dataclasses import dataclass, replace

import numpy as np

from evaluator.analysis.latent.values import LatentCurves
from oracle.actions import Strategy
from oracle.checks import whole_number
from oracle.frontier import exact_frontier, grid_budgets
from stp.curves import Curves
from stp.ragged import FloatArray

# Rewards are integers; accuracies to a ten-thousandth keep their sums far below 2^62.
_UNIT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentFrontier:
    """Accuracies within budgets, float64 ``(budgets,)`` each.

    Attributes
    ----------
    budget_fractions
        Budgets as fractions of full thinking.
    measured
        Frontier of the counts, as the paper reports it.
    knowing
        Who knew P: the mean over draws. ``knowing_low`` and ``knowing_high`` are the 2.5th and
        97.5th percentile of the draws.
    decided
        The best decisions given the data. It is of the learned chain, and ``knowing`` of drawn
        ones, so that the two may differ by up to a point where nothing is decided.
    """

    budget_fractions: FloatArray
    measured: FloatArray
    knowing: FloatArray
    knowing_low: FloatArray
    knowing_high: FloatArray
    decided: FloatArray


def latent_frontier(
    latent: LatentCurves, strategy: Strategy, *, model: int, benchmark: int, steps: int = 100
) -> LatentFrontier:
    """Return a cell's frontiers: measured, of who knew P, and of the best decisions.

    Parameters
    ----------
    latent
        A fit.
    strategy
        One of :data:`oracle.STRATEGIES`.
    model, benchmark
        Which cell.
    steps
        Budgets are the fractions j / steps of full thinking, j = 0..steps.

    Raises
    ------
    ValueError
        If the curves have no such cell, or steps is no integer of 1 or more.
    """
    steps = whole_number("steps", steps, least=1)
    curves = latent.curves
    inside = (curves.model == model) & (curves.benchmark == benchmark)
    if not inside.any():
        raise ValueError(f"there is no cell of model {model} and benchmark {benchmark}")
    cell = curves.select(inside)
    inside_k = np.repeat(inside, np.diff(curves.trajectory_offsets))
    drawn = [
        _on_grid(_valued(cell, latent.drawn_accuracy(d)[inside_k]), strategy, steps)
        for d in range(latent.draws)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return LatentFrontier(
        budget_fractions=np.arange(steps + 1) / steps,
        measured=_on_grid(cell, strategy, steps),
        knowing=np.mean(drawn, axis=0),
        knowing_low=low,
        knowing_high=high,
        decided=_on_grid(_valued(cell, latent.mean[inside_k]), strategy, steps),
    )


def _valued(cell: Curves, accuracy: FloatArray) -> Curves:
    """Return a cell whose counts are accuracies, in ten-thousandths."""
    return replace(cell, correct=np.rint(accuracy * _UNIT).astype(np.int32), probes=_UNIT)


def _on_grid(cell: Curves, strategy: Strategy, steps: int) -> FloatArray:
    frontier = exact_frontier(cell, strategy)
    reward = frontier.reward_within(grid_budgets(frontier.full_cost, steps))
    return np.asarray(reward / frontier.probes, np.float64)
