"""How all commands show their progress: the current stage, and the time that it has left.

On a terminal it is a bar; elsewhere, and on a terminal that cannot move its cursor, a line every
few seconds, also while work reports nothing. Work may have dozens of stages: a bar for each would
fill the terminal. Nothing heavy is imported here, so that something is to be seen at once.
"""

import contextlib
import math
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from data.progress import Progress
from stp.cli.early_lines import LOOKS_EVERY_SECONDS, SECONDS_BETWEEN_LINES, progress_is_shown
from stp.cli.lines import duration, printable

SECONDS_BETWEEN_LATER_LINES = 10.0
LATER_SECONDS = 600.0
"""From when on lines come seldom: the log of a night must stay readable."""

LEAST_FRACTION = 0.05
"""The first pieces also compile and warm up, and say little about the rest."""


@contextlib.contextmanager
def shown_progress(console: Console | None = None, *, at_once: bool = False) -> Iterator["Screen"]:
    """Yield who shows how far work is; the bar goes when the work is done.

    Parameters
    ----------
    console
        Where; left out: the error stream.
    at_once
        The first stage is a line at once, if there is no bar; else the first line comes after
        some seconds, and short work says nothing.
    """
    quiet_since = progress_is_shown()
    console = console or Console(stderr=True, highlight=False)
    screen = Screen(console, at_once=at_once, quiet_since=quiet_since)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(LOOKS_EVERY_SECONDS):
            screen.beat()

    threading.Thread(target=beat, name="progress lines", daemon=True).start()
    try:
        yield screen
    finally:
        ended.set()
        screen.stop()


class _Bars(Bars):
    """Each stage at work on a line of its own, so that no name is cut, and its bar below."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the two of each."""
        for task in self.tasks:
            yield Text(task.description)
            yield self.make_tasks_table([task])


@dataclass(slots=True)
class _AtWork:
    """A stage at work: when and where it began, and what lines said of it."""

    begin: float
    start: float
    line_at: float
    spoken: float | None = None
    counted: str = ""

    def left(self, now: float, done: float, total: int) -> float | None:
        """Return how many seconds are left at the pace so far; None while too little is known."""
        gained = done - self.start
        if gained <= LEAST_FRACTION * total or done >= total:
            return None
        return (now - self.begin) * (total - done) / gained

    def due(self, now: float, done: float, total: int, pause: float) -> bool:
        """Return whether it is time for a line, or for the last one of a stage that had some."""
        if now - self.line_at >= pause:
            return done != self.spoken
        return self.spoken is not None and self.spoken < total <= done


class Screen(Progress):
    """The progress of a command, shown on a console.

    Parameters
    ----------
    console
        A terminal gets a bar, anything else lines.
    at_once
        See :func:`shown_progress`.
    quiet_since
        When the last line before was said, by the monotonic clock; left out: just now.
    """

    def __init__(
        self, console: Console, *, at_once: bool = False, quiet_since: float | None = None
    ) -> None:
        super().__init__(self.show)
        self.console = console
        self._moves = console.is_terminal and not console.is_dumb_terminal
        self._bar: _Bars | None = None
        self._at_work: dict[str, _AtWork] = {}
        self._begin = time.monotonic()
        self._between = "starting"
        self._quiet_since = self._begin if quiet_since is None else quiet_since
        self._between_since = self._quiet_since
        self._last = -math.inf if at_once else self._quiet_since
        self._lock = threading.RLock()

    def show(
        self,
        stage: str,
        done: float,
        total: int,
        *,
        unit: str = "",
        rate: str = "",
        left: float | None = None,
        beside: bool = False,
    ) -> None:
        """Show how far a stage is.

        Parameters
        ----------
        stage
            Its name; it may hold untrusted text.
        done, total
            The amount done, and the total; 0: the total is not known.
        unit
            What is counted.
        rate
            How fast it goes, in words.
        left
            Seconds left, if the caller has a better estimate than the pace since the stage began.
        beside
            Other stages are at work at the same time, and stay until their :meth:`end`.
        """
        with self._lock:
            now = time.monotonic()
            if not beside:
                for other in self._at_work.keys() - {stage}:
                    self.end(other)
            if stage not in self._at_work:
                since = now if beside else self._last
                self._at_work[stage] = _AtWork(begin=now, start=done, line_at=since)
            work = self._at_work[stage]
            work.counted = f": {done:,.0f} of {total:,} {unit}".rstrip() + "," if total else ":"
            if left is None:
                left = work.left(now, done, total)
            if self._moves:
                self._draw(stage, done, total, rate, left)
            elif work.due(now, done, total, self._pause(now)):
                self.say(_line(stage, done, total, unit, rate, left, now - work.begin))
                work.line_at = now
                work.spoken = done

    def meanwhile(self, name: str) -> None:
        """Say what is going on while no stage is at work."""
        with self._lock:
            self._between, self._between_since = name, time.monotonic()

    def beat(self) -> None:
        """Print a line if nothing was printed for a while: long work may report nothing."""
        with self._lock:
            now = time.monotonic()
            if self._moves or now - max(self._last, self._quiet_since) < self._pause(now):
                return
            name, begin, counted = self._between, self._between_since, ":"
            for stage, work in self._at_work.items():
                name, begin, counted = stage, work.begin, work.counted
                work.line_at = now
            self.say(f"{name}{counted} {duration(now - begin)} elapsed")

    def _pause(self, now: float) -> float:
        """Return how many seconds there are between lines now."""
        later = now - self._begin > LATER_SECONDS
        return SECONDS_BETWEEN_LATER_LINES if later else SECONDS_BETWEEN_LINES

    def end(self, stage: str) -> None:
        """Show a stage no longer."""
        with self._lock:
            self._at_work.pop(stage, None)
            self._between_since = time.monotonic()
        for task in list(self._bar.tasks) if self._bar is not None else ():
            if self._bar is not None and task.description == printable(stage):
                self._bar.remove_task(task.id)

    def _draw(self, stage: str, done: float, total: int, rate: str, left: float | None) -> None:
        if self._bar is None:
            words = TextColumn("{task.fields[how]}", style="cyan", markup=False)
            self._bar = _Bars(
                BarColumn(bar_width=None), words, console=self.console, transient=True
            )
            self._bar.start()
        name = printable(stage)
        tasks = {task.description: task.id for task in self._bar.tasks}
        task = tasks[name] if name in tasks else self._bar.add_task(name, total=None, how="")
        parts = [f"{int(100 * done / total)} %"] if total else []
        parts += [part for part in (rate, left is not None and f"{duration(left)} left") if part]
        how = ", ".join(parts)
        self._bar.update(task, completed=done, total=total or None, how=how)

    def say(self, line: str) -> None:
        """Print a line above the bar, as plain text: it may hold untrusted names."""
        with self._lock:
            self._last = time.monotonic()
            self.console.print(printable(line), markup=False, soft_wrap=True, highlight=False)

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
        # One that began again would go up over what was printed since.
        self._bar = None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the bar while something else is printed."""
        self.stop()
        yield


def _line(
    stage: str, done: float, total: int, unit: str, rate: str, left: float | None, elapsed: float
) -> str:
    """Return a line that always has a time: the time left, or the time passed."""
    if not total:
        return stage
    parts = [f"{stage}: {done:,.0f} of {total:,} {unit}".rstrip(), rate]
    if done < total:
        parts.append(f"{duration(elapsed)} elapsed" if left is None else f"{duration(left)} left")
    return ", ".join(filter(None, parts))
