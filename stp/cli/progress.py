"""How a run is shown while it goes: a bar per stage on a terminal, plain lines elsewhere."""

import contextlib
import logging
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
    TimeRemainingColumn,
)
from rich.text import Text

from stp.campaign.run import Observer
from stp.campaign.tables import Work
from stp.campaign.units import Stage, Unit

_SECONDS_BETWEEN_LINES = 10.0
_DOING: dict[Stage, str] = {
    "generate": "generating",
    "probe": "probing",
    "grade": "grading",
    "signals": "signals",
}


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
        self._samples = 0
        self._done = 0.0

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Add the stage's bar."""
        self._samples, self._done = 0, float(done)
        self._task = self._progress.add_task(
            f"{_DOING[stage]:<10}", total=total, completed=done, samples=0
        )

    def unit_progressed(self, stage: Stage, unit: Unit, fraction: float, samples: int) -> None:
        """Move the bar within the unit."""
        self._samples += samples
        completed = self._done + fraction * unit.trajectories
        self._progress.update(self._task, completed=completed, samples=self._samples)

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Move the bar to the unit's end."""
        self._done += unit.trajectories
        self._progress.update(self._task, completed=self._done, samples=self._samples)

    def stage_finished(self, stage: Stage) -> None:
        """Nothing: a full bar says it."""


class LineObserver:
    """Prints a line when a stage starts and ends, and now and then between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begin = self._last = 0.0
        self._start = self._done = self._total = self._samples = 0

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Say where the stage begins."""
        self._begin = self._last = time.monotonic()
        self._start = self._done = done
        self._total, self._samples = total, 0
        self._console.print(f"{_DOING[stage]}: {done:,} of {total:,} trajectories are done")

    def unit_progressed(self, stage: Stage, unit: Unit, fraction: float, samples: int) -> None:
        """Say how far it is, if the last line is long ago."""
        self._samples += samples
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._line(stage, self._done + fraction * unit.trajectories)

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Count the unit."""
        self._done += unit.trajectories

    def stage_finished(self, stage: Stage) -> None:
        """Say that it is done."""
        if self._done > self._start:
            self._line(stage, self._done)

    def _line(self, stage: Stage, done: float) -> None:
        self._last = time.monotonic()
        elapsed = max(self._last - self._begin, 1e-9)
        gained = done - self._start
        # The first few to end are the short ones, and say little about the rest.
        known = gained > 0.05 * (self._total - self._start)
        left = duration(elapsed * (self._total - done) / gained) if known else "unknown time"
        self._console.print(
            f"{_DOING[stage]}: {done:,.0f} of {self._total:,} trajectories, "
            f"{rate(self._samples / elapsed)}, {left} left"
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
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} trajectories"),
            _RateColumn(),
            TimeElapsedColumn(),
            TextColumn("left", style="dim"),
            TimeRemainingColumn(),
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
    digits = 0 if samples_per_second >= 10 else 1
    return f"{samples_per_second:,.{digits}f} samples/s"


def duration(seconds: float) -> str:
    """Return a time as a person would say it.

    Examples
    --------
    >>> duration(12.3), duration(125), duration(7300)
    ('12 s', '2 min 05 s', '2 h 01 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"
