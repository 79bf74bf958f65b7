"""How work of many short stages is shown: only the stage at work, from the first moment on.

A run of methods has dozens of stages: a bar for each would fill the terminal, and the one at work
would be below its edge. Nothing heavy is imported here, so that something is to be seen at once.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import Protocol

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID
from rich.text import Text

from stp.cli.lines import LEAST_FRACTION, Lines, printable


class Shown(Protocol):
    """Shows the stage at work."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Say how much of a stage is done; a total of 0: nobody knows."""

    def aside(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which something else may be printed."""


@contextlib.contextmanager
def shown_one(console: Console) -> Iterator[Shown]:
    """Yield who shows the stage at work: a bar on a terminal, now and then a line elsewhere.

    The bar goes when the work is done. Elsewhere, and on a terminal that cannot move its cursor,
    the first stage is a line at once.
    """
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Lines(console)
        return
    bar = _Bar(console)
    try:
        yield bar
    finally:
        bar.stop()


def how_far(done: float, total: float | None, elapsed: float) -> str:
    """Return how far a stage is, in words.

    Examples
    --------
    >>> how_far(250, 1000, 20.4), how_far(10, 1000, 1.0), how_far(0, None, 75.0)
    ('25 %, 1:01 left', '1 %, 0:01', '1:15')
    """
    if not total:
        return _clock(elapsed)
    share = f"{int(100 * done / total)} %"
    if done <= LEAST_FRACTION * total:
        return f"{share}, {_clock(elapsed)}"
    return f"{share}, {_clock(elapsed * (total - done) / done)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
        if minutes >= 60
        else f"{minutes}:{rest:02d}"
    )


class _How(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Return how far the stage is."""
        return Text(how_far(task.completed, task.total, task.elapsed or 0.0), style="cyan")


class _OneBar(Progress):
    """The stage at work on a line of its own, so that no name is cut, and its bar below."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the two."""
        yield from (Text(task.description) for task in self.tasks)
        yield self.make_tasks_table(self.tasks)


class _Bar:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._stage = ""
        self._task = TaskID(0)
        self._progress: Progress | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._progress is None:
            self._progress = _OneBar(
                BarColumn(bar_width=None), _How(), console=self._console, transient=True
            )
            self._task = self._progress.add_task(printable(stage), total=None)
            self._progress.start()
        elif stage != self._stage:
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task(printable(stage), total=None)
        self._stage = stage
        self._progress.update(self._task, completed=done, total=total or None)

    def stop(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
        # One that began again would go up over what was printed since.
        self._progress = None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        self.stop()
        yield


class _Lines(Lines):
    _stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self._stage = stage
            self.begin(now)
        if self.due(now):
            far = f": {how_far(done, total, self.elapsed(now))}" if done and total else ""
            self.say(now, f"{stage}{far}")

    def aside(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()
