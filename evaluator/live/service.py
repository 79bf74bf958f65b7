"""Requests of many clients to one engine: the thread that owns it, and its callbacks.

The engine is used from its own thread alone. Requests come in through a bounded queue, tokens and
results go out through the callbacks of each; one that is cancelled is forgotten at the engine's
next step.
"""

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from data.errors import EngineError, StpError
from evaluator.live.crew import Crew
from evaluator.live.thinking import Listener, LiveTask, Outcome, Plan, live_trajectory
from stp.engines.base import Engine

_LOG = logging.getLogger(__name__)
_IDLE_SECONDS = 0.5


class BusyError(StpError):
    """The queue is full."""


@dataclass(slots=True, eq=False)
class LiveRequest:
    """A request.

    Attributes
    ----------
    task, plan
        What is asked for.
    listener
        Hears tokens, in the engine's thread.
    ended
        Called once in the engine's thread, with the outcome or with why there is none; not at all
        after a cancellation.
    """

    task: LiveTask
    plan: Plan
    listener: Listener
    ended: Callable[[Outcome | None, StpError | None], None]
    cancelled: bool = False
    _seats: ExitStack = field(default_factory=ExitStack)


class Service:
    """Runs jobs; a context manager that owns the engine.

    Parameters
    ----------
    engine
        What runs the model.
    batch
        Jobs under way at once.
    waiting
        Jobs that may wait beside them.
    """

    def __init__(self, engine: Engine, *, batch: int = 32, waiting: int = 256) -> None:
        self._engine, self._batch, self._waiting_most = engine, batch, waiting
        self._new: queue.SimpleQueue[LiveRequest | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0
        self._stopping = False
        self._jobs: dict[int, LiveRequest] = {}
        self._crew: Crew[Outcome] = Crew(engine)
        self._thread = threading.Thread(target=self._run, name="stp-serve-engine", daemon=True)

    def __enter__(self) -> "Service":
        self._thread.start()
        return self

    def __exit__(self, *trouble: object) -> None:
        self.close()

    @property
    def open_jobs(self) -> int:
        """Jobs that were handed over and have neither ended nor been cancelled."""
        with self._lock:
            return self._open

    @property
    def alive(self) -> bool:
        """Whether the engine's thread runs."""
        return self._thread.is_alive()

    def check_room(self, coming: int = 0) -> None:
        """Refuse a job for which there is no place beside others that are coming.

        Raises
        ------
        BusyError
            If the queue is full, or the service is ending.
        """
        with self._lock:
            self._check_room(coming)

    def _check_room(self, coming: int) -> None:
        if self._stopping:
            raise BusyError("the server is shutting down")
        there = self._open + coming
        if there >= self._batch + self._waiting_most:
            raise BusyError(f"{there} requests are at work or wait; try again later")

    def submit(self, job: LiveRequest) -> None:
        """Hand over a job.

        Raises
        ------
        BusyError
            If the queue is full, or the service is ending.
        """
        with self._lock:
            self._check_room(0)
            self._open += 1
        self._new.put(job)

    def cancel(self, job: LiveRequest) -> None:
        """Forget a job that nobody waits for any more."""
        job.cancelled = True
        # Wakes a thread that sleeps.
        self._new.put(None)

    def close(self) -> None:
        """End what is under way, and free the model."""
        with self._lock:
            self._stopping = True
        self._new.put(None)
        if self._thread.is_alive():
            self._thread.join()
        self._engine.close()

    # -- the engine's thread -------------------------------------------------------------------

    def _run(self) -> None:
        backlog: list[LiveRequest] = []
        while not self._stopping:
            self._take_new(backlog, wait=not (self._jobs or backlog))
            self._drop_cancelled(backlog)
            while backlog and len(self._jobs) < self._batch:
                self._begin(backlog.pop(0))
            try:
                ended = self._crew.step()
            except EngineError as error:
                _LOG.error("the engine failed: %s", error)
                self._fail_all(error)
                continue
            # Were a defect to end this thread, everybody else would wait in vain.
            except Exception as error:  # noqa: BLE001 (it is logged, and told to those at work)
                _LOG.exception("a defect ended %d requests", len(self._jobs))
                self._fail_all(EngineError(f"unexpected {type(error).__name__}: {error}"))
                continue
            for entry in ended:
                self._end(int(str(entry.key)), entry.result, entry.error)
        self._fail_all(EngineError("the server is shutting down"))
        for job in backlog:
            self._close_job()
            job.ended(None, EngineError("the server is shutting down"))

    def _take_new(self, backlog: list[LiveRequest], *, wait: bool) -> None:
        with suppress(queue.Empty):
            job = self._new.get(timeout=_IDLE_SECONDS) if wait else self._new.get_nowait()
            while True:
                if job is not None:
                    backlog.append(job)
                job = self._new.get_nowait()

    def _drop_cancelled(self, backlog: list[LiveRequest]) -> None:
        for job in [job for job in backlog if job.cancelled]:
            backlog.remove(job)
            self._close_job()
        for session in [key for key, job in self._jobs.items() if job.cancelled]:
            self._crew.cancel(session)
            self._forget(session)

    def _begin(self, job: LiveRequest) -> None:
        session = job.task.session
        self._jobs[session] = job
        seat = None
        try:
            if job.plan.policy is not None:
                seat = job._seats.enter_context(job.plan.policy.seat())
            self._crew.add(session, live_trajectory(job.task, job.plan, seat, job.listener))
        except StpError as error:
            self._end(session, None, error)

    def _end(self, session: int, outcome: Outcome | None, error: StpError | None) -> None:
        job = self._forget(session)
        if not job.cancelled:
            job.ended(outcome, error)

    def _forget(self, session: int) -> LiveRequest:
        job = self._jobs.pop(session)
        job._seats.close()
        self._engine.end_session(session)
        self._close_job()
        return job

    def _close_job(self) -> None:
        with self._lock:
            self._open -= 1

    def _fail_all(self, error: StpError) -> None:
        self._crew.close()
        for session in list(self._jobs):
            self._end(session, None, error)
