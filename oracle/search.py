"""The searches of the cores: what :func:`oracle.core.grid_rewards` runs, compiled.

See :mod:`oracle.core` for what is searched and docs/frontiers_proofs.md, section 4, for why nothing
is lost. States are a dense array over reward offsets from the greedy state.

The idea. Hull edges of all units are sorted by slope, cost per reward. Taking them in that order
(*greedy*) is optimal at every budget that they fill exactly. At another budget one edge, the
*break edge*, does not fit whole; the optimum then differs from greedy in few units, mostly those
whose slopes are near the break edge's. So units are let in one after the other, away from the break
edge in both directions, until no slope that is left could bring any state to a better reward.

Names, in all functions:

* ``e``: the break edge, an index into the sorted edges. ``dr``, ``dc``: its reward and its cost.
* ``x``: a state's reward offset from greedy. ``y``: its cost offset. Both may be negative.
* ``now[x + half]``: the least ``y`` for ``x``; ``low..high`` is the range of x in use. Outside of
  it the array holds leftovers. ``after`` is the array that the next state is written to.
* ``left``: the part of the budget that greedy does not spend, ``0 <= left < dc``. A state is
  affordable if ``y <= left``.
* ``goal``: the least x that would be an improvement.
* *reduced cost* of a change (gain, pay): ``dr * pay - dc * gain``, its distance above the line
  through the break edge. It is never negative for a change from a unit's hull vertex, and reduced
  costs add up. So a change above the slack of the whole search cannot be part of a success.
* ``prices``: (is an edge left above?, its least cost per reward; is one left below?, its greatest
  saving per reward), both rounded so that a state is kept in case of doubt.
* *unreached*: a number a quarter of the type's range, so that two of them add up without overflow.

Invariant after every unit: ``now`` holds the exact least costs over the units let in so far, except
for states that ``_alive`` proves useless. Where such a proof is missing and a state fell outside
the arrays, the search reports that it is not settled, and the caller runs the full program.

Every compiled function calls functions of this file only, because numba's disk cache does not
notice a callee changed elsewhere.
"""

from typing import TypeAlias

import numba as nb
import numpy as np

from stp.ragged import FloatArray, IntArray, Ints

Prices: TypeAlias = tuple[bool, np.int64, bool, np.int64]
# reward, cost, offsets, edge_unit, edge_from, edge_to, slope, copies of one replicate.
Units: TypeAlias = tuple[IntArray, IntArray, IntArray, Ints, Ints, Ints, FloatArray, Ints]
# states, moves, stamp, and the mark of this search in ``stamp``.
Workspace: TypeAlias = tuple[Ints, IntArray, IntArray, int]

UNSETTLED = -1
BELOW_BASE = -2


@nb.njit(cache=True, nogil=True)
def fill_grids(
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
    """Fill ``rewards``; see :func:`oracle.core.grid_rewards`. Return the number of searches.

    Parameters
    ----------
    reward, cost, offsets
        Actions of all units, counted from each unit's cheapest.
    edge_unit, edge_from, edge_to, edge_gain, edge_pay, slope
        Hull edges in order of slope: the unit, the two actions, and what lies between them.
    copies
        How often each unit occurs in each replicate, ``(replicates, units)``.
    budgets
        Extra budgets, rising in each row, ``(replicates, budgets)``.
    states, moves, stamp
        Arrays to work in. ``stamp[u] == mark`` says that unit u is in this search.
    work_limit
        Steps of all searches of a replicate after which the rest is left unsettled.
    rewards
        Filled with extra rewards, ``BELOW_BASE`` for negative budgets. What is not settled keeps
        the content that it came with.
    """
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
            mark += 2
            best, settled, steps = _gain_over_greedy(
                (reward, cost, offsets, edge_unit, edge_from, edge_to, slope, copies[rep]),
                (states, moves, stamp, mark),
                (e, up_copies, left),
                gap,
                work_limit - work,
            )
            work += steps
            if settled:
                rewards[rep, b] = greedy + best
    return searches


@nb.njit(cache=True, nogil=True)
def _gain_over_greedy(
    units: Units,
    workspace: Workspace,
    greedy: tuple[int, int, int],
    gap: int,
    work_limit: int,
) -> tuple[int, bool, int]:
    """Return the best reward gain over greedy, whether that is certain, and the steps.

    Arguments are those of :func:`_search`; the mark before the workspace's is used up too. No state
    gains more than ``gap``: the line through the break edge ends there.
    """
    states, moves, stamp, mark = workspace
    # First the bound alone, with its small slack; then everything below it at once.
    best, settled, steps = _search(
        units, (states, moves, stamp, mark - 1), greedy, (gap, gap), work_limit
    )
    if settled and best < gap - 1:
        below, settled, more = _search(
            units, workspace, greedy, (best + 1, gap - 1), work_limit - steps
        )
        best, steps = max(best, below), steps + more
    return best, settled, steps


@nb.njit(cache=True, nogil=True)
def _search(
    units: Units,
    workspace: Workspace,
    greedy: tuple[int, int, int],
    wanted: tuple[int, int],
    work_limit: int,
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
        # A unit has several edges but is let in once, with all its actions.
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
                # What a pass costs: its inner loops, and about 16 steps to start each of them.
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
        up = _next_edge(up, 1, edge_unit, copies, stamp, mark)
        down = _next_edge(down, -1, edge_unit, copies, stamp, mark)
        prices = _open_prices(reward, cost, edge_from, edge_to, up, down)
        low, high, best = _trim(now, low, high, best, (goal, left), prices)
        if low > high or not (prices[0] or prices[2]):
            return best, not lost, steps
        upwards = prices[0] and (not prices[2] or slope[up] - slope[e] <= slope[e] - slope[down])
        at = up if upwards else down


@nb.njit(cache=True, nogil=True)
def _next_edge(
    at: int, step: int, edge_unit: Ints, copies: Ints, stamp: IntArray, mark: int
) -> int:
    """Return the first edge from here on whose unit occurs and is not let in yet."""
    while 0 <= at < edge_unit.size and (copies[edge_unit[at]] == 0 or stamp[edge_unit[at]] == mark):
        at += step
    return at


@nb.njit(cache=True, nogil=True)
def _open_prices(
    reward: IntArray, cost: IntArray, edge_from: Ints, edge_to: Ints, up: int, down: int
) -> Prices:
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
def _alive(x: int, y: int, goal: int, left: int, prices: Prices) -> bool:
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
    prices: Prices,
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
    now: Ints, low: int, high: int, best: int, aim: tuple[int, int], prices: Prices
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
