"""How a run is shown while it goes: a bar per stage on a terminal, plain lines elsewhere."""

import contextlib
import logging
import math
import time
from collections.abc import Iterator

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from stp.campaign.run import Observer
from stp.campaign.tables import Work
from stp.campaign.units import Stage, Unit
from stp.cli.lines import Lines, duration

__all__ = [
    "BarObserver",
    "LineObserver",
    "TimeLeft",
    "duration",
    "per_second",
    "rate",
    "shown_run",
]

_DOING: dict[Stage, str] = {
    "generate": "generating",
    "probe": "probing",
    "grade": "grading",
    "signals": "signals",
}


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


class _LeftColumn(ProgressColumn):
    """Expected time left."""

    def render(self, task: Task) -> Text:
        left = task.fields.get("left")
        seconds = left.seconds(time.monotonic()) if isinstance(left, TimeLeft) else None
        if task.finished or seconds is None:
            return Text("")
        return Text(f"{duration(seconds)} left", style="cyan")


class _RateColumn(ProgressColumn):
    """Samples a second since the stage began."""

    def render(self, task: Task) -> Text:
        elapsed = task.finished_time or task.elapsed
        samples = int(task.fields.get("samples", 0))
        if not elapsed or not samples:
            return Text("")
        return Text(rate(samples / elapsed), style="dim")


class BarObserver:
    """Shows a bar for each stage, with rate and time left, in trajectories."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = TaskID(0)
        self._left = TimeLeft(0, 0.0)
        self._samples = 0
        self._done = 0.0

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Add the stage's bar."""
        self._samples, self._done = 0, float(done)
        self._left = TimeLeft(total - done, time.monotonic())
        self._task = self._progress.add_task(
            f"{_DOING[stage]:<10}", total=total, completed=done, samples=0, left=self._left
        )

    def unit_progressed(self, stage: Stage, unit: Unit, fraction: float, samples: int) -> None:
        """Move the bar within the unit."""
        self._samples += samples
        self._left.progressed(unit.trajectories, fraction)
        completed = self._done + fraction * unit.trajectories
        self._progress.update(self._task, completed=completed, samples=self._samples)

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Move the bar to the unit's end."""
        self._left.finished(unit.trajectories, time.monotonic())
        self._done += unit.trajectories
        self._progress.update(self._task, completed=self._done, samples=self._samples)

    def stage_finished(self, stage: Stage) -> None:
        """Nothing: a full bar says it."""


class LineObserver:
    """Prints a line when a stage starts and ends, and now and then between."""

    def __init__(self, console: Console) -> None:
        self._lines = Lines(console)
        self._start = self._done = self._total = self._samples = 0
        self._left = TimeLeft(0, 0.0)

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Say where the stage begins."""
        now = time.monotonic()
        self._left = TimeLeft(total - done, now)
        self._start = self._done = done
        self._total, self._samples = total, 0
        self._lines.begin(now, done)
        self._lines.say(now, f"{_DOING[stage]}: {done:,} of {total:,} trajectories are done")

    def unit_progressed(self, stage: Stage, unit: Unit, fraction: float, samples: int) -> None:
        """Say how far it is, if the last line is long ago."""
        self._samples += samples
        self._left.progressed(unit.trajectories, fraction)
        if self._lines.due(time.monotonic()):
            self._line(stage, self._done + fraction * unit.trajectories)

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Count the unit."""
        self._left.finished(unit.trajectories, time.monotonic())
        self._done += unit.trajectories

    def stage_finished(self, stage: Stage) -> None:
        """Say that it is done."""
        if self._done > self._start:
            self._line(stage, self._done)

    def _line(self, stage: Stage, done: float) -> None:
        now = time.monotonic()
        elapsed = max(self._lines.elapsed(now), 1e-9)
        seconds = self._left.seconds(now)
        left = duration(seconds) if seconds is not None else "unknown time"
        self._lines.say(
            now,
            f"{_DOING[stage]}: {done:,.0f} of {self._total:,} trajectories, "
            f"{rate(self._samples / elapsed)}, {left} left",
        )


@contextlib.contextmanager
def shown_run(console: Console) -> Iterator[Observer]:
    """Yield who shows a run on a console; warnings of the library appear above the bars."""
    handler = RichHandler(
        console=console, show_time=False, show_path=False, level=logging.WARNING, markup=False
    )
    logger = logging.getLogger("stp")
    logger.addHandler(handler)
    try:
        if not console.is_terminal:
            yield LineObserver(console)
            return
        with Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} trajectories"),
            _RateColumn(),
            TimeElapsedColumn(),
            _LeftColumn(),
            console=console,
        ) as progress:
            yield BarObserver(progress)
    finally:
        logger.removeHandler(handler)


def rate(samples_per_second: float) -> str:
    """Return a rate, with a decimal where it is small.

    Examples
    --------
    >>> rate(1234.5), rate(0.26)
    ('1,234 samples/s', '0.3 samples/s')
    """
    return f"{per_second(samples_per_second)} samples/s"


def per_second(number: float) -> str:
    """Return a rate's number alone.

    Examples
    --------
    >>> per_second(1234.5), per_second(0.26)
    ('1,234', '0.3')
    """
    return f"{number:,.{0 if number >= 10 else 1}f}"
