"""Several units under way over one engine, so that it never runs dry at a unit's edge.

While the last samples of one unit end, the trees of the next ones are handed over, as many as the
engine wants; units that were begun first go first. What is in memory is bounded by the window: so
many units, with what their samples have written so far.

An engine that dies costs the units in flight: they begin again. A request that fails costs its
unit alone. A unit whose last attempt it is, after engines that died with it, is tried when nothing
else is in flight and with one tree after the other: if it fails again, it is
known which of its trajectories caused it, and no other unit is blamed.
"""

import contextlib
import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from data.errors import EngineError, MisuseError
from stp.campaign.asks import Ask, Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.jobs import Done, OnTask, Tasks, UnitTask
from stp.campaign.prepare import Subject
from stp.campaign.tables import Work
from stp.campaign.units import Unit
from stp.campaign.workers import EngineRoom
from stp.engines.base import EndedTree, Engine, Made, RequestError, Usage

_LOG = logging.getLogger(__name__)

_FAILURES = (EngineError, RuntimeError, OSError)
"""What an engine that dies raises: our own errors, and those of its library."""

_BEGUN_PER_ROW = 8
"""Trajectories in units under way, per row of the engine. The longest of a unit is several times
as long as the mean, and holds its unit all that time."""

_LEAST_UNITS = 3


def window_of(engine: Engine, unit: Unit, asked: int | None) -> int:
    """Return how many units may be under way at once.

    Parameters
    ----------
    engine
        What runs them. One that repeats exactly gets one unit at a time.
    unit
        One of them, for its size.
    asked
        The configuration's number; None leaves it to the engine.
    """
    if asked is not None:
        return asked
    if engine.repeats_exactly:
        return 1
    return max(_LEAST_UNITS, -(-_BEGUN_PER_ROW * engine.rows // max(1, unit.trajectories)))


def may_wait(ready: int, *, engines: int, under_way: int) -> bool:
    """Return whether an engine that has enough for its rows may be given another task.

    It waits there until rows are free. So that no engine takes what another one's rows could begin
    at once, this is only so while each could be given as many tasks as this one has.

    Parameters
    ----------
    ready
        Tasks that can be begun now.
    engines
        That share them, those that have yet to start among them.
    under_way
        Tasks that this engine has.
    """
    return engines == 1 or ready > engines * under_way


class Room(Protocol):
    """Where a stream's engine is: an :class:`stp.campaign.workers.EngineRoom`, or a stand-in."""

    @property
    def attempts(self) -> int:
        """How often a unit is tried."""

    @property
    def retry_seconds(self) -> float:
        """The wait before the second time, which doubles from then on."""

    def engine(self, name: str, /) -> Engine:
        """Return the engine of a model, opened if it is not."""

    def subject(self, name: str, /) -> Subject:
        """Return how a model is prompted."""

    def drop(self) -> None:
        """Close an engine that failed."""


@dataclass(slots=True, eq=False)
class _Running:
    """A task under way: its job, what it asks now, and what has come of that.

    ``tickets`` are its trees in the engine, with their indices in the ask.
    """

    task: UnitTask
    began: float
    attempt: int = 1
    again_at: float = 0.0
    asking: Asking[tuple[pa.Table, ...]] | None = None
    ask: Ask | None = None
    given: int = 0
    tickets: dict[int, int] = field(default_factory=dict)
    made: dict[int, Made] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    samples: int = 0


class Stream:
    """Runs tasks of one model over the engine of a room.

    Parameters
    ----------
    room
        Opens engines.
    config
        The campaign.
    on_progress
        Told how far tasks are.
    """

    def __init__(self, room: Room, config: CampaignConfig, on_progress: OnTask) -> None:
        self._room = room
        self._config = config
        self._on_progress = on_progress
        self._engine: Engine | None = None
        self._running: list[_Running] = []
        self._ready: list[tuple[int, int, _Running]] = []
        self._serial = itertools.count()
        self._owners: dict[int, _Running] = {}
        self._paused: list[_Running] = []
        self._suspects: list[_Running] = []
        self._alone: _Running | None = None
        self._done: list[Done] = []
        self._failure: EngineError | None = None
        self._at_work = False
        # Seconds at work, each divided by the tasks that were under way in it: what a task took
        # adds up to the whole.
        self._clock = self._ticked = 0.0

    def __len__(self) -> int:
        """Return the number of tasks under way."""
        return len(self._running)

    @property
    def empty(self) -> bool:
        """Whether nothing is under way."""
        return not self._running and not self._done

    @property
    def failed(self) -> bool:
        """Whether a task failed too often: no more is begun, and :meth:`step` raises in the end."""
        return self._failure is not None

    @property
    def model(self) -> str | None:
        """The model of what is under way; None if nothing is."""
        return self._running[0].task.unit.cell.model if self._running else None

    @property
    def wants(self) -> bool:
        """Whether another task should be begun, if there is one."""
        if self._failure is not None or self._suspects or self._alone is not None:
            return False
        if not self._running or self._engine is None:
            return not self._running
        room = len(self._running) < self.window and not self._ready
        return room and self._engine.wants_more

    @property
    def runs_short(self) -> bool:
        """Whether rows stay empty if no other task is begun."""
        return self.wants and (self._engine is None or self._engine.rows_to_spare)

    @property
    def pause_seconds(self) -> float | None:
        """How long nothing but waiting is left, until what failed may begin again.

        None while something is at work, or nothing is under way.
        """
        waiting = len(self._paused) + len(self._suspects)
        if not waiting or waiting < len(self._running):
            return None
        # A suspect is tried alone, after all others.
        first = min(running.again_at for running in self._paused or self._suspects[:1])
        return max(0.0, first - time.monotonic())

    @property
    def window(self) -> int:
        """How many units may be under way; 1 as long as that is not known."""
        if not self._running or self._engine is None:
            return 1
        asked = self._config.engine.units_in_flight
        return window_of(self._engine, self._running[0].task.unit, asked)

    def begin(self, task: UnitTask) -> None:
        """Take a task and hand over its trees, as many as the engine wants.

        Its model must be that of what is under way.

        Raises
        ------
        data.errors.StpError
            If the engine cannot be opened, or what is to be asked is wrong.
        """
        running = _Running(task, self._clock)
        self._running.append(running)
        with self._timed():
            self._start(running)
            # At once: a step of a server's engine is as long as its shortest request, and rows
            # that another task could fill would be empty all that time.
            if self._engine is not None:
                self._supply(self._engine)

    def let_go(self) -> None:
        """Give up what waits to begin again: it is left for another run."""
        for running in [*self._paused, *self._suspects]:
            self._leave(running)
        self._paused, self._suspects = [], []

    def step(self) -> list[Done]:
        """Let the engine work a little; return the tasks that are done.

        Where there is a pause (:attr:`pause_seconds`), whoever calls waits for its end.

        Raises
        ------
        data.errors.EngineError
            If a task failed too often; the others that were under way are done by then.
        data.errors.MisuseError
            If the engine says that a request is wrong.
        """
        with self._timed():
            self._begin_again()
            if self._engine is not None:
                self._work(self._engine)
        done, self._done = self._done, []
        if self._failure is not None and not self._running and not done:
            raise self._failure
        return done

    def signs(self) -> Hashable | None:
        """Return what changes while the engine lives; None while it is not at work."""
        engine = self._engine
        if not self._at_work or engine is None:
            return None
        return engine.pulse, engine.usage.prefill_tokens, engine.usage.generated_tokens

    def names(self) -> str:
        """Name what is under way."""
        return _names(self._running)

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        self._ticked = time.monotonic()
        self._at_work = True
        try:
            yield
        finally:
            self._at_work = False
            self._tick()

    def _tick(self) -> None:
        now = time.monotonic()
        self._clock += (now - self._ticked) / max(1, len(self._running))
        self._ticked = now

    # -- jobs ----------------------------------------------------------------------------------

    def _start(self, running: _Running) -> None:
        """Begin a task's job, or begin it again."""
        task = running.task
        self._engine = engine = self._room.engine(task.unit.cell.model)

        def on_progress(fraction: float, samples: int, tokens: int = 0, /) -> None:
            running.samples += samples
            self._on_progress(task, fraction, samples, tokens)

        subject = self._room.subject(task.unit.cell.model)
        asking = running.asking = task.job.ask(engine, subject, self._config, on_progress)
        self._go_on(running, lambda: next(asking))

    def _go_on(self, running: _Running, advance: Callable[[], Ask]) -> None:
        """Let a job say what it asks next, or what its rows are."""
        running.tickets, running.made, running.given = {}, {}, 0
        try:
            running.ask = advance()
        except StopIteration as end:
            self._finish(running, end.value)
        else:
            heapq.heappush(self._ready, (running.task.rank, next(self._serial), running))

    def _finish(self, running: _Running, tables: tuple[pa.Table, ...]) -> None:
        self._tick()
        self._leave(running)
        seconds = max(0.0, self._clock - running.began)
        work = Work(usage=running.usage, samples=running.samples, seconds=seconds)
        self._done.append(Done(task=running.task, tables=tables, work=work))

    def _leave(self, running: _Running) -> None:
        self._running.remove(running)
        if self._alone is running:
            self._alone = None

    def _begin_again(self) -> None:
        """Begin what failed again when its time has come; a suspect when it is alone."""
        now = time.monotonic()
        due = [running for running in self._paused if running.again_at <= now]
        self._paused = [running for running in self._paused if running.again_at > now]
        for running in due:
            self._start(running)
        alone = self._alone is None and len(self._suspects) == len(self._running)
        if alone and self._suspects and self._suspects[0].again_at <= now:
            self._alone = suspect = self._suspects.pop(0)
            self._start(suspect)

    # -- trees ---------------------------------------------------------------------------------

    def _work(self, engine: Engine) -> None:
        if not self._supply(engine):
            return
        try:
            progress = engine.step()
        except MisuseError:
            raise
        except _FAILURES as error:
            self._engine_failed(engine, error)
            return
        for ticket, (samples, tokens) in progress.samples.items():
            running = self._owners.get(ticket)
            if running is not None and running.ask is not None:
                running.ask.on_ended(samples, tokens)
        for entry in progress.trees:
            self._ended(engine, entry)

    def _supply(self, engine: Engine) -> bool:
        """Hand over trees; return whether the engine still lives."""
        try:
            self._feed(engine)
        except MisuseError:
            raise
        except _FAILURES as error:
            self._engine_failed(engine, error)
            return False
        return True

    def _feed(self, engine: Engine) -> None:
        """Hand over trees, those of the first units first, while the engine wants more."""
        while self._ready and engine.wants_more and not (self._alone and engine.busy):
            _, _, running = self._ready[0]
            trees = running.ask.trees if running.ask is not None else ()
            if running.given < len(trees):
                ticket = engine.submit(trees[running.given])
                self._owners[ticket] = running
                running.tickets[ticket] = running.given
                running.given += 1
            if running.given >= len(trees):
                heapq.heappop(self._ready)

    def _ended(self, engine: Engine, entry: EndedTree) -> None:
        running = self._owners.pop(entry.ticket, None)
        if running is None:
            return  # Another tree of its task has failed in the same step.
        running.usage = running.usage + entry.usage
        index = running.tickets.pop(entry.ticket)
        assert running.ask is not None and running.asking is not None
        if entry.error is not None:
            self._recall(engine, running)
            error = _named(running, entry.error, index)
            _LOG.warning(
                "attempt %d on %s failed: %s", running.attempt, running.task.unit, first_line(error)
            )
            self._again(running, error, suspect=False)
            return
        assert entry.made is not None
        running.made[index] = entry.made
        if len(running.made) == len(running.ask.trees):
            made = [running.made[number] for number in range(len(running.ask.trees))]
            asking = running.asking
            self._go_on(running, lambda: asking.send(made))

    # -- failures ------------------------------------------------------------------------------

    def _recall(self, engine: Engine, running: _Running) -> None:
        """Take a task's trees back from the engine."""
        for ticket in running.tickets:
            self._owners.pop(ticket, None)
        running.usage = running.usage + engine.drop(list(running.tickets))
        self._ready = [entry for entry in self._ready if entry[2] is not running]
        heapq.heapify(self._ready)

    def _engine_failed(self, engine: Engine, error: BaseException) -> None:
        """Let everything that was in flight begin again with another engine."""
        waiting = [*self._paused, *self._suspects]
        lost = [running for running in self._running if running not in waiting]
        if self._alone is not None and len(self._alone.tickets) == 1:
            (index,) = self._alone.tickets.values()
            error = _named(self._alone, error, index)
        with contextlib.suppress(*_FAILURES):
            for running in lost:
                running.usage = running.usage + engine.drop(list(running.tickets))
        self._owners, self._ready = {}, []
        self._room.drop()
        self._engine = None
        _LOG.warning(
            "attempt %d on %s failed: %s", lost[0].attempt, _names(lost), first_line(error)
        )
        for running in lost:
            self._again(running, error, suspect=True)

    def _again(self, running: _Running, error: BaseException, *, suspect: bool) -> None:
        """Have a task begun again, unless it has failed too often."""
        attempts = self._room.attempts
        if running.attempt >= attempts or self._failure is not None:
            self._leave(running)
            if self._failure is None:
                self._failure = EngineError(
                    f"the engine failed {running.attempt} times on {running.task.unit}: "
                    f"{first_line(error)}; nothing of it was graded: run the same "
                    "command again to continue there"
                )
                self._failure.__cause__ = error
            return
        # Other units continue meanwhile: a time to begin again at, where tenacity would sleep.
        wait = self._room.retry_seconds * 2 ** (running.attempt - 1)
        running.again_at = time.monotonic() + wait
        running.attempt += 1
        if self._alone is running:
            self._alone = None
        if suspect and running.attempt == attempts:
            self._suspects.append(running)
        else:
            self._paused.append(running)


class LocalPool:
    """One engine here, with a window of units under way.

    Parameters
    ----------
    room
        Opens the engine. Whoever made it closes it.
    config
        The campaign.
    """

    def __init__(self, room: EngineRoom, config: CampaignConfig) -> None:
        self._room = room
        self._config = config

    def run(self, tasks: Tasks, stop: threading.Event, on_progress: OnTask) -> Iterator[Done]:
        """Do tasks; see :meth:`stp.campaign.jobs.Pool.run`."""
        stream = Stream(self._room, self._config, on_progress)
        with self._room.watchdog.watching(stream.signs, stream.names):
            while True:
                while not stop.is_set() and stream.wants:
                    task = tasks.take(stream.model, stream.window)
                    if task is None:
                        break
                    stream.begin(task)
                if stream.empty and not stream.failed:
                    return
                pause = stream.pause_seconds
                if pause is not None and stop.wait(pause):
                    stream.let_go()
                yield from stream.step()

    def close(self) -> None:
        """Do nothing: the caller closes the room."""


def _named(running: _Running, error: BaseException, index: int) -> BaseException:
    """Return an error of a tree as its job names it."""
    branch = error.branch if isinstance(error, RequestError) else None
    thrown = RequestError(str(error), tree=index, branch=branch)
    thrown.__cause__ = error
    assert running.asking is not None
    try:
        running.asking.throw(thrown)
    except EngineError as named:
        return named
    raise AssertionError("a job raises what is thrown into it")


def _names(running: list[_Running]) -> str:
    if not running:
        return "nothing"
    more = f" and {len(running) - 1} more units" if len(running) > 1 else ""
    return f"{running[0].task.unit}{more}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text; its class if it has none."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
