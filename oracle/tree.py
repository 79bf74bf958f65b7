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

# Rewards that one leaf may gather: its arrays stay in the first-level cache.
LEAF_REWARD = 1024
# Entries of a parent that share one Lagrangian bound.
BLOCK = 128
# Splits tried on both sides of the greedy path before the bound is taken.
PROBE_WIDTH = 4
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
    leaf_units, starts = _pack_leaves(arrays.reward, arrays.offsets, LEAF_REWARD)
    values = np.empty(starts[-1], dtype)
    _fill_leaves(arrays.reward, cost, arrays.offsets, leaf_units, starts, values)
    levels = [Level(values, starts)]
    while starts.size > 2:
        parent_starts = _parent_starts(starts)
        parent = np.empty(parent_starts[-1], dtype)
        _merge_level(values, starts, parent, parent_starts, products_fit)
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


@nb.njit(cache=True)
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


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def _apply_unit(old: Ints, size: int, reward: Ints, cost: Ints, new: Ints) -> int:
    """Write to ``new`` the value function of ``old[:size]`` and one more unit; return its size."""
    top = reward[reward.size - 1]
    ceiling = cost.dtype.type(old[size - 1] + cost[cost.size - 1])
    new[:size] = old[:size]
    new[size : size + top] = ceiling
    below = np.int64(0)
    for a in range(reward.size):
        r = reward[a]
        # A reward below the action's own is had by the action alone.
        for t in range(below + 1, r):
            if cost[a] < new[t]:
                new[t] = cost[a]
        below = r
        target = new[r : r + size]
        source = old[:size]
        c = cost[a]
        for x in range(source.size):
            target[x] = min(target[x], cost.dtype.type(source[x] + c))
    return int(size + top)


@nb.njit(cache=True)
def _fill_leaves(
    reward: Ints, cost: Ints, offsets: Ints, leaf_units: Ints, starts: Ints, values: Ints
) -> None:
    """Run the dense program over the units of every leaf."""
    widest = 0
    for leaf in range(starts.size - 1):
        widest = max(widest, starts[leaf + 1] - starts[leaf])
    one = np.empty(widest, cost.dtype)
    two = np.empty(widest, cost.dtype)
    for leaf in range(starts.size - 1):
        size = 1
        one[0] = 0
        for u in range(leaf_units[leaf], leaf_units[leaf + 1]):
            rows = slice(offsets[u], offsets[u + 1])
            size = _apply_unit(one, size, reward[rows], cost[rows], two)
            one, two = two, one
        values[starts[leaf] : starts[leaf + 1]] = one[:size]


@nb.njit(cache=True)
def _less_steep(dy_a: int, dx_a: int, dy_b: int, dx_b: int, products_fit: bool) -> bool:
    """Whether dy_a / dx_a <= dy_b / dx_b, exactly; dx positive, dy not negative."""
    if products_fit:
        return dy_a * dx_b <= dy_b * dx_a
    quotient_a, quotient_b = dy_a // dx_a, dy_b // dx_b
    if quotient_a != quotient_b:
        return quotient_a < quotient_b
    # Remainders are below the reward differences, so these products are small.
    return (dy_a - quotient_a * dx_a) * dx_b <= (dy_b - quotient_b * dx_b) * dx_a


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def _merge_level(
    values: Ints, starts: Ints, parent: Ints, parent_starts: Ints, products_fit: bool
) -> None:
    """Fill the parents of one level."""
    nodes = starts.size - 1
    widest = 0
    for node in range(nodes):
        widest = max(widest, starts[node + 1] - starts[node])
    hull_f = np.empty(widest, np.int64)
    hull_g = np.empty(widest, np.int64)
    for p in range(parent_starts.size - 1):
        left = 2 * p
        f = values[starts[left] : starts[left + 1]]
        h = parent[parent_starts[p] : parent_starts[p + 1]]
        if left + 1 == nodes:
            h[:] = f
            continue
        g = values[starts[left + 1] : starts[left + 2]]
        count_f = _lower_hull(f, hull_f, products_fit)
        count_g = _lower_hull(g, hull_g, products_fit)
        _convolve(f, g, hull_f[:count_f], hull_g[:count_g], h, products_fit)


@nb.njit(cache=True)
def _reduced(values: Ints, price: int, i: int) -> np.int64:
    return np.int64(values[i]) - price * i


@nb.njit(cache=True)
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


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def _lower_block(f_i: int, g: Ints, i: int, first: int, last: int, h: Ints) -> None:
    """Lower ``h[first:last + 1]`` to ``f_i + g`` shifted by i."""
    target = h[first : last + 1]
    source = g[first - i : last + 1 - i]
    for x in range(target.size):
        target[x] = min(target[x], h.dtype.type(f_i + source[x]))


@nb.njit(cache=True)
def _convolve(f: Ints, g: Ints, hull_f: Ints, hull_g: Ints, h: Ints, products_fit: bool) -> None:
    """Write the min-plus convolution of f and g to h."""
    a = f.size - 1
    b = g.size - 1
    h[:] = h.dtype.type(f[a] + g[b])
    at_f = 0
    at_g = 0
    price = np.int64(0)
    for t0 in range(0, h.size, BLOCK):
        t1 = min(t0 + BLOCK, h.size) - 1
        split_low = hull_f[at_f]
        # The slope-merge path: always take the less steep of the two next hull edges.
        while hull_f[at_f] + hull_g[at_g] < t1:
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
                i0, i1 = hull_f[at_f], hull_f[at_f + 1]
                price = (np.int64(f[i1]) - np.int64(f[i0])) // (i1 - i0)
                at_f += 1
            else:
                j0, j1 = hull_g[at_g], hull_g[at_g + 1]
                price = (np.int64(g[j1]) - np.int64(g[j0])) // (j1 - j0)
                at_g += 1
        split_high = hull_f[at_f]
        near_f = _cheapest_vertex(f, hull_f, price, at_f)
        near_g = _cheapest_vertex(g, hull_g, price, at_g)
        floor_f = _reduced(f, price, hull_f[near_f])
        floor_g = _reduced(g, price, hull_g[near_g])
        low = max(0, t0 - b, split_low - PROBE_WIDTH)
        high = min(a, t1, split_high + PROBE_WIDTH)
        for i in range(low, high + 1):
            first, last = max(t0, i), min(t1, i + b)
            if first <= last:
                _lower_block(f[i], g, i, first, last, h)
        slack = np.int64(-1)
        for t in range(t0, t1 + 1):
            slack = max(slack, np.int64(h[t]) - price * t - floor_f - floor_g)
        i_first, i_last = _open_range(f, hull_f, price, near_f, floor_f, slack)
        j_first, j_last = _open_range(g, hull_g, price, near_g, floor_g, slack)
        for i in range(max(i_first, t0 - j_last), min(i_last, t1 - j_first) + 1):
            if low <= i <= high or _reduced(f, price, i) - floor_f >= slack:
                continue
            first, last = max(t0, i + j_first), min(t1, i + j_last)
            if first <= last:
                _lower_block(f[i], g, i, first, last, h)


@nb.njit(cache=True)
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


@nb.njit(cache=True)
def _choose_in_leaves(
    reward: Ints, cost: Ints, offsets: Ints, leaf_units: Ints, wanted: Ints, chosen: Ints
) -> None:
    """Run the dense program again in every leaf, all its stages kept, and walk back."""
    for leaf in range(leaf_units.size - 1):
        first, stop = leaf_units[leaf], leaf_units[leaf + 1]
        width = np.int64(1)
        for u in range(first, stop):
            width += reward[offsets[u + 1] - 1]
        stages = np.empty((stop - first + 1, width), cost.dtype)
        sizes = np.empty(stop - first + 1, np.int64)
        sizes[0] = 1
        stages[0, 0] = 0
        for u in range(first, stop):
            rows = slice(offsets[u], offsets[u + 1])
            s = u - first
            sizes[s + 1] = _apply_unit(stages[s], sizes[s], reward[rows], cost[rows], stages[s + 1])
        t = wanted[leaf]
        for u in range(stop - 1, first - 1, -1):
            s = u - first
            goal = stages[s + 1, t]
            if t < sizes[s] and stages[s, t] == goal:
                continue
            for row in range(offsets[u], offsets[u + 1]):
                before = max(0, t - reward[row])
                if before < sizes[s] and stages[s, before] + cost[row] == goal:
                    chosen[u] = row - offsets[u] + 1
                    t = before
                    break
