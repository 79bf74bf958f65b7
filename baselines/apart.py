"""A third-party method in its own process: the side on which the method runs.

The evaluator starts ``python -m baselines.apart DESCRIPTOR`` in a sandbox
(:mod:`evaluator.otbench.apart`) and sends calls. Whatever the method looks at here (its arguments,
numpy's memory, the interpreter's frames and objects), it finds training and validation questions,
and of a test trajectory the prefix so far. Calls arrive pickled; replies go back as JSON, and the
evaluator runs nothing that comes from here.
"""

import ctypes
import json
import pickle
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np

from baselines.player import Player
from baselines.registry import MethodSource, Whereabouts, find_where, what_it_sees
from baselines.wire import Wire
from data.errors import MisuseError, StpError

_ANY_LENGTH = 2**63
_PR_SET_PDEATHSIG = 1


class Host:
    """Calls on a method that is found here; each is named by the evaluator."""

    def __init__(self) -> None:
        self.where: Whereabouts | None = None
        self._source: MethodSource | None = None
        self._player: Player | None = None

    def find(self, where: Whereabouts) -> dict[str, Any]:
        """Import the method, and return what its class says of itself."""
        self.where = where
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
                f"{self._player.method.name}: cannot be pickled after training ({error}); keep "
                "lambdas, open files and classes made in functions out of it"
            ) from error

    def thaw(self, frozen: bytes) -> None:
        """Use a frozen method from now on."""
        self._player = Player(pickle.loads(frozen))

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Call what is here, or what the player does."""
        mine: Callable[..., Any] | None = getattr(self, name, None)
        return (mine or getattr(self._player, name))(*arguments)


def serve(wire: Wire) -> None:
    """Answer calls until the wire ends."""
    # Ctrl-C is for the evaluator, which then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    host = Host()
    while True:
        try:
            name, arguments = pickle.loads(wire.receive(_ANY_LENGTH))
        except EOFError:
            return
        try:
            value = host.call(name, arguments)
            if isinstance(value, bytes):
                _reply(wire, "bytes", len(value))
                wire.send(value)
            else:
                _reply(wire, "answer", value)
        except StpError as error:
            _fail(wire, _line(error))
        except SystemExit:
            _fail(wire, "ends its own process (sys.exit)")
        # Third-party code may raise anything; the error is reported as theirs, with its place.
        except BaseException as error:  # noqa: BLE001 (sent back, raised there)
            place, said = _place(error, host.where), _line(error)
            said = f": {said}" if said else ""
            _fail(wire, f"{type(error).__name__}{place}{said}{_hint(error, name)}")


def _fail(wire: Wire, text: str) -> None:
    try:
        trace = traceback.format_exc()
    # It may ask an error for its text.
    except Exception:  # noqa: BLE001 (the line stands without it)
        trace = ""
    _reply(wire, "failure", [text, trace])


def _place(error: BaseException, where: Whereabouts | None) -> str:
    """Return the last line of the method's own that led to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    file = where.value.rpartition(":")[0] if where is not None else ""
    mine = [frame for frame in frames if frame.filename == file] or frames[-1:]
    return f" in line {mine[-1].lineno} of {mine[-1].filename}" if mine else ""


def _line(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())
    # An error's own text may fail too.
    except Exception as other:  # noqa: BLE001 (named in its place)
        return f"its text fails with {type(other).__name__}"


def _hint(error: BaseException, name: str) -> str:
    if name == "hyperparameters" and isinstance(error, TypeError | ValueError):
        return "; hyperparameters are numbers, texts and lists or dictionaries of these"
    return what_it_sees(error)


def _end_with_parent() -> None:
    """Let Linux end this process with the evaluator, also where no sandbox does."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _reply(wire: Wire, kind: str, value: Any) -> None:
    wire.send(json.dumps([kind, value], default=_plain).encode("utf-8", "replace"))


def _plain(value: Any) -> Any:
    """Return as JSON what a method's hyperparameters may hold besides JSON's own values."""
    return value.item() if isinstance(value, np.generic) else repr(value)


if __name__ == "__main__":
    # The evaluator may have gone while an answer was made.
    with suppress(BrokenPipeError):
        serve(Wire(socket.socket(fileno=int(sys.argv[1]))))
