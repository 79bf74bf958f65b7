"""Where more answers are sampled: gains by the plain formula, and choices within their limits."""

import numpy as np
import pytest

from evaluator.analysis.latent import choose_positions, expected_gains, fit, next_answers
from evaluator.simulation.families import family_world, thinned
from evaluator.simulation.latent_checks import replayed
from tests.evaluator.synthetic import make_curves


@pytest.fixture(scope="module")
def latent():
    return fit(make_curves(questions=15, trajectories=3, seed=6), draws=30)


def test_gains_are_those_of_a_linear_estimate(latent):
    found = expected_gains(latent, answers=3, tolerance=0.05)
    curves = latent.curves
    measures = latent.measures(0.05)
    accuracy = np.stack([latent.drawn_accuracy(d) for d in range(latent.draws)])
    for s in range(curves.trajectories):
        for k in range(curves.trajectory_offsets[s], curves.trajectory_offsets[s + 1]):
            p = accuracy[:, k]
            below = max(np.var(p) + np.mean(p * (1 - p)) / 3, 1e-12)
            expected = sum(
                np.cov(measures[:, i, s], p, bias=True)[0, 1] ** 2 / below for i in range(2)
            )
            assert found[k] == pytest.approx(expected, abs=1e-12)


def test_choices_stay_within_budget_positions_and_trajectories(latent):
    curves = latent.curves
    lengths = np.diff(curves.trajectory_offsets)
    for budget in (0, 1, 7, 10_000):
        more = choose_positions(latent, budget=budget, most=6)
        assert more.sum() <= budget
        assert np.all((more >= 0) & (curves.all_probes_k + more <= 6))
        places = np.add.reduceat(more > 0, curves.trajectory_offsets[:-1])
        assert np.all(places <= np.maximum(lengths // 2, 1))
    assert not choose_positions(latent, budget=100, most=4).any()


def test_the_greatest_gain_comes_first_and_dear_answers_last(latent):
    gain = expected_gains(latent)
    best = int(np.argmax(gain))
    assert np.flatnonzero(choose_positions(latent, budget=1, most=16)).tolist() == [best]
    tokens = np.ones(latent.curves.positions)
    tokens[best] = 1e9
    assert choose_positions(latent, budget=2e9, most=16, answer_tokens=tokens)[best] == 0


def test_a_budget_is_in_tokens_where_answers_have_a_price(latent):
    tokens = np.random.default_rng(5).uniform(3, 40, latent.curves.positions)
    more = choose_positions(latent, budget=500, most=16, answer_tokens=tokens)
    assert 460 < more @ tokens <= 500
    # Twice the price of everything and twice the budget are the same choice.
    again = choose_positions(latent, budget=1000, most=16, answer_tokens=2 * tokens)
    assert more.tolist() == again.tolist()


def test_a_higher_limit_is_filled_in_larger_steps(latent):
    assert set(choose_positions(latent, budget=1e9, most=16).tolist()) == {0, 4}
    assert set(choose_positions(latent, budget=1e9, most=64).tolist()) == {0, 8}


def test_nothing_is_asked_where_everything_is_known():
    curves = family_world("zero_or_one", 1, trajectories=60, questions=6).curves
    more = next_answers(curves, np.ones(curves.positions), 10_000, 32)
    assert more.sum() < 0.2 * 10_000


def test_replayed_answers_are_among_those_that_there_are():
    world = family_world("free_steps", 2, trajectories=40, questions=4)
    latent, share = replayed(world, share=0.35, rounds=2, draws=10)
    curves = latent.curves
    assert 0.25 < share <= 0.35
    assert np.all(curves.all_probes_k <= 16)
    assert np.all(curves.all_correct_k <= world.curves.correct)
    wrong = curves.all_probes_k - curves.all_correct_k
    assert np.all(wrong <= 16 - world.curves.correct)
    with pytest.raises(ValueError, match="does not pay for 4"):
        replayed(world, share=0.2)


def test_numbers_out_of_range_are_refused(latent):
    for budget in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="budget"):
            choose_positions(latent, budget=budget, most=16)
    one = fit(thinned(latent.curves, 2, 0), draws=1)
    with pytest.raises(ValueError, match="two draws"):
        expected_gains(one)
