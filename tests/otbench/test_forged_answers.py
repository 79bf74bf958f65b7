"""What a method's process may send instead of an answer: refused in a line, and never run."""

import json
import pickle
import sys

import pytest

from data.errors import MisuseError
from tests.otbench.made import curves, measured
from tests.otbench.test_apart import run_file

FORGER = '''
import os
import pickle
import socket
import sys
import socket
import time

from baselines import {kind}

WIRE = socket.socket(fileno=os.dup(int(sys.argv[1])))


class Forger({kind}):
    """Answers the evaluator itself, with whatever it wants."""

    name = "forger"
    grid = (1, 2)

    def {call}:
        WIRE.sendall({reply!r})
        {then}
'''


class Evil:
    """What runs code where it is unpickled."""

    def __reduce__(self):
        return (exec, ("import sys; sys.modules['stp_evil'] = sys",))


def pickled():
    return pickle.dumps(("answer", Evil()))


def answer(value):
    return json.dumps(["answer", value]).encode()


DEEP = b"[" * 100_000 + b"]" * 100_000
ROUTER, BUDGET, EXIT = (
    ("Router", "score(self, question)"),
    ("FixedBudget", "score(self, question)"),
    ("EarlyExit", "score(self, prefix)"),
)
SETTINGS = ("Router", "settings(self)")


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        (EXIT, answer([[0, -1], []])),
        (EXIT, answer([[99], []])),
        (EXIT, answer([[], [99]])),
        (EXIT, answer([[], [-1]])),
        (EXIT, answer([[0.5], []])),
        (EXIT, answer([["0"], []])),
        (EXIT, answer([[True], []])),
        (EXIT, answer([[], [], []])),
        (EXIT, answer([])),
        (EXIT, answer(None)),
        (EXIT, answer({"stopping": []})),
        (EXIT, b""),
        (EXIT, b"nonsense"),
        (EXIT, b"[1"),
        (EXIT, b"7"),
        (EXIT, b"{}"),
        (EXIT, b"[]"),
        (EXIT, b'["answer"]'),
        (EXIT, b'["bytes", 3]'),
        (EXIT, b'["failure", {"a": [1]}]'),
        (EXIT, DEEP),
        (EXIT, b"\xff\xfe"),
        (EXIT, pickled()),
        (ROUTER, answer([True])),
        (ROUTER, answer([True, True, True])),
        (ROUTER, answer([1, 0])),
        (ROUTER, answer([None, True])),
        (ROUTER, answer("yes")),
        (BUDGET, answer([True, False])),
        (BUDGET, answer([-1, 5])),
        (BUDGET, answer([1.5, 5])),
        (BUDGET, answer([1])),
        (BUDGET, answer([float("nan"), 1])),
        (SETTINGS, answer([float("nan"), 1])),
        (SETTINGS, answer([{"a": 1}])),
        (SETTINGS, answer(5)),
    ],
)
def test_forged_answers_are_refused_in_a_line(tmp_path, kind, reply):
    sent = len(reply).to_bytes(8, "big") + reply
    text = FORGER.format(kind=kind[0], call=kind[1], reply=sent, then="os._exit(0)")
    (tmp_path / "forger.py").write_text(text)
    with pytest.raises(MisuseError) as caught:
        run_file(f"{tmp_path / 'forger.py'}:Forger", measured(curves(questions=3)))
    assert "\n" not in str(caught.value)
    assert "stp_evil" not in sys.modules
