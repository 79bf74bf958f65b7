"""Tests, bootstrap, stability, correlations, fits and Pareto sets against naive twins."""

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from data.errors import MisuseError
from evaluator.thinkbench.correlations import correlate
from evaluator.thinkbench.lengths import fit_log_normal
from evaluator.thinkbench.measures import wilson
from evaluator.thinkbench.pools import TaskResult, make_pool, pareto_set, score_all
from evaluator.thinkbench.significance import DEFAULT_REPLICATES, bootstrap_scores, paired_tests
from evaluator.thinkbench.stability import leave_one_out


def test_paired_tests_are_scipys_with_bonferroni():
    rng = np.random.default_rng(1)
    scores = {name: rng.random(14).tolist() for name in "abcd"}
    tests = paired_tests(scores)
    assert len(tests) == 6
    for test in tests:
        expected = stats.ttest_rel(scores[test.first], scores[test.second])
        assert test.statistic == pytest.approx(expected.statistic)
        assert test.p_value == pytest.approx(expected.pvalue)
        assert test.p_bonferroni == pytest.approx(min(1, 6 * expected.pvalue))


def test_equal_differences_have_no_t():
    (test,) = paired_tests({"a": [0.3, 0.4, 0.5], "b": [0.1, 0.2, 0.3]})
    assert test.difference == pytest.approx(0.2)
    assert test.statistic is test.p_value is test.p_bonferroni is None
    assert not test.significant
    (single,) = paired_tests({"a": [0.3], "b": [0.1]})
    assert single.p_value is None
    with pytest.raises(MisuseError):
        paired_tests({"a": [0.3], "b": [0.1, 0.2]})


def outcomes(rng, accuracy, tokens, questions=200):
    return {
        task: (
            (rng.random(questions) < accuracy).astype(float),
            rng.poisson(tokens, questions).astype(float),
        )
        for task in ("sum", "mode")
    }


@pytest.mark.parametrize("kind", ["global", "per-task"])
@pytest.mark.parametrize("paired", [True, False])
def test_the_bootstrap_is_centred_on_the_score_and_stable(kind, paired):
    rng = np.random.default_rng(2)
    data = {"a": outcomes(rng, 0.8, 50), "b": outcomes(rng, 0.6, 200), "c": outcomes(rng, 0.3, 90)}
    results = {
        model: {
            task: TaskResult(accuracy=right.mean(), tokens=tokens.mean())
            for task, (right, tokens) in tasks.items()
        }
        for model, tasks in data.items()
    }
    exact = score_all(results, make_pool(results, kind))
    drawn = bootstrap_scores(data, paired=paired, kind=kind, replicates=1000)
    for model in data:
        low, high = drawn.interval(model)
        assert low <= exact[model].mean_oscore <= high
        assert high - low < 0.15
    low, high, p_value = drawn.compare("a", "c")
    assert 0 < low < high
    assert p_value < 0.01
    again = bootstrap_scores(data, paired=paired, kind=kind, replicates=1000)
    assert np.array_equal(drawn.replicates, again.replicates)


def test_the_bootstrap_is_the_naive_one_for_one_draw():
    right = np.array([1.0, 0.0, 1.0, 1.0])
    tokens = np.array([10.0, 20.0, 30.0, 40.0])
    data = {"a": {"sum": (right, tokens)}, "b": {"sum": (1 - right, 2 * tokens)}}
    drawn = bootstrap_scores(data, paired=True, replicates=50, seed=5)
    rng = np.random.default_rng([5, 0])
    counts = rng.multinomial(4, np.full(4, 0.25), size=50)
    for replicate, weights in zip(drawn.replicates, counts, strict=True):
        chosen = np.repeat(np.arange(4), weights)
        results = {
            model: {"sum": TaskResult(accuracy=r[chosen].mean(), tokens=t[chosen].mean())}
            for model, ((r, t),) in ((name, tuple(tasks.values())) for name, tasks in data.items())
        }
        scores = score_all(results, make_pool(results))
        assert replicate.tolist() == pytest.approx(
            [scores["a"].mean_oscore, scores["b"].mean_oscore]
        )


def test_equal_models_do_not_differ():
    rng = np.random.default_rng(3)
    same = outcomes(rng, 0.5, 80)
    drawn = bootstrap_scores({"a": same, "b": same}, paired=True, replicates=200)
    low, high, p_value = drawn.compare("a", "b")
    assert low == high == 0
    assert p_value == 1


def test_paired_arrays_must_match():
    rng = np.random.default_rng(4)
    data = {"a": outcomes(rng, 0.5, 80), "b": outcomes(rng, 0.5, 80, questions=100)}
    with pytest.raises(MisuseError, match="different numbers of questions"):
        bootstrap_scores(data, paired=True, replicates=10)
    bootstrap_scores(data, paired=False, replicates=10)
    with pytest.raises(MisuseError, match="replicates"):
        bootstrap_scores(data, paired=False, replicates=0)


def results_of(pairs):
    return {
        str(at): {"all": TaskResult(accuracy=accuracy, tokens=tokens)}
        for at, (accuracy, tokens) in enumerate(pairs)
    }


def test_leave_one_out_is_the_naive_one():
    results = results_of([(0.9, 300), (0.5, 20), (0.7, 150), (0.8, 900), (0.3, 100)])
    stability = leave_one_out(results)
    before = {m: s.mean_oscore for m, s in score_all(results, make_pool(results)).items()}
    for row in stability.rows:
        others = {model: tasks for model, tasks in results.items() if model != row.removed}
        after = {m: s.mean_oscore for m, s in score_all(others, make_pool(others)).items()}
        concordant = discordant = 0
        for a, b in itertools.combinations(others, 2):
            sign = (before[a] - before[b]) * (after[a] - after[b])
            concordant += sign > 0
            discordant += sign < 0
        assert row.kendall == pytest.approx((concordant - discordant) / math.comb(len(others), 2))
        assert row.largest_drift == pytest.approx(max(abs(before[m] - after[m]) for m in others))
    # Whoever is neither end of the pool changes nothing.
    assert {row.removed for row in stability.rows if row.largest_drift == 0} == {"0", "2", "4"}
    with pytest.raises(MisuseError, match="three models"):
        leave_one_out(results_of([(0.9, 300), (0.5, 20)]))


def test_correlations_leave_out_what_is_unknown():
    found = correlate("size", "score", [1, 2, None, 4, 5], [0.2, 0.1, 0.9, 0.4, 0.6])
    assert found.count == 4
    expected = stats.pearsonr([1, 2, 4, 5], [0.2, 0.1, 0.4, 0.6])
    assert found.pearson == pytest.approx(expected.statistic)
    exact = stats.permutation_test(
        ([0.2, 0.1, 0.4, 0.6],),
        lambda y: stats.pearsonr([1, 2, 4, 5], y).statistic,
        permutation_type="pairings",
    )
    assert found.pearson_p == pytest.approx(exact.pvalue)
    assert correlate("a", "b", [1, 1, 1], [1, 2, 3]).pearson is None
    assert correlate("a", "b", [1, 2], [1, 2]).spearman is None


def test_a_log_normal_is_found_again():
    rng = np.random.default_rng(6)
    tokens = np.exp(rng.normal(5.0, 0.4, 4000)).round().astype(int).tolist()
    fit = fit_log_normal(tokens, cut=40)
    assert fit.mu == pytest.approx(5.0, abs=0.03)
    assert fit.sigma == pytest.approx(0.4, abs=0.02)
    assert fit.distance < 0.03
    assert fit.at_limit == 0.01
    two = fit_log_normal([20] * 500 + [1024] * 500, cut=500)
    assert two.distance > 0.3
    assert fit_log_normal([0, 0, 5]) is None
    assert fit_log_normal([7, 7]) is None
    assert fit_log_normal([]) is None


POINTS = st.dictionaries(
    st.integers(0, 30).map(str),
    st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), st.sampled_from([0.0, 0.3, 0.6, 1.0])),
    min_size=1,
)


@given(POINTS)
def test_the_pareto_set_is_the_naive_one(points):
    naive = {
        model
        for model, (a, e) in points.items()
        if not any(
            other_a >= a and other_e >= e and (other_a > a or other_e > e)
            for other_a, other_e in points.values()
        )
    }
    assert set(pareto_set(points)) == naive


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilsons_interval_holds_the_rate(successes, more):
    total = successes + more
    rate, low, high = wilson(successes, total)
    assert 0 <= low <= rate <= high <= 1
    # The ends are the rates p at which the observed rate is z standard errors away.
    z = stats.norm.ppf(0.975)
    for end in (low, high):
        assert (rate - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / total, abs=1e-9)


@pytest.mark.parametrize("size", [3, 4, 5, 6])
def test_p_values_over_few_runs_are_exact(size):
    """A slow twin: all orders, with scipy's coefficients."""
    rng = np.random.default_rng(size)
    for x, y in [(range(size), range(size)), (rng.normal(size=size), rng.integers(0, 3, size))]:
        x, y = list(map(float, x)), list(map(float, y))
        if len(set(y)) < 2:
            continue
        found = correlate("a", "b", x, y)
        for name, coefficient in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
            observed = abs(coefficient(x, y).statistic)
            seen = [
                abs(coefficient(x, order).statistic) >= observed - 1e-9
                for order in itertools.permutations(y)
            ]
            assert getattr(found, f"{name}_p") == pytest.approx(np.mean(seen))
    assert correlate("a", "b", [1, 2, 3], [1, 2, 3]).spearman_p == pytest.approx(1 / 3)


def test_leaderboard_and_compare_have_the_same_replicates():
    from stp.cli.think import aggregate, compare, leaderboard

    defaults = {
        inspect.signature(command).parameters["replicates"].default
        for command in (aggregate, compare, leaderboard)
    }
    assert defaults == {DEFAULT_REPLICATES}
