"""How a run is shown while it goes: a bar per stage on a terminal, plain lines elsewhere."""

import contextlib
import logging
import math
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

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


class _LeftColumn(ProgressColumn):
    """Expected time left."""

    def render(self, task: Task) -> Text:
        left = task.fields.get("left")
        seconds = left.seconds(time.monotonic()) if isinstance(left, TimeLeft) else None
        if task.finished or seconds is None:
            return Text("")
        return Text(f"{duration(seconds)} left", style="cyan")


class _RateColumn(ProgressColumn):
    """Samples and tokens a second since the stage began."""

    def render(self, task: Task) -> Text:
        elapsed = task.finished_time or task.elapsed
        shown = task.fields.get("shown")
        if not elapsed or not isinstance(shown, _Shown) or not shown.samples:
            return Text("")
        return Text(shown.rate(elapsed), style="dim")


@dataclass(slots=True)
class _Shown:
    """A stage on its way: trajectories that are done, samples and tokens, and the time left."""

    total: int
    start: int
    done: int
    left: TimeLeft
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

    def rate(self, seconds: float) -> str:
        """Return samples a second, and tokens a second where there are any."""
        shown = rate(self.samples / seconds)
        return f"{shown}, {per_second(self.tokens / seconds)} tokens/s" if self.tokens else shown


class BarObserver:
    """Shows a bar for each stage, with rate and time left, in trajectories."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stages: dict[Stage, tuple[TaskID, _Shown]] = {}

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Add the stage's bar."""
        shown = _Shown(total, done, done, TimeLeft(total - done, time.monotonic()))
        task = self._progress.add_task(
            f"{_DOING[stage]:<10}", total=total, completed=done, shown=shown
        )
        self._stages[stage] = task, shown

    def unit_progressed(
        self, stage: Stage, unit: Unit, fraction: float, samples: int, tokens: int
    ) -> None:
        """Move the bar within the unit."""
        task, shown = self._stages[stage]
        shown.progressed(unit, fraction, samples, tokens)
        self._progress.update(task, completed=shown.completed)

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Move the bar to the unit's end."""
        task, shown = self._stages[stage]
        shown.finished(unit)
        self._progress.update(task, completed=shown.completed)

    def stage_finished(self, stage: Stage) -> None:
        """Nothing: a full bar says it."""


class LineObserver:
    """Prints a line when a stage starts and ends, and now and then between."""

    def __init__(self, console: Console) -> None:
        self._lines = Lines(console)
        self._stages: dict[Stage, _Shown] = {}

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Say where the stage begins."""
        now = time.monotonic()
        self._stages[stage] = _Shown(total, done, done, TimeLeft(total - done, now))
        self._lines.begin(now, done)
        self._lines.say(now, f"{_DOING[stage]}: {done:,} of {total:,} trajectories are done")

    def unit_progressed(
        self, stage: Stage, unit: Unit, fraction: float, samples: int, tokens: int
    ) -> None:
        """Say how far all stages are, if the last line is long ago."""
        self._stages[stage].progressed(unit, fraction, samples, tokens)
        if self._lines.due(time.monotonic()):
            for each, shown in self._stages.items():
                if shown.done < shown.total and shown.left.under_way:
                    self._line(each, shown)

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Count the unit."""
        self._stages[stage].finished(unit)

    def stage_finished(self, stage: Stage) -> None:
        """Say that it is done."""
        shown = self._stages[stage]
        if shown.done > shown.start:
            self._line(stage, shown)

    def _line(self, stage: Stage, shown: _Shown) -> None:
        now = time.monotonic()
        elapsed = max(self._lines.elapsed(now), 1e-9)
        seconds = shown.left.seconds(now)
        left = duration(seconds) if seconds is not None else "unknown time"
        self._lines.say(
            now,
            f"{_DOING[stage]}: {shown.completed:,.0f} of {shown.total:,} trajectories, "
            f"{shown.rate(elapsed)}, {left} left",
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
