"""Methods that try to get more than they are dealt, or to do harm; and honest ones beside them."""

import errno
import fcntl
import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from data.errors import MisuseError
from evaluator.answers import seccomp
from evaluator.otbench import apart, sandbox
from evaluator.otbench.asked import ask, parse_method
from evaluator.otbench.run import train
from tests.otbench import hostile
from tests.otbench.made import curves, measured
from tests.otbench.test_apart import run, run_file
from tests.requirements import require_bubblewrap, require_module


def written(folder, text, name="theirs.py"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["Siblings", "Locks", "Heirs"])
def test_what_was_seen_of_siblings_cannot_be_used(tmp_path, name):
    file = written(tmp_path, hostile.SIBLINGS)
    made = measured(curves(questions=8, trajectories=6, seed=2))
    with pytest.raises(
        MisuseError, match="decides differently when questions come in another order"
    ):
        run_file(f"{file}:{name}", made)


def test_what_a_burglar_finds(tmp_path):
    require_bubblewrap()
    inside = tmp_path / "their_package"
    hidden = inside / "release"
    hidden.mkdir(parents=True)
    (hidden / "labels").write_text("all of them")
    (inside / "__init__.py").write_text(hostile.BURGLAR.format(hidden=hidden))
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[stp.methods]\nburglar = their_package:Burglar\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        asked = ask("burglar", {}, SimpleNamespace(folder=hidden))
        _, found = run(asked.source, measured(curves(questions=2)))
    python = set(found.pop("python"))
    assert python <= {"bin", "lib", "lib64", "include", "share", "pyvenv.cfg"}
    assert found == {
        "sysctl": False,
        "keys": False,
        "dates": False,
        "namespaces": False,
        "terminal": False,
        "hidden": [],
        "hash": "0",
        "passwords": False,
    }


@pytest.mark.parametrize("name", ["Half", "Dripping", "Promising", "Deaf"])
def test_whoever_does_not_answer_in_time_is_ended(tmp_path, monkeypatch, name):
    monkeypatch.setattr(apart, "ANSWER_SECONDS", 1.5)
    file = written(tmp_path, hostile.HANGING)
    begin = time.monotonic()
    with pytest.raises(MisuseError, match=r"took longer than 1.5 s|which is no answer to that"):
        run_file(f"{file}:{name}", measured(curves(questions=40)))
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Many", "its grid has 101 settings, and may have 1 to 100"),
        ("Endless", "answered .*a message of .* bytes.*, which is no answer to that"),
        ("Surrogate", "a setting of its grid is .*ud800"),
        ("Remark", "asked to hyperparameters and answered"),
        ("Deep", "a setting of its grid is"),
        ("Deeper", "asked to hyperparameters and answered"),
        ("Keys", "TypeError .* hyperparameters are numbers, texts and lists"),
        ("Long", "a message of 2,097,1.. bytes"),
        ("Escapes", "ValueError in line .* second line"),
        ("Interrupts", r"KeyboardInterrupt in line \d+ of .*theirs.py$"),
        ("Textless", r"Odd in line \d+ of .*: its text fails with ValueError"),
        ("Crashes", r"its process ended \(SIGSEGV\) while it was asked to decide"),
        ("Leaves", r"ends its own process \(sys.exit\)"),
        ("Endlessly", r"RecursionError in line \d+ of .*theirs.py"),
        ("Named", "its name is .* a name has small letters"),
        ("Blank", "its name is ' '"),
        ("Turned", "its name is"),
        ("Trivial", "calls itself trivial; the lines that any method must beat are this project"),
        ("Packed", "name top packages"),
    ],
)
def test_odd_methods_are_told_so_in_a_line(tmp_path, name, message):
    file = written(tmp_path, hostile.ODD)
    with pytest.raises(MisuseError, match=message) as caught:
        train(parse_method(f"{file}:{name}"), *(measured(curves(first=f)) for f in (0, 20)))
        run_file(f"{file}:{name}", measured(curves(questions=3)))
    text = str(caught.value)
    assert "\n" not in text
    assert "\x1b" not in text
    text.encode()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Renamed", "^method .*:Renamed: its name is .* a name has small letters"),
        ("Lines", "^method .*:Lines: two lines$"),
    ],
)
def test_what_a_process_says_of_itself_is_checked_here(tmp_path, name, message):
    file = written(tmp_path, hostile.PATCHING)
    with pytest.raises(MisuseError, match=message):
        run_file(f"{file}:{name}", measured(curves(questions=3)))


def test_what_a_method_prints_is_bounded(tmp_path, capfd):
    run_file(f"{written(tmp_path, hostile.ODD)}:Talks", measured(curves(questions=3)))
    printed = capfd.readouterr().err
    assert len(printed) < 1_000_000
    assert "more of what it prints is not shown" in printed


def test_training_names_no_test_question(tmp_path):
    (tmp_path / "names.py").write_text(
        "from baselines import Router\n"
        "class Names(Router):\n"
        "    name = 'names'\n"
        "    grid = (1,)\n"
        "    def fit(self, train, validation):\n"
        "        self.found = [*train.curves.question_names, *validation.curves.question_names]\n"
        "    def hyperparameters(self):\n"
        "        return {'found': self.found}\n"
        "    def score(self, question):\n"
        "        return 1\n"
    )
    given = measured(curves(questions=3)), measured(curves(questions=3, first=9))
    assert given[1].curves.question_names
    trained = train(parse_method(f"{tmp_path}/names.py:Names"), *given)
    assert trained.hyperparameters == {"found": []}


def test_hidden_folders_are_hidden_under_every_name(tmp_path):
    package = tmp_path / "real"
    (package / "release").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(package)
    for given in ("real", "alias"):
        found = sandbox._wherever([tmp_path / given / "release"], [tmp_path / "alias", package])
        assert set(found) == {package / "release", tmp_path / "alias" / "release"}


def test_caps_beyond_all_numbers_are_caps(tmp_path):
    made = measured(curves(questions=3))
    decisions, _ = run_file(f"{written(tmp_path, hostile.ODD)}:Huge", made)
    full = np.diff(made.curves.trajectory_offsets) - 1
    assert decisions.stop.tolist() == [full.tolist()] * 2


def gone(process_id):
    """Return whether a process has ended, within a minute at most."""
    for _ in range(600):
        try:
            state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def test_without_a_sandbox_nothing_is_left_behind_either(tmp_path, monkeypatch):
    for module in (apart, sandbox):
        monkeypatch.setattr(module, "bubblewrap", lambda: None)
    asked = parse_method(f"{written(tmp_path, hostile.ODD)}:Leaving")
    made = measured(curves(questions=2)), measured(curves(questions=2, first=5))
    left = train(asked, *made).hyperparameters
    assert left["child"] > 0
    assert gone(left["own"])
    assert gone(left["child"])


def test_a_method_ends_with_an_evaluator_that_is_killed(tmp_path):
    program = f"""
        import sys, time
        from evaluator.otbench import apart, sandbox
        if {{}}:
            apart.bubblewrap = sandbox.bubblewrap = lambda: None
        from evaluator.otbench.asked import parse_method
        seat = parse_method("{written(tmp_path, hostile.ODD)}:R").seat()
        print(seat._process.pid, flush=True)
        time.sleep(1000)
    """
    for without in (True, False):
        text = textwrap.dedent(program.format(without))
        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as evaluator:
            method = int(evaluator.stdout.readline())
            os.kill(evaluator.pid, signal.SIGKILL)
        assert gone(method)


def test_a_file_beside_a_method_is_not_seen_and_it_is_said(tmp_path):
    (tmp_path / "helper.py").write_text("score = None\n")
    file = written(tmp_path, hostile.BESIDE)
    with pytest.raises(MisuseError, match="No module named 'helper'; a method in a file sees that"):
        parse_method(f"{file}:Beside")


@pytest.mark.parametrize("name", ["Checked", "MyDeer(extra=2)", "Gradient"])
def test_honest_methods_run(tmp_path, name):
    require_module("torch")
    folder = tmp_path / "My folder (1) ü"
    folder.mkdir()
    file = written(folder, hostile.HONEST, "méthode 1.py")
    data = curves(questions=3)
    values = np.full(data.positions, 0.5, np.float32)
    made = measured(data, trial_logprob=values, trial_probability=values, trial_tokens=values)
    asked = parse_method(f"{file}:{name}")
    other = measured(curves(questions=2, first=9))
    trained = train(asked, other, measured(curves(questions=2, first=20)))
    decisions = run(asked.source, made, asked.hyperparameters)[0] if name != "Gradient" else None
    assert decisions is None or decisions.stop.shape[1] == data.trajectories
    assert trained.description.name == name.partition("(")[0].lower().replace("mydeer", "my_deer")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Shaped", r"shaped: thinks makes no decision of a score of shape \(2,\); return one num"),
        ("Undefined", "NotImplementedError .*: undefined: define score"),
        ("Forgot", r"theirs\.py:Forgot: signal 'prompt_tokens' is not among the method's needs"),
        ("Helped", "No module named 'helper'; a method in a file sees that file alone"),
        ("Text", r"needs is a text; write needs = \('entropy',\)"),
        ("Ratio", r"ValueError in line \d+ of .*theirs\.py: could not convert"),
    ],
)
def test_what_honest_methods_get_wrong_is_said_so_that_it_helps(tmp_path, name, message):
    (tmp_path / "helper.py").write_text("def score(question):\n    return 1\n")
    file = written(tmp_path, hostile.HONEST)
    with pytest.raises(MisuseError, match=message) as caught:
        run_file(f"{file}:{name}", measured(curves(questions=2)))
    if name == "Ratio":
        # Their traceback is there for --debug.
        assert "in score" in str(caught.value.__cause__)


def test_nothing_that_a_process_leaves_in_the_kernel_is_within_reach(tmp_path):
    """Two bits of a file's inode took a method from 0.9 % of the frontier to 74.5 %."""
    require_bubblewrap()
    file = written(tmp_path, hostile.LEAVING_BITS)
    asked = parse_method(f"{file}:Bits")
    _, found = run(asked.source, measured(curves(questions=2)))
    assert found.pop("works") == ["pipe", "flock", "descriptor", "terminal", "sockets", "program"]
    assert found == {
        # EINVAL, as of a kernel that has no such commands; ENOTTY; what is pretended.
        "fcntl": {str(command): errno.EINVAL for command in hostile.REFUSED_FCNTL},
        "ioctl": {str(command): errno.ENOTTY for command in hostile.REFUSED_IOCTL},
        "calls": {"denied": errno.EPERM, "nodes": errno.ENOSYS},
        "sockets": errno.EAFNOSUPPORT,
        "resident": True,
        "proc": [],
        "nodes": [],
    }
    # No hint stays with the file: it is what it was.
    with Path(os.__file__).open("rb") as file:
        assert fcntl.fcntl(file, 1035, bytes(8)) == bytes(8)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_what_it_lists_and_nothing_else(machine):
    """The rules for commands, run by a slow twin of the kernel's machine."""
    numbers = seccomp._COMMANDS[machine]
    program = seccomp.filter_program(machine, processes=True)

    def ends(number, *arguments):
        data = struct.pack("<IIQ", number, seccomp._ARCHITECTURES[machine], 0)
        data += b"".join(struct.pack("<Q", a) for a in (*arguments, *[0] * (6 - len(arguments))))
        place = loaded = 0
        while True:
            code, yes, no, value = struct.unpack_from("<HBBI", program, 8 * place)
            place += 1
            if code == 0x20:
                (loaded,) = struct.unpack_from("<I", data, value)
            elif code == 0x54:
                loaded &= value
            elif code == 0x06:
                return value
            else:
                holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}
                place += yes if holds[code] else no

    allow, error = 0x7FFF0000, 0x00050000
    for command in range(2000):
        expected = allow if command in seccomp._FCNTL else error | errno.EINVAL
        assert ends(numbers["fcntl"], 3, command) == expected
    for kind in range(256):
        expected = allow if kind in seccomp._IOCTL_TYPES else error | errno.ENOTTY
        assert ends(numbers["ioctl"], 3, 0xC0200000 | kind << 8 | 7) == expected
    for advice in range(110):
        expected = error if advice in seccomp._MADVISE_PRETENDED else allow
        assert ends(numbers["madvise"], 1 << 40, 4096, advice) == expected
    for family in range(64):
        expected = allow if family in seccomp._SOCKETS else error | errno.EAFNOSUPPORT
        assert ends(numbers["socket"], family, 1) == expected
    assert ends({"x86_64": 0, "aarch64": 63}[machine], 1) == allow  # read
