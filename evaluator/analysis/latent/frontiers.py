"""Frontiers of the accuracies behind the counts.

A frontier of counts chooses the luckiest counts and reports those same counts. Two frontiers of
the posterior do not have this bias: what could be reached if P were known (the frontier of a
drawn curve, on average over draws), and what the best decisions given the data reach (chosen by
the posterior mean, and scored with it).

On every drawn curve, knowing P gains the difference between that curve's own frontier and the
value of the decisions on it, which is never negative. The mean of these gains is added to the
value of the decisions; so a few draws are enough, and knowing is never below deciding.
"""

from dataclasses import dataclass, replace

import numpy as np

from evaluator.analysis.crossfit_frontier import action_rewards
from evaluator.analysis.latent.values import LatentCurves
from oracle.actions import Strategy, full_cost
from oracle.checks import whole_number
from oracle.frontier import exact_frontier, grid_budgets
from stp.curves import Curves
from stp.ragged import FloatArray

# Rewards are integers, and a frontier has up to as many states as there are rewards: accuracies
# are to a ten-thousandth in small cells, and to a hundredth where many of them are added up.
_FINEST, _COARSEST, _MOST_REWARD = 10_000, 100, 1_000_000


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
        If P were known. ``knowing_low`` and ``knowing_high`` are the 2.5th and 97.5th percentile of
        the draws.
    decided
        The best decisions given the data.
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
    """Return a cell's frontiers: measured, if P were known, and of the best decisions.

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
        If the curves have no such cell, or steps is not an integer of 1 or more.
    """
    steps = whole_number("steps", steps, least=1)
    curves = latent.curves
    inside = (curves.model == model) & (curves.benchmark == benchmark)
    if not inside.any():
        raise ValueError(f"there is no cell of model {model} and benchmark {benchmark}")
    cell = curves.select(inside)
    inside_k = np.repeat(inside, np.diff(curves.trajectory_offsets))
    budgets = grid_budgets(full_cost(cell), steps)
    deciding = exact_frontier(_valued(cell, latent.mean[inside_k]), strategy)
    states, place = np.unique(deciding.state_within(budgets), return_inverse=True)
    actions = [deciding.actions_at(state) for state in states.tolist()]
    drawn, gains = [], []
    for draw in range(latent.draws):
        known = _valued(cell, latent.drawn_accuracy(draw)[inside_k])
        worth = action_rewards(known, strategy, deciding.actions)
        decided = np.array([worth[rows].sum() for rows in actions], np.int64)[place]
        drawn.append(exact_frontier(known, strategy).reward_within(budgets))
        gains.append(drawn[-1] - decided)
    best = deciding.reward_within(budgets)
    knowing = best + np.mean(gains, axis=0)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0) + knowing - np.mean(drawn, axis=0)
    counted = exact_frontier(cell, strategy)
    return LatentFrontier(
        budget_fractions=np.arange(steps + 1) / steps,
        measured=counted.reward_within(budgets) / counted.probes,
        knowing=knowing / deciding.probes,
        knowing_low=low / deciding.probes,
        knowing_high=high / deciding.probes,
        decided=best / deciding.probes,
    )


def _valued(cell: Curves, accuracy: FloatArray) -> Curves:
    """Return a cell whose counts are accuracies, as integer parts of one."""
    unit = min(max(_MOST_REWARD // cell.trajectories, _COARSEST), _FINEST)
    return replace(cell, correct=np.rint(accuracy * unit).astype(np.int32), probes=unit)
