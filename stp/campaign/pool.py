"""Units on many GPUs and machines: a pool of engine actors on a Ray cluster.

Only the driver reads and writes the campaign's folder; an actor gets jobs with the rows that they
need and gives rows back, with several units under way at once (:mod:`stp.campaign.stream`). So
nodes need the models (a path or hub id that they can read), not the folder. A unit whose actor or
node is lost is given to another; what is asked for it depends on the unit alone.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from data.errors import (
    EngineError,
    MissingDependencyError,
    MisuseError,
    StoreMismatchError,
    StpError,
)
from stp.campaign.config import CampaignConfig
from stp.campaign.jobs import Done, OnTask, Tasks, UnitTask
from stp.campaign.manifest import Manifest
from stp.campaign.models import locate_model, record_model
from stp.campaign.prepare import Prepared
from stp.campaign.stream import Stream, first_line, may_wait
from stp.campaign.tables import Work
from stp.campaign.watchdog import Watchdog
from stp.campaign.workers import EngineOpener, EngineRoom

_LOG = logging.getLogger(__name__)

_WAIT_SECONDS = 1.0
"""How often the driver looks whether it was asked to stop."""

_NO_NODE_SECONDS = 10.0
"""How long a cluster may be without any node while no actor runs."""

_LOOK_SECONDS = 0.01
"""How often an actor looks whether its engine wants more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """What an actor made of a job."""

    tables: tuple[pa.Table, ...]
    work: Work
    engine: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Failed:
    """One of our own errors, as a value: not every exception survives the way between processes."""

    error: type[StpError]
    message: str


_Future: TypeAlias = "concurrent.futures.Future[_Made | _Failed]"


class _Actor:
    """Runs tasks with the engine of their model. Lives on a node of the cluster.

    The engine works in a thread of its own, so that tasks can come and results can go while it
    does: it never waits for the driver as long as it has enough.
    """

    def __init__(
        self, config: CampaignConfig, manifest: Manifest, open_model: EngineOpener
    ) -> None:
        self._config = config
        self._manifest = manifest
        self._open_model = open_model
        self._room: EngineRoom | None = None
        self._inbox: queue.SimpleQueue[tuple[UnitTask, _Future]] = queue.SimpleQueue()
        self._given = threading.Event()
        self._futures: dict[int, _Future] = {}
        self._wants = self._runs_short = True
        self._window = 1
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="engine")

    async def ready(self) -> bool:
        """Say that the actor has started."""
        return True

    async def wanted(self, ahead: bool) -> int:
        """Return when another task should be given: the units that may be under way.

        ``ahead``: so that it waits here until rows are free; else when rows stay empty without it.
        """
        while not (self._wants if ahead else self._runs_short) or not self._inbox.empty():
            await asyncio.sleep(_LOOK_SECONDS)
        return self._window

    async def run(self, task: UnitTask) -> _Made | _Failed:
        """Return what becomes of a task, or why it failed."""
        future: _Future = concurrent.futures.Future()
        self._wants = self._runs_short = False
        self._inbox.put((task, future))
        self._given.set()
        # One that is at work already takes it too, and this one finds nothing to do.
        self._thread.submit(self._work).add_done_callback(self._ended)
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        """Do tasks as they come, until there are none."""
        room = self._opened()
        stream = Stream(room, self._config, lambda *_: None)
        with room.watchdog.watching(stream.signs, stream.names):
            while True:
                self._given.clear()
                self._take_tasks(stream)
                if stream.empty and not stream.failed:
                    return
                # While what failed waits, other tasks may come.
                self._given.wait(stream.pause_seconds or 0.0)
                self._give(stream.step())

    def _ended(self, work: "concurrent.futures.Future[None]") -> None:
        """Say why work failed to everyone who waits for it."""
        error = work.exception()
        if error is None:
            return
        failed = (
            _Failed(type(error), str(error))
            if isinstance(error, StpError)
            else _Failed(EngineError, f"an engine actor failed: {first_line(error)}")
        )
        with contextlib.suppress(queue.Empty):
            while True:
                task, future = self._inbox.get_nowait()
                self._futures[id(task)] = future
        futures, self._futures = self._futures, {}
        for future in futures.values():
            future.set_result(failed)
        self._wants = self._runs_short = True

    def _take_tasks(self, stream: Stream) -> None:
        """Begin the tasks that were given, as far as more are wanted."""
        while stream.wants:
            try:
                task, future = self._inbox.get_nowait()
            except queue.Empty:
                break
            self._futures[id(task)] = future
            stream.begin(task)
            self._window = stream.window
        self._wants, self._runs_short = stream.wants, stream.runs_short

    def _give(self, done: list[Done]) -> None:
        for entry in done:
            model = self._manifest.model_record(entry.task.unit.cell.model)
            made = _Made(tables=entry.tables, work=entry.work, engine=model.engine)
            self._futures.pop(id(entry.task)).set_result(made)

    def _opened(self) -> EngineRoom:
        """Return the room, opened at the first task: models are looked for on this node."""
        if self._room is None:
            models = tuple(locate_model(model) for model in self._config.models)
            for model in models:
                record = self._manifest.model_record(model.name)
                found = record_model(model, context_limit=record.context_limit)
                if found.weights_hash != record.weights_hash:
                    raise StoreMismatchError(
                        f"{os.uname().nodename}: the weights in {model.folder} are not those of "
                        f"the campaign's {model.name!r}; give all nodes the same files"
                    )
            self._room = EngineRoom(
                Prepared(config=self._config, manifest=self._manifest, models=models),
                open_model=self._open_model,
                attempts=3,
                retry_seconds=1.0,
                watchdog=Watchdog(self._config.engine.stall_seconds),
                on_described=lambda: None,
            )
        return self._room


@dataclass(slots=True, eq=False)
class _Engine:
    """An actor as the driver sees it: the tasks that it has, and whether it wants more.

    ``ahead`` is what :meth:`_Actor.wanted` was asked with.
    """

    actor: Any
    tasks: dict[Any, tuple[UnitTask, int]] = field(default_factory=dict)
    wanted: Any = None
    ahead: bool = False
    hungry: bool = False
    window: int = 1

    def ask(self, *, ahead: bool) -> None:
        """Ask to be told when it wants another task."""
        self.ahead, self.hungry, self.wanted = ahead, False, self.actor.wanted.remote(ahead)

    @property
    def model(self) -> str | None:
        """The model of its tasks; None if it has none, and can take any."""
        return next((task.unit.cell.model for task, _ in self.tasks.values()), None)


class RayPool:
    """A pool of engine actors on a Ray cluster.

    Parameters
    ----------
    prepared
        The campaign. What engine runs a model is noted in its manifest.
    open_model
        Opens an engine on a node. It is sent there.
    address
        The cluster: ``"local"`` starts one on this machine, ``"auto"`` takes the one that this
        machine belongs to or else a local one, anything else is its address.
    lost_attempts
        How often a unit may be lost with its actor before the run ends.
    start_seconds
        How long to wait while no actor can be started.

    Raises
    ------
    data.errors.MissingDependencyError
        If Ray is not installed.
    data.errors.MisuseError
        If there is no such cluster, or it has not what an actor needs.
    """

    def __init__(
        self,
        prepared: Prepared,
        *,
        open_model: EngineOpener,
        address: str = "auto",
        lost_attempts: int = 5,
        start_seconds: float = 900.0,
    ) -> None:
        self._ray = _import_ray()
        self._prepared = prepared
        self._open_model = open_model
        self._lost_attempts = lost_attempts
        self._start_seconds = start_seconds
        self._ours = _connect(self._ray, address)
        self._resources, self._size = self._plan()
        self._engines: list[_Engine] = []
        self._starting: dict[Any, Any] = {}
        for _ in range(self._size):
            self._start()

    def _plan(self) -> tuple[dict[str, float], int]:
        """Return what an actor takes, and how many there are."""
        engine = self._prepared.config.engine
        total = self._ray.cluster_resources()
        gpus = engine.gpus_per_actor
        if gpus is None:
            parallel = 1
            for name in ("tensor_parallel_size", "pipeline_parallel_size"):
                value = engine.options.get(name, 1)
                parallel *= value if isinstance(value, int) else 1
            gpus = parallel if total.get("GPU", 0) and engine.name != "server" else 0
        if gpus > total.get("GPU", 0):
            raise MisuseError(
                f"an engine actor needs {gpus} GPUs and the Ray cluster has "
                f"{total.get('GPU', 0):.0f}; set engine.gpus_per_actor (0 for CPUs)"
            )
        nodes = sum(bool(node["Alive"]) for node in self._ray.nodes())
        size = engine.actors or (int(total.get("GPU", 0)) // gpus if gpus else nodes)
        return {"num_cpus": 1, "num_gpus": gpus}, size

    def _start(self) -> None:
        actor = (
            self._ray.remote(_Actor)
            .options(**self._resources)
            .remote(self._prepared.config, self._prepared.manifest, self._open_model)
        )
        self._starting[actor.ready.remote()] = actor

    def run(self, tasks: Tasks, stop: threading.Event, on_progress: OnTask) -> Iterator[Done]:
        """Do tasks in any order; see :meth:`stp.campaign.jobs.Pool.run`.

        Each engine is given another task whenever its rows would run empty, and before that as long
        as there are enough for all (:func:`stp.campaign.stream.may_wait`). After a stop, and after
        an error, those that were begun are finished first.

        Raises
        ------
        data.errors.EngineError
            If an engine fails on a unit every time, a unit is lost too often, or no actor starts.
        data.errors.StpError
            Whatever an actor says is wrong with the request.
        """
        again: list[tuple[UnitTask, int]] = []
        failure: StpError | None = None
        waiting_since = time.monotonic()
        while True:
            if failure is None and not stop.is_set():
                self._hand_out(tasks, again)
            busy = any(engine.tasks for engine in self._engines)
            if not busy and (failure or stop.is_set() or any(e.hungry for e in self._engines)):
                break
            if busy or not self._starting:
                waiting_since = time.monotonic()
            else:
                self._check_wait(time.monotonic() - waiting_since)
            for ref in self._wait():
                if ref in self._starting:
                    self._started(ref)
                    continue
                engine = next((e for e in self._engines if ref in e.tasks or ref is e.wanted), None)
                if engine is None:
                    continue  # It was lost with another of its tasks.
                result = self._result(engine, ref)
                if result is None:
                    failure = self._lost(engine, again) or failure
                elif isinstance(result, _Failed):
                    failure = failure or result.error(result.message)
                elif isinstance(result, Done):
                    work = result.work
                    on_progress(result.task, 1.0, work.samples, work.usage.generated_tokens)
                    yield result
        if failure is not None:
            raise failure

    def _check_wait(self, seconds: float) -> None:
        """Refuse to wait any longer for an actor to start."""
        if seconds > self._start_seconds:
            raise EngineError(
                f"no engine actor could start on the Ray cluster in {self._start_seconds:.0f} "
                "seconds; run the same command again when it has nodes to spare"
            )
        if seconds > _NO_NODE_SECONDS and not any(node["Alive"] for node in self._ray.nodes()):
            raise EngineError(
                "no node of the Ray cluster is left; nothing that was finished is lost: run the "
                "same command again to continue there"
            )

    def _hand_out(self, tasks: Tasks, again: list[tuple[UnitTask, int]]) -> None:
        """Give tasks to the engines that want some, those that were lost before first."""
        for engine in self._engines:
            if not engine.hungry:
                continue
            model = engine.model
            if engine.ahead and engine.tasks and not self._may_wait(tasks, engine):
                # Others have taken what it was to have.
                engine.ask(ahead=False)
                continue
            given = next((e for e in again if model in (None, e[0].unit.cell.model)), None)
            if given is not None:
                again.remove(given)
            elif (task := tasks.take(model, sum(e.window for e in self._engines))) is not None:
                given = (task, 1)
            else:
                continue
            engine.tasks[engine.actor.run.remote(given[0])] = given
            engine.ask(ahead=self._may_wait(tasks, engine))

    def _may_wait(self, tasks: Tasks, engine: _Engine) -> bool:
        ready, under_way = tasks.ready(engine.model), len(engine.tasks)
        return may_wait(ready, engines=self._size, under_way=under_way)

    def _wait(self) -> list[Any]:
        """Return what has ended, or nothing if that takes too long."""
        refs = [*self._starting]
        for engine in self._engines:
            refs += [*engine.tasks, *([] if engine.wanted is None else [engine.wanted])]
        if not refs:
            return []
        ended, _ = self._ray.wait(refs, num_returns=1, timeout=_WAIT_SECONDS)
        return list(ended)

    def _started(self, ref: Any) -> None:
        actor = self._starting.pop(ref)
        try:
            self._ray.get(ref)
            engine = _Engine(actor)
            engine.ask(ahead=False)
            self._engines.append(engine)
        except self._ray.exceptions.RayError as error:
            _LOG.warning("an engine actor was lost while it started: %s", first_line(error))
            self._start()

    def _result(self, engine: _Engine, ref: Any) -> Done | _Failed | bool | None:
        """Return what an actor gave back, True if it wants more, or None if it was lost."""
        try:
            made = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            engine.tasks.pop(ref, None)
            return _Failed(EngineError, f"an engine actor failed: {first_line(error.cause)}")
        except self._ray.exceptions.RayError as error:
            _LOG.warning("an engine actor was lost: %s", first_line(error))
            return None
        if ref is engine.wanted:
            engine.hungry, engine.wanted, engine.window = True, None, made
            return True
        task, _ = engine.tasks.pop(ref)
        if isinstance(made, _Failed):
            return made
        self._note(task, made.engine)
        return Done(task=task, tables=made.tables, work=made.work)

    def _lost(self, engine: _Engine, again: list[tuple[UnitTask, int]]) -> StpError | None:
        """Start another actor in place of one that is lost; its tasks are given to others."""
        self._engines.remove(engine)
        self._start()
        failure: StpError | None = None
        for task, attempt in engine.tasks.values():
            if attempt >= self._lost_attempts:
                failure = EngineError(
                    f"{task.unit} was lost with its actor {attempt} times; run the same command "
                    "again to continue there"
                )
                continue
            _LOG.warning("%s was lost with its actor and is given to another", task.unit)
            again.append((task, attempt + 1))
        return failure

    def _note(self, task: UnitTask, described: dict[str, Any]) -> None:
        record = self._prepared.manifest.model_record(task.unit.cell.model)
        if not record.engine:
            record.engine = dict(described)

    def close(self) -> None:
        """End the actors, and the cluster if it was started here."""
        for actor in (*(engine.actor for engine in self._engines), *self._starting.values()):
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)
        self._engines, self._starting = [], {}
        if self._ours:
            self._ray.shutdown()


def _import_ray() -> Any:
    # Ray reports its use to its makers unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingDependencyError(
            "a pool of engines needs Ray; install it with: pip install 'stp-engine[ray]'"
        ) from error
    return ray


def _connect(ray: Any, address: str) -> bool:
    """Join a cluster; return whether the connection is ours to close."""
    if ray.is_initialized():
        return False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "auto":
        with contextlib.suppress(ConnectionError):
            ray.init(address="auto", **quiet)
            return True
        address = "local"
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise MisuseError(f"no Ray cluster at {address!r}: {first_line(error)}") from error
    return True
