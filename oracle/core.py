"""Budget grids by small cores: exact answers at given budgets without the whole frontier.

For one budget, the units' hull edges taken in order of slope give a greedy state and a linear
bound. Where the two differ after rounding down, only units whose hull edges lie near the break
slope are let in, outwards, into a dynamic program over reward offsets from the greedy state, until
the bound is met or no state can still meet it (in the style of Pisinger's minimal algorithm for
the multiple-choice knapsack problem, 1995). Every rule has its proof in docs/frontiers_proofs.md,
section 4. A budget that the search cannot settle within its work limit is reported as unsettled,
never guessed; :mod:`oracle.grid` then asks the full program.

Every compiled function calls functions of this file only, because numba's disk cache does not
notice a callee changed elsewhere.
"""

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from oracle import search
from oracle.actions import Actions
from oracle.search import BELOW_BASE, UNSETTLED
from stp.ragged import FloatArray, IntArray, spread

# Sums below this are searched in 32 bits: an unreached state costs twice as much, and whatever a
# search adds to or takes from it leaves it recognisable.
NARROW_COST = 1 << 29
WIDE_COST = 1 << 60
# Two slopes are told apart by float64 when products of their terms stay below this.
EXACT_SLOPES = 1 << 52


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Core:
    """Units prepared for any number of budgets and any multiplicities.

    Attributes
    ----------
    reward, cost
        Of every action, counted from its unit's cheapest; int64.
    offsets
        Unit boundaries in the two, int64 ``(units + 1,)``.
    edge_unit, edge_from, edge_to
        Hull edges of all units by rising slope: the unit, and the rows of both ends; int32.
    edge_gain, edge_pay
        Reward and cost that each edge adds, int64.
    slope
        Cost per reward of every edge, float64.
    top_cost
        Greatest cost of every unit, int64 ``(units,)``.
    exact
        Whether float64 orders the slopes exactly; if not, the core does not search.
    width, longest
        The greatest reward of a hull edge, and the most actions of a unit.
    """

    reward: IntArray
    cost: IntArray
    offsets: IntArray
    edge_unit: npt.NDArray[np.int32]
    edge_from: npt.NDArray[np.int32]
    edge_to: npt.NDArray[np.int32]
    edge_gain: IntArray
    edge_pay: IntArray
    slope: FloatArray
    top_cost: IntArray
    exact: bool
    width: int
    longest: int


def prepare_core(actions: Actions) -> Core:
    """Return the hull edges of all units, sorted once by slope."""
    base = spread(actions.unit_offsets[:-1], actions.unit_offsets)
    reward = actions.reward - actions.reward[base]
    cost = actions.cost - actions.cost[base]
    return core_of_arrays(reward, cost, actions.unit_offsets)


def core_of_arrays(reward: IntArray, cost: IntArray, offsets: IntArray) -> Core:
    """Return the core of units given from their cheapest actions, which have reward and cost 0."""
    largest = int(reward.max(initial=0)) * int(cost.max(initial=0))
    unit, start, end, slope, width, longest = _hull_edges(
        reward, cost, offsets, largest < EXACT_SLOPES
    )
    order = np.argsort(slope)
    start, end = start[order], end[order]
    return Core(
        reward=reward,
        cost=cost,
        offsets=offsets,
        edge_unit=unit[order],
        edge_from=start,
        edge_to=end,
        edge_gain=reward[end] - reward[start],
        edge_pay=cost[end] - cost[start],
        slope=slope[order],
        top_cost=cost[offsets[1:] - 1],
        exact=largest < EXACT_SLOPES,
        width=int(width),
        longest=int(longest),
    )


def grid_rewards(
    core: Core, copies: IntArray, budgets: IntArray, work_limit: int
) -> tuple[IntArray, int]:
    """Return the best extra reward within each extra budget, for each set of multiplicities.

    Parameters
    ----------
    core
        From :func:`prepare_core`.
    copies
        How often each unit occurs, int64 ``(replicates, units)``.
    budgets
        Cost counted from the cheapest actions, rising within a row, int64
        ``(replicates, budgets)``.
    work_limit
        Elementary steps that one replicate's searches may take together.

    Returns
    -------
    rewards
        int64 ``(replicates, budgets)``: ``UNSETTLED`` where the search gave up, ``BELOW_BASE``
        where the budget is negative.
    searches
        Number of budgets that needed a search.
    """
    rewards = np.full(budgets.shape, UNSETTLED, np.int64)
    if not core.exact:
        rewards[budgets < 0] = BELOW_BASE
        return rewards, 0
    total = int((copies @ core.top_cost).max(initial=0))
    if total >= WIDE_COST:
        rewards[budgets < 0] = BELOW_BASE
        return rewards, 0
    dtype = np.int32 if total < NARROW_COST else np.int64
    half = max(64, 8 * core.width)
    states = np.empty((2, 2 * half + 1), dtype)
    moves = np.empty((2, core.longest + 1), np.int64)
    stamp = np.zeros(core.offsets.size - 1, np.int64)
    searches = search.fill_grids(
        core.reward,
        core.cost,
        core.offsets,
        core.edge_unit,
        core.edge_from,
        core.edge_to,
        core.edge_gain,
        core.edge_pay,
        core.slope,
        copies,
        budgets,
        states,
        moves,
        stamp,
        work_limit,
        rewards,
    )
    return rewards, int(searches)


@nb.njit(cache=True, nogil=True)
def _hull_edges(
    reward: IntArray, cost: IntArray, offsets: IntArray, exact: bool
) -> tuple[Any, Any, Any, FloatArray, int, int]:
    """Return unit, rows of both ends and slope of every hull edge, in order of the units.

    Also the longest edge in reward, and the most actions of a unit. Collinear points are no
    vertices, so the slopes of a unit rise strictly.
    """
    size = reward.size
    out_unit = np.empty(size, np.int32)
    out_from = np.empty(size, np.int32)
    out_to = np.empty(size, np.int32)
    out_slope = np.empty(size, np.float64)
    stack = np.empty(size + 1, np.int64)
    count = 0
    width = 1
    longest = 1
    for u in range(offsets.size - 1):
        first, stop = offsets[u], offsets[u + 1]
        longest = max(longest, stop - first)
        if not exact:
            continue
        top = 0
        for row in range(first, stop):
            while top >= 2:
                a, b = stack[top - 2], stack[top - 1]
                if (cost[row] - cost[b]) * (reward[b] - reward[a]) <= (cost[b] - cost[a]) * (
                    reward[row] - reward[b]
                ):
                    top -= 1
                else:
                    break
            stack[top] = row
            top += 1
        for v in range(1, top):
            a, b = stack[v - 1], stack[v]
            out_unit[count] = u
            out_from[count] = a
            out_to[count] = b
            out_slope[count] = (cost[b] - cost[a]) / (reward[b] - reward[a])
            width = max(width, reward[b] - reward[a])
            count += 1
    return (
        out_unit[:count].copy(),
        out_from[:count].copy(),
        out_to[:count].copy(),
        out_slope[:count].copy(),
        width,
        longest,
    )
