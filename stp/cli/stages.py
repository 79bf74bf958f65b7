"""How a campaign's run is shown while it goes, in trajectories: its stages, one after the other."""

import contextlib
import logging
import math
import time
from collections.abc import Iterator

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
    "signals": "signals",
}
_UNIT = "trajectories"

_SMOOTHED_OVER_SECONDS = 20.0
_LEAST_FRACTION = 0.1


class TimeLeft:
    """When a stage will end, from what its units take.

    Finished units say how long a trajectory takes. Within a unit the short samples end first, so
    its own progress is believed only while there is nothing else, and the expected end is smoothed:
    a number on a screen that jumps says nothing.

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
        self._unit = 0
        self._fraction = 0.0
        self._end: float | None = None

    def progressed(self, unit_trajectories: int, fraction: float) -> None:
        """Take note of how far the unit in work is."""
        self._unit, self._fraction = unit_trajectories, fraction

    def finished(self, unit_trajectories: int, now: float) -> None:
        """Take note of a unit's end."""
        self._finished += unit_trajectories
        self._left -= unit_trajectories
        self._unit_begin, self._fraction = now, 0.0

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
        spent = now - self._unit_begin
        if self._finished:
            pace = (self._unit_begin - self._begin) / self._finished
            # A unit that takes longer than it should delays what comes after it, no more is known.
            return max(pace * self._left - spent, pace * max(0, self._left - self._unit), 0.0)
        done = self._fraction * self._unit
        if self._fraction < _LEAST_FRACTION or done <= 0:
            return None
        return spent * (self._left - done) / done


class StagesShown:
    """Shows each stage with its rate and the time it has left.

    Parameters
    ----------
    screen
        Where.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._left = TimeLeft(0, 0.0)
        self._start = self._done = self._total = self._samples = 0
        self._begin = 0.0

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Say where the stage begins."""
        self._begin = time.monotonic()
        self._left = TimeLeft(total - done, self._begin)
        self._start = self._done = done
        self._total, self._samples = total, 0
        self._screen.say(f"{_DOING[stage]}: {done:,} of {total:,} {_UNIT} are done")

    def unit_progressed(self, stage: Stage, unit: Unit, fraction: float, samples: int) -> None:
        """Show how far it is within the unit."""
        self._samples += samples
        self._left.progressed(unit.trajectories, fraction)
        done = self._done + fraction * unit.trajectories
        now = time.monotonic()
        seconds, pace = self._left.seconds(now), self._pace(now)
        self._screen.show(_DOING[stage], done, self._total, unit=_UNIT, rate=pace, left=seconds)

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Count the unit."""
        self._left.finished(unit.trajectories, time.monotonic())
        self._done += unit.trajectories

    def stage_finished(self, stage: Stage) -> None:
        """Say that it is done."""
        if self._done > self._start:
            pace = self._pace(time.monotonic())
            self._screen.say(f"{_DOING[stage]}: {self._done:,} of {self._total:,} {_UNIT}, {pace}")

    def _pace(self, now: float) -> str:
        return f"{per_second(self._samples / max(now - self._begin, 1e-9))} samples/s"


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
            yield StagesShown(screen)
    finally:
        logger.removeHandler(handler)
