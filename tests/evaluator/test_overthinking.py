"""OR, AD and their averages against slow, obvious twins."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.analysis.overthinking import (
    STATISTICS,
    per_trajectory,
    summarise,
)
from stp.curves import Curves
from tests.effort import tries


def naive_trajectory(tokens, correct, probes):
    """Return (k*, OR, AD) straight from the definitions."""
    best, k_star = -1, 0
    for k, right in enumerate(correct):
        if right > best:
            best, k_star = right, k
    if tokens[-1] == 0:
        return k_star, 0.0, 0.0
    ratio = (tokens[-1] - tokens[k_star]) / tokens[-1]
    return k_star, ratio, (correct[k_star] - correct[-1]) / probes


@st.composite
def random_curves(draw):
    probes = draw(st.integers(1, 4))
    offsets, tokens, correct, question, model, benchmark, original = [0], [], [], [], [], [], []
    for _ in range(draw(st.integers(1, 10))):
        steps = draw(st.lists(st.integers(0, 9), max_size=5))
        tokens += [0, *np.cumsum(steps, dtype=int).tolist()]
        correct += draw(
            st.lists(st.integers(0, probes), min_size=len(steps) + 1, max_size=len(steps) + 1)
        )
        offsets.append(len(tokens))
        q = draw(st.integers(0, 3))
        question.append(q)
        benchmark.append(q % 2)
        model.append(draw(st.integers(0, 1)))
        original.append(draw(st.sampled_from([-1, 0, 1])))
    return Curves(
        tokens=np.array(tokens),
        correct=np.array(correct),
        trajectory_offsets=np.array(offsets),
        question=np.array(question),
        benchmark=np.array(benchmark),
        model=np.array(model),
        original_correct=np.array(original),
        probes=probes,
    )


@settings(max_examples=tries(200, 70), deadline=None)
@given(random_curves())
def test_per_trajectory_equals_the_definitions(curves):
    frame = per_trajectory(curves)
    for s in range(curves.trajectories):
        part = slice(curves.trajectory_offsets[s], curves.trajectory_offsets[s + 1])
        k_star, ratio, degradation = naive_trajectory(
            curves.tokens[part].tolist(), curves.correct[part].tolist(), curves.probes
        )
        row = frame.iloc[s]
        assert row["k_star"] == k_star
        assert row["k_star_tokens"] == curves.tokens[part][k_star]
        assert row["overthinking_ratio"] == ratio
        assert row["accuracy_degradation"] == degradation
        assert row["best_accuracy"] == max(curves.correct[part]) / curves.probes
        assert row["positions"] == len(curves.tokens[part])
    assert frame["overthinking_ratio"].between(0, 1).all()
    assert frame["accuracy_degradation"].between(0, 1).all()


@settings(max_examples=50, deadline=None)
@given(random_curves())
def test_averages_go_through_question_benchmark_and_model(curves):
    frame = per_trajectory(curves)
    summary = summarise(frame)
    pd.testing.assert_series_equal(summarise(curves).overall, summary.overall)
    for column in ("overthinking_ratio", "accuracy_degradation", "full_tokens"):
        model_values = []
        for m in sorted(set(curves.model.tolist())):
            cell_values = []
            for b in sorted(set(curves.benchmark[curves.model == m].tolist())):
                inside = (curves.model == m) & (curves.benchmark == b)
                question_values = [
                    np.mean(frame[column][inside & (curves.question == q)])
                    for q in sorted(set(curves.question[inside].tolist()))
                ]
                cell_values.append(np.mean(question_values))
                assert summary.cells.loc[(m, b), column] == pytest.approx(cell_values[-1])
                assert summary.cells.loc[(m, b), "trajectories"] == inside.sum()
                assert summary.cells.loc[(m, b), "questions"] == len(question_values)
            model_values.append(np.mean(cell_values))
            assert summary.models.loc[m, column] == pytest.approx(model_values[-1])
        assert summary.overall[column] == pytest.approx(np.mean(model_values))


def test_flat_curves_have_everything_after_the_reference_and_lose_nothing():
    for level in (0, 3, 4):
        curves = Curves(
            tokens=[0, 4, 8], correct=[level] * 3, trajectory_offsets=[0, 3], question=[0], probes=4
        )
        row = per_trajectory(curves).iloc[0]
        assert (row["k_star"], row["overthinking_ratio"], row["accuracy_degradation"]) == (0, 1, 0)


def test_empty_trajectory_has_neither_ratio_nor_degradation():
    curves = Curves(tokens=[0], correct=[3], trajectory_offsets=[0, 1], question=[0], probes=4)
    row = per_trajectory(curves).iloc[0]
    assert (row["k_star"], row["overthinking_ratio"], row["accuracy_degradation"]) == (0, 0, 0)


def test_unknown_original_answers_stay_out_of_their_mean():
    curves = Curves(
        tokens=[0, 0, 0],
        correct=[1, 1, 1],
        trajectory_offsets=[0, 1, 2, 3],
        question=[0, 0, 0],
        original_correct=[1, -1, 1],
        probes=2,
    )
    assert summarise(per_trajectory(curves)).overall["original_accuracy"] == 1.0


def test_questions_count_the_same_whatever_their_number_of_trajectories():
    # Question 0 has three trajectories with OR 1, question 1 has one with OR 0.
    curves = Curves(
        tokens=[0, 5] * 4,
        correct=[1, 1] * 3 + [0, 1],
        trajectory_offsets=[0, 2, 4, 6, 8],
        question=[0, 0, 0, 1],
        probes=1,
    )
    assert summarise(per_trajectory(curves)).overall["overthinking_ratio"] == 0.5


def test_nothing_to_average_is_an_error_and_no_trajectory_gives_an_empty_frame():
    curves = Curves(tokens=[], correct=[], trajectory_offsets=[0], question=[], probes=4)
    assert curves.k_star_s.size == 0
    frame = per_trajectory(curves)
    assert len(frame) == 0
    assert set(STATISTICS) <= set(frame.columns)
    with pytest.raises(ValueError, match="no trajectory"):
        summarise(frame)
