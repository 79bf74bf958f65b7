"""Cross-fitting against enumeration of splits; fitted pieces against all cuts; frontiers."""

import doctest
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from evaluator.analysis import pieces
from evaluator.analysis.crossfit import bias_aware, cross_fit, estimates
from evaluator.analysis.crossfit_frontier import action_rewards, cross_fitted_frontier, split_probes
from evaluator.analysis.nesting import AVERAGE, make_nesting, with_averages
from evaluator.analysis.overthinking import per_trajectory, summarise
from evaluator.analysis.pieces import fit_pieces
from evaluator.analysis.sensitivity_tables import ESTIMATOR_LABELS
from evaluator.analysis.thinning import thin_probes
from evaluator.simulation.estimators import frontier_bias_table
from evaluator.simulation.worlds import make_world, paper_population

from .test_thinning import made_curves, one_curve


def enumerate_splits(tokens, correct, probes, m):
    """Average over every split of labelled probes at every position, one by one."""
    labels = [[1] * c + [0] * (probes - c) for c in correct]
    subsets = [list(itertools.combinations(row, m)) for row in labels]
    full = tokens[-1]
    ratio = degradation = 0.0
    count = 0
    for choice in itertools.product(*subsets):
        x = [sum(kept) for kept in choice]
        held_out = [(c - v) / (probes - m) for c, v in zip(correct, x, strict=True)]
        k = x.index(max(x))
        if full > 0:
            ratio += (full - tokens[k]) / full
            degradation += held_out[k] - held_out[-1]
        count += 1
    return [ratio / count, degradation / count]


@st.composite
def small_cases(draw):
    probes = draw(st.integers(2, 4))
    positions = draw(st.integers(1, 4))
    steps = draw(st.lists(st.integers(0, 9), min_size=positions - 1, max_size=positions - 1))
    correct = [draw(st.integers(0, probes)) for _ in range(positions)]
    return [0, *np.cumsum(steps).tolist()], correct, probes, draw(st.integers(1, probes - 1))


@given(small_cases())
@settings(max_examples=60)
def test_cross_fitting_equals_all_splits(case):
    tokens, correct, probes, m = case
    found = cross_fit(one_curve(tokens, correct, probes), m).iloc[0]
    values = [found["overthinking_ratio"], found["accuracy_degradation"]]
    assert np.abs(np.array(values) - enumerate_splits(*case)).max() < 1e-12


def test_the_cross_fitted_ratio_is_that_of_the_probes_that_chose():
    curves = made_curves(0)
    thinned = thin_probes(curves, 8)["overthinking_ratio"]
    assert np.allclose(cross_fit(curves)["overthinking_ratio"], thinned, atol=1e-13)


def test_without_noise_all_estimators_agree():
    curves = one_curve([0, 5, 9, 20], [0, 16, 16, 0], 16)
    for name, frame in estimates(curves).items():
        row = frame.iloc[0]
        assert row["overthinking_ratio"] == pytest.approx(0.75), name
        assert row["accuracy_degradation"] == pytest.approx(1.0), name


def test_the_truth_lies_between_leave_one_out_and_the_measurement():
    world = make_world(paper_population().sized(models=2, scale=0.15), 4)
    curves, offsets = world.curves, world.curves.trajectory_offsets
    best = np.maximum.reduceat(world.accuracy, offsets[:-1])
    true = (best - world.accuracy[offsets[1:] - 1])[:, np.newaxis]
    nesting = make_nesting(model=curves.model, benchmark=curves.benchmark, question=curves.question)
    truth = with_averages(nesting.cell_means(true))[-1, -1, 0]
    found = bias_aware(curves).xs((AVERAGE, AVERAGE), level=("model", "benchmark"))
    value = found["accuracy_degradation"]
    assert value["cross_fitted"] < value["leave_one_out"] < truth < value["measured"]
    assert abs(value["pieces"] - truth) < abs(value["measured"] - truth)


def test_the_table_has_the_averages_of_the_paper():
    curves = made_curves(6)
    table = bias_aware(curves)
    assert tuple(table.index.get_level_values("estimator").unique()) == tuple(ESTIMATOR_LABELS)
    summary = summarise(per_trajectory(curves))
    for name in ("overthinking_ratio", "accuracy_degradation"):
        overall = table.loc[("measured", AVERAGE, AVERAGE), name]
        assert overall == pytest.approx(summary.overall[name])
    halves = cross_fit(curves)
    cell = halves.groupby(["model", "benchmark", "question"])["accuracy_degradation"].mean()
    cell = cell.groupby(["model", "benchmark"]).mean()
    assert table.loc[("cross_fitted", 1, 0), "accuracy_degradation"] == pytest.approx(cell[1, 0])


def test_one_probe_cannot_be_split():
    curves = one_curve([0, 3], [1, 0], 1)
    assert list(estimates(curves)) == ["measured", "pieces"]
    with pytest.raises(ValueError, match="both parts need probes"):
        cross_fit(curves)
    with pytest.raises(ValueError, match="two probes"):
        cross_fitted_frontier(curves, "early_exit")


def naive_pieces(correct, probes, penalty):
    """Try every set of cuts; the least cost, and of equal ones the longest last stretches."""
    n = len(correct)
    best = None
    for mask in range(2 ** (n - 1)):
        cuts = [0, *(i + 1 for i in range(n - 1) if mask >> i & 1), n]
        cost = 0.0
        levels = []
        for a, b in itertools.pairwise(cuts):
            p = sum(correct[a:b]) / ((b - a) * probes)
            for c in correct[a:b]:
                cost -= c * math.log(p) if c else 0.0
                cost -= (probes - c) * math.log(1 - p) if c < probes else 0.0
            levels.append((p, a))
            cost += penalty * math.log(n)
        if best is None or cost < best[0]:
            best = cost, levels
    cost, levels = best
    top = max(p for p, _ in levels)
    return cost, min(a for p, a in levels if p == top), top, levels[-1][0], len(levels)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.sampled_from([0.3, 1.0, 2.5]))
@settings(max_examples=80)
def test_pieces_equal_the_best_of_all_cuts(correct, penalty):
    curves = one_curve(list(range(len(correct))), correct, 6)
    found = fit_pieces(curves, penalty_factor=penalty)
    cost, k_star, top, last, count = naive_pieces(correct, 6, penalty)
    # Two sets of cuts may cost the same; then compare what they cost.
    other = naive_pieces(correct[::-1], 6, penalty)
    assert other[0] == pytest.approx(cost)
    if found.k_star[0] != k_star or found.count[0] != count:
        assert _cost_of(correct, 6, penalty, found) == pytest.approx(cost, abs=1e-6)
    else:
        assert found.best_accuracy[0] == pytest.approx(top)
        assert found.full_accuracy[0] == pytest.approx(last)


def _cost_of(correct, probes, penalty, found):
    """Return the least cost among cuts with the found number of stretches, best start and level."""
    n, costs = len(correct), []
    for cuts in itertools.combinations(range(1, n), int(found.count[0]) - 1):
        cost, levels = penalty * math.log(n) * int(found.count[0]), []
        for a, b in itertools.pairwise([0, *cuts, n]):
            p = sum(correct[a:b]) / ((b - a) * probes)
            levels.append((p, -a))
            for c in correct[a:b]:
                cost -= c * math.log(p) if c else 0.0
                cost -= (probes - c) * math.log(1 - p) if c < probes else 0.0
        if -max(levels)[1] == found.k_star[0]:
            costs.append(cost)
    return min(costs)


def test_pieces_do_not_follow_lucky_positions():
    correct = [2, 2, 3, 13, 12, 14, 13, 16, 13, 12, 14, 13]
    curves = one_curve(list(range(12)), correct, 16)
    assert curves.k_star_s.tolist() == [7]
    assert fit_pieces(curves).k_star.tolist() == [3]
    with pytest.raises(ValueError, match="negative"):
        fit_pieces(curves, penalty_factor=-1)


@pytest.mark.parametrize("strategy", oracle.STRATEGIES)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15)
def test_actions_scored_on_their_own_probes_earn_their_reward(strategy, seed):
    curves = made_curves(seed)
    actions = oracle.strategy_actions(curves, strategy)
    assert action_rewards(curves, strategy, actions).tolist() == actions.reward.tolist()


@pytest.mark.parametrize("strategy", oracle.STRATEGIES)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_held_out_rewards_are_those_of_the_stopping_positions(strategy, seed):
    curves = made_curves(seed)
    one, other = split_probes(curves, np.random.default_rng(seed))
    frontier = oracle.exact_frontier(one, strategy)
    earned = action_rewards(other, strategy, frontier.actions)
    for state in range(0, frontier.cost.size, 7):
        rows = frontier.actions_at(state)
        stops = oracle.stopping_positions(one, strategy, frontier.actions.choice[rows])
        cost, right = oracle.measured_point(other, stops)
        assert right == earned[rows].sum()
        assert cost == frontier.cost[state]


@given(seed=st.integers(0, 10_000), probes=st.integers(2, 17))
@settings(max_examples=20)
def test_a_split_has_every_probe_once(seed, probes):
    curves = made_curves(seed, probes=probes)
    one, other = split_probes(curves, np.random.default_rng(seed))
    assert one.probes + other.probes == probes
    assert (one.correct + other.correct == curves.correct).all()


@pytest.mark.parametrize("strategy", oracle.STRATEGIES)
def test_a_frontier_without_noise_keeps_its_accuracy(strategy):
    curves = made_curves(3)
    certain = one_to_all(curves)
    found = cross_fitted_frontier(certain, strategy, steps=10)
    assert np.allclose(found.chosen_accuracy, found.measured_accuracy)
    assert np.allclose(found.accuracy, found.measured_accuracy)


def one_to_all(curves):
    """Make every position right with all probes or with none."""
    from dataclasses import replace

    return replace(curves, correct=np.where(curves.correct > 8, 16, 0))


def test_chosen_frontiers_are_optimistic():
    world = make_world(paper_population().sized(models=1, scale=0.1), 2)
    cell = world.curves.cell(model=0, benchmark=2)
    found = cross_fitted_frontier(cell, "early_exit", steps=10, splits=2)
    again = cross_fitted_frontier(cell, "early_exit", steps=10, splits=2)
    assert (found.accuracy == again.accuracy).all()
    # Nothing is chosen at a budget of 0, so nothing is flattered.
    assert found.accuracy[0] == pytest.approx(found.measured_accuracy[0])
    assert (found.accuracy[1:] < found.measured_accuracy[1:]).all()
    assert (found.measured_accuracy[1:] < found.chosen_accuracy[1:]).all()


def test_examples_in_the_documentation():
    assert doctest.testmod(pieces).failed == 0


def test_measured_frontiers_promise_more_than_their_actions_are_worth():
    world = make_world(paper_population().sized(models=1, scale=0.1), 2)
    table = frontier_bias_table(world, model=0, benchmark=2, steps=4)
    assert table.columns.tolist() == [0, 0.25, 0.5, 0.75, 1]
    for strategy in ("fixed_budget", "early_exit"):
        measured, truth, fitted = (
            table.loc[(strategy, source)].to_numpy()[1:]
            for source in ("measured", "truth", "cross_fitted")
        )
        assert (measured > truth).all()
        assert (np.abs(fitted - truth) < measured - truth).all()
    # Without thinking there is no choice: the truth is the mean accuracy at k = 0.
    inside = world.curves.benchmark == 2
    zero = world.accuracy[world.curves.trajectory_offsets[:-1][inside]].mean()
    assert table.loc[("routing", "truth"), 0.0] == pytest.approx(zero, abs=1e-6)
