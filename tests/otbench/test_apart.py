"""A stranger's method in its own process: it finds nothing, however it looks, and cannot hurt."""

import numpy as np
import pytest

from baselines.apart import ApartPlayer
from baselines.player import Player
from baselines.registry import find_method
from data.errors import MisuseError
from evaluator.otbench.decide import decide
from evaluator.otbench.run import Asked, decide_on, train
from tests.otbench.made import curves, lots, measured

CHEAT = '''
import gc
import sys
from pathlib import Path

import numpy as np

from baselines import EarlyExit


class Cheat(EarlyExit):
    """Searches arguments, frames and every object for what comes later; writes what it saw."""

    name = "cheat"
    needs = ("answer", "end_logprob")
    grid = (1,)

    def score(self, prefix):
        self.seen, self.marks = set(), set()
        frame = sys._getframe()
        while frame is not None:
            self._look(frame.f_locals, 6)
            frame = frame.f_back
        for thing in gc.get_objects():
            if self._ours(thing):
                self._look(thing, 4)
        here = int(-prefix["end_logprob"][-1])
        with Path("{found}").open("a") as file:
            file.write(f"{{here}} {{max(self.marks, default=0)}}\\n")
        return 0

    def _ours(self, thing):
        return str(type(thing).__module__).split(".")[0] in ("baselines", "evaluator", "stp")

    def _look(self, thing, depth):
        if depth == 0 or id(thing) in self.seen or thing is self:
            return
        self.seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            if thing.dtype == np.float32:
                known = -thing[np.isfinite(thing)]
                self.marks |= set(np.floor(known).astype(int).reshape(-1).tolist())
            self._look(thing.base, depth)
        elif isinstance(thing, dict):
            for value in list(thing.values()):
                self._look(value, depth - 1)
        elif isinstance(thing, (list, tuple)):
            for value in list(thing):
                self._look(value, depth - 1)
        elif self._ours(thing):
            self._look(getattr(thing, "__dict__", None), depth)
            for kind in type(thing).__mro__:
                for name in getattr(kind, "__slots__", ()):
                    self._look(getattr(thing, name, None), depth - 1)
'''

SIMPLE = '''
from dataclasses import dataclass
import os

from baselines import EarlyExit, Router


@dataclass
class Mean(EarlyExit):
    """Stops where the signal passes the training mean."""

    shift: float = 0.0

    name = "mean"
    needs = ("end_logprob",)
    grid = (0.0, 0.5)

    def fit(self, train, validation):
        self.mean = float(train["end_logprob"].mean()) + self.shift

    def score(self, prefix):
        return float(prefix["end_logprob"][-1]) - self.mean


class Fails(Router):
    name = "fails"
    grid = (1,)

    def score(self, question):
        return 1 / 0


class Quits(Router):
    name = "quits"
    grid = (1,)

    def score(self, question):
        os._exit(3)
'''


def signal(data, *, rising=False):
    rng = np.random.default_rng(0)
    values = rng.exponential(1.0, data.positions)
    if rising:
        starts = np.repeat(data.trajectory_offsets[:-1], np.diff(data.trajectory_offsets))
        # A mark that says which position of which trajectory it is: later ones are larger.
        values = np.arange(data.positions) - starts + 10.0
    return -values.astype(np.float32)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(SIMPLE)
    return path


def searched(path, data, seat_of):
    """Return what a cheat saw at each step: the row dealt last, and the latest that it found."""
    found = path.with_name("found.txt")
    found.write_text("")
    path.write_text(CHEAT.format(found=found))
    made = measured(data, end_logprob=signal(data, rising=True))
    source = find_method(f"{path}:Cheat")
    seat = seat_of(Asked(source=source, hyperparameters={}))
    try:
        decide(seat, source.method, made, lots(data))
    finally:
        seat.close()
    return [tuple(map(int, line.split())) for line in found.read_text().splitlines()]


def test_frames_objects_and_memory_hold_nothing_later(tmp_path):
    data = curves(questions=1, trajectories=1, seed=7)
    steps = data.positions - 1
    assert steps >= 4
    rows = [10 + k for k in range(steps)]
    apart = searched(tmp_path / "cheat.py", data, lambda asked: asked.seat())
    # Walked twice, the second time to see that decisions do not change.
    assert [here for here, _ in apart] == rows * 2
    for here, latest in apart[:steps]:
        assert latest == here, "what was dealt is found, and nothing that comes later"
    # In this process the same search finds the rows to come: it can find what is there.
    here, latest = searched(
        tmp_path / "cheat.py", data, lambda asked: Player(asked.source.make({}))
    )[0]
    assert latest > here


def test_the_same_decisions_as_in_this_process(file):
    training = curves(questions=6, seed=1)
    test = curves(questions=5, seed=3, first=20)
    fit = [measured(c, end_logprob=signal(c)) for c in (training, curves(questions=3, first=10))]
    made = measured(test, end_logprob=signal(test))
    source = find_method(f"{file}:Mean")
    stops = []
    for ours in (False, True):
        chosen = type(source)(
            spec=source.spec, method=source.method, origin=source.origin, ours=ours
        )
        trained = train(Asked(source=chosen, hyperparameters={"shift": 0.1}), *fit)
        try:
            stops.append(decide_on(trained, made, lots(test)).stop)
            assert trained.seat.hyperparameters() == {"shift": 0.1}
        finally:
            trained.seat.close()
    assert np.array_equal(*stops)
    assert stops[0].min() < stops[0].max()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Fails", r"ZeroDivisionError in line \d+ of .*theirs.py: division by zero"),
        ("Quits", "its process ended while it was asked to decide"),
    ],
)
def test_what_a_method_does_wrong_is_told_in_a_line(file, name, message):
    data = curves(questions=2)
    asked = Asked(source=find_method(f"{file}:{name}"), hyperparameters={})
    seat = asked.seat()
    try:
        with pytest.raises(MisuseError, match=message):
            decide(seat, asked.source.method, measured(data), lots(data))
    finally:
        seat.close()


def test_the_process_ends_with_its_seat(file):
    seat = Asked(source=find_method(f"{file}:Mean"), hyperparameters={}).seat()
    assert isinstance(seat, ApartPlayer)
    assert seat.settings() == (0.0, 0.5)
    seat.close()
    assert seat._process.returncode == 0
