"""A method at work: what it is given, row by row, and what it answers.

Everything that the evaluator asks of a method goes through the few calls of a :class:`Seat`, so
a method can also run in another process (:mod:`baselines.apart`), which holds nothing but what
the method was given.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from baselines.interface import EarlyExit, FixedBudget, Method, Router, Setting
from baselines.measurements import Measurements
from baselines.views import Prefix, QuestionView, Unfolding
from data.errors import MisuseError
from stp.ragged import Array

_SETTING_DEPTH = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlayedQuestion:
    """What is given of a question: see :class:`baselines.views.QuestionView`."""

    benchmark: str
    lot: float
    signals: Mapping[str, Array] = field(default_factory=dict)

    def view(self) -> QuestionView:
        """Return what the method is shown."""
        return QuestionView(benchmark=self.benchmark, lot=self.lot, signals=self.signals)


class Seat(Protocol):
    """The calls that the evaluator makes."""

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Let the method learn."""

    def freeze(self) -> "Start":
        """Return what makes further seats with the method as it is now."""

    def settings(self) -> tuple[Setting, ...]:
        """Return its settings."""

    def hyperparameters(self) -> dict[str, Any]:
        """Return its hyperparameters."""

    def decide(self, question: PlayedQuestion) -> list[Any]:
        """Return, of every setting, whether a router thinks, or a budget's cap."""

    def begin(self, question: PlayedQuestion) -> None:
        """Begin a trajectory."""

    def step(
        self, tokens: int, signals: Mapping[str, Any], alive: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Give the next position; return which settings stop here, and which pay for signals."""

    def close(self) -> None:
        """End it."""


Start = Callable[[], Seat]
"""Starts a seat where a trained method has decided on nothing yet."""


class Player:
    """A method in this process.

    Parameters
    ----------
    method
        New, or trained.
    """

    def __init__(self, method: Method) -> None:
        self._method = method
        self._settings: tuple[Setting, ...] = ()
        self.last_score: Any = None
        """What the method said last of a question or a prefix."""
        self._unfolding = Unfolding(QuestionView(benchmark="", lot=0.0, signals={}))

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Let the method learn; see :meth:`baselines.interface.Method.fit`."""
        self._method.fit(train, validation)

    @property
    def method(self) -> Method:
        """The method."""
        return self._method

    def freeze(self) -> Start:
        """Return what starts players of copies of the method as it is now."""
        frozen = copy.deepcopy(self._method)
        return lambda: Player(copy.deepcopy(frozen))

    def settings(self) -> tuple[Setting, ...]:
        """Return the settings that decisions are asked for.

        Raises
        ------
        data.errors.MisuseError
            If there are none, or one is not a value of a control parameter.
        """
        settings = tuple(self._method.settings())
        if not settings:
            raise MisuseError(f"{self._method.name}: its grid is empty; give it a setting")
        self._settings = tuple(plain_setting(self._method.name, each) for each in settings)
        return self._settings

    def hyperparameters(self) -> dict[str, Any]:
        """Return the method's hyperparameters, defaults included."""
        return self._method.hyperparameters()

    def decide(self, question: PlayedQuestion) -> list[Any]:
        """Return a router's or a budget's decision on a question for every setting.

        Raises
        ------
        data.errors.MisuseError
            If a score or a cap is not a number.
        """
        method = self._method
        if isinstance(method, Router):
            score = self._checked(method.score(question.view()))
            return [self._yes("thinks", score, setting) for setting in self._settings]
        if isinstance(method, FixedBudget):
            score = self._checked(method.score(question.view()))
            return [self._cap(method, score, setting) for setting in self._settings]
        raise MisuseError(f"{method.name}: derives from no class of a strategy")

    def begin(self, question: PlayedQuestion) -> None:
        """Begin a trajectory of a question."""
        view = question.view()
        self._unfolding = Unfolding(view)
        if isinstance(self._method, EarlyExit):
            self._method.start(view)

    def step(
        self, tokens: int, signals: Mapping[str, Any], alive: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Show the method the next position of a trajectory.

        Parameters
        ----------
        tokens, signals
            L(k), and the position's row of every signal that the method needs.
        alive
            The settings, by place, that have not stopped yet.

        Returns
        -------
        stopping, paying
            Places of the settings that stop here, and of those that needed the signals here.

        Raises
        ------
        data.errors.MisuseError
            If the method is not an early-exit method, or its score is not a number.
        """
        method = self._method
        if not isinstance(method, EarlyExit):
            raise MisuseError(f"{method.name}: is shown no trajectories")
        prefix: Prefix = self._unfolding.reveal(tokens, signals)
        score = self._checked(method.score(prefix))
        settings = self._settings
        paying = [i for i in alive if self._yes("pays", score, settings[i])]
        stopping = [i for i in alive if self._yes("stops", score, settings[i])]
        return stopping, paying

    def close(self) -> None:
        """Nothing: the method ends with this process."""

    def _checked(self, score: Any) -> Any:
        """Refuse a score that is not a number: it compares as false with every threshold."""
        if score is None or _is_nan(score):
            raise MisuseError(
                f"{self._method.name}: a score is {score}, which no setting can be compared with; "
                "return a number, minus or plus infinity where there is nothing to say"
            )
        self.last_score = score
        return score

    def _yes(self, call: str, score: Any, setting: Setting) -> bool:
        """Return a decision; refuse what is not one, such as the None of a forgotten ``return``."""
        try:
            value = getattr(self._method, call)(score, setting)
            if isinstance(value, bool | np.bool_):
                return bool(value)
            if value is not None and not _is_nan(value):
                return bool(value)
        except ValueError as error:
            if np.ndim(score) == 0:
                raise
            raise MisuseError(
                f"{self._method.name}: {call} makes no decision of a score of shape "
                f"{np.shape(score)}; return one number, or define {call}"
            ) from error
        raise MisuseError(
            f"{self._method.name}: {call} returned {value}, which is neither yes nor no; "
            "return True or False"
        )

    def _cap(self, method: FixedBudget, score: Any, setting: Setting) -> int | None:
        cap: Any = method.cap(score, setting)
        if cap is None:
            return None
        if not isinstance(cap, int | np.integer) or cap < 0:
            raise MisuseError(
                f"{method.name}: the cap for setting {setting} is {cap!r}; a cap is None or an "
                "integer of at least 0, in tokens"
            )
        return int(cap)


def plain_setting(method: str, setting: Any, depth: int = _SETTING_DEPTH) -> Setting:
    """Return a setting as numbers, texts and tuples of Python's own.

    Raises
    ------
    data.errors.MisuseError
        If it is, or holds, something else, or what is not a number.
    """
    if isinstance(setting, np.generic):
        setting = setting.item()
    if isinstance(setting, tuple | list) and depth:
        return tuple(plain_setting(method, each, depth - 1) for each in setting)
    number = isinstance(setting, int) or (isinstance(setting, float) and not math.isnan(setting))
    if setting is None or number or (isinstance(setting, str) and is_written(setting)):
        return setting
    raise MisuseError(
        f"{method}: a setting of its grid is {ascii(setting)[:80]}; a setting is a number, a text, "
        "None or a tuple of these"
    )


def is_written(text: str) -> bool:
    """Return whether a text can be written to a file."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_nan(score: Any) -> bool:
    """Return whether a score is, or holds, what is not a number; it may be an array or a tensor."""
    # A tensor that training left its gradient on does not become an array by itself.
    score = score.detach() if hasattr(score, "detach") else score
    try:
        return bool(np.isnan(np.asarray(score, np.float64)).any())
    except (TypeError, ValueError):
        return False  # A score of another kind, which the method compares itself.
