"""Budget grids by small cores: exact answers at given budgets without the whole frontier.

For one budget, the units' hull edges taken in order of slope give a greedy state and a linear
bound. Where the two differ after rounding down, only units whose hull edges lie near the break
slope are let in, outwards, into a dynamic program over reward offsets from the greedy state, until
the bound is met or no state can still meet it (in the manner of Pisinger's minimal algorithm for
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

from oracle.actions import Actions

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
# In compiled code: int32 or int64, whichever the sums fit in.
Ints = npt.NDArray[Any]

UNSETTLED = -1
BELOW_BASE = -2
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
    base = np.repeat(actions.unit_offsets[:-1], np.diff(actions.unit_offsets))
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
    searches = _grids(
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


@nb.njit(cache=True, nogil=True)
def _grids(
    reward: IntArray,
    cost: IntArray,
    offsets: IntArray,
    edge_unit: Ints,
    edge_from: Ints,
    edge_to: Ints,
    edge_gain: IntArray,
    edge_pay: IntArray,
    slope: FloatArray,
    copies: Ints,
    budgets: IntArray,
    states: Ints,
    moves: IntArray,
    stamp: IntArray,
    work_limit: int,
    rewards: IntArray,
) -> int:
    """Fill ``rewards``; see :func:`grid_rewards`."""
    searches = 0
    mark = 0
    for rep in range(budgets.shape[0]):
        e = 0
        taken_reward = np.int64(0)
        taken_cost = np.int64(0)
        work = np.int64(0)
        for b in range(budgets.shape[1]):
            budget = budgets[rep, b]
            if budget < 0:
                rewards[rep, b] = BELOW_BASE
                continue
            dr = np.int64(0)
            dc = np.int64(0)
            while e < edge_unit.size:
                m = copies[rep, edge_unit[e]]
                if m > 0:
                    dr = edge_gain[e]
                    dc = edge_pay[e]
                    if taken_cost + m * dc > budget:
                        break
                    taken_reward += m * dr
                    taken_cost += m * dc
                e += 1
            if e == edge_unit.size:
                rewards[rep, b] = taken_reward
                continue
            # Greedy: as many copies of the break edge as fit; what is left is below dc.
            up_copies = (budget - taken_cost) // dc
            left = budget - taken_cost - up_copies * dc
            greedy = taken_reward + up_copies * dr
            gap = (left * dr) // dc
            if gap == 0:
                rewards[rep, b] = greedy
                continue
            searches += 1
            mark += 1
            # First the bound alone, with its small slack; then everything below it at once.
            best, settled, steps = _search(
                (reward, cost, offsets, edge_unit, edge_from, edge_to, slope, copies[rep]),
                (states, moves, stamp, mark),
                (e, up_copies, left),
                (gap, gap),
                work_limit - work,
            )
            work += steps
            if settled and best < gap - 1:
                mark += 1
                below, settled, steps = _search(
                    (reward, cost, offsets, edge_unit, edge_from, edge_to, slope, copies[rep]),
                    (states, moves, stamp, mark),
                    (e, up_copies, left),
                    (best + 1, gap - 1),
                    work_limit - work,
                )
                work += steps
                best = max(best, below)
            if settled:
                rewards[rep, b] = greedy + best
    return searches


@nb.njit(cache=True, nogil=True)
def _search(
    units: Any, workspace: Any, greedy: Any, wanted: tuple[int, int], work_limit: int
) -> tuple[int, bool, int]:
    """Return the best reward gain over greedy in a range, whether that is certain, and the steps.

    Parameters
    ----------
    units
        Actions, hull edges and copies of one replicate.
    workspace
        Arrays to work in, and the mark of this search in ``stamp``.
    greedy
        The break edge, how many of its unit's copies took it, and the cost left.
    wanted
        Least and greatest gain to look for. Gains above the greatest are known to be out of reach.
    work_limit
        Steps after which to give up.

    Returns
    -------
    tuple
        The greatest gain in the range that costs at most what is left; if there is none, a
        smaller one that was met on the way, or 0.

    ``now[x + half]`` is the least cost offset for reward offset x over the units let in so far.
    """
    reward, cost, offsets, edge_unit, edge_from, edge_to, slope, copies = units
    states, moves, stamp, mark = workspace
    e, up_copies, left = greedy
    goal, highest = wanted
    half = (states.shape[1] - 1) // 2
    now, after = states[0], states[1]
    dr = reward[edge_to[e]] - reward[edge_from[e]]
    dc = cost[edge_to[e]] - cost[edge_from[e]]
    now[half] = 0
    low = 0
    high = 0
    best = 0
    steps = 0
    lost = False
    up, down, at = e + 1, e - 1, e
    prices = (True, dc // dr, True, -(-dc // dr))
    while True:
        u = edge_unit[at]
        stamp[u] = mark
        for side in range(2):
            if at == e:
                # Some copies of the break unit have taken the edge, the others have not.
                vertex = edge_to[at] if side == 0 else edge_from[at]
                count = up_copies if side == 0 else copies[u] - up_copies
            else:
                # A unit met on the way up stands at the edge's start, on the way down at its end.
                vertex = edge_from[at] if at > e else edge_to[at]
                count = copies[u] if side == 0 else 0
            if count == 0:
                continue
            # Reduced costs are never negative, and those of a success add up to at most this.
            slack = dr * left - dc * goal
            kept = _useful_moves(
                reward, cost, offsets[u], offsets[u + 1], vertex, dr, dc, slack, moves
            )
            steps += offsets[u + 1] - offsets[u]
            for _ in range(count if kept > 0 else 0):
                steps += kept * (high - low + 16)
                if steps > work_limit:
                    return best, False, steps
                low, high, dropped = _let_in(
                    now, after, low, high, moves, kept, (goal, left), prices
                )
                lost = lost or dropped
                now, after = after, now
                gain = _affordable(now, max(low, goal), min(high, highest), left)
                if gain >= goal:
                    best = gain
                    goal = gain + 1
                    if best == highest:
                        return best, True, steps
        while up < edge_unit.size and (copies[edge_unit[up]] == 0 or stamp[edge_unit[up]] == mark):
            up += 1
        while down >= 0 and (copies[edge_unit[down]] == 0 or stamp[edge_unit[down]] == mark):
            down -= 1
        prices = _open_prices(reward, cost, edge_from, edge_to, up, down)
        low, high, best = _trim(now, low, high, best, (goal, left), prices)
        if low > high or not (prices[0] or prices[2]):
            return best, not lost, steps
        if prices[0] and (not prices[2] or slope[up] - slope[e] <= slope[e] - slope[down]):
            at = up
        else:
            at = down


@nb.njit(cache=True, nogil=True)
def _open_prices(
    reward: IntArray, cost: IntArray, edge_from: Ints, edge_to: Ints, up: int, down: int
) -> tuple[bool, Any, bool, Any]:
    """Return what one more reward costs at least, and one less saves at most, from here on.

    Each with whether there is such an edge left. Rounded to the safe side.
    """
    up_open = up < edge_from.size
    down_open = down >= 0
    up_price = np.int64(0)
    down_price = np.int64(0)
    if up_open:
        gain = reward[edge_to[up]] - reward[edge_from[up]]
        up_price = (cost[edge_to[up]] - cost[edge_from[up]]) // gain
    if down_open:
        gain = reward[edge_to[down]] - reward[edge_from[down]]
        down_price = -((cost[edge_from[down]] - cost[edge_to[down]]) // gain)
    return up_open, up_price, down_open, down_price


@nb.njit(cache=True, nogil=True)
def _useful_moves(
    reward: IntArray,
    cost: IntArray,
    begin: int,
    end: int,
    vertex: int,
    dr: int,
    dc: int,
    slack: int,
    moves: IntArray,
) -> int:
    """Write the changes of one unit whose reduced cost fits the slack; return their number."""
    kept = 0
    for row in range(begin, end):
        gain = reward[row] - reward[vertex]
        pay = cost[row] - cost[vertex]
        if gain != 0 and dr * pay - dc * gain <= slack:
            moves[0, kept] = gain
            moves[1, kept] = pay
            kept += 1
    return kept


@nb.njit(cache=True, nogil=True)
def _alive(x: int, y: int, goal: int, left: int, prices: Any) -> bool:
    """Whether the best slopes not yet let in could still bring a state to the goal."""
    up_open, up_price, _, down_price = prices
    if x < goal:
        return bool(up_open and y + (goal - x) * up_price <= left)
    return bool(y - (x - goal) * down_price <= left)


@nb.njit(cache=True, nogil=True)
def _let_in(
    now: Ints,
    after: Ints,
    low: int,
    high: int,
    moves: IntArray,
    kept: int,
    aim: tuple[int, int],
    prices: Any,
) -> tuple[int, int, bool]:
    """Write to ``after`` the states with one more copy; return their range.

    Also whether a state that might have mattered fell outside the arrays.
    """
    half = (now.size - 1) // 2
    unreached = now.dtype.type(1) << (8 * now.itemsize - 2)
    low_after = low
    high_after = high
    for a in range(kept):
        low_after = min(low_after, low + moves[0, a])
        high_after = max(high_after, high + moves[0, a])
    dropped = False
    if low_after < -half or high_after > half:
        for a in range(kept):
            for x in range(low, high + 1):
                to = x + moves[0, a]
                if (to < -half or to > half) and now[x + half] < unreached // 2:
                    y = now[x + half] + moves[1, a]
                    dropped = dropped or _alive(to, y, aim[0], aim[1], prices)
        low_after = max(low_after, -half)
        high_after = min(high_after, half)
    # Loops, not slices: numba would test slices for overlap and copy. Unsigned: a signed index
    # would be tested for wrapping around.
    for x in range(low_after + half, low + half):
        after[np.uint64(x)] = unreached
    for x in range(low + half, high + half + 1):
        after[np.uint64(x)] = now[np.uint64(x)]
    for x in range(high + half + 1, high_after + half + 1):
        after[np.uint64(x)] = unreached
    for a in range(kept):
        gain = moves[0, a]
        pay = now.dtype.type(moves[1, a])
        begin = max(low, low_after - gain) + half
        end = min(high, high_after - gain) + half + 1
        for x in range(begin, end):
            to = np.uint64(x + gain)
            after[to] = min(after[to], now.dtype.type(now[np.uint64(x)] + pay))
    return low_after, high_after, dropped


@nb.njit(cache=True, nogil=True)
def _affordable(now: Ints, lowest: int, highest: int, left: int) -> int:
    """Return the greatest offset in a range that costs at most what is left, or -1."""
    half = (now.size - 1) // 2
    least = now.dtype.type(1) << (8 * now.itemsize - 2)
    for x in range(lowest + half, highest + half + 1):
        least = min(least, now[np.uint64(x)])
    if least > left:
        return -1
    x = highest
    while now[x + half] > left:
        x -= 1
    return x


@nb.njit(cache=True, nogil=True)
def _trim(
    now: Ints, low: int, high: int, best: int, aim: tuple[int, int], prices: Any
) -> tuple[int, int, int]:
    """Drop dead states from both ends; return what is left, and the best gain seen among them.

    A state lives if the best slopes not yet let in could still bring it to the goal: below the
    goal if it costs no more than ``left`` less what the missing reward costs at least, above it if
    no more than ``left`` and what the surplus saves at most.
    """
    half = (now.size - 1) // 2
    real = np.int64((now.dtype.type(1) << (8 * now.itemsize - 2)) // 2)
    goal, left = aim
    up_open, up_price, _, down_price = prices
    while low <= high:
        y = np.int64(now[np.uint64(low + half)])
        if low < goal:
            if up_open and y <= left - (goal - low) * up_price:
                break
        elif y < real and y <= left + (low - goal) * down_price:
            break
        if y <= left and low > best:
            best = low
        low += 1
    while low <= high:
        y = np.int64(now[np.uint64(high + half)])
        if high < goal:
            if up_open and y <= left - (goal - high) * up_price:
                break
        elif y < real and y <= left + (high - goal) * down_price:
            break
        if y <= left and high > best:
            best = high
        high -= 1
    return low, high, best
