"""A frontier chosen on half of the probes and scored on the other half.

A frontier takes, at every budget, the actions with the most right probes, and reports the number
of those same probes: it is optimistic as any maximum over noise is. Here the probes at every
position are split at random; one half chooses the actions at every budget (the oracle's exact
frontier of that half), the other half scores them. Costs have no noise and stay what they are.
"""

# mypy: disallow-untyped-decorators=False

from dataclasses import dataclass, replace

import numba as nb
import numpy as np

from oracle.actions import Actions, Strategy, question_groups
from oracle.checks import whole_number
from oracle.frontier import exact_frontier, grid_budgets
from stp.curves import Curves, Int32Array
from stp.ragged import FloatArray, IntArray, group_offsets, spread
from stp.seeds import PAPER_SEED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossFittedFrontier:
    """Accuracies on a grid of budgets, float64 ``(budgets,)`` each.

    Attributes
    ----------
    budget_fractions
        Budgets as fractions of full thinking.
    measured_accuracy
        The frontier of all probes, as the paper reports it.
    chosen_accuracy
        Of the half frontiers on the probes that chose them: optimistic, more so than
        ``measured_accuracy``.
    accuracy
        Of the same actions on the other probes: what they are worth. It need not rise.
    splits
        Random splits averaged, each in both directions.
    """

    budget_fractions: FloatArray
    measured_accuracy: FloatArray
    chosen_accuracy: FloatArray
    accuracy: FloatArray
    splits: int


def cross_fitted_frontier(
    curves: Curves, strategy: Strategy, *, steps: int = 20, splits: int = 1, seed: int = PAPER_SEED
) -> CrossFittedFrontier:
    """Choose actions on half of the probes and score them on the other half.

    Parameters
    ----------
    curves
        One cell (or several that share one budget) with at least two probes per position.
    strategy
        One of :data:`oracle.STRATEGIES`.
    steps
        Budgets are floor(j x full cost / steps), j = 0..steps. Every budget asks for the actions
        behind a state, which takes longer than the frontier itself.
    splits, seed
        Split i is drawn with ``default_rng([seed, i])``.

    Raises
    ------
    ValueError
        If there is no trajectory, there are fewer than two probes per position, steps or splits is
        not an integer of 1 or more, or seed is negative.
    """
    if not curves.trajectories:
        raise ValueError("there is no trajectory to cross-fit on")
    if curves.probes < 2:
        raise ValueError("cross-fitting needs at least two probes per position")
    steps = whole_number("steps", steps, least=1)
    splits = whole_number("splits", splits, least=1)
    seed = whole_number("seed", seed, least=0)
    full = exact_frontier(curves, strategy)
    budgets = grid_budgets(full.full_cost, steps)
    chosen = np.zeros(steps + 1)
    scored = np.zeros(steps + 1)
    for i in range(splits):
        one, other = split_probes(curves, np.random.default_rng([seed, i]))
        for choosing, scoring in ((one, other), (other, one)):
            rewards, held_out = _rewards_on_grid(choosing, scoring, strategy, budgets)
            chosen += rewards / (curves.trajectories * choosing.probes)
            scored += held_out / (curves.trajectories * scoring.probes)
    return CrossFittedFrontier(
        budget_fractions=np.arange(steps + 1) / steps,
        measured_accuracy=full.reward_within(budgets) / full.probes,
        chosen_accuracy=chosen / (2 * splits),
        accuracy=scored / (2 * splits),
        splits=splits,
    )


def split_probes(curves: Curves, rng: np.random.Generator) -> tuple[Curves, Curves]:
    """Return the curves of a random half of the probes at every position, and of the rest."""
    m = curves.probes // 2
    kept = rng.hypergeometric(curves.correct, curves.probes - curves.correct, m).astype(np.int32)
    return (
        replace(curves, correct=kept, probes=m),
        replace(curves, correct=curves.correct - kept, probes=curves.probes - m),
    )


def _rewards_on_grid(
    choosing: Curves, scoring: Curves, strategy: Strategy, budgets: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the rewards within each budget, and what the same actions earn on the other probes."""
    frontier = exact_frontier(choosing, strategy)
    states, place = np.unique(frontier.state_within(budgets), return_inverse=True)
    earned = action_rewards(scoring, strategy, frontier.actions)
    held_out = np.array(
        [earned[frontier.actions_at(state)].sum() for state in states.tolist()], np.int64
    )
    return frontier.reward[states][place], held_out[place]


def action_rewards(curves: Curves, strategy: Strategy, actions: Actions) -> IntArray:
    """Return what actions found on other probes of the same trajectories earn on these.

    Parameters
    ----------
    curves
        The same trajectories and positions as those that ``actions`` came from.
    strategy, actions
        What :func:`oracle.strategy_actions` was given, and what it returned.

    Returns
    -------
    numpy.ndarray
        Right probes of every action; int64 ``(actions,)``.
    """
    if strategy == "early_exit":
        starts = spread(curves.trajectory_offsets[:-1], actions.unit_offsets)
        return np.asarray(curves.correct[starts + actions.choice], np.int64)
    groups = question_groups(curves)
    order = np.argsort(groups.group, kind="stable")
    offsets = group_offsets(groups.group, groups.count)
    # Routing is a cap of nothing or of everything.
    caps = actions.choice
    if strategy == "routing":
        caps = np.where(actions.choice == 1, np.iinfo(np.int64).max, -1)
    rewards: IntArray = _capped_rewards(
        curves.tokens,
        curves.correct,
        curves.trajectory_offsets,
        order,
        offsets,
        caps,
        actions.unit_offsets,
    )
    return rewards


@nb.njit(cache=True, nogil=True)
def _capped_rewards(
    tokens: IntArray,
    correct: Int32Array,
    trajectory_offsets: IntArray,
    order: IntArray,
    group_offsets: IntArray,
    caps: IntArray,
    unit_offsets: IntArray,
) -> IntArray:
    """Return the right probes of all trajectories of a unit under each of its caps, rising.

    A trajectory stops at its last position that the cap allows, at k = 0 if none.
    """
    rewards = np.zeros(caps.size, np.int64)
    for unit in range(unit_offsets.size - 1):
        for i in range(group_offsets[unit], group_offsets[unit + 1]):
            row = trajectory_offsets[order[i]]
            last = trajectory_offsets[order[i] + 1] - 1
            for action in range(unit_offsets[unit], unit_offsets[unit + 1]):
                while row < last and tokens[row + 1] <= caps[action]:
                    row += 1
                rewards[action] += correct[row]
    return rewards
