"""Min-plus convolutions of value functions, restricted to splits that a bound cannot rule out.

The bound is Lagrangian: at any integer price, what a split costs beyond the two functions' least
reduced costs is a sum of two terms that are not negative (docs/frontiers_proofs.md, section 2). A
merge that would take more steps than the dense program is given up and reported (section 3).

Names, in all functions: ``f`` and ``g`` are the value functions of two children, ``h`` that of
their parent, ``h[t] = min over i + j = t of f[i] + g[j]``. A *split* of t is such a pair.
``hull_f`` holds the vertices of f's lower convex hull, indices into f; ``splits[v]`` is the number
of f's hull edges among the first v edges of the parent's hull. ``price`` is an integer cost per
reward; the *reduced cost* of f at i is ``f[i] - price * i``, and ``floor_f`` is its least value.

Invariant within a block of parent entries: ``h[t]`` is at most the cost of the splits tried so far.
A split that is better has ``reduced f - floor_f`` and ``reduced g - floor_g`` which add up to less
than ``slack``, the largest distance of any h of the block from the bound. So only i and j with
smaller reduced costs need to be tried, and the greedy path along the hulls makes the slack small
before that.

Every compiled function calls functions of this file only, because numba's disk cache does not
notice a callee changed elsewhere.
"""

import numba as nb
import numpy as np
import numpy.typing as npt

from stp.ragged import IntArray, Ints

# Entries of a parent that share one Lagrangian bound.
BLOCK = 128
# Hull vertices tried beyond both ends of a block's greedy path before the bound is taken.
PROBE = 1


@nb.njit(cache=True, nogil=True)
def leaf_hulls(values: Ints, starts: IntArray, products_fit: bool) -> tuple[IntArray, IntArray]:
    """Return the hull vertices of every leaf, side by side, and where each leaf's begin."""
    hulls = np.empty(values.size, np.int64)
    hull_starts = np.zeros(starts.size, np.int64)
    for leaf in range(starts.size - 1):
        at = hull_starts[leaf]
        count = _lower_hull(values[starts[leaf] : starts[leaf + 1]], hulls[at:], products_fit)
        hull_starts[leaf + 1] = at + count
    return hulls[: hull_starts[-1]].copy(), hull_starts


@nb.njit(cache=True, nogil=True)
def merge_level(
    nodes: tuple[Ints, IntArray, IntArray],
    hull: tuple[IntArray, IntArray],
    parents: tuple[Ints, IntArray],
    products_fit: bool,
) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """Fill the parents of one level.

    Parameters
    ----------
    nodes
        Values of all nodes side by side, where each node's start, and the steps of the dense
        program for each node's units.
    hull
        Hull vertices of all nodes and where each node's start, as :func:`leaf_hulls` returns them.
    parents
        Values to fill, and where each parent's start. A parent's children are adjacent; an odd last
        node moves up alone.
    products_fit
        Whether total cost times total reward stays below 2^62.

    Returns
    -------
    tuple
        The parents' hulls, and whether each parent was given up: its values are then not valid.
    """
    values, starts, dense_steps = nodes
    hulls, hull_starts = hull
    parent, parent_starts = parents
    out = np.empty(hulls.size, np.int64)
    out_starts = np.zeros(parent_starts.size, np.int64)
    splits = np.empty(hulls.size, np.int64)
    given_up = np.zeros(parent_starts.size - 1, np.bool_)
    for p in range(parent_starts.size - 1):
        left = 2 * p
        at = out_starts[p]
        f = values[starts[left] : starts[left + 1]]
        hull_f = hulls[hull_starts[left] : hull_starts[left + 1]]
        h = parent[parent_starts[p] : parent_starts[p + 1]]
        if left + 1 == starts.size - 1:
            h[:] = f
            out[at : at + hull_f.size] = hull_f
            out_starts[p + 1] = at + hull_f.size
            continue
        g = values[starts[left + 1] : starts[left + 2]]
        hull_g = hulls[hull_starts[left + 1] : hull_starts[left + 2]]
        count = _merge_hulls(f, g, hull_f, hull_g, out[at:], splits, products_fit)
        limit = min(dense_steps[left], dense_steps[left + 1]) * h.size
        given_up[p] = not _convolve(f, g, hull_f, hull_g, splits[:count], h, limit)
        out_starts[p + 1] = at + count
    return out[: out_starts[-1]].copy(), out_starts, given_up


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
) -> int:
    """Return the slope, rounded down, of the convolution's hull edge that ends at a vertex."""
    if vertex == 0:
        return 0
    i0, i1 = hull_f[splits[vertex - 1]], hull_f[splits[vertex]]
    j0, j1 = hull_g[vertex - 1 - splits[vertex - 1]], hull_g[vertex - splits[vertex]]
    rise = np.int64(f[i1]) - np.int64(f[i0]) + np.int64(g[j1]) - np.int64(g[j0])
    return int(rise // (i1 - i0 + j1 - j0))


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
def _sweep(f_i: np.signedinteger, g: Ints, i: int, first: int, last: int, h: Ints) -> None:
    """Lower ``h[first:last + 1]`` to ``f_i + g`` shifted by i."""
    for t in range(first, last + 1):
        # Unsigned: a signed index would be tested for wrapping around, and the loop stay scalar.
        at = np.uint64(t)
        h[at] = min(h[at], h.dtype.type(f_i + g[np.uint64(t - i)]))
