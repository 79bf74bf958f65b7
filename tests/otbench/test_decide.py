"""Decisions: every strategy's meaning, signal costs, and what is no decision."""

import math

import numpy as np
import pytest

from baselines.dynasor import Dynasor
from baselines.interface import EarlyExit, FixedBudget, Router
from data.errors import MisuseError
from tests.baselines.made import measurements
from tests.otbench.made import decided as decide

LOTS = np.array([0.1, 0.9, 0.5])


def made(**signals):
    return measurements(
        [[0, 10, 30], [0, 20, 25, 60], [0, 5]],
        [[1, 4, 4], [0, 0, 3, 3], [2, 2]],
        questions=[0, 0, 1],
        **signals,
    )


class Lot(Router):
    name = "lot"
    grid = (0.0, 0.5, 1.0)

    def score(self, question):
        return question.lot


class Fixed(FixedBudget):
    name = "fixed"
    grid = (0.0, 1.0, 1.2, math.inf)

    def score(self, question):
        return 20.0


class Later(EarlyExit):
    name = "later"
    grid = (0, 2, 99)
    needs = ("answer",)

    def score(self, prefix):
        return prefix.k


def test_a_router_sends_all_trajectories_of_a_question_one_way():
    assert decide(Lot(), made(), LOTS).stop.tolist() == [[2, 3, 1], [0, 0, 1], [0, 0, 0]]


def test_a_budget_stops_at_the_last_position_within_the_cap():
    stop = decide(Fixed(), made(), LOTS).stop
    assert stop.tolist() == [[0, 0, 0], [1, 1, 1], [1, 1, 1], [2, 3, 1]]


def test_early_exit_stops_at_the_first_position_and_pays_for_every_one_asked():
    data = made(answer=[[0] * 3, [0] * 4, [0] * 2], answer_tokens=[[7] * 3, [5, 6, 7, 8], [3] * 2])
    found = decide(Later(), data, LOTS)
    assert found.stop.tolist() == [[0, 0, 0], [2, 2, 1], [2, 3, 1]]
    assert found.signal_tokens.tolist() == [[7, 5, 3], [14, 18, 3], [14, 18, 3]]


def test_signals_that_are_not_asked_for_at_a_position_are_not_paid_for():
    data = made(
        answer=[[0] * 3, [0] * 4, [0] * 2],
        answer_tokens=[[7] * 3, [5, 6, 7, 8], [3] * 2],
        answer_hedged=[[False] * 3, [False] * 4, [False] * 2],
    )
    found = decide(Dynasor(), data, LOTS)
    place = Dynasor.grid.index((2, 16))
    # Probes at 20 (and not at 25) of the second trajectory; none in the first before its end.
    assert found.signal_tokens[place].tolist() == [0, 6, 0]


def test_signals_of_a_question_are_paid_by_each_of_its_trajectories():
    class Short(Router):
        name = "short"
        needs = ("short_answer_logprob",)
        grid = (0.0,)

        def score(self, question):
            return float(question["short_answer_logprob"])

    data = made(question_short_answer_logprob=[-1.0, 0.0], question_short_answer_tokens=[4, 9])
    assert decide(Short(), data, LOTS).signal_tokens.tolist() == [[4, 4, 9]]


def test_a_trajectory_without_steps_has_nothing_to_decide():
    data = measurements([[0]], [[2]], answer=[[1]], answer_tokens=[[4]])
    found = decide(Later(), data, LOTS)
    assert found.stop.tolist() == [[0]] * 3
    assert found.signal_tokens.tolist() == [[0]] * 3


def broken(kind, **parts):
    return type("Broken", (kind,), {"name": "broken", "grid": (1.0,), **parts})()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (broken(Router, grid=(), score=lambda s, q: 0.0), "its grid is empty"),
        (broken(Router, score=lambda s, q: math.nan), "a score is nan"),
        (broken(Router, score=lambda s, q: np.array([math.nan])), "a score is \\[nan\\]"),
        (broken(Router, score=lambda s, q: np.array(math.nan)), "a score is nan"),
        (broken(EarlyExit, score=lambda s, p: None), "a score is None"),
        (broken(FixedBudget, score=lambda s, q: 1, cap=lambda s, a, b: -3), "is -3; a cap is None"),
        (broken(FixedBudget, score=lambda s, q: 1, cap=lambda s, a, b: 2.5), "is 2.5; a cap"),
        (broken(Router, score=lambda s, q: 1, thinks=lambda s, a, b: None), "thinks returned None"),
        (broken(EarlyExit, score=lambda s, p: 1, stops=lambda s, a, b: None), "stops returned Non"),
        (broken(EarlyExit, score=lambda s, p: 1, stops=lambda s, a, b: math.nan), "returned nan"),
        (broken(EarlyExit, score=lambda s, p: 1, pays=lambda s, a, b: None), "pays returned None"),
        (broken(Router, grid=(math.nan,)), "a setting of its grid is nan"),
        (broken(Router, grid=(1, (2, math.nan))), "a setting of its grid is nan"),
        (broken(Router, grid=({"a": 1},)), "a setting of its grid is {'a': 1}"),
    ],
)
def test_what_is_no_decision_is_refused(method, message):
    with pytest.raises(MisuseError, match=f"broken: .*{message}"):
        decide(method, made(), LOTS)


def test_progress_counts_units():
    told = []
    decide(Lot(), made(), LOTS, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
