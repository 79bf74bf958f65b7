"""Ragged arrays beside lists of lists."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stp import ragged

ROWS = st.lists(st.lists(st.integers(-3, 3), max_size=4), max_size=6)
FULL_ROWS = st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=4), max_size=6)


def flat(rows):
    return np.array([value for row in rows for value in row], np.int64)


@given(ROWS)
def test_places_of_elements_are_those_of_lists(rows):
    offsets = ragged.offsets_of([len(row) for row in rows])
    assert offsets.dtype == np.int64
    assert [flat(rows)[a:b].tolist() for a, b in itertools.pairwise(offsets)] == rows
    assert ragged.row_of(offsets).tolist() == [r for r, row in enumerate(rows) for _ in row]
    assert ragged.index_within(offsets).tolist() == [i for row in rows for i in range(len(row))]
    marks = np.arange(len(rows)) * 10
    assert ragged.spread(marks, offsets).tolist() == [
        10 * r for r, row in enumerate(rows) for _ in row
    ]


@given(ROWS, st.data())
def test_gathered_rows_are_the_rows_named(rows, data):
    offsets = ragged.offsets_of([len(row) for row in rows])
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8)) if rows else []
    elements, taken = ragged.gather(offsets, np.array(wanted, np.int64))
    found = flat(rows)[elements]
    assert [found[a:b].tolist() for a, b in itertools.pairwise(taken)] == [rows[r] for r in wanted]


@given(FULL_ROWS)
def test_greatest_values_and_the_first_of_them(rows):
    offsets = ragged.offsets_of([len(row) for row in rows])
    values = flat(rows)
    assert ragged.greatest(values, offsets).tolist() == [max(row) for row in rows]
    assert ragged.first_greatest(values, offsets).tolist() == [row.index(max(row)) for row in rows]


@given(st.lists(st.integers(0, 4), max_size=12))
def test_group_offsets_bound_the_members_sorted_by_group(group):
    offsets = ragged.group_offsets(np.array(group, np.int64), 5)
    assert np.diff(offsets).tolist() == [group.count(g) for g in range(5)]
