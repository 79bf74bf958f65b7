"""Methods of others, each in a process of its own: the evaluator's side.

Nothing of such a method runs in this process: not its module, to learn its name and needs, and not
what its process sends, which is JSON and checked for what it must be. That process sees what it is
dealt (:mod:`baselines.apart`) and, where there is bubblewrap, no file and no other process
(:mod:`evaluator.otbench.sandbox`).
"""

import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, StrictBool, StrictInt, TypeAdapter, ValidationError

from baselines.interface import Setting
from baselines.measurements import Measurements
from baselines.player import Question, plain_setting
from baselines.registry import BUILT_IN, Description, MethodSource, Whereabouts, find_method, locate
from baselines.signals import check_needs
from data.errors import MisuseError
from evaluator.otbench.sandbox import bubblewrap, environment, package_folders, sandboxed

ANSWER_SECONDS = 600.0
"""How long a method may take over anything but training."""
_LARGEST_ANSWER = 64 * 2**20
_LARGEST_METHOD = 2**32

_DESCRIPTION = TypeAdapter(Description)
_LIST = TypeAdapter(list[Any])
_THINKS = TypeAdapter(list[StrictBool])
_CAPS = TypeAdapter(list[Annotated[StrictInt, Field(ge=0)] | None])
_PLACES = TypeAdapter(Annotated[list[list[StrictInt]], Field(min_length=2, max_length=2)])
_MAPPING = TypeAdapter(dict[str, Any])

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApartSource:
    """A method of somebody else, which is never imported here.

    Attributes
    ----------
    where
        Where it is; the content of its file was read once, and is what runs.
    description
        What it says of itself.
    """

    where: Whereabouts
    description: Description

    def seat(self, hyperparameters: dict[str, Any]) -> "ApartPlayer":
        """Return a new, untrained method in a process of its own."""
        player = ApartPlayer(self.where)
        try:
            if player.description != self.description:
                raise MisuseError(
                    f"method {self.where.spec}: says of itself something else each time; name, "
                    "strategy, needs and control must be the same whenever it is imported"
                )
            player.make(hyperparameters)
        except BaseException:
            player.close()
            raise
        return player


Source = MethodSource | ApartSource
"""Where a method comes from, and what makes new ones."""


def find_source(spec: str, hyperparameters: dict[str, Any]) -> Source:
    """Return where a method comes from; one of others is looked at in its own process.

    Parameters
    ----------
    spec
        A name, or ``path/to/file.py:Class``.
    hyperparameters
        Which it must take.

    Raises
    ------
    data.errors.MisuseError
        If there is no such method, it is none, or does not take the hyperparameters.
    """
    if spec in BUILT_IN:
        source = find_method(spec)
        source.make(hyperparameters)
        return source
    where = locate(spec)
    player = ApartPlayer(where)
    try:
        player.make(hyperparameters)
    finally:
        player.close()
    return ApartSource(where=where, description=player.description)


def isolation_of(source: Source) -> str:
    """Return where its methods run: ``"evaluator"``, ``"process"`` or ``"sandbox"``."""
    if isinstance(source, MethodSource):
        return "evaluator"
    return "sandbox" if bubblewrap() else "process"


class ApartPlayer:
    """A method in another process; a :class:`baselines.player.Seat`.

    Parameters
    ----------
    where
        What to import there.

    Raises
    ------
    data.errors.MisuseError
        By every call, if the method does what it must not; in a line.
    """

    def __init__(self, where: Whereabouts) -> None:
        self._where = where
        self._settings: tuple[Setting, ...] = ()
        ours, theirs = socket.socketpair()
        file, _, _ = where.value.rpartition(":")
        readable = (Path(file),) if where.content is not None else package_folders(where.value)
        # A new interpreter: a fork would hold all that this process holds.
        command = [sys.executable, "-P", "-m", "baselines.apart", str(theirs.fileno())]
        self._process = subprocess.Popen(
            sandboxed(command, readable),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            # Results go to standard output; what a method prints does not.
            stdout=2,
            env=environment(),
        )
        theirs.close()
        self._ours = Connection(ours.detach())
        try:
            self.description = self._described(self._ask("find", where))
        except BaseException:
            self.close()
            raise

    def make(self, hyperparameters: dict[str, Any]) -> None:
        """Let a new method sit there."""
        self._ask("make", hyperparameters)

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Let the method learn; it may take as long as it wants."""
        self._ask("fit", train, validation, patient=True)

    def twin(self) -> "ApartPlayer":
        """Return another process, where the same trained method has decided on nothing yet."""
        frozen = self._ask("freeze")
        other = ApartPlayer(self._where)
        try:
            other._ask("thaw", frozen)
        except BaseException:
            other.close()
            raise
        return other

    def settings(self) -> tuple[Setting, ...]:
        """Return its settings."""
        answer = self._checked(_LIST, "settings", self._ask("settings"))
        self._settings = tuple(plain_setting(self.description.name, each) for each in answer)
        return self._settings

    def hyperparameters(self) -> dict[str, Any]:
        """Return its hyperparameters."""
        return self._checked(_MAPPING, "hyperparameters", self._ask("hyperparameters"))

    def decide(self, question: Question) -> list[Any]:
        """Return its decision on a question for every setting."""
        kind: TypeAdapter[Any] = _THINKS if self.description.strategy == "routing" else _CAPS
        found: list[Any] = self._checked(kind, "decide", self._ask("decide", question))
        if len(found) != len(self._settings):
            raise self._strange("decide", found)
        return found

    def begin(self, question: Question) -> None:
        """Begin a trajectory."""
        self._ask("begin", question)

    def step(
        self, tokens: int, signals: Mapping[str, Any], alive: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Deal the next position."""
        answer = self._ask("step", tokens, dict(signals), list(alive))
        stopping, paying = self._checked(_PLACES, "step", answer)
        places = set(alive)
        if not places.issuperset(stopping) or not places.issuperset(paying):
            raise self._strange("step", answer)
        return stopping, list(dict.fromkeys(paying))

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

    def _ask(self, call: str, *arguments: Any, patient: bool = False) -> Any:
        """Make a call over there."""
        spec = self._where.spec
        try:
            self._ours.send((call, arguments))
            if not self._ours.poll(None if patient else ANSWER_SECONDS):
                raise MisuseError(
                    f"method {spec}: took longer than {ANSWER_SECONDS:,g} s to {call}; only "
                    "training (fit) may take longer"
                )
            reply = json.loads(self._ours.recv_bytes(_LARGEST_ANSWER))
            kind, value = reply
            if kind == "bytes":
                return self._ours.recv_bytes(_LARGEST_METHOD)
        except (EOFError, OSError) as error:
            raise MisuseError(
                f"method {spec}: its process ended while it was asked to {call}"
            ) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise self._strange(call, "no JSON") from error
        if kind == "answer":
            return value
        raise MisuseError(str(value))

    def _described(self, answer: Any) -> Description:
        """Return what the method says of itself, as far as it can be."""
        description = self._checked(_DESCRIPTION, "find", answer)
        check_needs(description.needs, method=description.name)
        if description.name in BUILT_IN:
            raise MisuseError(
                f"method {self._where.spec}: its name is {description.name!r}, as that of a method "
                "of this project; give it another"
            )
        if not all(package.isidentifier() for package in description.packages):
            raise MisuseError(
                f"method {self._where.spec}: packages are {description.packages}; name top "
                "packages, as they are imported"
            )
        return replace(description, spec=self._where.spec, origin=self._where.origin)

    def _checked(self, kind: TypeAdapter[_T], call: str, answer: Any) -> _T:
        try:
            return kind.validate_python(answer)
        except ValidationError as error:
            raise self._strange(call, answer) from error

    def _strange(self, call: str, answer: Any) -> MisuseError:
        return MisuseError(
            f"method {self._where.spec}: its process was asked to {call} and answered "
            f"{str(answer)[:80]!r}, which is no answer to that"
        )
