"""Units on many GPUs and machines: a pool of engine actors on a Ray cluster.

The driver alone reads and writes the campaign's folder; an actor gets a job with the rows that it
needs and gives rows back. So nodes need the models (a path or hub id that they can read), not the
folder. A unit whose actor or node is lost is given to another; what it gives back depends on the
unit alone, so the store is that of an unbroken run on one machine.
"""

import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from data.errors import (
    EngineError,
    MissingDependencyError,
    MisuseError,
    StoreMismatchError,
    StpError,
)
from stp.campaign.config import CampaignConfig
from stp.campaign.jobs import Done, Job, Task
from stp.campaign.manifest import Manifest
from stp.campaign.models import locate_model, record_model
from stp.campaign.prepare import Prepared
from stp.campaign.tables import Work
from stp.campaign.watchdog import Watchdog
from stp.campaign.workers import EngineOpener, EngineRoom

_LOG = logging.getLogger(__name__)

_WAIT_SECONDS = 1.0
"""How often the driver looks whether it was asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """What an actor made of a job."""

    tables: tuple[pa.Table, ...]
    work: Work
    engine: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Failed:
    """An error of ours, as a value: not every exception survives the way between processes."""

    error: type[StpError]
    message: str


class _Actor:
    """Runs jobs with the engine of their model. Lives on a node of the cluster."""

    def __init__(
        self, config: CampaignConfig, manifest: Manifest, open_model: EngineOpener
    ) -> None:
        self._config = config
        self._manifest = manifest
        self._open_model = open_model
        self._room: EngineRoom | None = None

    def ready(self) -> bool:
        """Say that the actor has started."""
        return True

    def run(self, job: Job) -> _Made | _Failed:
        """Return what a job makes, or why it failed."""
        samples = 0

        def on_progress(fraction: float, ended: int) -> None:
            nonlocal samples
            samples += ended

        begin = time.monotonic()
        name = job.unit.cell.model
        try:
            room = self._opened()
            subject = room.subject(name)
            tables, usage = room.run(
                job.unit, lambda engine: job.run(engine, subject, self._config, on_progress)
            )
        except StpError as error:
            return _Failed(type(error), str(error))
        work = Work(usage=usage, samples=samples, seconds=max(0.0, time.monotonic() - begin))
        return _Made(tables=tables, work=work, engine=self._manifest.model_record(name).engine)

    def _opened(self) -> EngineRoom:
        """Return the room, opened at the first job: models are looked for on this node."""
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
        self._idle: list[Any] = []
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

    def run(self, tasks: Iterator[Task], stop: threading.Event) -> Iterator[Done]:
        """Do tasks in any order; yield each when it is done.

        Tasks are taken from the iterator as actors get free. After a stop, and after an error,
        those in work are finished first.

        Raises
        ------
        data.errors.EngineError
            If an engine fails on a unit every time, a unit is lost too often, or no actor starts.
        data.errors.StpError
            Whatever an actor says is wrong with the request.
        """
        again: deque[tuple[Task, int]] = deque()
        busy: dict[Any, tuple[Any, Task, int]] = {}
        failure: StpError | None = None
        waiting_since = time.monotonic()
        while True:
            while self._idle and failure is None and not stop.is_set():
                given = again.popleft() if again else None
                if given is None and (task := next(tasks, None)) is not None:
                    given = (task, 1)
                if given is None:
                    break
                actor = self._idle.pop()
                busy[actor.run.remote(given[0].job)] = (actor, *given)
            if not busy and (failure or stop.is_set() or self._idle):
                break
            if busy or not self._starting:
                waiting_since = time.monotonic()
            elif time.monotonic() - waiting_since > self._start_seconds:
                raise EngineError(
                    f"no engine actor could start on the Ray cluster in {self._start_seconds:.0f} "
                    "seconds; run the same command again when it has nodes to spare"
                )
            refs = [*busy, *self._starting]
            ended, _ = self._ray.wait(refs, num_returns=1, timeout=_WAIT_SECONDS)
            for ref in ended:
                if ref in self._starting:
                    self._started(ref)
                    continue
                actor, task, attempt = busy.pop(ref)
                made = self._result(ref, task, attempt)
                if made is None:
                    again.append((task, attempt + 1))
                    self._start()
                    continue
                self._idle.append(actor)
                if isinstance(made, _Failed):
                    failure = made.error(made.message)
                    continue
                self._note(task, made.engine)
                yield Done(task=task, tables=made.tables, work=made.work)
        if failure is not None:
            raise failure

    def _started(self, ref: Any) -> None:
        actor = self._starting.pop(ref)
        try:
            self._ray.get(ref)
            self._idle.append(actor)
        except self._ray.exceptions.RayError as error:
            _LOG.warning("an engine actor was lost while it started: %s", _first_line(error))
            self._start()

    def _result(self, ref: Any, task: Task, attempt: int) -> _Made | _Failed | None:
        """Return what an actor gave back, or None if it was lost."""
        try:
            made: _Made | _Failed = self._ray.get(ref)
            return made
        except self._ray.exceptions.RayTaskError as error:
            return _Failed(
                EngineError,
                f"an engine actor failed on {task.unit}: {_first_line(error.cause)}; run the same "
                "command again to go on there",
            )
        except self._ray.exceptions.RayError as error:
            if attempt >= self._lost_attempts:
                return _Failed(
                    EngineError,
                    f"{task.unit} was lost with its actor {attempt} times: {_first_line(error)}; "
                    "run the same command again to go on there",
                )
            _LOG.warning("%s was lost with its actor and is given to another", task.unit)
            return None

    def _note(self, task: Task, described: dict[str, Any]) -> None:
        record = self._prepared.manifest.model_record(task.unit.cell.model)
        if not record.engine:
            record.engine = dict(described)

    def close(self) -> None:
        """End the actors, and the cluster if it was started here."""
        for actor in (*self._idle, *self._starting.values()):
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)
        self._idle, self._starting = [], {}
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
        raise MisuseError(f"no Ray cluster at {address!r}: {_first_line(error)}") from error
    return True


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
