"""Full frontiers by a balanced tree of pruned min-plus convolutions.

The value function of a group of units is an integer array: entry t is the least extra cost for an
extra reward of at least t, both counted from the group's cheapest actions. Leaves hold a few units
and are filled by the dense program; a parent is the min-plus convolution of its two children,
restricted to the splits that a Lagrangian bound cannot rule out. Why nothing is lost:
docs/frontiers_proofs.md, section 2; what bounds the worst case: section 3.

Only arrays are seen here, no strategies and no curves. Every compiled function calls functions of
this file only, because numba's disk cache does not notice a callee changed elsewhere.
"""

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
CostArray = npt.NDArray[np.int32] | npt.NDArray[np.int64]
# In compiled code: int32 or int64, whichever the sums fit in.
Ints = npt.NDArray[Any]

# A leaf may gather this many rewards per action and unit reward: there the dense program costs
# what a level of the tree does. Its arrays stay in the second-level cache.
LEAF_BALANCE = 600
LEAF_REWARD_LEAST = 512
LEAF_REWARD_MOST = 65536
# Entries of a parent that share one Lagrangian bound.
BLOCK = 128
# Hull vertices tried beyond both ends of a block's greedy path before the bound is taken.
PROBE = 1
# A step's gain and cost in one number that sorts by gain, then cost.
STEP_BITS = 44
STEP_GAIN_BITS = 18
NO_STEP = np.iinfo(np.int64).max
# Sums below this are computed in 32 bits.
NARROW_COST = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class UnitArrays:
    """Units counted from their cheapest actions; units with one action are left out.

    Attributes
    ----------
    reward, cost
        Extra reward and cost of every action but the first; int64, rising within a unit.
    offsets
        Unit boundaries in the two, int64 ``(units + 1,)``.
    unit
        Index of each unit among the units given, int64 ``(units,)``.
    """

    reward: IntArray
    cost: IntArray
    offsets: IntArray
    unit: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Nodes of one level, each an array over extra rewards, side by side in one buffer."""

    values: CostArray
    starts: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """All levels of a solved problem, leaves first; what finds the actions behind a point."""

    arrays: UnitArrays
    leaf_units: IntArray
    levels: tuple[Level, ...]


def unit_arrays(reward: IntArray, cost: IntArray, unit_offsets: IntArray) -> UnitArrays:
    """Return the units with something to decide, counted from their cheapest actions."""
    lengths = np.diff(unit_offsets)
    unit = np.flatnonzero(lengths > 1)
    first = np.zeros(reward.size, np.bool_)
    first[unit_offsets[:-1]] = True
    offsets = np.zeros(unit.size + 1, np.int64)
    np.cumsum(lengths[unit] - 1, out=offsets[1:])
    base = np.repeat(unit_offsets[:-1], lengths)
    rest = ~first
    return UnitArrays(
        reward=(reward - reward[base])[rest],
        cost=(cost - cost[base])[rest],
        offsets=offsets,
        unit=unit,
    )


def value_function(arrays: UnitArrays) -> CostArray:
    """Return the least extra cost for every extra reward (at least that much), ``(T + 1,)``."""
    values: CostArray = _solve(arrays, keep=False)[0].levels[-1].values
    return values


def single_step_functions(gain: IntArray, cost: IntArray) -> tuple[CostArray, IntArray]:
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
    lengths = np.diff(np.append(begin, gains.size))
    rank = np.arange(1, gains.size + 1) - np.repeat(begin, lengths)
    sums = np.cumsum(costs)
    sums -= np.repeat(sums[begin] - costs[begin], lengths)
    first = np.searchsorted(problem[begin], np.arange(problems + 1))
    starts = np.zeros(problems + 1, np.int64)
    np.cumsum(np.where(useful, gain, 0).sum(axis=1) + 1, out=starts[1:])
    total_cost = np.where(useful, cost, 0).sum(axis=1).max(initial=0)
    kind = np.int32 if total_cost < NARROW_COST else np.int64
    values = np.zeros(starts[-1], kind)
    if gains.size:
        offsets = np.append(begin, gains.size)
        _fill_leaves(gains * rank, sums.astype(kind), offsets, first, starts, values)
    return values, starts


def solve_tree(arrays: UnitArrays) -> Tree:
    """Return the solved tree with all its levels."""
    return _solve(arrays, keep=True)[0]


def _solve(arrays: UnitArrays, *, keep: bool) -> tuple[Tree, IntArray]:
    if arrays.unit.size == 0:
        level = Level(np.zeros(1, np.int64), np.array([0, 1]))
        return Tree(arrays, np.zeros(2, np.int64), (level,)), np.zeros(2, np.int64)
    total_cost = int(arrays.cost[arrays.offsets[1:] - 1].sum())
    total_reward = int(arrays.reward[arrays.offsets[1:] - 1].sum())
    dtype = np.int32 if total_cost < NARROW_COST else np.int64
    cost = arrays.cost.astype(dtype)
    products_fit = total_cost * (total_reward + 1) < 1 << 62
    leaf_reward = LEAF_BALANCE * total_reward // arrays.reward.size
    leaf_reward = min(max(leaf_reward, LEAF_REWARD_LEAST), LEAF_REWARD_MOST)
    leaf_units, starts = _pack_leaves(arrays.reward, arrays.offsets, leaf_reward)
    values = np.empty(starts[-1], dtype)
    _fill_leaves(arrays.reward, cost, arrays.offsets, leaf_units, starts, values)
    levels = [Level(values, starts)]
    if starts.size > 2:
        hulls, hull_starts = _leaf_hulls(values, starts, products_fit)
    node_units = leaf_units
    while starts.size > 2:
        parent_starts = _parent_starts(starts)
        parent = np.empty(parent_starts[-1], dtype)
        hulls, hull_starts = _merge_level(
            values,
            starts,
            hulls,
            hull_starts,
            parent,
            parent_starts,
            products_fit,
            (arrays.reward, cost, arrays.offsets, node_units),
        )
        node_units = np.append(node_units[:-1:2], node_units[-1])
        values, starts = parent, parent_starts
        levels = [*levels, Level(values, starts)] if keep else [Level(values, starts)]
    return Tree(arrays, leaf_units, tuple(levels)), starts


def choices_behind(tree: Tree, extra_reward: int) -> IntArray:
    """Return an optimal action per unit for a point of the frontier.

    Parameters
    ----------
    tree
        What :func:`solve_tree` returned.
    extra_reward
        Index into the root's value function.

    Returns
    -------
    int64 ``(units,)``
        For each unit of ``tree.arrays``: 0 for its cheapest action, j for its j-th other one.
    """
    arrays = tree.arrays
    chosen = np.zeros(arrays.unit.size, np.int64)
    if arrays.unit.size == 0:
        return chosen
    wanted = np.array([extra_reward], np.int64)
    for depth in range(len(tree.levels) - 1, 0, -1):
        parent, child = tree.levels[depth], tree.levels[depth - 1]
        wanted = _split_level(child.values, child.starts, parent.values, parent.starts, wanted)
    cost = arrays.cost.astype(tree.levels[0].values.dtype)
    _choose_in_leaves(arrays.reward, cost, arrays.offsets, tree.leaf_units, wanted, chosen)
    return chosen


@nb.njit(cache=True, nogil=True)
def _pack_leaves(
    reward: IntArray, offsets: IntArray, leaf_reward: int
) -> tuple[IntArray, IntArray]:
    """Return the first unit of every leaf (and the end), and the leaves' array boundaries."""
    units = offsets.size - 1
    leaf_units = np.empty(units + 1, np.int64)
    starts = np.empty(units + 1, np.int64)
    leaf_units[0] = 0
    starts[0] = 0
    leaves = 0
    gathered = np.int64(0)
    for u in range(units):
        top = reward[offsets[u + 1] - 1]
        if u > leaf_units[leaves] and gathered + top > leaf_reward:
            leaves += 1
            leaf_units[leaves] = u
            starts[leaves] = starts[leaves - 1] + gathered + 1
            gathered = np.int64(0)
        gathered += top
    leaves += 1
    leaf_units[leaves] = units
    starts[leaves] = starts[leaves - 1] + gathered + 1
    return leaf_units[: leaves + 1].copy(), starts[: leaves + 1].copy()


@nb.njit(cache=True, nogil=True)
def _parent_starts(starts: IntArray) -> IntArray:
    """Return the boundaries of the parents of adjacent pairs; an odd last node moves up alone."""
    nodes = starts.size - 1
    parents = (nodes + 1) // 2
    out = np.empty(parents + 1, np.int64)
    out[0] = 0
    for p in range(parents):
        left = 2 * p
        size = starts[left + 1] - starts[left]
        if left + 1 < nodes:
            size += starts[left + 2] - starts[left + 1] - 1
        out[p + 1] = out[p] + size
    return out


@nb.njit(cache=True, nogil=True)
def _one_action(old: Ints, new: Ints, at: int, size: int, r: int, c: Any) -> None:
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
) -> None:
    """Run the dense program over the units of every leaf."""
    widest = 0
    for leaf in range(starts.size - 1):
        widest = max(widest, starts[leaf + 1] - starts[leaf])
    pad = 2 * reward.max()
    one = np.zeros(widest + 2 * pad, cost.dtype)
    two = np.zeros(widest + 2 * pad, cost.dtype)
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
def _less_steep(dy_a: int, dx_a: int, dy_b: int, dx_b: int, products_fit: bool) -> bool:
    """Whether dy_a / dx_a <= dy_b / dx_b, exactly; dx positive, dy not negative."""
    if products_fit:
        return dy_a * dx_b <= dy_b * dx_a
    quotient_a, quotient_b = dy_a // dx_a, dy_b // dx_b
    if quotient_a != quotient_b:
        return quotient_a < quotient_b
    # Remainders are below the reward differences, so these products are small.
    return (dy_a - quotient_a * dx_a) * dx_b <= (dy_b - quotient_b * dx_b) * dx_a


@nb.njit(cache=True, nogil=True)
def _lower_hull(values: Ints, vertices: Ints, products_fit: bool) -> int:
    """Write the vertices of the lower convex hull of (i, values[i]); return their number."""
    count = 0
    for i in range(values.size):
        y = np.int64(values[i])
        while count >= 2:
            a, b = vertices[count - 2], vertices[count - 1]
            y_a, y_b = np.int64(values[a]), np.int64(values[b])
            if _less_steep(y - y_b, i - b, y_b - y_a, b - a, products_fit):
                count -= 1
            else:
                break
        vertices[count] = i
        count += 1
    return count


@nb.njit(cache=True, nogil=True)
def _leaf_hulls(values: Ints, starts: IntArray, products_fit: bool) -> tuple[IntArray, IntArray]:
    """Return the hull vertices of every leaf, side by side, and where each leaf's begin."""
    hulls = np.empty(values.size, np.int64)
    hull_starts = np.zeros(starts.size, np.int64)
    for leaf in range(starts.size - 1):
        at = hull_starts[leaf]
        count = _lower_hull(values[starts[leaf] : starts[leaf + 1]], hulls[at:], products_fit)
        hull_starts[leaf + 1] = at + count
    return hulls[: hull_starts[-1]].copy(), hull_starts


@nb.njit(cache=True, nogil=True)
def _merge_level(
    values: Ints,
    starts: IntArray,
    hulls: IntArray,
    hull_starts: IntArray,
    parent: Ints,
    parent_starts: IntArray,
    products_fit: bool,
    units: Any,
) -> tuple[IntArray, IntArray]:
    """Fill the parents of one level; return their hulls as :func:`_leaf_hulls` does.

    ``units`` holds all units and the first unit of every node, for when the pruning fails.
    """
    reward, cost, offsets, node_units = units
    nodes = starts.size - 1
    out = np.empty(hulls.size, np.int64)
    out_starts = np.zeros(parent_starts.size, np.int64)
    splits = np.empty(hulls.size, np.int64)
    for p in range(parent_starts.size - 1):
        left = 2 * p
        at = out_starts[p]
        f = values[starts[left] : starts[left + 1]]
        hull_f = hulls[hull_starts[left] : hull_starts[left + 1]]
        h = parent[parent_starts[p] : parent_starts[p + 1]]
        if left + 1 == nodes:
            h[:] = f
            out[at : at + hull_f.size] = hull_f
            out_starts[p + 1] = at + hull_f.size
            continue
        g = values[starts[left + 1] : starts[left + 2]]
        hull_g = hulls[hull_starts[left + 1] : hull_starts[left + 2]]
        count = _merge_hulls(f, g, hull_f, hull_g, out[at:], splits, products_fit)
        # The dense program needs the units of one child only: the cheaper one.
        first, middle, stop = node_units[left], node_units[left + 1], node_units[left + 2]
        steps_f = (offsets[middle] - offsets[first] + middle - first) * h.size
        steps_g = (offsets[stop] - offsets[middle] + stop - middle) * h.size
        if not _convolve(f, g, hull_f, hull_g, splits[:count], h, min(steps_f, steps_g)):
            if steps_f < steps_g:
                _add_units(g, reward, cost, offsets[first : middle + 1], h)
            else:
                _add_units(f, reward, cost, offsets[middle : stop + 1], h)
        out_starts[p + 1] = at + count
    return out[: out_starts[-1]].copy(), out_starts


@nb.njit(cache=True, nogil=True)
def _add_units(f: Ints, reward: IntArray, cost: Ints, offsets: IntArray, h: Ints) -> None:
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
def _merge_hulls(
    f: Ints,
    g: Ints,
    hull_f: IntArray,
    hull_g: IntArray,
    merged: IntArray,
    splits: IntArray,
    products_fit: bool,
) -> int:
    """Write the hull of the convolution, and the position in ``hull_f`` of each of its vertices.

    The hull of a convolution is the convolution of the hulls: edges in order of slope.
    """
    at_f = 0
    at_g = 0
    count = 0
    merged[0] = 0
    splits[0] = 0
    while at_f + 1 < hull_f.size or at_g + 1 < hull_g.size:
        take_f = at_f + 1 < hull_f.size
        if take_f and at_g + 1 < hull_g.size:
            i0, i1, j0, j1 = hull_f[at_f], hull_f[at_f + 1], hull_g[at_g], hull_g[at_g + 1]
            take_f = _less_steep(
                np.int64(f[i1]) - np.int64(f[i0]),
                i1 - i0,
                np.int64(g[j1]) - np.int64(g[j0]),
                j1 - j0,
                products_fit,
            )
        if take_f:
            at_f += 1
        else:
            at_g += 1
        count += 1
        merged[count] = hull_f[at_f] + hull_g[at_g]
        splits[count] = at_f
    return count + 1


@nb.njit(cache=True, nogil=True)
def _reduced(values: Ints, price: int, i: int) -> np.int64:
    return np.int64(values[i]) - price * i


@nb.njit(cache=True, nogil=True)
def _cheapest_vertex(values: Ints, hull: Ints, price: int, at: int) -> int:
    """Return the position in ``hull`` of the least reduced cost, walking from ``at``."""
    here = _reduced(values, price, hull[at])
    while at > 0:
        there = _reduced(values, price, hull[at - 1])
        if there > here:
            break
        here = there
        at -= 1
    while at + 1 < hull.size:
        there = _reduced(values, price, hull[at + 1])
        if there >= here:
            break
        here = there
        at += 1
    return at


@nb.njit(cache=True, nogil=True)
def _open_range(
    values: Ints, hull: Ints, price: int, at: int, floor: int, slack: int
) -> tuple[int, int]:
    """Return the first and last index whose reduced cost may lie below ``floor + slack``."""
    low = at
    while low >= 0 and _reduced(values, price, hull[low]) - floor < slack:
        low -= 1
    high = at
    while high < hull.size and _reduced(values, price, hull[high]) - floor < slack:
        high += 1
    first = hull[low] + 1 if low >= 0 else 0
    last = hull[high] - 1 if high < hull.size else hull[hull.size - 1]
    return first, last


@nb.njit(cache=True, nogil=True)
def _sweep(f_i: Any, g: Ints, i: int, first: int, last: int, h: Ints) -> None:
    """Lower ``h[first:last + 1]`` to ``f_i + g`` shifted by i."""
    for t in range(first, last + 1):
        # Unsigned: a signed index would be tested for wrapping around, and the loop stay scalar.
        at = np.uint64(t)
        h[at] = min(h[at], h.dtype.type(f_i + g[np.uint64(t - i)]))


@nb.njit(cache=True, nogil=True)
def _convolve(
    f: Ints, g: Ints, hull_f: IntArray, hull_g: IntArray, splits: IntArray, h: Ints, limit: int
) -> bool:
    """Write the min-plus convolution of f and g to h; give up after ``limit`` steps.

    Returns whether h is complete.
    """
    a = f.size - 1
    b = g.size - 1
    h[:] = h.dtype.type(f[a] + g[b])
    start = 0
    at = 0
    steps = 0
    for t0 in range(0, h.size, BLOCK):
        t1 = min(t0 + BLOCK, h.size) - 1
        # Hull vertices of the convolution from the last one before the block to the first after.
        while hull_f[splits[at]] + hull_g[at - splits[at]] < t1:
            at += 1
        while (
            start < at and hull_f[splits[start + 1]] + hull_g[start + 1 - splits[start + 1]] <= t0
        ):
            start += 1
        low_f, high_f = splits[start], splits[at]
        low_g, high_g = start - low_f, at - high_f
        for v in range(max(0, low_f - PROBE), min(hull_f.size, high_f + PROBE + 1)):
            i = hull_f[v]
            _sweep(f[i], g, i, max(t0, i), min(t1, i + b), h)
        for v in range(max(0, low_g - PROBE), min(hull_g.size, high_g + PROBE + 1)):
            j = hull_g[v]
            _sweep(g[j], f, j, max(t0, j), min(t1, j + a), h)
        middle = (start + at) // 2
        near_f, near_g = splits[middle], middle - splits[middle]
        price = _price(f, g, hull_f, hull_g, splits, middle)
        near_f = _cheapest_vertex(f, hull_f, price, near_f)
        near_g = _cheapest_vertex(g, hull_g, price, near_g)
        floor_f = _reduced(f, price, hull_f[near_f])
        floor_g = _reduced(g, price, hull_g[near_g])
        slack = np.int64(h[t0]) - price * t0
        for t in range(t0 + 1, t1 + 1):
            slack = max(slack, np.int64(h[t]) - price * t)
        slack -= floor_f + floor_g
        i_first, i_last = _open_range(f, hull_f, price, near_f, floor_f, slack)
        j_first, j_last = _open_range(g, hull_g, price, near_g, floor_g, slack)
        steps += i_last - i_first
        if steps > limit:
            return False
        for i in range(max(i_first, t0 - j_last), min(i_last, t1 - j_first) + 1):
            if _reduced(f, price, i) - floor_f < slack:
                first, last = max(t0, i + j_first), min(t1, i + j_last)
                _sweep(f[i], g, i, first, last, h)
                steps += max(0, last - first)
    return True


@nb.njit(cache=True, nogil=True)
def _price(
    f: Ints, g: Ints, hull_f: IntArray, hull_g: IntArray, splits: IntArray, vertex: int
) -> Any:
    """Return the slope, rounded down, of the convolution's hull edge that ends at a vertex."""
    if vertex == 0:
        return np.int64(0)
    i0, i1 = hull_f[splits[vertex - 1]], hull_f[splits[vertex]]
    j0, j1 = hull_g[vertex - 1 - splits[vertex - 1]], hull_g[vertex - splits[vertex]]
    rise = np.int64(f[i1]) - np.int64(f[i0]) + np.int64(g[j1]) - np.int64(g[j0])
    return rise // (i1 - i0 + j1 - j0)


@nb.njit(cache=True, nogil=True)
def _split_level(
    values: Ints, starts: Ints, parent: Ints, parent_starts: Ints, wanted: Ints
) -> Ints:
    """Return the rewards that the children of every parent contribute to the wanted ones."""
    nodes = starts.size - 1
    out = np.zeros(nodes, np.int64)
    for p in range(parent_starts.size - 1):
        left = 2 * p
        t = wanted[p]
        if left + 1 == nodes:
            out[left] = t
            continue
        f = values[starts[left] : starts[left + 1]]
        g = values[starts[left + 1] : starts[left + 2]]
        goal = parent[parent_starts[p] + t]
        for i in range(max(0, t - (g.size - 1)), min(f.size - 1, t) + 1):
            if f[i] + g[t - i] == goal:
                out[left] = i
                out[left + 1] = t - i
                break
    return out


@nb.njit(cache=True, nogil=True)
def _choose_in_leaves(
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
