"""O-Scores and pools: laws, naive twins, edges."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import MisuseError
from evaluator.thinkbench.oscore import (
    arithmetic_score,
    geometric_score,
    overthinking_score,
    score_gradient,
    score_hessian,
    token_efficiency,
    weighted_score,
)
from evaluator.thinkbench.pools import TaskResult, make_pool, score_all, score_model

FRACTIONS = st.floats(0, 1)
POSITIVE = st.floats(0.01, 1)


@given(FRACTIONS, FRACTIONS)
def test_the_score_lies_between_its_parts(accuracy, efficiency):
    score = overthinking_score(accuracy, efficiency)
    low, high = sorted((accuracy, efficiency))
    assert low - 1e-12 <= score <= high + 1e-12
    assert score == pytest.approx(overthinking_score(efficiency, accuracy))
    assert score <= geometric_score(accuracy, efficiency) + 1e-12
    assert geometric_score(accuracy, efficiency) <= arithmetic_score(accuracy, efficiency) + 1e-12


@given(POSITIVE, POSITIVE)
def test_the_score_is_the_reciprocal_of_the_mean_reciprocal(accuracy, efficiency):
    naive = 2 / (1 / accuracy + 1 / efficiency)
    assert overthinking_score(accuracy, efficiency) == pytest.approx(naive)


@given(POSITIVE, POSITIVE, st.floats(0.05, 20))
def test_the_weighted_score_is_its_formula(accuracy, efficiency, beta):
    naive = (1 + beta**2) * accuracy * efficiency / (beta**2 * accuracy + efficiency)
    assert weighted_score(accuracy, efficiency, beta=beta) == pytest.approx(naive)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_derivatives_are_those_of_the_score(accuracy, efficiency):
    step = 1e-4
    slope = (
        overthinking_score(accuracy + step, efficiency)
        - overthinking_score(accuracy - step, efficiency)
    ) / (2 * step)
    assert score_gradient(accuracy, efficiency)[0] == pytest.approx(slope, rel=1e-3, abs=1e-6)
    curve = (
        score_gradient(accuracy + step, efficiency)[0]
        - score_gradient(accuracy - step, efficiency)[0]
    ) / (2 * step)
    hessian = score_hessian(accuracy, efficiency)
    assert hessian[0, 0] == pytest.approx(curve, rel=1e-3, abs=1e-5)
    values = np.sort(np.linalg.eigvalsh(hessian))
    total = (accuracy + efficiency) ** 3
    assert values[0] == pytest.approx(-4 * (accuracy**2 + efficiency**2) / total)
    assert values[1] == pytest.approx(0, abs=1e-9 * abs(values[0]) + 1e-12)


def test_zeros_score_zero():
    assert overthinking_score(0, 0) == 0
    assert overthinking_score(0, 1) == overthinking_score(1, 0) == 0
    assert weighted_score(0, 0, beta=3) == 0
    assert score_gradient(0, 0) == (0, 0)
    assert overthinking_score(1, 1) == 1
    with pytest.raises(MisuseError, match="both parts are 0"):
        score_hessian(0, 0)


def test_extreme_betas_do_not_overflow():
    assert weighted_score(0.3, 0.9, beta=1e200) == pytest.approx(0.9)
    assert weighted_score(0.3, 0.9, beta=1e-200) == pytest.approx(0.3)


def test_arrays_give_arrays_and_numbers_numbers():
    score = overthinking_score([0.9, 0.6, 0.0], [0.1, 0.6, 0.0])
    assert isinstance(score, np.ndarray)
    assert score.tolist() == pytest.approx([0.18, 0.6, 0.0])
    assert isinstance(token_efficiency(3, 1, 5), float)
    assert token_efficiency([1, 3, 5], 1, 5).tolist() == [1.0, 0.5, 0.0]
    assert token_efficiency([2, 2], [2, 1], [2, 3]).tolist() == [1.0, 0.5]


def test_outside_the_pool_is_at_its_edge():
    assert token_efficiency(50, 100, 400) == 1
    assert token_efficiency(500, 100, 400) == 0
    assert token_efficiency(7, 5, 5) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: token_efficiency(-1, 0, 5), "tokens is -1"),
        (lambda: token_efficiency(float("nan"), 0, 5), "tokens"),
        (lambda: token_efficiency(1, 5, 2), "above t_max"),
        (lambda: token_efficiency(1, 0, math.inf), "t_max"),
        (lambda: overthinking_score(78.92, 0.9), "accuracy is 78.92"),
        (lambda: overthinking_score(0.5, -0.1), "efficiency"),
        (lambda: overthinking_score(float("nan"), 0.1), "accuracy"),
        (lambda: weighted_score(0.5, 0.5, beta=0), "beta"),
    ],
)
def test_what_is_no_fraction_is_refused(call, message):
    with pytest.raises(MisuseError, match=message):
        call()


RESULTS = {
    "short": {
        "sum": TaskResult(accuracy=0.5, tokens=100),
        "mode": TaskResult(accuracy=1.0, tokens=60),
    },
    "long": {
        "sum": TaskResult(accuracy=0.9, tokens=900),
        "mode": TaskResult(accuracy=0.0, tokens=260),
    },
    "other": {
        "sum": TaskResult(accuracy=0.7, tokens=500),
        "mode": TaskResult(accuracy=0.4, tokens=160),
    },
}


def test_a_global_pool_has_one_range_and_a_task_pool_one_each():
    pool = make_pool(RESULTS)
    assert pool.range_of("sum") == pool.range_of("mode") == (60, 900)
    assert pool.models == ("short", "long", "other")
    per_task = make_pool(RESULTS, "per-task")
    assert per_task.ranges == {"sum": (100, 900), "mode": (60, 260)}
    assert "3 models" in pool.describe()
    assert "60.0 to 900.0 tokens" in pool.describe()


@pytest.mark.parametrize("kind", ["global", "per-task"])
def test_scores_are_the_naive_ones(kind):
    pool = make_pool(RESULTS, kind)
    for model, tasks in RESULTS.items():
        score = score_all(RESULTS, pool)[model]
        expected = []
        for task, result in tasks.items():
            low, high = pool.ranges[task]
            efficiency = 1 - (result.tokens - low) / (high - low)
            both = result.accuracy + efficiency
            expected.append(2 * result.accuracy * efficiency / both if both else 0.0)
            assert score.efficiency[task] == pytest.approx(efficiency)
        assert score.mean_oscore == pytest.approx(sum(expected) / 2)
        # The score is concave: that of the averages is at least the average score.
        assert score.oscore_of_means >= score.mean_oscore - 1e-12


def test_a_model_outside_the_pool_can_be_scored_in_it():
    pool = make_pool(RESULTS)
    new = {"sum": TaskResult(accuracy=1.0, tokens=5), "mode": TaskResult(accuracy=1.0, tokens=5000)}
    score = score_model(new, pool)
    assert score.efficiency == {"sum": 1.0, "mode": 0.0}
    with pytest.raises(MisuseError, match="no task 'median'"):
        score_model({"median": TaskResult(accuracy=1.0, tokens=5)}, pool)


def test_a_pool_of_one_has_efficiency_1_where_it_has_one_task():
    alone = {"m": {"sum": TaskResult(accuracy=0.5, tokens=70)}}
    score = score_all(alone, make_pool(alone))["m"]
    assert score.mean_efficiency == 1
    assert score.mean_oscore == pytest.approx(2 / 3)


def test_models_on_other_tasks_make_no_pool():
    odd = {**RESULTS, "odd": {"sum": TaskResult(accuracy=0.5, tokens=70)}}
    with pytest.raises(MisuseError, match="not measured on the same tasks"):
        make_pool(odd)
    with pytest.raises(MisuseError, match="at least one model"):
        make_pool({})
    with pytest.raises(MisuseError, match="no pool 'local'"):
        make_pool(RESULTS, "local")


def test_order_of_models_changes_no_score():
    scores = [
        {
            name: score.mean_oscore
            for name, score in score_all(dict(order), make_pool(dict(order))).items()
        }
        for order in itertools.permutations(RESULTS.items())
    ]
    assert all(found == scores[0] for found in scores)
