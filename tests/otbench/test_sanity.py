"""The honest sanity set: what must come out on measurements whose structure is known."""

import hashlib

import numpy as np
import pytest

from baselines.constant_cap import ConstantCap
from baselines.interface import EarlyExit, FixedBudget, Router
from baselines.player import Player
from data.errors import MisuseError
from evaluator.otbench.asked import AskedMethod
from evaluator.otbench.points import cell_frontiers_of, cell_totals, operating_points
from evaluator.otbench.run import Trained, decide_on, train
from evaluator.otbench.summary import gaps, shares, summarise
from oracle import STRATEGIES
from tests.otbench.made import curves, lots, measured, source_of, told_the_truth
from tests.otbench.made import decided as decide


def points(method, made):
    decisions = decide(method, made, lots(made.curves))
    totals = cell_totals(made.curves, decisions.stop, decisions.signal_tokens)
    frontiers = cell_frontiers_of(made.curves, method.strategy)
    return totals, operating_points(totals, frontiers)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(4))
def test_told_the_truth_a_method_reaches_the_frontier_exactly(strategy, seed):
    data = curves(questions=9, seed=seed)
    method, frontier = told_the_truth(data, strategy)
    totals, found = points(method, measured(data))
    assert totals.cost[:, 0].tolist() == frontier.cost.tolist()
    assert totals.reward[:, 0].tolist() == frontier.reward.tolist()
    assert gaps(found).tolist() == [0.0] * frontier.cost.size
    assert found.on_curve.all()
    summary = summarise(found, selected=frontier.cost.size - 1)
    assert summary["hypervolume_share"] == 1.0
    gains = found.frontier_accuracy > found.full_accuracy
    assert shares(found)[gains].tolist() == [1.0] * int(gains.sum())


class Coin(EarlyExit):
    """Stops by chance alone, whatever it is shown."""

    name = "coin"
    grid = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)

    def score(self, prefix):
        text = f"{prefix.question.lot} {prefix.tokens.tolist()}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") / 2**64

    def stops(self, score, setting):
        return score < setting


class Dice(FixedBudget):
    """Caps by the question's lot alone."""

    name = "dice"
    grid = tuple(10 * i for i in range(30))

    def score(self, question):
        return question.lot


class Lottery(Router):
    """Thinks by the question's lot alone."""

    name = "lottery"
    grid = tuple(i / 20 for i in range(21))

    def score(self, question):
        return question.lot


@pytest.mark.parametrize("method", [Coin(), Dice(), Lottery()], ids=lambda m: m.name)
def test_a_random_method_does_not_beat_constants(method):
    ahead = []
    for seed in range(8):
        made = measured(curves(questions=60, seed=100 + seed))
        area = summarise(points(method, made)[1], 0)["curve_area"]
        ahead.append(area - summarise(points(ConstantCap(), made)[1], 0)["curve_area"])
    # Below on average, by more than the noise of eight worlds.
    assert np.mean(ahead) + 2 * np.std(ahead, ddof=1) / np.sqrt(len(ahead)) < 0.0
    assert max(ahead) < 0.01


class EndLogprob(EarlyExit):
    name = "end_logprob"
    needs = ("end_logprob",)
    grid = (-3.0, -2.0, -1.0, -0.3)

    def score(self, prefix):
        return float(prefix["end_logprob"][-1])


@pytest.mark.parametrize("method", [EndLogprob(), Lottery(), Dice()], ids=lambda m: m.name)
def test_permuting_test_questions_changes_nothing(method):
    data = curves(questions=15, models=1, benchmarks=2, seed=5)
    rng = np.random.default_rng(0)
    signal = -rng.exponential(1.0, data.positions).astype(np.float32)
    lengths, starts = np.diff(data.trajectory_offsets), data.trajectory_offsets[:-1]
    order = rng.permutation(data.trajectories)
    rows = np.concatenate([np.arange(starts[s], starts[s] + lengths[s]) for s in order])
    totals, found = points(method, measured(data, end_logprob=signal))
    moved, again = points(method, measured(data.select(order), end_logprob=signal[rows]))
    for name in ("cost", "reward", "signal_tokens", "full_cost", "probes"):
        assert np.array_equal(getattr(totals, name), getattr(moved, name))
    for name in ("tokens_fraction", "accuracy", "frontier_accuracy", "grid_frontier", "on_curve"):
        assert np.array_equal(getattr(found, name), getattr(again, name))


def asked(method):
    return AskedMethod(source=source_of(method), hyperparameters={})


def test_test_questions_in_training_are_refused():
    training = measured(curves(questions=6, seed=1))
    validation = measured(curves(questions=4, seed=2, first=6))
    trained = train(asked(Lottery), training, validation)
    fresh = measured(curves(questions=5, seed=3, first=10))
    decide_on(trained, fresh, lots(fresh.curves))
    for leaking in (training, validation, measured(curves(questions=3, seed=4, first=9))):
        with pytest.raises(MisuseError, match=r"leak: \d+ test questions were used in training"):
            decide_on(trained, leaking, lots(leaking.curves))


def test_training_questions_in_validation_are_refused():
    training = measured(curves(questions=6, seed=1))
    validation = measured(curves(questions=4, seed=2, first=5))
    with pytest.raises(MisuseError, match="leak: 1 questions are in training and in validation"):
        train(asked(Lottery), training, validation)


class Peeker(EarlyExit):
    """Looks for the future wherever numpy might keep it, and stops where it finds the end."""

    name = "peeker"
    grid = (1,)
    needs = ("answer",)

    def __init__(self):
        self.found = []

    def score(self, prefix):
        for shown in (prefix.tokens, prefix["answer"]):
            memory = shown
            while isinstance(memory.base, np.ndarray):
                memory = memory.base
            later = memory.reshape(-1)[prefix.k + 1 :]
            self.found.append(np.abs(later).max(initial=0))
        return 0


def test_a_method_that_looks_ahead_finds_nothing():
    made = measured(curves(questions=10, seed=3))
    peeker = Peeker()
    decisions = decide(peeker, made, lots(made.curves))
    assert len(peeker.found) > 200
    assert max(peeker.found) == 0
    assert decisions.stop[0].tolist() == (np.diff(made.curves.trajectory_offsets) - 1).tolist()


class Rememberer(EarlyExit):
    """Learns a trajectory's length while it goes by, for when it comes again."""

    name = "rememberer"
    grid = (1,)
    needs = ("answer",)

    def __init__(self):
        self.longest = {}

    def score(self, prefix):
        who = int(prefix["answer"][-1])
        known = self.longest.get(who, -1)
        self.longest[who] = max(known, prefix.k)
        return int(known > 0 and prefix.k >= known // 2)


def test_a_method_that_remembers_test_questions_is_refused():
    made = measured(curves(questions=10, seed=3))
    with pytest.raises(MisuseError, match="rememberer: decides differently when questions come in"):
        decide(Rememberer(), made, lots(made.curves))


class Gossip(EarlyExit):
    """Stops earlier from trajectory to trajectory, but says the same where it is asked again."""

    name = "gossip"
    grid = (0,)
    needs = ("answer",)

    def __init__(self):
        self.said = {}

    def score(self, prefix):
        who = (int(prefix["answer"][-1]), prefix.k)
        return self.said.setdefault(who, int(prefix.k > 0 and len(self.said) > 60)) - 1


def test_a_method_that_remembers_and_answers_alike_when_asked_again_is_refused():
    made = measured(curves(questions=30, seed=3))
    with pytest.raises(MisuseError, match="gossip: decides differently when questions come in"):
        decide(Gossip(), made, lots(made.curves))


def test_a_method_trained_elsewhere_is_held_to_what_it_has_seen():
    made = measured(curves(questions=5, seed=3))
    trained = Trained(
        start=lambda: Player(Lottery()),
        description=source_of(Lottery).description,
        seen=np.array([4, 99]),
        hyperparameters={},
    )
    with pytest.raises(MisuseError, match="1 test questions were used in training, as question q4"):
        decide_on(trained, made, lots(made.curves))
