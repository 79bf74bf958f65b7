"""Curves: what they accept, what they refuse, and how trajectories are taken out of them."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stp import curves as curves_module
from stp.curves import Curves, integer_array


@st.composite
def curve_lists(draw: st.DrawFn) -> list[tuple[int, list[int], list[int]]]:
    """Draw trajectories as (question, tokens, correct) with four probes."""
    trajectories = []
    for _ in range(draw(st.integers(0, 6))):
        steps = draw(st.lists(st.integers(0, 5), max_size=5))
        tokens = np.cumsum([0, *steps]).tolist()
        correct = draw(st.lists(st.integers(0, 4), min_size=len(tokens), max_size=len(tokens)))
        trajectories.append((draw(st.integers(0, 3)), tokens, correct))
    return trajectories


def build(trajectories: list[tuple[int, list[int], list[int]]]) -> Curves:
    return Curves(
        tokens=np.array([t for _, tokens, _ in trajectories for t in tokens], dtype=np.int64),
        correct=np.array([c for _, _, correct in trajectories for c in correct], dtype=np.int32),
        trajectory_offsets=np.cumsum([0, *(len(tokens) for _, tokens, _ in trajectories)]),
        question=np.array([q for q, _, _ in trajectories], dtype=np.int32),
        probes=4,
    )


def as_lists(curves: Curves) -> list[tuple[int, list[int], list[int]]]:
    bounds = curves.trajectory_offsets.tolist()
    return [
        (int(q), curves.tokens[a:b].tolist(), curves.correct[a:b].tolist())
        for q, a, b in zip(curves.question, bounds[:-1], bounds[1:], strict=True)
    ]


@given(curve_lists(), st.data())
def test_select_takes_out_what_plain_lists_would(
    trajectories: list[tuple[int, list[int], list[int]]], data: st.DataObject
) -> None:
    curves = build(trajectories)
    assert as_lists(curves) == trajectories
    rows = (
        data.draw(st.lists(st.integers(0, len(trajectories) - 1), max_size=8))
        if trajectories
        else []
    )
    assert as_lists(curves.select(np.array(rows, dtype=np.int64))) == [
        trajectories[row] for row in rows
    ]


@given(curve_lists())
def test_samples_count_trajectories_within_a_question(
    trajectories: list[tuple[int, list[int], list[int]]],
) -> None:
    seen: dict[int, int] = {}
    expected = []
    for question, _, _ in trajectories:
        expected.append(seen.get(question, 0))
        seen[question] = expected[-1] + 1
    assert build(trajectories).sample.tolist() == expected


def test_ends_of_curves() -> None:
    curves = build([(0, [0, 3, 9], [1, 4, 2]), (1, [0], [3])])
    assert curves.full_tokens_s.tolist() == [9, 0]
    assert curves.full_correct_s.tolist() == [2, 3]
    assert curves.zero_correct_s.tolist() == [1, 3]


def test_cells_are_models_on_benchmarks() -> None:
    curves = Curves(
        tokens=[0, 0, 5, 0],
        correct=[1, 0, 2, 2],
        trajectory_offsets=[0, 1, 3, 4],
        question=[7, 7, 9],
        benchmark=[0, 0, 1],
        model=[1, 0, 1],
        probes=2,
    )
    cells = {(model, benchmark): as_lists(cell) for model, benchmark, cell in curves.cells()}
    assert cells == {
        (0, 0): [(7, [0, 5], [0, 2])],
        (1, 0): [(7, [0], [1])],
        (1, 1): [(9, [0], [2])],
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tokens": [0, 5, 4]}, "falls within a trajectory at position 2"),
        ({"tokens": [1, 5, 6]}, r"L\(0\) must be 0"),
        ({"tokens": [0.0, 1.0, 2.0]}, "tokens must hold integers"),
        ({"correct": [0, 5, 1]}, "between 0 and probes = 4"),
        ({"correct": [0, -1, 1]}, "between 0 and probes = 4"),
        ({"correct": [0, 1]}, "tokens has 3 positions and correct has 2"),
        ({"trajectory_offsets": [0, 2]}, "end at the number of positions"),
        ({"trajectory_offsets": [0, 1, 3]}, "3 entries for 1 trajectories"),
        ({"question": [0, 0], "trajectory_offsets": [0, 3, 3]}, "at least one position"),
        ({"probes": 0}, "positive integer"),
        ({"model": [0, 1]}, "model has 2 entries"),
        ({"question": [2**40]}, "outside the range of int32"),
    ],
)
def test_a_broken_curve_is_refused_by_name(changed: dict[str, object], message: str) -> None:
    good: dict[str, object] = {
        "tokens": [0, 5, 6],
        "correct": [0, 4, 1],
        "trajectory_offsets": [0, 3],
        "question": [0],
        "probes": 4,
    }
    with pytest.raises(ValueError, match=message):
        Curves(**{**good, **changed})  # type: ignore[arg-type]


def test_a_fall_between_trajectories_is_no_fall() -> None:
    curves = build([(0, [0, 9], [0, 0]), (0, [0, 2], [0, 0])])
    assert curves.trajectories == 2


def test_names_cover_the_indices_and_a_question_has_one_benchmark():
    arrays = {"tokens": [0, 0], "correct": [1, 1], "trajectory_offsets": [0, 1, 2], "probes": 1}
    with pytest.raises(ValueError, match="question has indices from 0 to 1, but question_names"):
        Curves(**arrays, question=[0, 1], question_names=("a",))
    with pytest.raises(ValueError, match="question 3 belongs to two benchmarks"):
        Curves(**arrays, question=[3, 3], benchmark=[0, 1])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([-1], "no trajectory -1; the curves have 2"),
        ([0, -2], "no trajectory -2"),
        ([2], "no trajectory 2"),
        ([0.7], "integers, not float64"),
        ([float("nan")], "integers, not float64"),
        (["a"], "must hold integers"),
        (0, "one dimension"),
        ([[0, 1]], "one dimension"),
        ([True], "the mask has shape"),
        ([True, False, True], "the mask has shape"),
    ],
)
def test_what_selects_no_trajectory_is_refused(rows: object, message: str) -> None:
    curves = build([(0, [0, 9, 20], [0, 2, 1]), (1, [0, 7], [0, 2])])
    with pytest.raises(ValueError, match=message):
        curves.select(rows)  # type: ignore[arg-type]


def test_examples_hold() -> None:
    assert doctest.testmod(curves_module).failed == 0


def test_an_array_of_integers_holds_what_was_given() -> None:
    given = np.array([2**31 - 1, -(2**31)])
    assert integer_array("rows", given) is given
    assert integer_array("rows", given, np.int32).tolist() == given.tolist()
    with pytest.raises(ValueError, match="rows holds values outside the range of int32"):
        integer_array("rows", given + 1, np.int32)
    with pytest.raises(ValueError, match="rows must hold integers, not bool"):
        integer_array("rows", [True])


def test_nothing_may_be_selected() -> None:
    curves = build([(0, [0, 9, 20], [0, 2, 1])])
    assert curves.select([]).trajectories == curves.select([False]).trajectories == 0


@pytest.mark.parametrize("probes", [float("nan"), float("inf"), 2.5, "four", None, True, -1])
def test_probes_are_a_positive_integer(probes: object) -> None:
    with pytest.raises(ValueError, match="probes must be a positive integer"):
        Curves(
            tokens=[0],
            correct=[0],
            trajectory_offsets=[0, 1],
            question=[0],
            probes=probes,  # type: ignore[arg-type]
        )


def test_lists_of_accuracies_become_counts():
    curves = Curves.of_lists([[0, 5], [0]], [[0.33, 0.67], [1]], probes=3, question=[4, 4])
    assert curves.correct.tolist() == [1, 2, 3]
    assert curves.trajectory_offsets.tolist() == [0, 2, 3]
    assert curves.question.tolist() == [4, 4]
    for tokens, accuracies, said in (
        ([[0, 5]], [[0.5, 0.7]], "not a share of 4 answers"),
        ([[0, 5]], [[50, 75]], "divide per cent"),
        ([[0, 5]], [[0.5]], "trajectory 0: 2 positions of tokens and 1"),
        ([[0]], [], "1 arrays of tokens and 0"),
        ([[0]], [[float("nan")]], "not a number"),
    ):
        with pytest.raises(ValueError, match=said):
            Curves.of_lists(tokens, accuracies, probes=4)
