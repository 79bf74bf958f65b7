"""How a campaign's run is shown while it goes, in trajectories: its stages, one after the other."""

import contextlib
import logging
import math
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.logging import RichHandler

from stp.campaign.run import Observer
from stp.campaign.tables import Work
from stp.campaign.units import Stage, Unit
from stp.cli.lines import per_second
from stp.cli.progress import Screen, shown_progress

_DOING: dict[Stage, str] = {
    "generate": "generating",
    "probe": "probing",
    "grade": "grading",
    "rounds": "probing more",
    "signals": "signals",
}
_UNIT = "trajectories"

_SMOOTHED_OVER_SECONDS = 20.0
_LEAST_FRACTION = 0.1


class TimeLeft:
    """When a stage will end, estimated from its units.

    Finished units say how long a trajectory takes, and where several units are under way, what is
    done of each counts too. Within a unit the short samples end first, so the progress of one that
    is alone is believed only while there is nothing else, and the expected end is smoothed: a
    number on a screen that jumps says nothing.

    Parameters
    ----------
    trajectories
        Left when the stage begins.
    now
        The time then, in seconds.
    """

    def __init__(self, trajectories: int, now: float) -> None:
        self._left = trajectories
        self._begin = self._unit_begin = self._looked = now
        self._finished = 0
        self._under_way: dict[Hashable, tuple[int, float]] = {}
        self._end: float | None = None

    @property
    def under_way(self) -> float:
        """Trajectories that are done in units under way."""
        return sum(trajectories * fraction for trajectories, fraction in self._under_way.values())

    def progressed(self, unit: Hashable, trajectories: int, fraction: float) -> None:
        """Take note of how far a unit under way is."""
        self._under_way[unit] = trajectories, fraction

    def finished(self, unit: Hashable, trajectories: int, now: float) -> None:
        """Take note of a unit's end."""
        self._finished += trajectories
        self._left -= trajectories
        self._unit_begin = now
        self._under_way.pop(unit, None)

    def seconds(self, now: float) -> float | None:
        """Return the expected time left; None while too little is known."""
        if self._left <= 0:
            return 0.0
        expected = self._expected(now)
        if expected is None:
            return None
        if self._end is None:
            self._end = now + expected
        else:
            weight = 1.0 - math.exp(-(now - self._looked) / _SMOOTHED_OVER_SECONDS)
            self._end += weight * (now + expected - self._end)
        self._looked = now
        return max(0.0, self._end - now)

    def _expected(self, now: float) -> float | None:
        done = self.under_way
        if self._finished and len(self._under_way) <= 1:
            spent = now - self._unit_begin
            pace = (self._unit_begin - self._begin) / self._finished
            unit = max((trajectories for trajectories, _ in self._under_way.values()), default=0)
            # A unit that takes longer than it should delays what comes after it, no more is known.
            return max(pace * self._left - spent, pace * max(0, self._left - unit), 0.0)
        begun = sum(trajectories for trajectories, _ in self._under_way.values())
        if self._finished + done < _LEAST_FRACTION * (self._finished + begun) or not done:
            return None
        return (now - self._begin) * (self._left - done) / (self._finished + done)


@dataclass(slots=True)
class _Shown:
    """A stage on its way: trajectories that are done, samples and tokens, and the time left."""

    total: int
    start: int
    done: int
    left: TimeLeft
    begin: float
    samples: int = 0
    tokens: int = 0

    @property
    def completed(self) -> float:
        """Trajectories that are done, those in units under way too."""
        return min(self.total, self.done + self.left.under_way)

    def progressed(self, unit: Unit, fraction: float, samples: int, tokens: int) -> None:
        """Take note of what ended in a unit."""
        self.samples += samples
        self.tokens += tokens
        self.left.progressed(unit, unit.trajectories, fraction)

    def finished(self, unit: Unit) -> None:
        """Take note of a unit's end."""
        self.done += unit.trajectories
        self.left.finished(unit, unit.trajectories, time.monotonic())

    def rate(self) -> str:
        """Return samples a second, and tokens a second if there are any."""
        seconds = max(time.monotonic() - self.begin, 1e-9)
        rates = [f"{per_second(self.samples / seconds)} samples/s"]
        if self.tokens:
            rates.append(f"{per_second(self.tokens / seconds)} tokens/s")
        return ", ".join(rates)


class StagesShown:
    """Shows stages, several of which may be under way, with rates and the time that each has left.

    Parameters
    ----------
    screen
        Where.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._stages: dict[Stage, _Shown] = {}

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Say where the stage begins."""
        now = time.monotonic()
        left = TimeLeft(total - done, now)
        self._stages[stage] = _Shown(total, start=done, done=done, left=left, begin=now)
        self._screen.meanwhile(_DOING[stage])
        self._screen.say(f"{_DOING[stage]}: {done:,} of {total:,} {_UNIT} are done")

    def unit_progressed(
        self, stage: Stage, unit: Unit, fraction: float, samples: int, tokens: int
    ) -> None:
        """Show how far the stage is, units under way counted too."""
        shown = self._stages[stage]
        shown.progressed(unit, fraction, samples, tokens)
        self._show(stage, shown)

    def _show(self, stage: Stage, shown: _Shown) -> None:
        self._screen.show(
            _DOING[stage],
            shown.completed,
            shown.total,
            unit=_UNIT,
            rate=shown.rate(),
            left=shown.left.seconds(time.monotonic()),
            beside=True,
        )

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Count the unit."""
        shown = self._stages[stage]
        shown.finished(unit)
        self._show(stage, shown)

    def stage_finished(self, stage: Stage) -> None:
        """Say that it is done."""
        shown = self._stages[stage]
        self._screen.end(_DOING[stage])
        if shown.done > shown.start:
            done = f"{shown.done:,} of {shown.total:,} {_UNIT}"
            self._screen.say(f"{_DOING[stage]}: {done}, {shown.rate()}")
        self._screen.meanwhile("summing up")


@contextlib.contextmanager
def shown_run(console: Console) -> Iterator[Observer]:
    """Yield who shows a run on a console; warnings of the library appear above the bar."""
    handler = RichHandler(
        console=console, show_time=False, show_path=False, level=logging.WARNING, markup=False
    )
    logger = logging.getLogger("stp")
    logger.addHandler(handler)
    try:
        with shown_progress(console) as screen:
            screen.meanwhile("preparing: models, questions, prompts")
            yield StagesShown(screen)
    finally:
        logger.removeHandler(handler)
