"""A method of somebody else in a process of its own: the side where the method sits.

The evaluator starts ``python -m baselines.apart DESCRIPTOR`` in a sandbox
(:mod:`evaluator.otbench.apart`) and sends calls. Whatever the method looks at here (its arguments,
numpy's memory, the interpreter's frames and objects), it finds training and validation questions,
and of a test trajectory the prefix so far. Calls arrive pickled; replies go back as JSON, and the
evaluator runs nothing that comes from here.
"""

import json
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from baselines.player import Player
from baselines.registry import MethodSource, Whereabouts, find_where
from data.errors import MisuseError, StpError


class Host:
    """Calls on a method that is found here; each is named by the evaluator."""

    def __init__(self) -> None:
        self.spec = ""
        self._source: MethodSource | None = None
        self._player: Player | None = None

    def find(self, where: Whereabouts) -> dict[str, Any]:
        """Import the method, and return what its class says of itself."""
        self.spec = where.spec
        self._source = find_where(where)
        return asdict(self._source.description)

    def make(self, hyperparameters: dict[str, Any]) -> None:
        """Make a new method."""
        assert self._source is not None
        self._player = self._source.seat(hyperparameters)

    def freeze(self) -> bytes:
        """Return the method as it is, for :meth:`thaw` in another process."""
        assert self._player is not None
        try:
            return pickle.dumps(self._player.method)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise MisuseError(
                f"method {self.spec}: cannot be pickled after training ({error}); keep lambdas, "
                "open files and classes made in functions out of it"
            ) from error

    def thaw(self, frozen: bytes) -> None:
        """Let a frozen method sit here."""
        self._player = Player(pickle.loads(frozen))

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Call what is here, or what the player does."""
        mine: Callable[..., Any] | None = getattr(self, name, None)
        return (mine or getattr(self._player, name))(*arguments)


def serve(pipe: Connection) -> None:
    """Answer calls until the pipe ends."""
    # Ctrl-C is for the evaluator, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    host = Host()
    while True:
        try:
            name, arguments = pipe.recv()
        except EOFError:
            return
        try:
            value = host.call(name, arguments)
            if isinstance(value, bytes):
                _reply(pipe, "bytes", len(value))
                pipe.send_bytes(value)
            else:
                _reply(pipe, "answer", value)
        except StpError as error:
            _reply(pipe, "failure", str(error))
        # A stranger's code may raise anything; it is told as theirs, with the place.
        except Exception as error:  # noqa: BLE001 (sent back, raised there)
            place = traceback.extract_tb(error.__traceback__)[-1]
            _reply(
                pipe,
                "failure",
                f"method {host.spec}: {type(error).__name__} in line {place.lineno} of "
                f"{place.filename}: {error}",
            )


def _reply(pipe: Connection, kind: str, value: Any) -> None:
    pipe.send_bytes(json.dumps([kind, value], default=_plain).encode("utf-8", "replace"))


def _plain(value: Any) -> Any:
    """Return as JSON what a method's hyperparameters may hold besides JSON's own values."""
    return value.item() if isinstance(value, np.generic) else repr(value)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
