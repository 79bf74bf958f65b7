"""The best reward at many budgets at once, by small cores and, where they give up, in full."""

from dataclasses import dataclass

import numpy as np

from oracle import core, tree
from oracle.actions import Actions
from stp.curves import IntArray

# Up to so many elementary steps the full program is as fast as a hundred searches; where units have
# one step each, searches find fewer ways to fill a gap and take longer.
SMALL_WORK = 1 << 21
SMALL_WORK_SINGLE = 1 << 25
# Steps that searches may always take together; beyond it, as many as the full program would.
LEAST_WORK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Best rewards at given budgets.

    Attributes
    ----------
    reward
        int64 ``(budgets,)``; -1 where not even the cheapest actions fit the budget.
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

    Examples
    --------
    >>> from oracle import make_actions
    >>> actions = make_actions(reward=[0, 3, 0, 2], cost=[0, 5, 0, 4], unit_offsets=[0, 2, 4])
    >>> best_rewards(actions, np.array([3, 4, 5, 9])).reward.tolist()
    [0, 2, 3, 5]
    """
    asked = np.asarray(budgets)
    if asked.ndim != 1 or (asked.size and not np.issubdtype(asked.dtype, np.integer)):
        raise ValueError("budgets must be a one-dimensional array of integers")
    order = np.argsort(asked, kind="stable")
    extra = asked[order].astype(np.int64) - actions.base_cost
    base = np.repeat(actions.unit_offsets[:-1], np.diff(actions.unit_offsets))
    rewards, fallbacks = extra_rewards(
        actions.reward - actions.reward[base],
        actions.cost - actions.cost[base],
        actions.unit_offsets,
        extra,
    )
    result = np.empty_like(rewards)
    result[order] = np.where(rewards == core.BELOW_BASE, -1, rewards + actions.base_reward)
    return Grid(reward=result, fallbacks=fallbacks)


def extra_rewards(
    reward: IntArray, cost: IntArray, offsets: IntArray, budgets: IntArray
) -> tuple[IntArray, int]:
    """Return the best extra reward within rising extra budgets, and the number of fall-backs.

    Units are counted from their cheapest actions; ``core.BELOW_BASE`` marks negative budgets.
    """
    work = full_work(reward, offsets)
    single = reward.size <= 2 * (offsets.size - 1)
    if work <= (SMALL_WORK_SINGLE if single else SMALL_WORK):
        rewards = np.full(budgets.size, core.UNSETTLED, np.int64)
        rewards[budgets < 0] = core.BELOW_BASE
        settle(reward, cost, offsets, budgets, rewards)
        return rewards, 0
    copies = np.ones((1, offsets.size - 1), np.int64)
    prepared = core.core_of_arrays(reward, cost, offsets)
    found, _ = core.grid_rewards(prepared, copies, budgets[None, :], LEAST_WORK + work)
    rewards = found[0]
    return rewards, settle(reward, cost, offsets, budgets, rewards)


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
    fits = int(cost.max(initial=0)) >> tree.STEP_BITS == 0
    fits = fits and int(gain.max(initial=0)) >> tree.STEP_GAIN_BITS == 0
    if fits and int(work.max(initial=0)) <= SMALL_WORK_SINGLE:
        values, starts = tree.single_step_functions(gain, cost)
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
    """Replace every ``core.UNSETTLED`` by the full program's answer; return how many there were."""
    unsettled = rewards == core.UNSETTLED
    if unsettled.any():
        least = tree.value_function(tree.unit_arrays(reward, cost, offsets))
        rewards[unsettled] = np.searchsorted(least, budgets[unsettled], side="right") - 1
    return int(unsettled.sum())


def full_work(reward: IntArray, offsets: IntArray) -> int:
    """Return about the elementary steps of the dense program."""
    if offsets.size < 2:
        return 0
    return int(reward[offsets[1:] - 1].sum()) * reward.size // 2
