"""The metrics against slow twins, laws, and every row of the paper's Table 6."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import MisuseError
from evaluator.optimal import auc_oaa, f1_otb, oaa, oaa_curve
from evaluator.optimal.metrics import area_fractions, check_t_max
from tests.optimal.table6 import ROWS

RESPONSES = st.lists(
    st.tuples(st.integers(0, 1), st.one_of(st.integers(0, 60), st.integers(0, 10**6))),
    min_size=1,
    max_size=40,
)


def slow_oaa(pairs, t):
    """The formula of the paper, response by response."""
    return sum(correct * (1 if tokens < t else 0) for correct, tokens in pairs) / len(pairs)


def split(pairs):
    return [c for c, _ in pairs], [n for _, n in pairs]


@given(RESPONSES, st.integers(0, 80))
def test_oaa_is_the_papers_sum(pairs, t):
    assert oaa(*split(pairs), t) == slow_oaa(pairs, t)


@given(RESPONSES, st.integers(1, 70))
def test_the_closed_form_is_the_sum_over_thresholds(pairs, t_max):
    total = math.fsum(slow_oaa(pairs, t) for t in range(t_max + 1))
    assert auc_oaa(*split(pairs), t_max) == pytest.approx(total / t_max, abs=1e-12)


@given(RESPONSES, st.integers(1, 70))
def test_the_curve_is_oaa_at_every_threshold_and_never_falls(pairs, t_max):
    curve = oaa_curve(*split(pairs), t_max)
    assert curve.tolist() == [slow_oaa(pairs, t) for t in range(t_max + 1)]
    assert (np.diff(curve) >= 0).all()
    assert curve[0] == 0


@given(RESPONSES)
def test_area_lies_between_nothing_and_the_accuracy(pairs):
    correct, tokens = split(pairs)
    area = auc_oaa(correct, tokens)
    assert 0 <= area <= sum(correct) / len(correct)
    assert auc_oaa(correct, [0] * len(tokens)) == sum(correct) / len(correct)


def test_the_threshold_is_strict():
    assert oaa([1], [100], 100) == 0.0
    assert oaa([1], [100], 101) == 1.0
    assert auc_oaa([1], [999]) == 0.001
    assert auc_oaa([1], [1000]) == 0.0


def test_products_are_averaged_not_means_multiplied():
    # Right without thinking, wrong after much of it: the mean of products is 1/2.
    assert auc_oaa([1, 0], [0, 1000]) == 0.5
    # Wrong at once, right too late: 0, and the product of means would be 1/4.
    assert auc_oaa([0, 1], [0, 1000]) == 0.0


def test_the_default_is_a_thousand_tokens():
    assert auc_oaa([True], [250]) == 0.75


@given(st.floats(0, 100), st.floats(0, 100))
def test_f1_lies_between_its_parts(auc, accuracy):
    score = f1_otb(auc, accuracy)
    assert min(auc, accuracy) - 1e-9 <= score <= max(auc, accuracy) + 1e-9
    assert score == f1_otb(accuracy, auc)


def test_f1_of_nothing_is_nothing():
    assert f1_otb(0.0, 0.0) == 0.0
    assert f1_otb(0.9, 0.0) == 0.0


@pytest.mark.parametrize("bad", [-0.1, float("nan")])
def test_f1_refuses_what_is_no_score(bad):
    with pytest.raises(MisuseError):
        f1_otb(bad, 0.5)
    with pytest.raises(MisuseError):
        f1_otb(0.5, bad)


@pytest.mark.parametrize(
    ("correct", "tokens"),
    [
        ([], []),
        ([1], [1, 2]),
        ([2], [1]),
        ([0.5], [1]),
        ([1], [-1]),
        ([1], [1.0]),
        ([1], [float("nan")]),
        ([[1]], [[1]]),
    ],
)
def test_what_is_no_measurement_is_refused(correct, tokens):
    with pytest.raises(MisuseError):
        auc_oaa(correct, tokens)
    with pytest.raises(MisuseError):
        oaa(correct, tokens, 10)


@pytest.mark.parametrize("t_max", [0, -1, 1.5, True])
def test_t_max_is_a_positive_integer(t_max):
    with pytest.raises(MisuseError, match="t_max"):
        auc_oaa([1], [1], t_max)


def test_the_paper_has_33_models():
    assert len(ROWS) == 33


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.model}-{row.mode}")
def test_table_6_comes_out_within_its_rounding(row):
    half = 0.05 + 1e-9
    # F1 rises with both parts, so their rounding gives its bounds.
    low = f1_otb(row.auc - half, row.ut_accuracy - half) - half
    high = f1_otb(row.auc + half, row.ut_accuracy + half) + half
    assert low <= row.f1 <= high


def test_table_6_areas_are_no_more_than_accuracies():
    for row in ROWS:
        assert row.auc <= row.ovt_accuracy + 0.1
        if row.mode == "thinking":
            assert row.ovt_tokens > 0


def test_numbers_at_the_edge_are_right_or_refused():
    assert auc_oaa([1] * 4, [0] * 4, t_max=2**61) == 1.0
    assert auc_oaa([1, 1], [2**62, 2**63 - 1], t_max=2**61) == 0.0
    for tokens in (
        np.array([2**64 - 1, 2**63], np.uint64),
        np.ma.array([0, 0], mask=[0, 1]),
        np.array([1, 2], "timedelta64[s]"),
    ):
        with pytest.raises(MisuseError):
            auc_oaa([1, 1], tokens)
    with pytest.raises(MisuseError):
        auc_oaa([1], [0], t_max=2**62)
    with pytest.raises(MisuseError):
        f1_otb(float("inf"), 1)
    assert f1_otb(1e200, 1e200) == 1e200
    assert f1_otb(1e-200, 1e-200) == 1e-200


@pytest.mark.parametrize("t", [float("inf"), float("nan"), 10**30, 1.5, "9", None, -1, 2**62])
def test_a_threshold_that_is_none_is_refused(t):
    for measure in (oaa, auc_oaa, oaa_curve):
        with pytest.raises(MisuseError, match="must be an integer from"):
            measure([1, 0], [3, 4], t)
    with pytest.raises(MisuseError, match="t_max must be an integer"):
        area_fractions(np.ones(1), np.ones(1), t)


def test_a_curve_of_more_thresholds_than_memory_holds_is_refused():
    for work in (lambda: oaa_curve([1], [3], 10**12), lambda: check_t_max(10**12)):
        with pytest.raises(MisuseError, match=r"at most 1,000,000, not 1,000,000,000,000"):
            work()
    assert auc_oaa([1], [0], 10**12) == 1


@pytest.mark.parametrize(
    ("right", "tokens", "message"),
    [
        ([1.5], [3], "fractions from 0 to 1"),
        ([-0.1], [3], "fractions from 0 to 1"),
        ([np.nan], [3], "fractions from 0 to 1"),
        ([1], [-3], "thinking tokens must be"),
        ([1], [np.inf], "thinking tokens must be"),
        ([1, 0], [3], "shape"),
    ],
)
def test_areas_of_what_is_no_response_are_refused(right, tokens, message):
    with pytest.raises(MisuseError, match=message):
        area_fractions(np.array(right, float), np.array(tokens, float))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3000)), min_size=1))
def test_the_mean_of_the_areas_is_the_area(pairs):
    right, tokens = np.array(pairs).T
    areas = area_fractions(right.astype(float), tokens.astype(float))
    assert areas.mean() == pytest.approx(auc_oaa(right, tokens))
    assert np.isnan(area_fractions(np.ones(1), np.full(1, np.nan))).all()
