"""Methods of others in their own process: nothing leaks to them, nothing of theirs runs here."""

import os
import socket
import sys
from contextlib import closing, suppress

import numpy as np
import pytest

from baselines.registry import find_method
from data.errors import MisuseError
from evaluator.otbench import apart, sandbox
from evaluator.otbench import decide as decide_module
from evaluator.otbench.apart import ApartPlayer, find_source, isolation_of
from evaluator.otbench.asked import AskedMethod, parse_method
from evaluator.otbench.decide import decide
from evaluator.otbench.run import decide_on, train
from tests.otbench.made import curves, lots, measured
from tests.requirements import require_bubblewrap

CHEAT = '''
import gc
import sys

import numpy as np

from baselines import EarlyExit


class Cheat(EarlyExit):
    """Searches arguments, frames and every object for what comes later; tells what it saw."""

    name = "cheat"
    needs = ("answer", "end_logprob")
    grid = (1,)

    def __init__(self):
        self.told = []

    def hyperparameters(self):
        return {"told": self.told}

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
        self.told.append((here, max(self.marks, default=0)))
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
import json
import os
import random
import sys
import time

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


class Hangs(Router):
    name = "hangs"
    grid = (1,)

    def score(self, question):
        time.sleep(1000)


class Moody(Router):
    name = "moody"
    grid = (1,)
    control = str(random.random())

    def score(self, question):
        return 1


class Impostor(Router):
    name = "deer"
    grid = (1,)


class Alike(EarlyExit):
    """Remembers in its module, where no copy of the method reaches."""

    name = "alike"
    grid = (0,)
    said = {}

    def score(self, prefix):
        who = (prefix.question.lot, prefix.tokens.tobytes())
        return self.said.setdefault(who, int(prefix.k > 0 and len(self.said) > 20)) - 1


class Closed(Router):
    name = "closed"
    grid = (1,)

    def fit(self, train, validation):
        self.rule = lambda question: 1


class Prints(Router):
    name = "prints"
    grid = (1,)

    def score(self, question):
        print("hello from a method")
        return 1
'''

ATTACK = '''
import gc
import sys

from baselines import EarlyExit

FOUND = []
try:
    import evaluator.otbench.decide as decide

    def patched(self, *arguments, _real=decide._Walk.__init__):
        _real(self, *arguments)
        FOUND.append(self._curves)

    decide._Walk.__init__ = patched
except ImportError:
    pass
sys.modules["stp_was_here"] = sys


class Attack(EarlyExit):
    """Patches the evaluator where it is imported, and stops where the labels are best."""

    name = "attack"
    grid = (1,)
    needs = ("answer",)

    def score(self, prefix):
        if not FOUND:
            return 0
        curves, s = FOUND[-1], int(prefix["answer"][-1])
        start, end = curves.trajectory_offsets[s : s + 2]
        return int(prefix.k == curves.correct[start:end].argmax())
'''

THIEF = '''
import os
from pathlib import Path

from baselines import Router


class Thief(Router):
    """Reads whatever files and memory it can reach; tells what it got."""

    name = "thief"
    grid = (1,)

    def __init__(self):
        self.told = {{}}

    def hyperparameters(self):
        return self.told

    def score(self, question):
        try:
            self.told["file"] = Path("{secret}").read_text()
        except OSError as error:
            self.told["file"] = type(error).__name__
        self.told["beside"] = sorted(p.name for p in Path(__file__).parent.iterdir())
        self.told["token"] = os.environ.get("HF_TOKEN")
        self.told["processes"] = sorted(p.name for p in Path("/proc").glob("[0-9]*"))
        try:
            Path("{secret}").with_name("left").write_text("x")
            Path(__file__).write_text("x")
            self.told["wrote"] = True
        except OSError:
            self.told["wrote"] = False
        import socket
        try:
            socket.create_connection(("127.0.0.1", {port}), timeout=2)
            self.told["net"] = True
        except OSError:
            self.told["net"] = False
        return 1
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


def run(source, made, hyperparameters=None):
    """Return a method's decisions, and what it said when its process was to end."""
    said = []
    with closing(source.seat(hyperparameters or {})) as seat:
        freeze = seat.freeze()

    def start():
        seat = freeze()
        close = seat.close

        def listen():
            with suppress(MisuseError):
                said.append(seat.hyperparameters())
            close()

        seat.close = listen
        return seat

    decisions = decide(start, source.description, made, lots(made.curves))
    return decisions, said[0]


def run_file(spec, made):
    asked = parse_method(spec)
    return run(asked.source, made, asked.hyperparameters)


@pytest.mark.slow
def test_frames_objects_and_memory_hold_nothing_later(tmp_path):
    data = curves(questions=1, trajectories=1, seed=7)
    steps = data.positions - 1
    assert steps >= 4
    made = measured(data, end_logprob=signal(data, rising=True))
    spec = f"{tmp_path / 'cheat.py'}:Cheat"
    (tmp_path / "cheat.py").write_text(CHEAT)
    told = run_file(spec, made)[1]["told"]
    # Walked twice, the second time to see that decisions do not change.
    assert [here for here, _ in told] == [10 + k for k in range(steps)] * 2
    for here, latest in told[:steps]:
        assert latest == here, "what was dealt is found, and nothing that comes later"
    # In this process the same search finds the rows to come: it can find what is there.
    here, latest = run(find_method(spec), made)[1]["told"][0]
    assert latest > here


def test_a_file_that_patches_the_evaluator_patches_nothing(tmp_path, file):
    made = measured(curves(questions=12, seed=5))
    (tmp_path / "attack.py").write_text(ATTACK)
    spec = f"{tmp_path / 'attack.py'}:Attack"
    before = decide_module._Walk.__init__
    modules = set(sys.modules)
    honest = np.diff(made.curves.trajectory_offsets) - 1
    try:
        decisions, _ = run_file(spec, made)
        assert decide_module._Walk.__init__ is before
        assert set(sys.modules) == modules
        assert decisions.stop[0].tolist() == honest.tolist()
        # Imported in this process, it reads the labels: the attack is a real one.
        told, _ = run(find_method(spec), made)
        starts = made.curves.trajectory_offsets[:-1]
        assert made.curves.correct[starts + told.stop[0]].sum() > (
            1.1 * made.curves.correct[starts + honest].sum()
        )
    finally:
        decide_module._Walk.__init__ = before


def test_in_the_sandbox_there_is_no_other_file_process_or_network(tmp_path, monkeypatch):
    require_bubblewrap()
    monkeypatch.setenv("HF_TOKEN", "secret")
    secret = tmp_path / "release" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("labels")
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = THIEF.format(secret=secret, port=server.getsockname()[1])
        (tmp_path / "thief.py").write_text(text)
        asked = parse_method(f"{tmp_path / 'thief.py'}:Thief")
        assert isolation_of(asked.source) == "sandbox"
        _, told = run(asked.source, measured(curves(questions=2)))
    assert told["file"] == "FileNotFoundError"
    assert told["beside"] == ["thief.py"]
    assert len(told["processes"]) <= 2
    assert str(os.getpid()) not in told["processes"] or os.getpid() <= 2
    assert told["wrote"] is False
    assert told["token"] is None
    assert told["net"] is False
    assert (tmp_path / "thief.py").read_text() == text
    assert not secret.with_name("left").exists()


def test_without_bubblewrap_methods_run_and_it_is_said(file, monkeypatch):
    monkeypatch.setattr(apart, "bubblewrap", lambda: None)
    monkeypatch.setattr(sandbox, "bubblewrap", lambda: None)
    data = curves(questions=3)
    asked = parse_method(f"{file}:Prints")
    assert isolation_of(asked.source) == "process"
    decisions, _ = run(asked.source, measured(data))
    assert decisions.stop.max() > 0


def test_the_same_decisions_as_in_this_process(file):
    training = curves(questions=6, seed=1)
    test = curves(questions=5, seed=3, first=20)
    fit = [measured(c, end_logprob=signal(c)) for c in (training, curves(questions=3, first=10))]
    made = measured(test, end_logprob=signal(test))
    spec, given = f"{file}:Mean", {"shift": 0.1}
    stops = []
    for source in (find_source(spec, given), find_method(spec)):
        trained = train(AskedMethod(source=source, hyperparameters=given), *fit)
        stops.append(decide_on(trained, made, lots(test)).stop)
        assert trained.hyperparameters == given
    assert np.array_equal(*stops)
    assert stops[0].min() < stops[0].max()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Fails", r"ZeroDivisionError in line \d+ of .*theirs.py: division by zero"),
        ("Quits", "its process ended while it was asked to decide"),
        ("Alike", "alike: decides differently when questions come in another order"),
        ("Moody", "describes itself differently at each import"),
        ("Impostor", "its name is 'deer', as that of a method of this project"),
        ("Missing", "theirs.py has no class Missing"),
        ("Mean(most=1)", r"theirs\.py:Mean: no hyperparameter 'most'; it has shift"),
    ],
)
def test_what_a_method_does_wrong_is_told_in_a_line(file, name, message):
    made = measured(curves(questions=12))
    with pytest.raises(MisuseError, match=message) as caught:
        run_file(f"{file}:{name}", made)
    assert "\n" not in str(caught.value)


def test_a_method_that_hangs_is_ended(file, monkeypatch):
    monkeypatch.setattr(apart, "ANSWER_SECONDS", 2.0)
    with pytest.raises(MisuseError, match=r"hangs|took longer than 2 s to decide; only training"):
        run_file(f"{file}:Hangs", measured(curves(questions=2)))


def test_a_trained_method_that_cannot_be_pickled_is_told_so(file):
    made = measured(curves(questions=2)), measured(curves(questions=2, first=5))
    with pytest.raises(MisuseError, match=r"cannot be pickled after training .* keep lambdas"):
        train(parse_method(f"{file}:Closed"), *made)


def test_what_a_method_prints_does_not_mix_with_results(file, capfd):
    run_file(f"{file}:Prints", measured(curves(questions=2)))
    printed = capfd.readouterr()
    assert "hello" not in printed.out
    assert "hello from a method" in printed.err


def test_a_method_of_another_package_is_not_imported_here(tmp_path, monkeypatch):
    package = tmp_path / "their_methods"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "weights.txt").write_text("0.25")
    (package / "theirs.py").write_text(
        "from pathlib import Path\n"
        "from baselines import Router\n"
        "class Theirs(Router):\n"
        "    name = 'theirs'\n"
        "    grid = (0.5,)\n"
        "    def score(self, question):\n"
        "        return float(Path(__file__).with_name('weights.txt').read_text())\n"
    )
    info = tmp_path / "their_package-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text("[stp.methods]\ntheirs = their_methods.theirs:Theirs\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = parse_method("theirs")
    assert asked.description.origin == "their-package 2.1"
    decisions, _ = run(asked.source, measured(curves(questions=3)))
    assert decisions.stop.max() == 0
    assert not [name for name in sys.modules if name.startswith("their_methods")]
    (package / "theirs.py").unlink()
    with pytest.raises(MisuseError, match="method theirs: its package cannot be imported"):
        parse_method("theirs")


def test_the_process_ends_with_its_seat(file):
    seat = parse_method(f"{file}:Mean").seat()
    assert isinstance(seat, ApartPlayer)
    assert seat.settings() == (0.0, 0.5)
    seat.close()
    assert seat._process.poll() is not None
