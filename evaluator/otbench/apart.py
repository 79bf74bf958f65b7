"""Third-party methods, each in its own process: the evaluator's side.

Nothing of such a method runs in this process: neither its module, to learn its name and needs, nor
anything that its process sends, which is JSON and is checked. That process sees what it is
given (:mod:`baselines.apart`) and, if there is bubblewrap, no file and no other process
(:mod:`evaluator.otbench.sandbox`).
"""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated, Any, TypeVar

from pydantic import Field, StrictBool, StrictInt, TypeAdapter, ValidationError

from baselines.interface import Setting
from baselines.measurements import Measurements
from baselines.player import PlayedQuestion, is_written, plain_setting
from baselines.registry import (
    BUILT_IN,
    MethodDescription,
    MethodSource,
    Whereabouts,
    check_name,
    find_method,
    locate,
)
from baselines.signals import check_needs
from baselines.wire import Wire, WireError
from data.errors import MisuseError, StoreError
from evaluator.answers.sandbox import FirstProcess
from evaluator.otbench.sandbox import bubblewrap, environment, package_folders, sandboxed
from evaluator.present.names import visible

ANSWER_SECONDS = 600.0
"""How long a method may take over anything but training."""
MOST_SETTINGS = 100
"""A method curve is the best of a grid on test questions: a large grid flatters it."""
_LARGEST_ANSWER = 2**20
_LARGEST_METHOD = 2**32
_SHOWN = 80
_DEPTH = 6
_LONGEST_LINE = 4096
_GOING_SECONDS = 60.0
_PRINTING_SECONDS = 5.0
_LONGEST_ERROR = 1000
_MOST_SHOWN = 65_536

_DESCRIPTION = TypeAdapter(MethodDescription)
_LIST = TypeAdapter(list[Any])
_THINKS = TypeAdapter(list[StrictBool])
_CAPS = TypeAdapter(list[Annotated[StrictInt, Field(ge=0)] | None])
_PLACES = TypeAdapter(Annotated[list[list[StrictInt]], Field(min_length=2, max_length=2)])
_MAPPING = TypeAdapter(dict[str, Any])
_FAILURE = TypeAdapter(Annotated[list[str], Field(min_length=2, max_length=2)])

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApartSource:
    """A third-party method, which is never imported here.

    Attributes
    ----------
    where
        Where it is; the content of its file was read once, and is what runs.
    description
        What it says of itself.
    hidden
        Folders that its process must not read.
    """

    where: Whereabouts
    description: MethodDescription
    hidden: tuple[Path, ...] = ()

    def seat(self, hyperparameters: dict[str, Any]) -> "ApartPlayer":
        """Return a new, untrained method in a process of its own."""
        with _closed_on_error(ApartPlayer(self.where, self.hidden)) as player:
            if player.description != self.description:
                raise MisuseError(
                    f"method {self.where.spec}: describes itself differently at each import; "
                    "name, strategy, needs and control must stay the same"
                )
            player.make(hyperparameters)
        return player


AnySource = MethodSource | ApartSource
"""Where a method comes from, and what makes new ones."""


def find_source(
    spec: str, hyperparameters: dict[str, Any], hidden: tuple[Path, ...] = ()
) -> AnySource:
    """Return where a method comes from; a third-party method is examined in its own process.

    Parameters
    ----------
    spec
        A name, or ``path/to/file.py:Class``.
    hyperparameters
        Which it must take.
    hidden
        Folders that a third-party method must not read.

    Raises
    ------
    data.errors.MisuseError
        If there is no such method, it is not a method, or does not take the hyperparameters.
    """
    if spec in BUILT_IN:
        source = find_method(spec)
        source.make(hyperparameters)
        return source
    where = locate(spec)
    with closing(ApartPlayer(where, hidden)) as player:
        player.make(hyperparameters)
    return ApartSource(where=where, description=player.description, hidden=hidden)


def isolation_of(source: AnySource) -> str:
    """Return where its methods run: ``"evaluator"``, ``"process"`` or ``"sandbox"``."""
    if isinstance(source, MethodSource):
        return "evaluator"
    return "sandbox" if bubblewrap() else "process"


class TheirError(Exception):
    """The traceback of an error in a method's process, for ``--debug``."""


class ApartPlayer:
    """A method in another process; a :class:`baselines.player.Seat`.

    Parameters
    ----------
    where
        What to import there.
    hidden
        Folders that the process must not read.

    Raises
    ------
    data.errors.MisuseError
        By every call, if the method does something that is not allowed; in one line.
    """

    def __init__(self, where: Whereabouts, hidden: tuple[Path, ...] = ()) -> None:
        self._where = where
        self._hidden = hidden
        self._settings: tuple[Setting, ...] = ()
        self.name = where.spec
        self._process, self._wire, self._info = _start(where, hidden)
        self._first = FirstProcess(self._info)
        self._printed = threading.Thread(target=_pass_on, args=(self._process, self.name))
        self._printed.daemon = True
        self._printed.start()
        with _closed_on_error(self):
            answer = self._ask("find", where)
            self._first.find()
            self.description = self._described(answer)
            self.name = self.description.name

    def make(self, hyperparameters: dict[str, Any]) -> None:
        """Make a new method there."""
        self._ask("make", hyperparameters)

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Let the method learn; it may take as long as it wants."""
        self._ask("fit", train, validation, patient=True)

    def freeze(self) -> Callable[[], "ApartPlayer"]:
        """Return what starts another process, with the method as it is now."""
        frozen = self._ask("freeze")
        if not isinstance(frozen, bytes):
            raise self._strange("freeze", frozen)

        def start() -> ApartPlayer:
            with _closed_on_error(ApartPlayer(self._where, self._hidden)) as other:
                other._ask("thaw", frozen)
            return other

        return start

    def settings(self) -> tuple[Setting, ...]:
        """Return its settings."""
        answer = self._checked(_LIST, "settings", self._ask("settings"))
        if not 0 < len(answer) <= MOST_SETTINGS:
            raise MisuseError(
                f"{self.description.name}: its grid has {len(answer):,} settings, and may have 1 "
                f"to {MOST_SETTINGS}: a curve is the best of them"
            )
        self._settings = tuple(plain_setting(self.description.name, each) for each in answer)
        return self._settings

    def hyperparameters(self) -> dict[str, Any]:
        """Return its hyperparameters."""
        found = self._checked(_MAPPING, "hyperparameters", self._ask("hyperparameters"))
        if not _is_plain(found, _DEPTH):
            raise self._strange("hyperparameters", found)
        return found

    def decide(self, question: PlayedQuestion) -> list[Any]:
        """Return its decision on a question for every setting."""
        kind: TypeAdapter[Any] = _THINKS if self.description.strategy == "routing" else _CAPS
        found: list[Any] = self._checked(kind, "decide", self._ask("decide", question))
        if len(found) != len(self._settings):
            raise self._strange("decide", found)
        return found

    def begin(self, question: PlayedQuestion) -> None:
        """Begin a trajectory."""
        self._ask("begin", question)

    def step(
        self, tokens: int, signals: Mapping[str, Any], alive: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Give the next position."""
        answer = self._ask("step", tokens, dict(signals), list(alive))
        stopping, paying = self._checked(_PLACES, "step", answer)
        places = set(alive)
        if not places.issuperset(stopping) or not places.issuperset(paying):
            raise self._strange("step", answer)
        return stopping, list(dict.fromkeys(paying))

    def close(self) -> None:
        """End the process and all that it started, before anything else of the method starts.

        Raises
        ------
        data.errors.StoreError
            If they do not end.
        """
        self._wire.close()
        ended = self._first.end(self._process, _GOING_SECONDS)
        self._info.close()
        with suppress(ProcessLookupError, PermissionError):
            if not bubblewrap():
                os.killpg(self._process.pid, signal.SIGKILL)
        if not ended:
            raise StoreError(f"method {self._where.spec}: its processes do not end")
        self._printed.join(_PRINTING_SECONDS)

    def _ask(self, call: str, *arguments: Any, patient: bool = False) -> Any:
        """Make a call over there."""
        spec = self._where.spec
        try:
            self._wire.send(pickle.dumps((call, arguments)), seconds=ANSWER_SECONDS)
            if patient:
                self._wire.wait()
            kind, value = json.loads(self._wire.receive(_LARGEST_ANSWER, seconds=ANSWER_SECONDS))
            if kind == "bytes" and call == "freeze":
                return self._wire.receive(_LARGEST_METHOD, seconds=ANSWER_SECONDS)
        except TimeoutError as error:
            raise MisuseError(
                f"method {spec}: took longer than {ANSWER_SECONDS:,g} s to {call}; only training "
                "(fit) may take longer"
            ) from error
        except WireError as error:
            raise self._strange(call, str(error)) from error
        except (EOFError, OSError) as error:
            raise MisuseError(
                f"method {spec}: its process ended{self._why()} while it was asked to {call}"
            ) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise self._strange(call, "no JSON") from error
        if kind == "answer":
            return value
        told, trace = self._checked(_FAILURE, call, value)
        told = " ".join(visible(told[:_LONGEST_ERROR]).split())
        ours = told.startswith((f"method {spec}: ", f"{self.name}: "))
        raise MisuseError(told if ours else f"method {spec}: {told}") from TheirError(
            visible(trace)
        )

    def _why(self) -> str:
        """Return the signal that ended the process, where one did."""
        with suppress(subprocess.TimeoutExpired, ValueError):
            code = self._process.wait(1.0)
            # Of a process in a sandbox bubblewrap says it as shells do.
            return f" ({signal.Signals(-code if code < 0 else code - 128).name})"
        return ""

    def _described(self, answer: Any) -> MethodDescription:
        """Return what the method says of itself, as far as it can be."""
        description = self._checked(_DESCRIPTION, "find", answer)
        check_name(description.name, self._where.spec)
        check_needs(description.needs, method=description.name)
        if description.name in BUILT_IN:
            raise MisuseError(
                f"method {self._where.spec}: its name is {description.name!r}, as that of a method "
                "of this project; give it another"
            )
        if description.trivial:
            raise MisuseError(
                f"method {self._where.spec}: calls itself trivial; the lines that any method must "
                "beat are this project's own"
            )
        if not all(package.isidentifier() for package in description.packages):
            raise MisuseError(
                f"method {self._where.spec}: packages are {description.packages}; name top "
                "packages, as they are imported"
            )
        if not _is_plain([description.name, description.control, description.citation], 1):
            raise self._strange("find", answer)
        return replace(description, spec=self._where.spec, origin=self._where.origin)

    def _checked(self, kind: TypeAdapter[_T], call: str, answer: Any) -> _T:
        try:
            return kind.validate_python(answer)
        except ValidationError as error:
            raise self._strange(call, answer) from error

    def _strange(self, call: str, answer: Any) -> MisuseError:
        return MisuseError(
            f"method {self._where.spec}: its process was asked to {call} and answered "
            f"{str(answer)[:_SHOWN]!a}, which is no answer to that"
        )


@contextmanager
def _closed_on_error(player: ApartPlayer) -> Iterator[ApartPlayer]:
    """Yield a player, and end it if the block fails."""
    try:
        yield player
    except BaseException:
        player.close()
        raise


def _start(
    where: Whereabouts, hidden: tuple[Path, ...]
) -> tuple[subprocess.Popen[bytes], Wire, IO[bytes]]:
    """Return the process, the wire to it, and what bubblewrap says of it."""
    file, _, _ = where.value.rpartition(":")
    readable = (Path(file),) if where.content is not None else package_folders(where.value)
    with ExitStack() as stack, ExitStack() as mine:
        ours, theirs = socket.socketpair()
        mine.enter_context(ours)
        stack.enter_context(theirs)
        read, write = os.pipe()
        info = mine.enter_context(os.fdopen(read, "rb", buffering=0))
        stack.enter_context(os.fdopen(write, "wb", buffering=0))
        # A new interpreter: a fork would hold all that this process holds.
        command = [sys.executable, "-P", "-m", "baselines.apart", str(theirs.fileno())]
        command, descriptors = sandboxed(command, readable, hidden, stack, write)
        try:
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno(), *descriptors],
                stdin=subprocess.DEVNULL,
                # No terminal, from which it could read, and no file that two methods could share.
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment(),
                start_new_session=True,
            )
        except OSError as error:
            raise StoreError(
                f"method {where.spec}: its process cannot be started: {error}"
            ) from error
        # Started: these stay open.
        mine.pop_all()
    return process, Wire(ours), info


def _pass_on(process: subprocess.Popen[bytes], name: str) -> None:
    """Show what a method prints on the error stream; results go elsewhere."""
    assert process.stdout is not None
    shown = 0
    with process.stdout as lines:
        while line := lines.readline(_LONGEST_LINE):
            if shown <= _MOST_SHOWN < shown + len(line):
                sys.stderr.write(f"{name}: more of what it prints is not shown\n")
            shown += len(line)
            if shown <= _MOST_SHOWN:
                text = visible(line.decode("utf-8", "replace").rstrip("\n"))
                sys.stderr.write(f"{name}: {text}\n")


def _is_plain(value: Any, depth: int) -> bool:
    """Return whether a value of JSON is not too deep, and can be written to a file."""
    if isinstance(value, str):
        return is_written(value)
    if isinstance(value, dict):
        return (
            depth > 0
            and all(_is_plain(k, depth) for k in value)
            and all(_is_plain(each, depth - 1) for each in value.values())
        )
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(each, depth - 1) for each in value)
    return True
