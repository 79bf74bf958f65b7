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

import numba as nb
import numpy as np
import numpy.typing as npt

from oracle import convolve, dense
from stp.ragged import IntArray, Ints, offsets_of, spread

# A leaf may gather this many rewards per action and unit reward: there the dense program costs
# what a level of the tree does. Its arrays stay in the second-level cache.
LEAF_BALANCE = 600
LEAF_REWARD_LEAST = 512
LEAF_REWARD_MOST = 65536


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

    values: Ints
    starts: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class SolvedTree:
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
    offsets = offsets_of(lengths[unit] - 1)
    base = spread(unit_offsets[:-1], unit_offsets)
    rest = ~first
    return UnitArrays(
        reward=(reward - reward[base])[rest],
        cost=(cost - cost[base])[rest],
        offsets=offsets,
        unit=unit,
    )


def nondominated_states(
    reward: IntArray, cost: IntArray, unit_offsets: IntArray
) -> tuple[IntArray, IntArray]:
    """Return cost and reward of all non-dominated states, int64, both rising.

    Takes actions as :class:`oracle.actions.Actions` holds them.
    """
    small = dense.small_frontier(reward, cost, unit_offsets)
    if small is not None:
        return small
    values = _solve(unit_arrays(reward, cost, unit_offsets), keep=False).levels[-1].values
    states_cost, states_reward = dense.states_of_values(values)
    first = unit_offsets[:-1]
    return states_cost + int(cost[first].sum()), states_reward + int(reward[first].sum())


def solve_tree(arrays: UnitArrays) -> SolvedTree:
    """Return the solved tree with all its levels."""
    return _solve(arrays, keep=True)


def _solve(arrays: UnitArrays, *, keep: bool) -> SolvedTree:
    if arrays.unit.size == 0:
        level = Level(np.zeros(1, np.int64), np.array([0, 1]))
        return SolvedTree(arrays, np.zeros(2, np.int64), (level,))
    total_cost = int(arrays.cost[arrays.offsets[1:] - 1].sum())
    total_reward = int(arrays.reward[arrays.offsets[1:] - 1].sum())
    dtype = np.int32 if total_cost < dense.NARROW_COST else np.int64
    cost: Ints = arrays.cost.astype(dtype)
    products_fit = total_cost * (total_reward + 1) < 1 << 62
    leaf_reward = LEAF_BALANCE * total_reward // arrays.reward.size
    leaf_reward = min(max(leaf_reward, LEAF_REWARD_LEAST), LEAF_REWARD_MOST)
    leaf_units, starts = _pack_leaves(arrays.reward, arrays.offsets, leaf_reward)
    level = _unfilled_level(starts, dtype, 0, keep)
    dense.fill_leaves(arrays.reward, cost, arrays.offsets, leaf_units, starts, level.values)
    levels = [level]
    depth = 0
    node_units = leaf_units
    if starts.size > 2:
        hull = convolve.leaf_hulls(level.values, starts, products_fit)
    while level.starts.size > 2:
        depth += 1
        parents = _unfilled_level(_parent_starts(level.starts), dtype, depth, keep)
        hull = _fill_parents(parents, level, hull, (arrays, cost, node_units), products_fit)
        level = parents
        node_units = np.append(node_units[:-1:2], node_units[-1])
        levels = [*levels, level] if keep else [level]
    return SolvedTree(arrays, leaf_units, tuple(levels))


def _unfilled_level(starts: IntArray, dtype: npt.DTypeLike, depth: int, keep: bool) -> Level:
    """Return a level to fill, in fresh memory if it is to be kept."""
    size = int(starts[-1])
    if keep:
        return Level(np.empty(size, dtype), starts)
    place = dense.ODD_LEVEL if depth % 2 else dense.EVEN_LEVEL
    return Level(dense.reused_array(place, size, dtype), starts)


def _fill_parents(
    parents: Level,
    level: Level,
    hull: tuple[IntArray, IntArray],
    units: tuple[UnitArrays, Ints, IntArray],
    products_fit: bool,
) -> tuple[IntArray, IntArray]:
    """Fill the next level and return its hulls.

    ``units`` holds all units, their costs in the width of the values, and every node's first unit.
    """
    arrays, cost, node_units = units
    # One step per action, and one per unit for its cheapest action, for every entry of the parent.
    dense_steps = np.diff(arrays.offsets[node_units]) + np.diff(node_units)
    hulls, hull_starts, given_up = convolve.merge_level(
        (level.values, level.starts, dense_steps),
        hull,
        (parents.values, parents.starts),
        products_fit,
    )
    for p in np.flatnonzero(given_up).tolist():
        # The dense program needs the units of one child only: those of the cheaper one are added.
        added = 2 * p + int(dense_steps[2 * p + 1] <= dense_steps[2 * p])
        other = 4 * p + 1 - added
        dense.add_units(
            level.values[level.starts[other] : level.starts[other + 1]],
            arrays.reward,
            cost,
            arrays.offsets[node_units[added] : node_units[added + 1] + 1],
            parents.values[parents.starts[p] : parents.starts[p + 1]],
        )
    return hulls, hull_starts


def choices_behind(tree: SolvedTree, extra_reward: int) -> IntArray:
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
    dense.choose_in_leaves(arrays.reward, cost, arrays.offsets, tree.leaf_units, wanted, chosen)
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
