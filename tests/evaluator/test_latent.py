"""Latent curves against enumeration of every path, and on worlds whose truth is known."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from evaluator.analysis.latent import (
    MEASURES,
    fit,
    fitting,
    held_out_log_likelihood,
    kernels,
    latent_frontier,
    levels,
)
from evaluator.analysis.latent.chains import (
    PRIOR_MOVES,
    Chain,
    combined,
    general_chain,
    parts_of_moves,
)
from evaluator.analysis.overthinking import per_trajectory
from evaluator.figures.latent import latent_curve
from evaluator.simulation.families import FAMILIES, family_world, thinned
from evaluator.simulation.latent_checks import errors_in_world, held_out_scores
from oracle.frontier import exact_frontier, grid_budgets
from stp.curves import Curves
from tests.evaluator.synthetic import make_curves


def enumerated(correct, probes, values, chain):
    """Return posterior moves, starts, marginals and the likelihood, over every path there is."""
    count, positions = values.size, len(correct)
    moves, starts = np.zeros((count, count)), np.zeros(count)
    marginals, total = np.zeros((positions, count)), 0.0
    for path in itertools.product(range(count), repeat=positions):
        weight = chain.start[path[0]]
        for a, b in itertools.pairwise(path):
            weight *= chain.move[a, b]
        for k, level in enumerate(path):
            weight *= binom.pmf(correct[k], probes[k], values[level])
        total += weight
        starts[path[0]] += weight
        for k, level in enumerate(path):
            marginals[k, level] += weight
        for a, b in itertools.pairwise(path):
            moves[a, b] += weight
    return moves / total, starts / total, marginals / total, total


def random_chain(rng, count):
    move = rng.gamma(0.7, size=(count, count)) + 1e-3
    start = rng.gamma(0.7, size=count) + 1e-3
    return Chain(start=start / start.sum(), move=move / move.sum(axis=1, keepdims=True))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 4), positions=st.integers(1, 5))
def test_passes_agree_with_the_enumeration_of_all_paths(seed, count, positions):
    rng = np.random.default_rng(seed)
    values, chain = levels.accuracy_levels(count + 1), random_chain(rng, count + 1)
    probes = rng.integers(0, 7, positions).astype(np.int32)
    correct = rng.integers(0, probes + 1).astype(np.int32)
    readings = levels.read_counts(correct, probes, values)
    offsets, member = np.array([0, positions]), np.array([0])
    moves, starts, marginals, likelihood = enumerated(correct, probes, values, chain)
    shared = (readings.code, offsets, member, readings.likelihood)
    found = kernels.expected_moves(*shared, readings.log_scale, chain.start, chain.move, chain.back)
    np.testing.assert_allclose(found[0] * chain.move, moves, atol=1e-12)
    np.testing.assert_allclose(found[1], starts, atol=1e-12)
    assert found[2] == pytest.approx(np.log(likelihood), abs=1e-10)
    mass = np.zeros((positions, values.size), np.float32)
    kernels.add_posterior(*shared, chain.start, chain.move, chain.back, member, mass)
    np.testing.assert_allclose(mass, marginals, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 6))
def test_intervals_leave_out_the_tails_of_weighed_levels(seed, count):
    """Against a sum over many points of the stretches that the levels stand for."""
    rng = np.random.default_rng(seed)
    values = levels.accuracy_levels(count + 1)
    mass = rng.gamma(0.3, size=(4, count + 1)).astype(np.float32) + np.float32(1e-3)
    mean, low, high = levels.mean_and_interval(3 * mass, values, 0.025)
    share = mass / mass.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mean, share @ values, atol=1e-6)
    points = np.linspace(-0.5, 0.5, 2_001)[:, None] + np.arange(count + 1)
    points[:, [0, -1]] = [0, count]
    ends = [count * np.arcsin(np.sqrt(end)) / (np.pi / 2) for end in (low, high)]
    for row, (first, last) in enumerate(zip(*ends, strict=True)):
        for inner, wanted in ((first + 0.5, 0.025), (last - 0.5, 0.975)):
            below = float(share[row] @ (points < inner - 1e-6).mean(axis=0))
            above = float(share[row] @ (points <= inner + 1e-6).mean(axis=0))
            # Half a level outwards, but never beyond 0 and 1.
            assert below - 1e-3 <= wanted or first == 0
            assert wanted <= above + 1e-3 or last == count


def test_drawn_paths_have_the_posterior_of_all_paths():
    rng = np.random.default_rng(3)
    values, chain = levels.accuracy_levels(3), random_chain(rng, 3)
    correct, probes = np.array([1, 3, 2], np.int32), np.array([4, 3, 8], np.int32)
    readings = levels.read_counts(correct, probes, values)
    copies = 40_000
    path = np.empty(3 * copies, np.int8)
    kernels.draw_paths(
        np.tile(readings.code, copies),
        np.arange(0, 3 * copies + 1, 3),
        np.arange(copies),
        readings.likelihood,
        chain.start,
        chain.move,
        chain.back,
        fitting._mix(np.arange(copies, dtype=np.uint64)),
        path,
    )
    expected, _, marginals, _ = enumerated(correct, probes, values, chain)
    paths = path.reshape(-1, 3)
    drawn = np.stack([(paths == level).mean(axis=0) for level in range(3)], axis=1)
    np.testing.assert_allclose(drawn, marginals, atol=0.01)
    moves = np.zeros((3, 3))
    np.add.at(moves, (paths[:, :-1].ravel(), paths[:, 1:].ravel()), 1 / copies)
    np.testing.assert_allclose(moves, expected, atol=0.015)


def test_learning_is_baum_welch_with_dense_matrices():
    """A few iterations of a model's only cell, again with whole matrices and no skipping."""
    curves = make_curves(questions=12, trajectories=3, probes=4, seed=5)
    latent = fit(curves, draws=1, iterations=4)
    values = levels.accuracy_levels()
    seen = binom.pmf(curves.correct[:, None], 4, values)
    parts = parts_of_moves(values.size)
    chain = general_chain(values.size)
    shares = np.array([0.5, 0.1, 0.1, 0.08, 0.08, 0.07, 0.07])
    for _ in range(4):
        moves, starts = np.zeros_like(chain.move), np.zeros_like(chain.start)
        for a, b in itertools.pairwise(curves.trajectory_offsets.tolist()):
            forward = [chain.start * seen[a]]
            for k in range(a + 1, b):
                forward.append((forward[-1] @ chain.move) * seen[k])
            backward = np.ones(values.size)
            total = forward[-1].sum()
            for k in range(b - 1, a, -1):
                weight = seen[k] * backward
                moves += np.outer(forward[k - 1 - a], weight) * chain.move / total
                backward = chain.move @ weight
            starts += forward[0] * backward / total
        for _ in range(3):
            mixture = np.tensordot(shares, parts, 1)
            credit = np.array(
                [
                    share * (part * moves / mixture).sum()
                    for share, part in zip(shares, parts, strict=True)
                ]
            )
            shares = (credit + 0.1) / (credit + 0.1).sum()
        centre = Chain(start=np.full(values.size, 1 / 41), move=np.tensordot(shares, parts, 1))
        chain = combined(starts, moves, centre, PRIOR_MOVES)
    np.testing.assert_allclose(latent.learned[0, 0].chain.move, chain.move, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(latent.learned[0, 0].chain.start, chain.start, rtol=1e-6, atol=1e-10)


def test_draws_depend_on_seed_and_trajectory_and_not_on_threads_or_order():
    curves = family_world("wandering", 1, trajectories=600, questions=40, probes=4).curves
    one, two = (
        fit(curves, draws=3, workers=1, iterations=5),
        fit(curves, draws=3, workers=2, iterations=5),
    )
    assert np.array_equal(one.paths, two.paths)
    assert np.array_equal(one.mean, two.mean)
    assert not np.array_equal(one.paths, fit(curves, draws=3, seed=1, iterations=5).paths)
    assert not np.array_equal(one.paths[0], one.paths[1])
    longer = fit(curves, draws=5, iterations=5)
    assert np.array_equal(longer.paths[:3], one.paths)


def test_extra_answers_are_read_like_any_other():
    """Four and twelve more answers are sixteen."""
    curves = family_world("free_steps", 2, trajectories=80, questions=10).curves
    first = thinned(curves, 4, seed=0)
    more = Curves(
        tokens=curves.tokens,
        correct=first.correct,
        trajectory_offsets=curves.trajectory_offsets,
        question=curves.question,
        probes=4,
        extra_probes=np.full(curves.positions, 12),
        extra_correct=curves.correct - first.correct,
    )
    assert np.array_equal(fit(more, draws=2).mean, fit(curves, draws=2).mean)
    assert not np.allclose(fit(first, draws=2).mean, fit(curves, draws=2).mean)
    part = more.select([3, 5])
    assert part.extra_probes.size == part.positions


@pytest.fixture(scope="module")
def quarter():
    """Errors of mean AD in a world of every family: 16 probes raw, 4 raw, and 4 by the chain."""
    rows = {}
    for family in FAMILIES:
        world = family_world(family, 11, trajectories=120, questions=20)
        found = {probes: errors_in_world(world, probes, draws=10) for probes in (16, 4)}
        rows[family] = [
            abs(found[probes][f"{source}_ad"] - found[probes]["true_ad"])
            for probes, source in ((16, "raw"), (4, "raw"), (4, "latent"))
        ]
    return rows


@pytest.mark.parametrize("family", FAMILIES)
def test_a_quarter_of_the_probes_is_nearer_to_the_truth_than_all_of_them_raw(quarter, family):
    sixteen, _, latent = quarter[family]
    # Where accuracies are 0 or 1 raw counts are the truth, and a point may be lost.
    assert latent <= sixteen + (0.01 if family == "zero_or_one" else 0.0)


def test_the_error_of_a_quarter_of_the_probes_is_at_most_a_third(quarter):
    sixteen, four, latent = np.mean(list(quarter.values()), axis=0)
    assert latent <= sixteen / 3
    assert latent <= four / 3


def test_intervals_cover_the_truth():
    world = family_world("wandering", 3, trajectories=300, questions=30, probes=8)
    latent = fit(world.curves)
    held = (latent.low <= world.accuracy) & (world.accuracy <= latent.high)
    assert 0.90 <= held.mean() <= 0.98
    error = np.abs(latent.mean - world.accuracy).mean()
    assert error < 0.75 * np.abs(world.curves.correct / 8 - world.accuracy).mean()


def test_small_cells_borrow_from_the_models_other_cells_or_say_that_they_cannot():
    big = family_world("zero_or_one", 4, trajectories=300, questions=30, probes=4).curves
    small = big.select(np.arange(6))
    alone = fit(small)
    assert "few trajectories (6)" in alone.notes[0]
    assert "no other cell" in alone.notes[0]
    both = Curves(
        tokens=np.concatenate([big.tokens, small.tokens]),
        correct=np.concatenate([big.correct, small.correct]),
        trajectory_offsets=np.concatenate(
            [big.trajectory_offsets, big.positions + small.trajectory_offsets[1:]]
        ),
        question=np.concatenate([big.question, 100 + small.question]),
        benchmark=np.repeat([0, 1], [300, 6]),
        probes=4,
    )
    other = family_world("zero_or_one", 5, trajectories=100, questions=10, probes=4).curves
    together = fit(both)
    assert "1 other cell" in together.notes[0]
    as_second = Curves(
        tokens=other.tokens,
        correct=other.correct,
        trajectory_offsets=other.trajectory_offsets,
        question=100 + other.question,
        benchmark=np.ones(other.trajectories, np.int32),
        probes=4,
    )
    assert held_out_log_likelihood(together, as_second) > held_out_log_likelihood(alone, other)


class TestBadInput:
    def test_no_trajectory(self):
        nothing = make_curves().select([])
        with pytest.raises(ValueError, match="no trajectory to fit"):
            fit(nothing)

    def test_counts_above_the_probes(self):
        with pytest.raises(ValueError, match="correct must lie between 0 and probes = 4"):
            Curves(tokens=[0], correct=[5], trajectory_offsets=[0, 1], question=[0], probes=4)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"extra_probes": [1, 2], "extra_correct": [0, 3]}, "extra_correct is 3 at position 1"),
            ({"extra_probes": [1, 2]}, "extra_correct 0 for 2 positions"),
            (
                {"extra_probes": [-1, 2], "extra_correct": [0, 0]},
                "extra_correct is 0 at position 0",
            ),
            ({"extra_probes": [1.5, 2], "extra_correct": [0, 0]}, "must hold integers"),
        ],
    )
    def test_extra_answers_that_cannot_be(self, changes, message):
        with pytest.raises(ValueError, match=message):
            Curves(
                tokens=[0, 3],
                correct=[0, 1],
                trajectory_offsets=[0, 2],
                question=[0],
                probes=4,
                **changes,
            )

    @pytest.mark.parametrize("changes", [{"draws": 0}, {"seed": -1}, {"iterations": 0}])
    def test_numbers_out_of_range(self, changes):
        with pytest.raises(ValueError, match="must be"):
            fit(make_curves(), **changes)

    def test_a_tolerance_that_is_no_fraction(self):
        with pytest.raises(ValueError, match="tolerance must lie"):
            fit(make_curves(), draws=1).per_trajectory(tolerance=3)

    def test_one_trajectory_of_one_position(self):
        curves = Curves(tokens=[0], correct=[3], trajectory_offsets=[0, 1], question=[0], probes=4)
        latent = fit(curves)
        row = latent.per_trajectory().iloc[0]
        assert row["overthinking_ratio"] == row["accuracy_degradation"] == 0.0
        assert latent.low[0] <= latent.mean[0] <= latent.high[0]

    @pytest.mark.parametrize("correct", [0, 16])
    def test_all_equal(self, correct):
        world = family_world("wandering", 0, trajectories=100, questions=10).curves
        curves = Curves(
            tokens=world.tokens,
            correct=np.full(world.positions, correct),
            trajectory_offsets=world.trajectory_offsets,
            question=world.question,
            probes=16,
        )
        latent = fit(curves)
        np.testing.assert_allclose(latent.mean, correct / 16, atol=0.01)
        frame = latent.per_trajectory()
        assert frame["accuracy_degradation"].mean() < 0.005
        assert frame["overthinking_ratio"].mean() > 0.97

    def test_many_probes_do_not_run_out_of_floats(self):
        curves = Curves(
            tokens=[0, 5, 9] * 30,
            correct=[123_456, 777_777, 10**6] * 30,
            trajectory_offsets=range(0, 91, 3),
            question=range(30),
            probes=10**6,
        )
        assert np.abs(fit(curves).mean - curves.correct / 10**6).max() < 0.03

    def test_a_fit_that_does_not_converge_says_so_and_gives_raw_values(self):
        curves = family_world("wandering", 6, trajectories=60, questions=6, probes=4).curves
        latent = fit(curves, iterations=2, draws=2)
        assert "had not settled after 2 iterations" in latent.notes[0]
        np.testing.assert_array_equal(latent.mean, curves.correct / 4)
        assert np.all((latent.low <= latent.mean) & (latent.mean <= latent.high))
        raw, strict = per_trajectory(curves), latent.per_trajectory(tolerance=0.0)
        for column in ("overthinking_ratio", "accuracy_degradation"):
            np.testing.assert_allclose(strict[column], raw[column])


def test_averages_are_those_of_the_trajectories_and_have_intervals():
    curves = make_curves(models=2, benchmarks=2, questions=6, trajectories=4, seed=8)
    latent = fit(curves, draws=6)
    frame, table = latent.per_trajectory(0.05), latent.averages(0.05)
    by_question = frame.groupby(["model", "benchmark", "question"])[list(MEASURES)].mean()
    cells = by_question.groupby(["model", "benchmark"]).mean()
    for measure in MEASURES:
        found = table.xs(measure, level="measure")["estimate"]
        for place, value in cells[measure].items():
            assert found[place] == pytest.approx(value)
        models = cells[measure].groupby("model").mean()
        assert found[0, -1] == pytest.approx(models[0])
        assert found[-1, -1] == pytest.approx(models.mean())
    assert ((table["low"] <= table["estimate"]) & (table["estimate"] <= table["high"])).all()
    assert fit(curves, draws=1).averages()["low"].isna().all()


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
def test_measures_of_a_path_by_the_obvious_loop(tolerance):
    curves = make_curves(questions=20, seed=9)
    accuracy = curves.correct / curves.probes
    found = kernels.measures_of_path(curves.tokens, curves.trajectory_offsets, accuracy, tolerance)
    for s, (a, b) in enumerate(itertools.pairwise(curves.trajectory_offsets.tolist())):
        p, length = accuracy[a:b], curves.tokens[a:b]
        first = next(k for k in range(b - a) if p[k] >= max(p) - tolerance - 1e-9)
        full = length[-1]
        assert found[0, s] == pytest.approx((full - length[first]) / full if full else 0.0)
        assert found[1, s] == pytest.approx(max(p) - p[-1] if full else 0.0)
        assert found[2:, s].tolist() == [p[0], p[-1], max(p)]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["routing", "fixed_budget", "early_exit"])
def test_latent_frontiers_are_not_flattered(strategy):
    world = family_world("wandering", 12, trajectories=150, questions=30, probes=4)
    latent = fit(world.curves, draws=8)
    found = latent_frontier(latent, strategy, model=0, benchmark=0, steps=10)
    truth = exact_frontier(
        replace(
            world.curves, correct=np.rint(world.accuracy * 10_000).astype(np.int32), probes=10_000
        ),
        strategy,
    )
    known = truth.reward_within(grid_budgets(truth.full_cost, 10)) / truth.probes
    error, raw_error = (np.abs(one - known).mean() for one in (found.knowing, found.measured))
    # Early exit chooses among all positions, so its counts flatter it most; routing has two.
    assert error < (0.5 * raw_error if strategy == "early_exit" else 0.03)
    # Who decides on data cannot reach more than who knows, to what the rounding of P allows.
    assert np.all(found.decided <= found.knowing + 1e-3)
    assert np.all((found.knowing_low <= found.knowing) & (found.knowing <= found.knowing_high))
    with pytest.raises(ValueError, match="no cell of model 3"):
        latent_frontier(latent, strategy, model=3, benchmark=0)


def test_the_chain_predicts_held_out_probes_better_than_raw_shares():
    scores = held_out_scores(family_world("free_steps", 1, trajectories=120, probes=8).curves)
    assert scores["chain"] > scores["beta_binomial"] > scores["raw"]
    assert scores["chain"] > scores["isotonic"]


def test_figure_shows_counts_band_and_drawn_references():
    curves = make_curves(questions=20, seed=3)
    latent = fit(curves, draws=5)
    s = int(np.argmax(np.diff(curves.trajectory_offsets)))
    figure = latent_curve(latent, s)
    dots = figure.axes[0].lines[1]
    part = slice(*curves.trajectory_offsets[s : s + 2])
    np.testing.assert_array_equal(dots.get_ydata(), curves.correct[part] / curves.probes)
    with pytest.raises(ValueError, match="no trajectory 99999"):
        latent_curve(latent, 99999)
