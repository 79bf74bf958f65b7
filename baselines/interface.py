"""What a termination method is: what it needs, what it is swept over, and how it decides.

A method belongs to one strategy, and each strategy has a class to derive from:

* :class:`Router` decides before any thinking: think fully, or not at all;
* :class:`FixedBudget` names a cap in thinking tokens before any thinking;
* :class:`EarlyExit` is shown the thinking position by position and says when to stop.

In each, a method gives a *score* (what it has to say of the question or the prefix) and a setting
of its control parameter turns scores into decisions. The score is asked for once and serves all
settings of the grid. A whole method::

    class CalmEnding(EarlyExit):
        \"\"\"Stop as soon as the next token after the thinking-end is nearly certain.\"\"\"

        name = "calm_ending"
        needs = ("end_entropy",)
        grid = (0.01, 0.1, 1.0)

        def score(self, prefix):
            return -prefix["end_entropy"][-1]

        def stops(self, score, setting):
            return score >= -setting

Methods with hyperparameters are dataclasses: their fields are the settings that a leaderboard row
records and that it is made again from. ``fit`` is called once for every model.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from baselines.measurements import Measurements
from baselines.views import Prefix, QuestionView
from oracle.actions import Strategy

Setting = Any
"""A value of the control parameter: a number, a text, or a tuple of these."""


class Method:
    """A termination method; derive from one of the three classes below.

    Attributes
    ----------
    name
        Unique, for files and tables: small letters, digits and underscores, at most 40.
    strategy
        Which frontier it is compared with.
    needs
        Signals that it reads; see :data:`baselines.signals.SIGNALS`.
    control
        What the control parameter is, in a few words.
    grid
        The settings to sweep; at most 100 for a third-party method, since its curve is the best of
        them.
    citation
        Where the method comes from.
    trivial
        Whether it is a line that any method must beat, drawn in every plot; this project's alone.
    packages
        What it imports beyond this project's own requirements.
    """

    name: ClassVar[str]
    strategy: ClassVar[Strategy]
    needs: ClassVar[tuple[str, ...]] = ()
    control: ClassVar[str] = "threshold"
    grid: ClassVar[tuple[Setting, ...]] = ()
    citation: ClassVar[str] = ""
    trivial: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ()

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Learn from one model's training questions; select on its validation questions.

        Both hold curves and the declared signals. The default learns nothing.
        """

    def settings(self) -> Sequence[Setting]:
        """Return the settings to sweep, after :meth:`fit`; the same for every model."""
        return self.grid

    def hyperparameters(self) -> dict[str, Any]:
        """Return the fields of a dataclass, what a row is made again from; else nothing."""
        fields = getattr(self, "__dataclass_fields__", {}).values()
        return {field.name: getattr(self, field.name) for field in fields if field.init}


class Router(Method):
    """Decides before any thinking whether a question's trajectories think fully or not at all."""

    strategy = "routing"

    def score(self, question: QuestionView) -> float:
        """Return how much thinking is worth for the question, on the method's own scale."""
        raise NotImplementedError(f"{self.name}: define score")

    def thinks(self, score: float, setting: Setting) -> bool:
        """Return whether to think: by default, if the score is at least the setting."""
        return bool(score >= setting)


class FixedBudget(Method):
    """Names a cap on thinking tokens before any thinking, shared by a question's trajectories."""

    strategy = "fixed_budget"
    control = "scale of the budget"

    def score(self, question: QuestionView) -> Any:
        """Return the question's budget, in tokens."""
        raise NotImplementedError(f"{self.name}: define score")

    def cap(self, score: Any, setting: Setting) -> int | None:
        """Return the cap in tokens, None for none: by default, score times setting, rounded.

        Each trajectory stops at its last position whose tokens do not exceed the cap.
        """
        return round(float(score) * setting) if math.isfinite(setting) else None


class EarlyExit(Method):
    """Watches the thinking position by position and says when to stop."""

    strategy = "early_exit"

    def start(self, question: QuestionView) -> None:
        """Begin a new trajectory: reset all state. The default keeps none."""

    def score(self, prefix: Prefix) -> Any:
        """Return the score of the prefix; asked at k = 0, 1, 2, ... while any setting continues."""
        raise NotImplementedError(f"{self.name}: define score")

    def stops(self, score: Any, setting: Setting) -> bool:
        """Return whether to stop here: by default, if the score is at least the setting."""
        return bool(score >= setting)

    def pays(self, score: Any, setting: Setting) -> bool:
        """Return whether the signals were needed here; by default always.

        Only the column of signal costs depends on it.
        """
        return True
