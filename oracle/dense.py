"""The dense program, eight entries an instruction: leaves of the tree, and what has few units.

The value function of a group of units is an integer array: entry t is the least extra cost for an
extra reward of at least t, both counted from the group's cheapest actions. Units are added one
after the other, over the rewards that are within reach, in 32 bits where the sums allow it
(docs/frontiers_proofs.md, sections 1 and 2).

Names, in all functions: ``r`` and ``c`` are the reward and the cost of one action; ``old`` and
``new`` are the value functions before and after a unit; ``pad`` entries stand before and after
each function, so that ``old[x - r]`` never needs a test (zeros before: a reward below the action's
own is reached by the action alone; *unreached* after). *Unreached* is a quarter of the type's
range: two of them add up without overflow, and it loses against every real cost.

Actions are applied in groups of one, three or four, written out by hand: the compiler then makes
one pass over the array with several loads, and memory is what limits these loops.

Every compiled function calls functions of this file only, because numba's disk cache does not
notice a callee changed elsewhere.
"""

import threading
from typing import TypeAlias

import numba as nb
import numpy as np
import numpy.typing as npt

from stp.ragged import IntArray, Ints, index_within, offsets_of, spread

States: TypeAlias = tuple[IntArray, IntArray]

# Sums below this are computed in 32 bits.
NARROW_COST = 1 << 30
# A step's gain and cost in one number that sorts by gain, then cost.
STEP_BITS = 44
STEP_GAIN_BITS = 18
NO_STEP = np.iinfo(np.int64).max
# Up to this many elementary steps a frontier takes less time than preparing a tree for it.
SMALL_WORK = 1 << 18
# So does one that has no more combinations of actions than this, however large their rewards.
FEW_STATES = 1 << 10
# Places of the arrays that are used again.
LEAVES, EVEN_LEVEL, ODD_LEVEL = range(3)
# Larger arrays are not kept.
REUSED_SIZE = 1 << 20


def small_frontier(
    reward: IntArray, cost: IntArray, unit_offsets: IntArray
) -> tuple[IntArray, IntArray] | None:
    """Return cost and reward of the non-dominated states, or None if the problem is not small.

    Takes actions as :class:`oracle.actions.Actions` holds them. One call does it all, because with
    few units calls are what takes the time.
    """
    if reward.size > SMALL_WORK:
        return None
    states_cost, states_reward = _small_frontier(reward, cost, unit_offsets)
    return None if states_cost.size == 0 else (states_cost, states_reward)


def single_step_functions(gain: IntArray, cost: IntArray) -> tuple[Ints, IntArray]:
    """Return the value functions of several small problems whose units have one step each.

    Steps of equal gain are taken cheapest first by some optimum, so they become one unit whose
    actions are their running sums; small gains go first, for the array stays short for longer.

    Parameters
    ----------
    gain, cost
        Of every unit's step, int64 ``(problems, units)``; below 2^18 and 2^44. Steps without a
        gain are left out.

    Returns
    -------
    values, starts
        The functions side by side, and where each starts.
    """
    problems = gain.shape[0]
    useful = gain > 0
    key = np.where(useful, (gain << STEP_BITS) + cost, NO_STEP)
    key.sort(axis=1)
    kept = key != NO_STEP
    problem = np.broadcast_to(np.arange(problems)[:, None], key.shape)[kept]
    gains = key[kept] >> STEP_BITS
    costs = key[kept] - (gains << STEP_BITS)
    fresh = np.ones(gains.size, np.bool_)
    fresh[1:] = (gains[1:] != gains[:-1]) | (problem[1:] != problem[:-1])
    begin = np.flatnonzero(fresh)
    offsets = np.append(begin, gains.size)
    rank = index_within(offsets) + 1
    sums = np.cumsum(costs)
    sums -= spread(sums[begin] - costs[begin], offsets)
    first = np.searchsorted(problem[begin], np.arange(problems + 1))
    starts = offsets_of(np.where(useful, gain, 0).sum(axis=1) + 1)
    total_cost = np.where(useful, cost, 0).sum(axis=1).max(initial=0)
    kind = np.int32 if total_cost < NARROW_COST else np.int64
    values = np.zeros(starts[-1], kind)
    if gains.size:
        fill_leaves(gains * rank, sums.astype(kind), offsets, first, starts, values)
    return values, starts


def fill_leaves(
    reward: IntArray,
    cost: Ints,
    offsets: IntArray,
    leaf_units: IntArray,
    starts: IntArray,
    values: Ints,
) -> None:
    """Run the dense program over the units of every leaf, and write its values to ``values``.

    Parameters
    ----------
    reward, cost, offsets
        Of every action but the cheapest, as :class:`oracle.tree.UnitArrays` holds them.
    leaf_units, starts
        First unit of every leaf and where its values start; each with the end of the last.
    """
    # Two units may be added at once, so padding is for the reward of two.
    pad = 2 * int(reward.max())
    width = int(np.diff(starts).max()) + 2 * pad
    work = reused_array(LEAVES, 2 * width, cost.dtype).reshape(2, width)
    _fill_leaves(reward, cost, offsets, leaf_units, starts, values, work, pad)


class _Arrays(threading.local):
    """Arrays that a thread uses again: touching fresh ones would take longer than computing."""

    def __init__(self) -> None:
        self.kept = [np.empty(0, np.int64) for _ in range(3)]


_arrays = _Arrays()


def reused_array(place: int, size: int, dtype: npt.DTypeLike) -> Ints:
    """Return an array of any content that is valid until the thread asks for this place again."""
    if size > REUSED_SIZE:
        return np.empty(size, dtype)
    if _arrays.kept[place].size < size:
        _arrays.kept[place] = np.empty(max(size, 2 * _arrays.kept[place].size), np.int64)
    return _arrays.kept[place].view(dtype)[:size]


@nb.njit(cache=True, nogil=True)
def _one_action(old: Ints, new: Ints, at: int, size: int, r: int, c: np.signedinteger) -> None:
    """Write the least of taking nothing and taking one action."""
    keep = old[at : at + size]
    take = old[at - r : at - r + size]
    out = new[at : at + size]
    for x in range(size):
        out[x] = min(keep[x], old.dtype.type(take[x] + c))


@nb.njit(cache=True, nogil=True)
def _three_actions(old: Ints, new: Ints, at: int, size: int, r: IntArray, c: Ints) -> None:
    """Write the least of taking nothing and taking one of three actions."""
    keep = old[at : at + size]
    take_0 = old[at - r[0] : at - r[0] + size]
    take_1 = old[at - r[1] : at - r[1] + size]
    take_2 = old[at - r[2] : at - r[2] + size]
    c_0, c_1, c_2 = c[0], c[1], c[2]
    out = new[at : at + size]
    for x in range(size):
        left = min(keep[x], old.dtype.type(take_0[x] + c_0))
        right = min(old.dtype.type(take_1[x] + c_1), old.dtype.type(take_2[x] + c_2))
        out[x] = min(left, right)


@nb.njit(cache=True, nogil=True)
def _four_actions(old: Ints, new: Ints, at: int, size: int, r: IntArray, c: Ints) -> None:
    """Lower ``new`` to the least of taking one of four actions."""
    take_0 = old[at - r[0] : at - r[0] + size]
    take_1 = old[at - r[1] : at - r[1] + size]
    take_2 = old[at - r[2] : at - r[2] + size]
    take_3 = old[at - r[3] : at - r[3] + size]
    c_0, c_1, c_2, c_3 = c[0], c[1], c[2], c[3]
    out = new[at : at + size]
    for x in range(size):
        left = min(old.dtype.type(take_0[x] + c_0), old.dtype.type(take_1[x] + c_1))
        right = min(old.dtype.type(take_2[x] + c_2), old.dtype.type(take_3[x] + c_3))
        least = min(left, right)
        out[x] = min(out[x], least)


@nb.njit(cache=True, nogil=True)
def _apply_unit(old: Ints, new: Ints, pad: int, size: int, reward: IntArray, cost: Ints) -> int:
    """Write to ``new`` the value function of ``old`` and one more unit; return its size.

    Both arrays start at ``pad``. Before it stand zeros, for a reward below an action's own is had
    by the action alone; after ``size`` entries stand unreached ones, at least ``pad`` of them.
    """
    top = reward[reward.size - 1]
    grown = size + top
    if reward.size == 1:
        _one_action(old, new, pad, grown, reward[0], cost[0])
    else:
        four_rewards = np.empty(4, np.int64)
        four_costs = np.empty(4, cost.dtype)
        for x in range(3):
            # The last action fills up a group that lacks some.
            b = min(x, reward.size - 1)
            four_rewards[x] = reward[b]
            four_costs[x] = cost[b]
        _three_actions(old, new, pad, grown, four_rewards, four_costs)
        for a in range(3, reward.size, 4):
            for x in range(4):
                b = min(a + x, reward.size - 1)
                four_rewards[x] = reward[b]
                four_costs[x] = cost[b]
            _four_actions(old, new, pad, grown, four_rewards, four_costs)
    new[pad + grown : pad + grown + pad] = old.dtype.type(1) << (8 * old.itemsize - 2)
    return int(grown)


@nb.njit(cache=True, nogil=True)
def _fill_leaves(
    reward: Ints,
    cost: Ints,
    offsets: IntArray,
    leaf_units: IntArray,
    starts: IntArray,
    values: Ints,
    work: Ints,
    pad: int,
) -> None:
    """Fill ``values`` leaf after leaf; the two rows of ``work`` take turns as old and new."""
    one, two = work[0], work[1]
    one[:pad] = 0
    two[:pad] = 0
    pair_reward = np.empty(3, np.int64)
    pair_cost = np.empty(3, cost.dtype)
    for leaf in range(starts.size - 1):
        size = 1
        one[pad] = 0
        one[pad + 1 : 2 * pad + 1] = one.dtype.type(1) << (8 * one.itemsize - 2)
        u = leaf_units[leaf]
        while u < leaf_units[leaf + 1]:
            begin, end = offsets[u], offsets[u + 1]
            u += 1
            # Two units of one action each are one unit of three: half the passes over the array.
            if end == begin + 1 and u < leaf_units[leaf + 1] and offsets[u + 1] == end + 1:
                pair_reward[0], pair_cost[0] = reward[begin], cost[begin]
                pair_reward[1], pair_cost[1] = reward[end], cost[end]
                pair_reward[2] = reward[begin] + reward[end]
                pair_cost[2] = cost[begin] + cost[end]
                size = _apply_unit(one, two, pad, size, pair_reward, pair_cost)
                u += 1
            else:
                size = _apply_unit(one, two, pad, size, reward[begin:end], cost[begin:end])
            one, two = two, one
        values[starts[leaf] : starts[leaf + 1]] = one[pad : pad + size]


@nb.njit(cache=True, nogil=True)
def add_units(f: Ints, reward: IntArray, cost: Ints, offsets: IntArray, h: Ints) -> None:
    """Write to h the value function of f and further units, by the dense program."""
    pad = np.int64(1)
    for u in range(offsets.size - 1):
        pad = max(pad, reward[offsets[u + 1] - 1])
    one = np.zeros(h.size + 2 * pad, h.dtype)
    two = np.zeros(h.size + 2 * pad, h.dtype)
    size = f.size
    one[pad : pad + size] = f
    one[pad + size : pad + size + pad] = h.dtype.type(1) << (8 * h.itemsize - 2)
    for u in range(offsets.size - 1):
        begin, end = offsets[u], offsets[u + 1]
        size = _apply_unit(one, two, pad, size, reward[begin:end], cost[begin:end])
        one, two = two, one
    h[:] = one[pad : pad + size]


@nb.njit(cache=True, nogil=True)
def choose_in_leaves(
    reward: Ints, cost: Ints, offsets: Ints, leaf_units: Ints, wanted: Ints, chosen: Ints
) -> None:
    """Run the dense program again in every leaf, all its stages kept, and walk back."""
    pad = reward.max()
    unreached = cost.dtype.type(1) << (8 * cost.itemsize - 2)
    for leaf in range(leaf_units.size - 1):
        first, stop = leaf_units[leaf], leaf_units[leaf + 1]
        width = np.int64(1)
        for u in range(first, stop):
            width += reward[offsets[u + 1] - 1]
        stages = np.zeros((stop - first + 1, width + 2 * pad), cost.dtype)
        sizes = np.empty(stop - first + 1, np.int64)
        sizes[0] = 1
        stages[0, pad + 1 : 2 * pad + 1] = unreached
        for u in range(first, stop):
            begin, end = offsets[u], offsets[u + 1]
            s = u - first
            sizes[s + 1] = _apply_unit(
                stages[s], stages[s + 1], pad, sizes[s], reward[begin:end], cost[begin:end]
            )
        # Backwards: at each unit, the first choice that explains the cost at the wanted reward t.
        t = wanted[leaf]
        for u in range(stop - 1, first - 1, -1):
            s = u - first
            goal = stages[s + 1, pad + t]
            if t < sizes[s] and stages[s, pad + t] == goal:
                continue
            for row in range(offsets[u], offsets[u + 1]):
                before = max(0, t - reward[row])
                if before < sizes[s] and stages[s, pad + before] + cost[row] == goal:
                    chosen[u] = row - offsets[u] + 1
                    t = before
                    break


@nb.njit(cache=True, nogil=True)
def _small_frontier(reward: IntArray, cost: IntArray, offsets: IntArray) -> States:
    """Return the states of :func:`small_frontier`, none if the problem is not small."""
    top = np.int64(0)
    combinations = np.int64(1)
    for u in range(offsets.size - 1):
        top += reward[offsets[u + 1] - 1] - reward[offsets[u]]
        if combinations <= FEW_STATES:
            combinations *= offsets[u + 1] - offsets[u]
    if combinations <= FEW_STATES:
        merged: States = _merged_states(reward, cost, offsets, combinations)
        return merged
    steps = reward.size - (offsets.size - 1)
    if top > SMALL_WORK or top * steps > SMALL_WORK:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    base_reward = np.int64(0)
    base_cost = np.int64(0)
    widest = np.int64(0)
    extra_reward = np.empty(steps, np.int64)
    extra_cost = np.empty(steps, np.int64)
    extra_offsets = np.zeros(offsets.size, np.int64)
    count = 0
    units = 0
    for u in range(offsets.size - 1):
        first, stop = offsets[u], offsets[u + 1]
        base_reward += reward[first]
        base_cost += cost[first]
        widest = max(widest, reward[stop - 1] - reward[first])
        for row in range(first + 1, stop):
            extra_reward[count] = reward[row] - reward[first]
            extra_cost[count] = cost[row] - cost[first]
            count += 1
        units += stop > first + 1
        extra_offsets[units] = count
    values = np.empty(top + 1, np.int64)
    _fill_leaves(
        extra_reward,
        extra_cost,
        extra_offsets,
        np.array([0, units]),
        np.array([0, top + 1]),
        values,
        np.empty((2, top + 1 + 4 * widest), np.int64),
        2 * widest,
    )
    states_cost, states_reward = states_of_values(values)
    return states_cost + base_cost, states_reward + base_reward


@nb.njit(cache=True, nogil=True)
def _merged_states(
    reward: IntArray, cost: IntArray, offsets: IntArray, combinations: int
) -> tuple[IntArray, IntArray]:
    """Return the states by merging sorted lists of them, one unit after the other."""
    # Rows: cost and reward. Lists: before the unit, with some of its actions, and with one more.
    before = np.zeros((2, combinations), np.int64)
    some = np.empty((2, combinations), np.int64)
    more = np.empty((2, combinations), np.int64)
    size = 1
    for u in range(offsets.size - 1):
        gathered = 0
        for row in range(offsets[u], offsets[u + 1]):
            gathered = _merge_states(some, gathered, before, size, cost[row], reward[row], more)
            some, more = more, some
        before, some = some, before
        size = gathered
    return before[0, :size].copy(), before[1, :size].copy()


@nb.njit(cache=True, nogil=True)
def _merge_states(
    some: IntArray, some_size: int, others: IntArray, size: int, pay: int, gain: int, out: IntArray
) -> int:
    """Write the non-dominated states of one list and another, shifted one; return their number."""
    count = 0
    i = 0
    j = 0
    last = np.int64(-1)
    while i < some_size or j < size:
        take = j == size
        if i < some_size and j < size:
            take = some[0, i] <= others[0, j] + pay
        if take:
            c, r = some[0, i], some[1, i]
            i += 1
        else:
            c, r = others[0, j] + pay, others[1, j] + gain
            j += 1
        if r > last:
            # A better state of equal cost takes the place of the one before.
            if count > 0 and out[0, count - 1] == c:
                count -= 1
            out[0, count], out[1, count] = c, r
            count += 1
            last = r
    return count


@nb.njit(cache=True, nogil=True)
def states_of_values(values: Ints) -> tuple[IntArray, IntArray]:
    """Return cost and reward of the states of a value function: where it rises next."""
    size = values.size
    states_cost = np.empty(size, np.int64)
    states_reward = np.empty(size, np.int64)
    count = 0
    for t in range(size):
        states_cost[count] = values[t]
        states_reward[count] = t
        count += t + 1 == size or values[t] < values[t + 1]
    return states_cost[:count].copy(), states_reward[:count].copy()
