"""How long work without a campaign's stages is shown: bars on a terminal, plain lines elsewhere."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from evaluator.watch import Watch
from stp.cli.lines import Lines, duration, printable


@contextlib.contextmanager
def shown_stages(console: Console) -> Iterator[Watch]:
    """Yield who shows stages on a console, one after the other, with the time that each has left.

    Bars go when the work is done. Where the console is no terminal, a line says now and then how
    far a stage is; short stages say nothing.
    """
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left", style="dim"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as progress:
        yield _Bars(progress)


class _Bars:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(printable(stage), total=None)
        self._progress.update(self._tasks[stage], completed=done, total=total or None)


class _Lines(Lines):
    _stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self._stage = stage
            self.begin(now, done)
            self.wait(now)
        if not done or not self.due(now):
            return
        seconds = self.left(now, done, total)
        left = duration(seconds) if seconds is not None else "unknown time"
        self.say(now, f"{stage}: {done:,} of {total:,}, {left} left")
