"""Which method decides, with which setting, and what it has learned from."""

import ast
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from baselines.interface import Method, Setting
from baselines.player import Seat, Start
from baselines.registry import MethodDescription, MethodSource
from baselines.signals import SIGNALS, with_costs
from data.errors import MisuseError
from data.hints import nearest
from evaluator.otbench.asked import AskedMethod, parse_method
from evaluator.otbench.load import Release
from evaluator.otbench.run import train

CLOSED = frozenset(
    {
        "end_entropy",
        "answer_entropy",
        "trial_logprob",
        "trial_probability",
        "trial_tokens",
        "short_answer_logprob",
        "short_answer_tokens",
    }
)
"""Signals that are read after a closed prefix."""
TRIALS = CLOSED - {"end_entropy", "answer_entropy"}
"""Signals of the greedy trial answer."""
ANSWERS = frozenset({"answer", "answer_hedged", "answer_tokens"})
"""Signals of an answer sampled as the probes are."""
HIDDEN = frozenset({"hidden", "prompt_hidden"})
_ASKED_OTHERWISE = ANSWERS | {"prompt_tokens"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """A method, trained, and a setting of its control parameter.

    Attributes
    ----------
    label
        The method's name, with the hyperparameters that were given.
    description
        What it says of itself.
    settings
        Its grid.
    setting
        The one that decides, unless a request names another.
    layers
        Hidden states that it was trained on: by position, and of the prompt.
    start
        Makes seats of the trained method, before it has decided on anything.
    """

    label: str
    description: MethodDescription
    settings: tuple[Setting, ...]
    setting: Setting
    layers: tuple[int, ...] = ()
    prompt_layers: tuple[int, ...] = ()
    start: Start
    _free: list[Seat] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def needs(self) -> frozenset[str]:
        """The signals that it reads, and those that their cost is counted by."""
        return frozenset(with_costs(self.description.needs))

    @property
    def reads(self) -> bool:
        """Whether it needs what a pass over the prefix shows."""
        return bool(self.needs - _ASKED_OTHERWISE)

    def needs_at(self, level: str) -> frozenset[str]:
        """Return the signals of positions, or of questions."""
        return frozenset(name for name in self.needs if SIGNALS[name].level == level)

    def place_of(self, setting: Setting | None) -> int:
        """Return a setting's place in the grid; the policy's own for None."""
        return self.settings.index(self.setting if setting is None else setting)

    def between(self, low: str, high: str) -> tuple[Setting, ...]:
        """Return the settings from one to another, both included, in the order of the grid.

        Raises
        ------
        data.errors.MisuseError
            If a text names no setting, or the policy's own setting does not lie between them.
        """
        ends = [
            self.settings.index(find_setting(self.label, self.settings, t)) for t in (low, high)
        ]
        some = self.settings[min(ends) : max(ends) + 1]
        if self.setting not in some:
            raise MisuseError(
                f"method {self.label}: its setting {self.setting} does not lie between {low} and "
                f"{high}; name wider bounds, or another --setting"
            )
        return some

    @contextmanager
    def seat(self) -> Iterator[Seat]:
        """Lend a seat of the method for one trajectory."""
        with self._lock:
            seat = self._free.pop() if self._free else None
        if seat is None:
            seat = self.start()
            seat.settings()
        try:
            yield seat
        finally:
            with self._lock:
                self._free.append(seat)

    def close(self) -> None:
        """End the seats."""
        while self._free:
            self._free.pop().close()


def make_policy(
    method: str, setting: str | None, release: Release | None, model: str | None = None
) -> Policy:
    """Find a method, let it learn from a release, and find its setting.

    Parameters
    ----------
    method
        See :func:`evaluator.otbench.asked.parse_method`.
    setting
        As text; only a grid of one has a setting by itself.
    release
        What it learns from; None for a method that learns nothing.
    model
        Which of the release's models; the only one when left out.

    Raises
    ------
    data.errors.MisuseError
        If there is no such method or setting, or the method has to learn and there is no release.
    """
    asked = parse_method(method, release)
    needs = asked.description.needs
    layers: tuple[int, ...] = ()
    prompt_layers: tuple[int, ...] = ()
    if release is not None:
        number = model_number(release, model)
        measured = [release.measurements(number, s, with_costs(needs)) for s in _LEARNS_FROM]
        layers, prompt_layers = measured[0].layers, measured[0].prompt_layers
        start = train(asked, *measured).start
    elif _learns(asked):
        raise MisuseError(
            f"method {asked.label}: it learns from measurements; name them with --release RELEASE "
            "(made by `stp release`)"
        )
    else:
        start = asked.seat().freeze()
    seat = start()
    settings = seat.settings()
    chosen = find_setting(asked.label, settings, setting)
    return Policy(
        label=asked.label,
        description=asked.description,
        settings=settings,
        setting=chosen,
        layers=layers,
        prompt_layers=prompt_layers,
        start=start,
        _free=[seat],
    )


_LEARNS_FROM = ("train", "validation")


def _learns(asked: AskedMethod) -> bool:
    """Return whether a method has to learn; third-party methods always count as learning."""
    source = asked.source
    if not isinstance(source, MethodSource):
        return True
    return source.method.fit is not Method.fit or bool(HIDDEN & set(source.method.needs))


def model_number(release: Release, model: str | None) -> int:
    """Return the number of a release's model.

    Raises
    ------
    data.errors.MisuseError
        If there is none of that name, or several and none is named.
    """
    names = list(release.curves.model_names)
    if model in names:
        return names.index(model)
    if model is None and len(names) == 1:
        return 0
    what = "holds several models; name one" if model is None else f"holds no model {model!r}"
    raise MisuseError(f"{release.folder}: {what} (there are {', '.join(names)})")


def find_setting(method: str, settings: Sequence[Setting], text: str | None) -> Setting:
    """Return the setting of a grid that a text names.

    Raises
    ------
    data.errors.MisuseError
        If none is named and there are several, or it is not of the grid.

    Examples
    --------
    >>> find_setting("dynasor", ((2, 64), (3, 64)), "3,64")
    (3, 64)
    >>> find_setting("deer", (0.9, 0.95), "0.950")
    0.95
    """
    if text is None:
        if len(settings) == 1:
            return settings[0]
        raise MisuseError(f"method {method}: name a setting with --setting ({_listed(settings)})")
    value = _literal(text)
    for setting in settings:
        if setting == value or str(setting) == text.strip():
            return setting
    near = nearest(text.strip(), [str(setting) for setting in settings])
    hint = f"did you mean {near}? There" if near else "there"
    raise MisuseError(
        f"method {method}: {text[:40]!r} is not a setting of its grid; "
        f"{hint} are {_listed(settings)}"
    )


def _literal(text: str) -> Any:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return math.inf if text.strip() == "inf" else None
    return tuple(value) if isinstance(value, list) else value


def _listed(settings: Sequence[Setting]) -> str:
    shown = [str(setting) for setting in settings]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:6], "...", *shown[-5:]])
