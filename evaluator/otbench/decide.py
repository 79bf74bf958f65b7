"""A method's decisions on questions, handed out step by step.

Rows are given to the method's seat (:mod:`baselines.player`); costs and verdicts stay here. All
settings walk a trajectory together: at position k each of them has been shown the prefix up to
k and nothing else, and a trajectory is walked once. Afterwards some trajectories, the last ones and
others drawn at random, are given in another order: again to the method, and, when that has ended,
to its twin, which was trained with it and has decided on nothing. Decisions that differ mean that
the method remembers other questions, and are refused.
"""

import math
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from baselines.interface import Setting
from baselines.measurements import Measurements
from baselines.player import PlayedQuestion, Seat, Start
from baselines.registry import MethodDescription
from baselines.signals import PASS, cost_sources
from data.errors import MisuseError
from data.progress import NOBODY, Progress
from stp.ragged import IntArray
from stp.seeds import PAPER_SEED

_LAST_REPEATED = 24
_RANDOM_REPEATED = 104
_REPEATED_SHARE = 0.1


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
    start: Start,
    description: MethodDescription,
    measurements: Measurements,
    lot_q: npt.NDArray[np.float64],
    *,
    progress: Progress = NOBODY,
) -> Decisions:
    """Let a trained method decide on questions.

    Parameters
    ----------
    start
        Makes seats of the trained method, before it has decided on anything.
    description
        The method's name, strategy and needs.
    measurements
        Of one model, with what the method needs and what its signals' costs are counted by.
    lot_q
        By question number, its random number; see :func:`evaluator.otbench.splits.lot`.
    progress
        Called with trajectories (or questions) done and all.

    Raises
    ------
    data.errors.MisuseError
        If the grid is empty, a decision is not valid, or decisions depend on other questions.
    """
    with closing(start()) as seat:
        settings = seat.settings()
        walk = _Walk(description, len(settings), measurements, lot_q)
        stop = np.zeros((len(settings), measurements.curves.trajectories), np.int64)
        cost = np.zeros_like(stop)
        order = np.random.default_rng(PAPER_SEED).permutation(walk.units)
        for done, unit in enumerate(order.tolist(), start=1):
            rows = walk.trajectories(unit)
            stop[:, rows], cost[:, rows] = walk.of(unit, seat)
            progress(done, walk.units)
        repeated = _repeated(order)
        _check_forgets(description, walk, seat, repeated, stop)
    # Only now, so that the first can tell the second nothing.
    with closing(start()) as seat:
        if seat.settings() != settings:
            raise MisuseError(f"{description.name}: its settings change while it decides")
        _check_forgets(description, walk, seat, repeated, stop)
    return Decisions(settings=settings, stop=stop, signal_tokens=cost)


def _check_forgets(
    description: MethodDescription, walk: "_Walk", seat: Seat, repeated: list[int], stop: IntArray
) -> None:
    """Walk some units again; see that nothing changes."""
    for unit in repeated:
        again, _ = walk.of(unit, seat)
        if not np.array_equal(again, stop[:, walk.trajectories(unit)]):
            raise MisuseError(
                f"{description.name}: decides differently when questions come in another order; a "
                "method must not remember the questions that it decided on (see "
                "EarlyExit.start), nor draw numbers without a seed"
            )


def _repeated(order: IntArray) -> list[int]:
    """Return the units to repeat: the last ones, in reverse order, and some drawn at random."""
    last = order[::-1][:_LAST_REPEATED]
    others = order[: order.size - last.size]
    count = max(_RANDOM_REPEATED, math.ceil(_REPEATED_SHARE * others.size))
    drawn = np.random.default_rng().permutation(others)[:count]
    return [*last.tolist(), *drawn.tolist()]


class _Walk:
    """Gives out one unit: a question for routers and budgets, a trajectory for early exit."""

    def __init__(
        self,
        method: MethodDescription,
        settings: int,
        measurements: Measurements,
        lot_q: npt.NDArray[np.float64],
    ) -> None:
        self._method = method
        self._settings = settings
        self._curves = measurements.curves
        # Dealt to the method; what else is here stays here.
        self._dealt = measurements.restricted(method.needs)
        self._questions = _questions(self._dealt, lot_q)
        self._place_s = measurements.question_s
        self._members = [
            np.flatnonzero(self._place_s == place) for place in range(len(self._questions))
        ]
        self._position_cost = _position_costs(method, measurements)
        self._question_cost = _question_costs(method, measurements)

    @property
    def units(self) -> int:
        if self._method.strategy == "early_exit":
            return self._curves.trajectories
        return len(self._members)

    def trajectories(self, unit: int) -> IntArray:
        """Return the trajectories that a unit decides on."""
        if self._method.strategy == "early_exit":
            return np.array([unit], np.int64)
        return self._members[unit]

    def of(self, unit: int, seat: Seat) -> tuple[IntArray, IntArray]:
        """Return stopping positions and signal tokens; int64 ``(settings, trajectories)``."""
        if self._method.strategy == "early_exit":
            return self._trajectory(unit, seat)
        rows = self._members[unit]
        offsets = self._curves.trajectory_offsets
        decisions = seat.decide(self._questions[unit])
        cost = np.full((self._settings, rows.size), self._question_cost[unit])
        if self._method.strategy == "routing":
            steps = np.diff(offsets)[rows] - 1
            return np.where(np.array(decisions)[:, None], steps, 0), cost
        stop = np.empty_like(cost)
        for column, row in enumerate(rows.tolist()):
            tokens = self._curves.tokens[offsets[row] : offsets[row + 1]]
            last = [tokens[-1] if cap is None else cap for cap in decisions]
            stop[:, column] = np.searchsorted(tokens, last, side="right") - 1
        return stop, cost

    def _trajectory(self, trajectory: int, seat: Seat) -> tuple[IntArray, IntArray]:
        start, end = self._curves.trajectory_offsets[trajectory : trajectory + 2].tolist()
        stop = np.full((self._settings, 1), end - 1 - start, np.int64)
        place = int(self._place_s[trajectory])
        cost = np.full((self._settings, 1), self._question_cost[place], np.int64)
        alive = list(range(self._settings))
        seat.begin(self._questions[place])
        # At k = n the thinking has ended by itself: there is nothing to decide.
        for row in range(start, end - 1):
            signals = {name: v[row] for name, v in self._dealt.position_signals.items()}
            stopping, paying = seat.step(int(self._curves.tokens[row]), signals, alive)
            cost[paying, 0] += self._position_cost[row]
            if stopping:
                stop[stopping, 0] = row - start
                stopped = set(stopping)
                alive = [index for index in alive if index not in stopped]
                if not alive:
                    break
        return stop, cost


def _questions(measurements: Measurements, lot_q: npt.NDArray[np.float64]) -> list[PlayedQuestion]:
    curves = measurements.curves
    numbers, first = np.unique(curves.question, return_index=True)
    names = curves.benchmark_names
    return [
        PlayedQuestion(
            benchmark=names[curves.benchmark[s]] if names else str(curves.benchmark[s]),
            lot=float(lot_q[number]),
            signals={name: v[place] for name, v in measurements.question_signals.items()},
        )
        for place, (number, s) in enumerate(zip(numbers.tolist(), first.tolist(), strict=True))
    ]


def _position_costs(method: MethodDescription, measurements: Measurements) -> IntArray:
    """Return the tokens that the method's signals take at each position."""
    costs = np.zeros(measurements.curves.positions, np.int64)
    for source in cost_sources(method.needs, "position"):
        costs += 1 if source == PASS else measurements[source].astype(np.int64)
    return costs


def _question_costs(method: MethodDescription, measurements: Measurements) -> IntArray:
    """Return the tokens that the method's question signals take, for each of its trajectories."""
    costs = np.zeros(measurements.questions.size, np.int64)
    for source in cost_sources(method.needs, "question"):
        costs += 1 if source == PASS else measurements[source].astype(np.int64)
    return costs
