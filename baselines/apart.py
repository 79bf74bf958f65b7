"""A method in a process of its own, which holds nothing but what it was dealt.

For methods of other people: whatever such a method looks at (its arguments, numpy's memory, the
interpreter's frames and objects), it finds training and validation questions, and of a test
trajectory the prefix so far. What it could still do is read the release from disk, as any program
could: who publishes a method publishes its code.
"""

import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from baselines.interface import Setting
from baselines.measurements import Measurements
from baselines.player import Player, Question
from baselines.registry import find_method
from data.errors import MisuseError, StpError


class ApartPlayer:
    """A method in another process; the calls are those of :class:`baselines.player.Player`.

    Parameters
    ----------
    spec, hyperparameters
        What makes the method; see :func:`baselines.registry.find_method`.
    """

    def __init__(self, spec: str, hyperparameters: dict[str, Any]) -> None:
        self._spec = spec
        ours, theirs = socket.socketpair()
        # A new interpreter: a fork would hold all that this process holds.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "baselines.apart", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()
        self._ours = Connection(ours.detach())
        self._ask("make", spec, hyperparameters)

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Let the method learn."""
        self._ask("fit", train, validation)

    def settings(self) -> tuple[Setting, ...]:
        """Return its settings."""
        return tuple(self._ask("settings"))

    def hyperparameters(self) -> dict[str, Any]:
        """Return its hyperparameters."""
        return dict(self._ask("hyperparameters"))

    def decide(self, question: Question) -> list[Any]:
        """Return its decision on a question for every setting."""
        return list(self._ask("decide", question))

    def begin(self, question: Question) -> None:
        """Begin a trajectory."""
        self._ask("begin", question)

    def step(
        self, tokens: int, signals: Mapping[str, Any], alive: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Deal the next position."""
        stopping, paying = self._ask("step", tokens, dict(signals), list(alive))
        return list(stopping), list(paying)

    def close(self) -> None:
        """End the process."""
        self._ours.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
        finally:
            # Also where the wait is interrupted: a method that hangs must not outlive us.
            self._process.kill()
            self._process.wait()

    def _ask(self, call: str, *arguments: Any) -> Any:
        """Make a call over there.

        Raises
        ------
        data.errors.MisuseError
            What the method did wrong, in a line.
        """
        try:
            self._ours.send((call, arguments))
            kind, value = self._ours.recv()
        except (EOFError, OSError) as error:
            raise MisuseError(
                f"method {self._spec}: its process ended while it was asked to {call}"
            ) from error
        if kind == "answer":
            return value
        raise MisuseError(str(value))


def serve(pipe: Connection) -> None:
    """Make a method and answer calls until the pipe ends; what the other process does."""
    # Ctrl-C is for the evaluator, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spec, player = "", None
    while True:
        try:
            call, arguments = pipe.recv()
        except EOFError:
            return
        try:
            reply: tuple[str, Any]
            if call == "make":
                spec, hyperparameters = arguments
                player = Player(find_method(spec).make(hyperparameters))
                reply = ("answer", None)
            else:
                reply = ("answer", getattr(player, call)(*arguments))
        except StpError as error:
            reply = ("failure", str(error))
        # A stranger's code may raise anything; it is told as theirs, with the place.
        except Exception as error:  # noqa: BLE001 (sent back, raised there)
            place = traceback.extract_tb(error.__traceback__)[-1]
            reply = (
                "failure",
                f"method {spec}: {type(error).__name__} in line {place.lineno} of "
                f"{place.filename}: {error}",
            )
        pipe.send(reply)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
