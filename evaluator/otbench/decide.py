"""A method's decisions on questions, handed out step by step.

The method is given views (:mod:`baselines.views`); costs and verdicts stay here. All settings walk
a trajectory together: at position k every one of them has been shown the prefix up to k and nothing
else, and a trajectory is walked once. Afterwards some trajectories are walked again in another
order: decisions that differ mean that the method remembers other questions, and are refused.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from baselines.interface import EarlyExit, FixedBudget, Method, Router, Setting
from baselines.measurements import Measurements
from baselines.signals import PASS, cost_sources
from baselines.views import QuestionView, prefixes, question_view
from data.errors import MisuseError
from stp.curves import IntArray

_REPEATED = 48
_ORDER_SEED = 20260721

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decisions:
    """Where every setting stops every trajectory.

    Attributes
    ----------
    settings
        Of the control parameter.
    stop
        Positions k; int64 ``(settings, trajectories)``.
    signal_tokens
        Tokens that the method's signals took; int64 ``(settings, trajectories)``.
    """

    settings: tuple[Setting, ...]
    stop: IntArray
    signal_tokens: IntArray


def decide(
    method: Method,
    measurements: Measurements,
    lot_q: npt.NDArray[np.float64],
    *,
    progress: Progress | None = None,
) -> Decisions:
    """Let a trained method decide on questions.

    Parameters
    ----------
    method
        Trained.
    measurements
        Of one model, with what the method needs and what its signals' costs are counted by.
    lot_q
        By question number, its lot.
    progress
        Called with trajectories (or questions) done and all.

    Raises
    ------
    data.errors.MisuseError
        If the grid is empty, a decision is no decision, or decisions depend on other questions.
    """
    settings = tuple(method.settings())
    if not settings:
        raise MisuseError(f"{method.name}: its grid is empty; give it at least one setting")
    handed_out = measurements.restricted(method.needs)
    views = _question_views(handed_out, lot_q)
    walk = _Walk(method, settings, measurements, handed_out, views)
    units = walk.units
    stop = np.zeros((len(settings), measurements.curves.trajectories), np.int64)
    cost = np.zeros_like(stop)
    order = np.random.default_rng(_ORDER_SEED).permutation(units)
    for done, unit in enumerate(order.tolist(), start=1):
        rows = walk.trajectories(unit)
        stop[:, rows], cost[:, rows] = walk.of(unit)
        if progress is not None:
            progress(done, units)
    _check_forgets(method, walk, order, stop)
    return Decisions(settings=settings, stop=stop, signal_tokens=cost)


def _check_forgets(method: Method, walk: "_Walk", order: IntArray, stop: IntArray) -> None:
    """Walk some units again, the last first; see that nothing changes."""
    for unit in order[::-1][:_REPEATED].tolist():
        again, _ = walk.of(unit)
        if not np.array_equal(again, stop[:, walk.trajectories(unit)]):
            raise MisuseError(
                f"{method.name}: decides otherwise when questions come in another order; a method "
                "must not remember the questions that it decided on (see EarlyExit.start)"
            )


def _question_views(
    measurements: Measurements, lot_q: npt.NDArray[np.float64]
) -> list[QuestionView]:
    curves = measurements.curves
    questions, first = np.unique(curves.question, return_index=True)
    names = curves.benchmark_names
    return [
        question_view(
            measurements,
            place,
            benchmark=names[curves.benchmark[s]] if names else str(curves.benchmark[s]),
            lot=float(lot_q[question]),
        )
        for place, (question, s) in enumerate(zip(questions.tolist(), first.tolist(), strict=True))
    ]


class _Walk:
    """Decides on one unit: a question for routers and budgets, a trajectory for early exit."""

    def __init__(
        self,
        method: Method,
        settings: Sequence[Setting],
        measurements: Measurements,
        handed_out: Measurements,
        views: list[QuestionView],
    ) -> None:
        self._method = method
        self._settings = settings
        self._measurements = measurements
        self._handed_out = handed_out
        self._views = views
        curves = measurements.curves
        self._place_s = measurements.question_s
        self._offsets = curves.trajectory_offsets
        self._members = [
            np.flatnonzero(self._place_s == place) for place in range(measurements.questions.size)
        ]
        self._position_cost = _position_costs(method, measurements)
        self._question_cost = _question_costs(method, measurements)

    @property
    def units(self) -> int:
        if isinstance(self._method, EarlyExit):
            return self._measurements.curves.trajectories
        return len(self._members)

    def trajectories(self, unit: int) -> IntArray:
        """Return the trajectories that a unit decides on."""
        if isinstance(self._method, EarlyExit):
            return np.array([unit], np.int64)
        return self._members[unit]

    def of(self, unit: int) -> tuple[IntArray, IntArray]:
        """Return stopping positions and signal tokens; int64 ``(settings, trajectories)``."""
        method = self._method
        if isinstance(method, EarlyExit):
            return self._walk(method, unit)
        rows = self._members[unit]
        steps = np.diff(self._offsets)[rows] - 1
        cost = np.full((len(self._settings), rows.size), self._question_cost[unit])
        score = _checked(method, method.score(self._views[unit]))  # type: ignore[attr-defined]
        if isinstance(method, Router):
            chosen = np.array([bool(method.thinks(score, s)) for s in self._settings])
            return np.where(chosen[:, None], steps, 0), cost
        if not isinstance(method, FixedBudget):
            raise MisuseError(f"{method.name}: derives from no class of a strategy")
        caps = [_checked_cap(method, method.cap(score, s), s) for s in self._settings]
        stop = np.empty_like(cost)
        for column, row in enumerate(rows.tolist()):
            tokens = self._measurements.curves.tokens[self._offsets[row] : self._offsets[row + 1]]
            last = [tokens[-1] if cap is None else cap for cap in caps]
            stop[:, column] = np.searchsorted(tokens, last, side="right") - 1
        return stop, cost

    def _walk(self, method: EarlyExit, trajectory: int) -> tuple[IntArray, IntArray]:
        settings = self._settings
        start = int(self._offsets[trajectory])
        last = int(self._offsets[trajectory + 1]) - 1 - start
        stop = np.full((len(settings), 1), last, np.int64)
        place = int(self._place_s[trajectory])
        cost = np.full((len(settings), 1), self._question_cost[place], np.int64)
        alive = list(range(len(settings)))
        view = self._views[place]
        method.start(view)
        for prefix in prefixes(self._handed_out, trajectory, view):
            score = _checked(method, method.score(prefix))
            tokens = self._position_cost[start + prefix.k]
            going = []
            for index in alive:
                setting = settings[index]
                if tokens and method.pays(score, setting):
                    cost[index, 0] += tokens
                if method.stops(score, setting):
                    stop[index, 0] = prefix.k
                else:
                    going.append(index)
            alive = going
            if not alive:
                break
        return stop, cost


def _position_costs(method: Method, measurements: Measurements) -> IntArray:
    """Return the tokens that the method's signals take at each position."""
    costs = np.zeros(measurements.curves.positions, np.int64)
    for source in cost_sources(method.needs, "position"):
        costs += 1 if source == PASS else measurements[source].astype(np.int64)
    return costs


def _question_costs(method: Method, measurements: Measurements) -> IntArray:
    """Return the tokens that the method's question signals take, for each of its trajectories."""
    costs = np.zeros(measurements.questions.size, np.int64)
    for source in cost_sources(method.needs, "question"):
        costs += 1 if source == PASS else measurements[source].astype(np.int64)
    return costs


def _checked(method: Method, score: Any) -> Any:
    """Refuse a score that is no number: it compares as false with every threshold."""
    if score is None or (isinstance(score, float | np.floating) and math.isnan(score)):
        raise MisuseError(
            f"{method.name}: a score is {score}, which no setting can be compared with; return a "
            "number, minus or plus infinity where there is nothing to say"
        )
    return score


def _checked_cap(method: Method, cap: Any, setting: Setting) -> int | None:
    if cap is None:
        return None
    if not isinstance(cap, int | np.integer) or cap < 0:
        raise MisuseError(
            f"{method.name}: the cap for setting {setting} is {cap!r}; a cap is None or an integer "
            "of at least 0, in tokens"
        )
    return int(cap)
