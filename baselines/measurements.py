"""What a method learns from: curves of one model, with the signals beside them.

Training and validation questions are given whole, to :meth:`baselines.interface.Method.fit`. Test
questions never are: of them a method sees views, one step at a time (:mod:`baselines.views`).

Axes: ``_q`` question, ``_s`` trajectory, ``_k`` position (all trajectories', concatenated).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from baselines.signals import SIGNALS
from data.errors import MisuseError
from stp.curves import Curves
from stp.ragged import Array, FloatArray, IntArray, gather


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurements:
    """Curves and signals of one model on some questions.

    Parameters
    ----------
    curves
        Of one model.
    position_signals
        By name, one row per position of the curves.
    question_signals
        By name, one row per entry of ``questions``.
    layers
        The layers along the second axis of ``hidden``.
    prompt_layers
        The layers along the second axis of ``prompt_hidden``.

    Raises
    ------
    ValueError
        If there is more than one model, or a signal's rows are not those of the curves.
    """

    curves: Curves
    position_signals: Mapping[str, Array] = field(default_factory=dict)
    question_signals: Mapping[str, Array] = field(default_factory=dict)
    layers: tuple[int, ...] = ()
    prompt_layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if np.unique(self.curves.model).size > 1:
            raise ValueError("measurements are of one model; select its trajectories first")
        for rows, signals in (
            (self.curves.positions, self.position_signals),
            (self.questions.size, self.question_signals),
        ):
            for name, values in signals.items():
                if values.shape[0] != rows:
                    raise ValueError(f"{name} has {values.shape[0]} rows, and needs {rows}")

    @property
    def questions(self) -> IntArray:
        """Question numbers, rising; int64 ``(questions,)``."""
        return np.unique(self.curves.question).astype(np.int64)

    @property
    def question_s(self) -> IntArray:
        """The place in ``questions`` of every trajectory; int64 ``(trajectories,)``."""
        return np.searchsorted(self.questions, self.curves.question)

    @property
    def names(self) -> frozenset[str]:
        """The signals that are here."""
        return frozenset(self.position_signals) | frozenset(self.question_signals)

    def __getitem__(self, name: str) -> Array:
        """Return a signal: rows are positions or questions, as its level says.

        Raises
        ------
        data.errors.MisuseError
            If it is not here.
        """
        for signals in (self.position_signals, self.question_signals):
            if name in signals:
                return signals[name]
        known = "is not among the method's needs" if name in SIGNALS else "is not a signal"
        raise MisuseError(f"signal {name!r} {known}; here are {', '.join(sorted(self.names))}")

    def question_means(self, values_s: npt.ArrayLike) -> FloatArray:
        """Return the mean over each question's trajectories; float64 ``(questions,)``."""
        place, count = self.question_s, self.questions.size
        sums = np.bincount(place, np.asarray(values_s, np.float64), minlength=count)
        return np.asarray(sums / np.bincount(place, minlength=count), np.float64)

    def restricted(self, needs: Iterable[str]) -> "Measurements":
        """Return the same with no other signals than those named."""
        wanted = frozenset(needs)
        return replace(
            self,
            position_signals={k: v for k, v in self.position_signals.items() if k in wanted},
            question_signals={k: v for k, v in self.question_signals.items() if k in wanted},
        )

    def of_first(self, questions: int) -> "Measurements":
        """Return the same of its first questions alone."""
        kept_q = self.questions[:questions]
        keep_s = np.flatnonzero(np.isin(self.curves.question, kept_q))
        rows_k, _ = gather(self.curves.trajectory_offsets, keep_s)
        return replace(
            self,
            curves=self.curves.select(keep_s),
            position_signals={k: v[rows_k] for k, v in self.position_signals.items()},
            question_signals={k: v[: kept_q.size] for k, v in self.question_signals.items()},
        )
