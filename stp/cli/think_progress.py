"""How far a work of one stage is: a bar on a terminal, plain lines elsewhere."""

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from stp.cli.lines import Lines, duration, printable


@contextlib.contextmanager
def shown_progress(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yield who is told how far a work is: a bar on a terminal, a line now and then elsewhere."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(console, title, unit)
        return
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} " + unit),
        TimeElapsedColumn(),
        TextColumn("left", style="dim"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task(printable(title), total=1, completed=0)
        yield lambda done, total: progress.update(task, completed=done, total=total)


class _Lines(Lines):
    """Prints a line when a work begins and ends, and now and then between."""

    def __init__(self, console: Console, title: str, unit: str) -> None:
        super().__init__(console)
        self._title, self._unit = title, unit
        self._shown: int | None = None

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._shown is None:
            self.begin(now, done)
        elif done == self._shown or (done < total and not self.due(now)):
            return
        self._shown = done
        seconds = self.left(now, done, total) if done < total else None
        left = "" if seconds is None else f", {duration(seconds)} left"
        self.say(now, f"{self._title}: {done:,} of {total:,} {self._unit}{left}")
