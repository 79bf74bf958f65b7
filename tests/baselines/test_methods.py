"""Every method's rule against what its paper says, worked by hand or by an obvious twin."""

import math

import numpy as np
import pytest

from baselines.answer_convergence import AnswerConvergence
from baselines.constant_cap import ConstantCap
from baselines.constant_fraction import ConstantFraction
from baselines.deer import Deer
from baselines.dynasor import Dynasor
from baselines.end_entropy import EndEntropy
from baselines.greedy_scheduling import GreedyScheduling
from baselines.hidden_probe import HiddenProbe
from baselines.perplexity_router import PerplexityRouter
from baselines.predictive_scheduling import PredictiveScheduling, best_tokens
from baselines.think_brake import ThinkBrake
from baselines.think_share import ThinkShare
from baselines.think_switcher import ThinkSwitcher, endpoint_rates
from data.errors import MisuseError
from tests.baselines.made import learnable, measurements, scores, stop_at, view

FIVE = [[0, 10, 20, 30, 40]]
RIGHT = [[0, 1, 2, 3, 4]]


def test_think_brake_stops_at_the_first_boundary_within_the_margin():
    made = measurements(
        FIVE,
        RIGHT,
        end_logprob=[[-0.1, -6.0, -2.5, -3.0, -0.2]],
        other_logprob=[[-3.0, -0.1, -0.5, -0.9, -2.0]],
        end_exact=[[True] * 5],
    )
    assert scores(ThinkBrake(), made) == pytest.approx([math.inf, 5.9, 2.0, 2.1])
    assert [stop_at(ThinkBrake(), made, t) for t in (0.1, 2.0, 2.05, 5.0, 6.0)] == [4, 2, 2, 2, 1]
    assert set(ThinkBrake.grid) >= {0.1, 0.25, 1, 2.5, 5}


def test_think_brake_never_stops_where_the_margin_is_only_known_to_be_large():
    made = measurements(
        FIVE,
        RIGHT,
        end_logprob=[[-9.0, -0.5, -1.0, -9.0, -9.0]],
        other_logprob=[[-0.1, -0.4, -0.9, -0.1, -0.1]],
        end_exact=[[False, False, True, False, False]],
    )
    assert stop_at(ThinkBrake(), made, 30.0) == 2


def test_answer_convergence_counts_agreeing_answers_from_the_first_step_on():
    made = measurements([[0, 1, 2, 3, 4, 5, 6]], [[0] * 7], answer=[[5, 5, 3, 3, -1, 3, 3]])
    assert scores(AnswerConvergence(), made) == [-math.inf, 1, 1, 2, -math.inf, 1]
    assert stop_at(AnswerConvergence(), made, 2) == 3
    assert stop_at(AnswerConvergence(), made, 3) == 6


def naive_dynasor(tokens, answers, hedged, wanted, apart):
    probed = []
    for k in range(1, len(tokens) - 1):
        if tokens[k] - (tokens[probed[-1]] if probed else 0) < apart:
            continue
        probed.append(k)
        last = probed[-wanted:]
        if len(last) < wanted:
            continue
        agree = len({answers[i] for i in last}) == 1 and answers[last[0]] >= 0
        if agree and not any(hedged[i] for i in last):
            return k
    return len(tokens) - 1


def test_dynasor_against_an_obvious_twin():
    rng = np.random.default_rng(0)
    stopped = 0
    for _ in range(300):
        n = int(rng.integers(1, 14))
        tokens = np.concatenate([[0], np.cumsum(rng.integers(1, 60, n))])
        answers = rng.integers(-1, 2, n + 1)
        hedged = rng.random(n + 1) < 0.1
        made = measurements([tokens], [[0] * (n + 1)], answer=[answers], answer_hedged=[hedged])
        for setting in Dynasor.grid:
            expected = naive_dynasor(tokens.tolist(), answers, hedged, *setting)
            assert stop_at(Dynasor(), made, setting) == expected
            stopped += expected < n
    assert stopped > 500
    assert set(Dynasor.grid) >= {(8, 64), (5, 64), (3, 64), (2, 64), (2, 32)}


def test_dynasor_pays_only_where_it_probes():
    made = measurements(
        [[0, 40, 80, 120]], [[0] * 4], answer=[[0] * 4], answer_hedged=[[False] * 4]
    )
    paid = [Dynasor().pays(score, (2, 64)) for score in scores(Dynasor(), made)]
    assert paid == [False, False, True]


def test_deer_uses_the_mean_asked_for():
    logprob = [[-0.01, math.log(0.94), math.log(0.96), -0.001, 0.0]]
    probability = [[1.0, 0.97, 0.99, 0.999, 1.0]]
    made = measurements(FIVE, RIGHT, trial_logprob=logprob, trial_probability=probability)
    assert stop_at(Deer(), made, 0.95) == 2
    assert stop_at(Deer(mean="arithmetic"), made, 0.95) == 1
    assert 0.95 in Deer.grid


def test_deer_without_a_trial_answer_goes_on():
    made = measurements(
        FIVE, RIGHT, trial_logprob=[[math.nan] * 5], trial_probability=[[math.nan] * 5]
    )
    assert stop_at(Deer(), made, 0.3) == 4


def test_end_entropy_follows_a_running_variance():
    entropies = [9.0, 2.0, 1.0, 1.1, 1.05, 1.0, 1.0]
    made = measurements(
        [list(range(7))], [[0] * 7], end_entropy=[entropies], answer_entropy=[[3.0] * 7]
    )
    mean, variance, weight, expected = entropies[1], 0.0, 0.0, [math.inf, math.inf]
    for x in entropies[2:6]:
        mean += 0.2 * (x - mean)
        variance = 0.8 * variance + 0.2 * (x - mean) ** 2
        weight = 0.8 * weight + 0.2
        expected.append(variance / weight)
    assert scores(EndEntropy(), made) == pytest.approx(expected)
    # Started again, the trajectory before plays no part.
    method = EndEntropy()
    assert scores(method, made) == scores(method, made)
    assert scores(EndEntropy(after="opening"), made)[2:] == [0.0] * 4


def test_perplexity_router_thinks_about_uncertain_short_answers():
    router = PerplexityRouter()
    sure, unsure, none = (
        router.score(view(short_answer_logprob=value)) for value in (-0.01, -1.0, math.nan)
    )
    assert [router.thinks(s, 1.5) for s in (sure, unsure, none)] == [False, True, True]


def test_constants_know_nothing_but_the_benchmark():
    assert [ConstantCap().cap(ConstantCap().score(view()), s) for s in (0, 64)] == [0, 64]
    training = measurements(
        [[0, 10], [0, 30], [0, 100]], [[0, 1]] * 3, benchmark=np.array([0, 0, 1])
    )
    method = ConstantFraction()
    method.fit(training, training)
    assert method.cap(method.score(view()), 0.5) == 10
    assert ThinkShare().thinks(ThinkShare().score(view()), 0.55)
    assert not ThinkShare().thinks(ThinkShare().score(view()), 0.5)


def test_training_targets():
    made = measurements(
        [[0, 10, 30], [0, 20, 25], [0, 5]],
        [[1, 4, 4], [0, 0, 3], [2, 2]],
        questions=[3, 3, 8],
    )
    assert endpoint_rates(made).tolist() == [[0.125, 0.875], [0.5, 0.5]]
    assert made.curves.k_star_s.tolist() == [1, 2, 0]
    assert best_tokens(made).tolist() == [17.5, 0.0]


def test_think_switcher_learns_where_thinking_helps_and_the_same_each_time():
    train, _ = learnable(80, seed=1)
    held, _ = learnable(40, seed=2, first=100)
    test, d = learnable(40, seed=3, first=200)
    gains = []
    for _ in range(2):
        method = ThinkSwitcher(hidden=(32, 16), learning_rate=3e-3)
        method.fit(train, held)
        gains.append([method.score(view(prompt_hidden=row)) for row in test["prompt_hidden"]])
    assert gains[0] == gains[1]
    # P(0) is 1 if nothing is needed, P(n) is 1 everywhere: thinking helps where d is large.
    needs = np.round(d * 6) > 0
    assert np.mean((np.array(gains[0]) >= 0.5) == needs) > 0.85


def test_predictive_scheduling_chooses_the_layer_on_validation_questions():
    train, _ = learnable(80, seed=1)
    held, _ = learnable(40, seed=2, first=100)
    test, d = learnable(40, seed=3, first=200)
    method = PredictiveScheduling()
    method.fit(train, held)
    budgets = [method.score(view(prompt_hidden=row)) for row in test["prompt_hidden"]]
    assert method._place == 1
    assert np.corrcoef(budgets, np.round(d * 6) * 10)[0, 1] > 0.9
    assert method.cap(50.0, 0.5) == 25
    with pytest.raises(MisuseError, match="layer 9 is not in the release; it holds 0, 1"):
        PredictiveScheduling(layer=9).fit(train, held)


def test_greedy_scheduling_stops_before_the_first_window_that_is_not_worth_it():
    train, _ = learnable(80, seed=1)
    held, _ = learnable(40, seed=2, first=100)
    method = GreedyScheduling(windows=6)
    method.fit(train, held)
    gains = np.array([5.0, 3.0, -1.0, 50.0, 0.0, 0.0])
    assert [method.cap(gains, price) for price in (-100.0, 0.0, 4.0, 6.0)] == [60, 20, 10, 0]


def naive_greedy(gains, total):
    """Give window after window to the question with the largest next gain."""
    given = [0] * len(gains)
    for _ in range(total):
        left = [q for q in range(len(gains)) if given[q] < len(gains[q])]
        best = max(left, key=lambda q: (gains[q][given[q]], -q))
        given[best] += 1
    return given


def test_a_price_gives_the_windows_that_the_original_allocator_gives():
    rng = np.random.default_rng(5)
    method = GreedyScheduling(windows=6)
    method._window_tokens = 1
    for _ in range(50):
        gains = rng.normal(size=(5, 6))
        for price in (-1.0, 0.0, 0.7):
            given = [method.cap(row, price) for row in gains]
            assert naive_greedy(gains.tolist(), sum(given)) == given


def test_hidden_probe_learns_when_the_answer_is_right():
    train, _ = learnable(60, seed=1)
    held, _ = learnable(30, seed=2, first=100)
    test, _ = learnable(30, seed=3, first=200)
    method = HiddenProbe()
    method.fit(train, held)
    assert method._place == 1
    right = wrong = 0
    for s in range(test.curves.trajectories):
        k = stop_at(method, test, 0.5, s)
        row = test.curves.trajectory_offsets[s] + k
        right += test.curves.correct[row] == 4
        wrong += test.curves.correct[row] == 0
    assert wrong <= 0.05 * right


def test_hidden_probe_where_all_answers_are_right():
    made = measurements(
        [[0, 5, 9]] * 3, [[4, 4, 4]] * 3, hidden=[np.random.default_rng(0).random((3, 1, 4))] * 3
    )
    method = HiddenProbe()
    method.fit(made, made)
    assert stop_at(method, made, 0.999) == 1
