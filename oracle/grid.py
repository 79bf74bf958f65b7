"""The best reward at many budgets at once, by small cores and, where they give up, in full."""

from dataclasses import dataclass

import numpy as np

from oracle import core, dense, tree
from oracle.actions import Actions
from oracle.search import BELOW_BASE, UNSETTLED
from stp.curves import integer_array
from stp.ragged import IntArray, spread

# Up to this many elementary steps the full program is as fast as a hundred searches; where units
# have one step each, searches find fewer ways to fill a gap and take longer.
SMALL_WORK = 1 << 21
SMALL_WORK_SINGLE = 1 << 25
# Steps that searches may always take together, and the part of the dense program's steps that they
# may take beyond: about what the full program takes in time.
LEAST_WORK = 1 << 16
WORK_PART = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Best rewards at given budgets.

    Attributes
    ----------
    reward
        int64 ``(budgets,)``; -1 if not even the cheapest actions fit the budget.
    fallbacks
        Budgets that only the full program could settle.
    """

    reward: IntArray
    fallbacks: int


def best_rewards(actions: Actions, budgets: IntArray) -> Grid:
    """Return the exact best reward with cost at most each budget.

    It gives what ``frontier_of_actions(actions).reward_within(budgets)`` gives, many times faster
    when the budgets are few.

    Parameters
    ----------
    actions
        From :func:`oracle.make_actions` or :func:`oracle.strategy_actions`.
    budgets
        In tokens, integers ``(budgets,)``, in any order.

    Raises
    ------
    ValueError
        If the budgets are not integers, or not one-dimensional.

    Examples
    --------
    >>> from oracle import make_actions
    >>> actions = make_actions(reward=[0, 3, 0, 2], cost=[0, 5, 0, 4], unit_offsets=[0, 2, 4])
    >>> best_rewards(actions, np.array([3, 4, 5, 9])).reward.tolist()
    [0, 2, 3, 5]
    """
    asked = integer_array("budgets", budgets)
    offsets = actions.unit_offsets
    states = dense.small_frontier(actions.reward, actions.cost, offsets)
    if states is None and _is_quick(actions.reward, offsets):
        states = tree.nondominated_states(actions.reward, actions.cost, offsets)
    if states is not None:
        return Grid(reward=_rewards_within(states, asked, -1), fallbacks=0)
    order = np.argsort(asked, kind="stable")
    base = spread(offsets[:-1], offsets)
    rewards, fallbacks = _core_rewards(
        actions.reward - actions.reward[base],
        actions.cost - actions.cost[base],
        offsets,
        asked[order] - actions.base_cost,
    )
    result = np.empty_like(rewards)
    result[order] = np.where(rewards == BELOW_BASE, -1, rewards + actions.base_reward)
    return Grid(reward=result, fallbacks=fallbacks)


def extra_rewards(
    reward: IntArray, cost: IntArray, offsets: IntArray, budgets: IntArray
) -> tuple[IntArray, int]:
    """Return the best extra reward within rising extra budgets, and the number of fall-backs.

    Units are counted from their cheapest actions; ``BELOW_BASE`` marks negative budgets.
    """
    if _is_quick(reward, offsets):
        return _full_rewards(reward, cost, offsets, budgets), 0
    return _core_rewards(reward, cost, offsets, budgets)


def single_step_rewards(gain: IntArray, cost: IntArray, budgets: IntArray) -> tuple[IntArray, int]:
    """Return the best extra rewards of several problems whose units have one step each.

    Parameters
    ----------
    gain, cost
        Of every unit's step, int64 ``(problems, units)``; steps without a gain are left out.
    budgets
        int64 ``(problems, budgets)``, rising in a row, not negative.

    Returns
    -------
    rewards
        int64 ``(problems, budgets)``.
    fallbacks
        Number of budgets that only the full program could settle.
    """
    useful = gain > 0
    rewards = np.empty(budgets.shape, np.int64)
    work = np.where(useful, gain, 0).sum(axis=1) * useful.sum(axis=1)
    fits = int(cost.max(initial=0)) >> dense.STEP_BITS == 0
    fits = fits and int(gain.max(initial=0)) >> dense.STEP_GAIN_BITS == 0
    if fits and int(work.max(initial=0)) <= SMALL_WORK_SINGLE:
        values, starts = dense.single_step_functions(gain, cost)
        for row in range(budgets.shape[0]):
            least = values[starts[row] : starts[row + 1]]
            rewards[row] = np.searchsorted(least, budgets[row], side="right") - 1
        return rewards, 0
    fallbacks = 0
    for row in range(budgets.shape[0]):
        steps = np.stack([gain[row, useful[row]], cost[row, useful[row]]])
        units = np.stack([np.zeros_like(steps), steps], axis=2).reshape(2, -1)
        offsets = 2 * np.arange(steps.shape[1] + 1, dtype=np.int64)
        rewards[row], unsettled = extra_rewards(units[0], units[1], offsets, budgets[row])
        fallbacks += unsettled
    return rewards, fallbacks


def settle(
    reward: IntArray, cost: IntArray, offsets: IntArray, budgets: IntArray, rewards: IntArray
) -> int:
    """Replace every ``UNSETTLED`` by the full program's answer; return how many there were."""
    unsettled = rewards == UNSETTLED
    if unsettled.any():
        rewards[unsettled] = _full_rewards(reward, cost, offsets, budgets[unsettled])
    return int(unsettled.sum())


def work_limit(reward: IntArray, offsets: IntArray) -> int:
    """Return the steps that searches for all budgets may take together before they give up."""
    return LEAST_WORK + _full_work(reward, offsets) // WORK_PART


def _full_work(reward: IntArray, offsets: IntArray) -> int:
    """Return about the elementary steps of the dense program."""
    gains = reward[offsets[1:] - 1] - reward[offsets[:-1]]
    return int(gains.sum()) * reward.size // 2


def _is_quick(reward: IntArray, offsets: IntArray) -> bool:
    """Whether the full program is as fast as searches."""
    single = reward.size <= 2 * (offsets.size - 1)
    return _full_work(reward, offsets) <= (SMALL_WORK_SINGLE if single else SMALL_WORK)


def _core_rewards(
    reward: IntArray, cost: IntArray, offsets: IntArray, budgets: IntArray
) -> tuple[IntArray, int]:
    copies = np.ones((1, offsets.size - 1), np.int64)
    limit = work_limit(reward, offsets)
    prepared = core.core_of_arrays(reward, cost, offsets)
    rewards = core.grid_rewards(prepared, copies, budgets[None, :], limit)[0][0]
    return rewards, settle(reward, cost, offsets, budgets, rewards)


def _full_rewards(
    reward: IntArray, cost: IntArray, offsets: IntArray, budgets: IntArray
) -> IntArray:
    return _rewards_within(tree.nondominated_states(reward, cost, offsets), budgets, BELOW_BASE)


def _rewards_within(
    states: tuple[IntArray, IntArray], budgets: IntArray, below_base: int
) -> IntArray:
    cost, reward = states
    state = cost.searchsorted(budgets, side="right") - 1
    return np.where(state < 0, below_base, reward[state])
