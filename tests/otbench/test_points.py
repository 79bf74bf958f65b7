"""Points, curves, shares and areas against obvious twins; replicates against resampled curves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.analysis.intervals import central_range
from evaluator.otbench.intervals import Decided, bootstrap_methods
from evaluator.otbench.points import (
    best_within,
    cell_frontiers_of,
    cell_totals,
    non_dominated,
    operating_points,
)
from evaluator.otbench.summary import SUMMARIES, gaps, saved_at, select, shares, summarise
from oracle import STRATEGIES, exact_frontier, resampling
from tests.otbench.made import curves


def random_decisions(data, settings, strategy, seed):
    """Return stops that the strategy allows."""
    rng = np.random.default_rng(seed)
    steps = np.diff(data.trajectory_offsets) - 1
    groups = data.model.astype(np.int64) * 1000 + data.question
    stop = np.zeros((settings, data.trajectories), np.int64)
    for i in range(settings):
        if strategy == "early_exit":
            stop[i] = [rng.integers(0, n + 1) for n in steps]
            continue
        for group in np.unique(groups):
            rows = np.flatnonzero(groups == group)
            if strategy == "routing":
                stop[i, rows] = steps[rows] if rng.random() < 0.5 else 0
            else:
                cap = rng.integers(0, 150)
                for s in rows:
                    first, last = data.trajectory_offsets[s : s + 2]
                    stop[i, s] = np.searchsorted(data.tokens[first:last], cap, "right") - 1
    return stop


def points_of(data, stop, strategy):
    totals = cell_totals(data, stop, np.ones_like(stop))
    return operating_points(totals, cell_frontiers_of(data, strategy))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_points_against_an_obvious_twin(strategy):
    data = curves(questions=6, trajectories=2, models=2, benchmarks=2, seed=3)
    stop = random_decisions(data, 7, strategy, 0)
    found = points_of(data, stop, strategy)
    for i in range(7):
        tokens, accuracy, frontier, common = [], [], [], []
        for model in range(2):
            per_model = [[], [], [], []]
            for benchmark in range(2):
                inside = (data.model == model) & (data.benchmark == benchmark)
                cell = data.select(inside)
                rows = cell.trajectory_offsets[:-1] + stop[i, inside]
                cost, reward = int(cell.tokens[rows].sum()), int(cell.correct[rows].sum())
                probes = cell.trajectories * cell.probes
                exact = exact_frontier(cell, strategy)
                per_model[0].append(cost / int(cell.full_tokens_s.sum()))
                per_model[1].append(reward / probes)
                per_model[2].append(int(exact.reward_within(np.int64(cost))) / probes)
                per_model[3].append(exact)
                assert reward <= int(exact.reward_within(np.int64(cost)))
            tokens.append(np.mean(per_model[0]))
            accuracy.append(np.mean(per_model[1]))
            frontier.append(np.mean(per_model[2]))
            common.append(per_model[3])
        assert found.tokens_fraction[i] == pytest.approx(np.mean(tokens))
        assert found.accuracy[i] == pytest.approx(np.mean(accuracy))
        assert found.frontier_accuracy[i] == pytest.approx(np.mean(frontier))
        at = [np.mean([e.accuracy_at(np.mean(tokens)) for e in row]) for row in common]
        assert found.common_frontier_accuracy[i] == pytest.approx(np.mean(at))
    assert (gaps(found) >= 0).all()
    grid = np.mean(
        [
            np.mean(
                [
                    exact_frontier(data.cell(model=m, benchmark=b), strategy).accuracy_at(0.37)
                    for b in range(2)
                ]
            )
            for m in range(2)
        ]
    )
    assert found.grid_frontier[37] == pytest.approx(grid)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    strategy=st.sampled_from(STRATEGIES),
    questions=st.integers(1, 5),
    trajectories=st.integers(1, 4),
)
def test_laws_of_one_cell(seed, strategy, questions, trajectories):
    data = curves(questions=questions, trajectories=trajectories, seed=seed)
    found = points_of(data, random_decisions(data, 5, strategy, seed), strategy)
    summary = summarise(found, 2)
    assert (found.accuracy <= found.frontier_accuracy + 1e-12).all()
    # One cell: the same tokens are the same fraction.
    assert found.common_frontier_accuracy == pytest.approx(found.frontier_accuracy)
    assert (shares(found)[~np.isnan(shares(found))] <= 1 + 1e-9).all()
    assert (found.grid_accuracy <= found.grid_frontier + 1e-12).all()
    assert (np.diff(found.grid_accuracy) >= 0).all()
    assert np.isnan(summary["hypervolume_share"]) or 0 <= summary["hypervolume_share"] <= 1 + 1e-9
    assert 0 <= summary["tokens_saved_fraction"] <= 1
    kept = np.flatnonzero(found.on_curve)
    order = kept[np.argsort(found.tokens_fraction[kept])]
    assert (np.diff(found.tokens_fraction[order]) > 0).all()
    assert (np.diff(found.accuracy[order]) > 0).all()


def test_non_dominated_points():
    cost = np.array([0.1, 0.2, 0.2, 0.3, 0.1, 0.4])
    gain = np.array([0.5, 0.6, 0.7, 0.7, 0.5, 0.9])
    assert non_dominated(cost, gain).tolist() == [True, False, True, False, False, True]


def test_best_within_is_a_staircase_from_no_thinking():
    best = best_within(np.array([0.5, 0.25, 0.8]), np.array([0.6, 0.4, 0.5]), 0.2)
    assert best[[0, 24, 25, 49, 50, 80, 100]].tolist() == [0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.6]


def test_shares_and_savings():
    data = curves(questions=6, seed=1)
    found = points_of(data, random_decisions(data, 3, "early_exit", 0), "early_exit")
    made = replace(
        found,
        tokens_fraction=np.array([0.2, 0.5, 0.9]),
        accuracy=np.array([0.5, 0.75, 0.85]),
        frontier_accuracy=np.array([0.7, 0.9, 0.95]),
        full_accuracy=0.75,
    )
    assert np.isnan(shares(made)[0])
    assert shares(made)[1:].tolist() == pytest.approx([0.0, 0.5])
    assert saved_at(made.tokens_fraction, made.accuracy, 0.75) == 0.5
    assert saved_at(made.tokens_fraction, made.accuracy, 0.9) == 0.0
    assert select(made) == 1
    assert select(replace(made, full_accuracy=0.99)) == 2
    assert set(summarise(made, 1)) == set(SUMMARIES)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_replicate_is_the_points_of_the_resampled_curves(strategy):
    data = curves(questions=5, trajectories=3, models=2, benchmarks=2, seed=8)
    stop = random_decisions(data, 4, strategy, 1)
    decided = Decided(strategy=strategy, stop=stop, signal_tokens=np.ones_like(stop), selected=2)
    found = bootstrap_methods(data, {"x": decided}, replicates=6, seed=5, workers=1)["x"]
    for replicate in range(6):
        rows, question = [], []
        for model in range(2):
            for benchmark in range(2):
                inside = np.flatnonzero((data.model == model) & (data.benchmark == benchmark))
                numbers = np.unique(data.question[inside])
                drawn = resampling.draw_questions(5, replicate, benchmark, numbers.size)
                raw = resampling.raw_numbers(5, replicate, benchmark, model + 1, 3 * drawn.size)
                for place, q in enumerate(drawn.tolist()):
                    mine = inside[data.question[inside] == numbers[q]]
                    picks = raw[3 * place : 3 * place + 3] % np.uint64(3)
                    rows += mine[picks.astype(int)].tolist()
                    # Two occurrences of a question are two units.
                    question += [100 * benchmark + place] * 3
        again = replace(data.select(rows), question=np.array(question, np.int32), question_names=())
        expected = points_of(again, stop[:, rows], strategy)
        summary = summarise(expected, 2)
        for name in SUMMARIES:
            assert found.summaries[name][replicate] == pytest.approx(summary[name], nan_ok=True)
        assert found.points["gap"][replicate] == pytest.approx(gaps(expected), abs=1e-6)


def test_replicates_do_not_depend_on_workers_or_on_other_methods():
    data = curves(questions=8, seed=2)
    methods = {
        f"{strategy}-{i}": Decided(
            strategy=strategy,
            stop=random_decisions(data, 3, strategy, i),
            signal_tokens=np.zeros((3, data.trajectories), np.int64),
            selected=1,
        )
        for strategy in STRATEGIES
        for i in range(2)
    }
    together = bootstrap_methods(data, methods, replicates=60, seed=1, workers=4)
    for name, decided in methods.items():
        alone = bootstrap_methods(data, {name: decided}, replicates=60, seed=1, workers=1)[name]
        for key in SUMMARIES:
            assert np.array_equal(
                alone.summaries[key], together[name].summaries[key], equal_nan=True
            )


def test_interval_leaves_out_what_has_no_value():
    assert central_range(np.array([np.nan, 1.0, 3.0]), 1.0 - 1e-12) == pytest.approx((1.0, 3.0))
    assert np.isnan(central_range(np.array([np.nan]))).all()
