"""Arithmetic of ragged arrays: rows of different lengths, side by side in one flat array.

``offsets`` says where each row starts, and where the last one ends: row r owns the elements
``offsets[r]:offsets[r + 1]``. The positions of trajectories lie so, the actions of units, the
trajectories of questions. Only numpy is imported here.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
Ints = npt.NDArray[np.signedinteger]
"""int32 or int64, whichever the values fit in."""


def offsets_of(lengths: npt.ArrayLike) -> IntArray:
    """Return the offsets of rows with the given lengths; int64 ``(rows + 1,)``.

    Examples
    --------
    >>> offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    sizes = np.asarray(lengths, np.int64)
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def group_offsets(group: IntArray, groups: int) -> IntArray:
    """Return the offsets of the members of every group, once they are sorted by group.

    Parameters
    ----------
    group
        The group of each member, int64 ``(members,)``, from 0.
    groups
        How many groups there are; some may be empty.

    Examples
    --------
    >>> group_offsets(np.array([1, 0, 1]), 3).tolist()
    [0, 1, 3, 3]
    """
    return offsets_of(np.bincount(group, minlength=groups))


def spread(values: npt.ArrayLike, offsets: IntArray) -> Array:
    """Return every row's value at each of its elements; ``(elements,)``.

    Examples
    --------
    >>> spread([7, 8, 9], np.array([0, 2, 2, 5])).tolist()
    [7, 7, 9, 9, 9]
    """
    return np.repeat(np.asarray(values), np.diff(offsets))


def row_of(offsets: IntArray) -> IntArray:
    """Return the row that each element belongs to; int64 ``(elements,)``.

    Examples
    --------
    >>> row_of(np.array([0, 2, 2, 5])).tolist()
    [0, 0, 2, 2, 2]
    """
    return spread(np.arange(offsets.size - 1), offsets)


def index_within(offsets: IntArray) -> IntArray:
    """Return each element's place in its row, from 0; int64 ``(elements,)``.

    Examples
    --------
    >>> index_within(np.array([0, 2, 2, 5])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(offsets[-1]) - spread(offsets[:-1], offsets)


def gather(offsets: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the elements of some rows, row after row, and the offsets of what is taken.

    Parameters
    ----------
    offsets
        Of all rows.
    rows
        Which rows, int64, in any order; a row may be named more than once.

    Returns
    -------
    elements, offsets
        Indices into the flat array, int64; and where each taken row starts among them.

    Examples
    --------
    >>> elements, taken = gather(np.array([0, 2, 2, 5]), np.array([2, 0]))
    >>> elements.tolist(), taken.tolist()
    ([2, 3, 4, 0, 1], [0, 3, 5])
    """
    starts = offsets[rows]
    taken = offsets_of(offsets[rows + 1] - starts)
    return np.arange(taken[-1]) + spread(starts - taken[:-1], taken), taken


def first_where(holds: npt.NDArray[np.bool_], offsets: IntArray) -> IntArray:
    """Return, for every row, its first element that holds; an index into the flat array, int64.

    Every row must have such an element.

    Examples
    --------
    >>> first_where(np.array([False, True, True, False, True]), np.array([0, 3, 5])).tolist()
    [1, 4]
    """
    places = np.flatnonzero(holds)
    return places[np.searchsorted(places, offsets[:-1])]


def greatest(values: Array, offsets: IntArray) -> Array:
    """Return the greatest value of every row; no row may be empty.

    Examples
    --------
    >>> greatest(np.array([3, 1, 4, 1, 5]), np.array([0, 2, 5])).tolist()
    [3, 5]
    """
    # Numpy refuses to reduce over rows if there is none.
    return np.maximum.reduceat(values, offsets[:-1]) if offsets.size > 1 else values[:0]


def first_greatest(values: Array, offsets: IntArray) -> IntArray:
    """Return, for every row, the place in the row of its greatest value, the first on ties; int64.

    Examples
    --------
    >>> first_greatest(np.array([3, 1, 4, 5, 5]), np.array([0, 2, 5])).tolist()
    [0, 1]
    """
    best = spread(greatest(values, offsets), offsets)
    return first_where(values == best, offsets) - offsets[:-1]
