"""What is left of a campaign's engine stages: which units can be begun, and in which order.

A unit whose trajectories were just written waits to be probed. New units are begun first, until so
many are begun and not finished: a long thinking that is begun late would keep the engine waiting in
the end, and probes are what fills it meanwhile. From then on units that were begun are
finished first, so that no more than this number are ever half done.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from stp.campaign.jobs import Job, UnitTask
from stp.campaign.tables import Work
from stp.campaign.units import Stage, Unit


class JobMaker(Protocol):
    """Makes jobs of units: an :class:`stp.campaign.workers.EngineWorker`, or a stand-in."""

    again: bool
    """Whether to do units that are done."""

    def source(self, unit: Unit) -> str | None:
        """Return what a unit's rows are made from, or None if that is not there yet."""

    def job(self, unit: Unit) -> Job:
        """Return what an engine has to do for a unit."""


FinishedWork = Callable[[Stage, Unit, str, bool], Work | None]
"""Returns the work of a stage that has done a unit from this source, or None."""


_Entry: TypeAlias = tuple[int, Stage, Unit, str]
"""Rank, stage, unit, and what its rows are made from."""


@dataclass(slots=True)
class StageState:
    """How far a stage is, in trajectories; ``left`` counts units that can still be done."""

    done: int = 0
    total: int = 0
    left: int = 0
    works: list[Work] = field(default_factory=list)


class Backlog:
    """The units that are left.

    Parameters
    ----------
    workers
        The engine stages asked for, in their order.
    units
        Of the campaign, in their order.
    finished
        Tells what is done already.

    Attributes
    ----------
    stages
        How far each stage is.
    waiting
        Units that cannot be done, because a stage before that is not asked for has not done them.
    """

    def __init__(
        self,
        workers: Mapping[Stage, JobMaker],
        units: Iterable[Unit],
        finished: FinishedWork,
    ) -> None:
        self._workers = workers
        self._finished = finished
        self._new: dict[str, list[_Entry]] = {}
        self._begun: dict[str, list[_Entry]] = {}
        self._stages_left: dict[Unit, int] = {}
        self._open = 0
        self._blocked: dict[tuple[Stage, Unit], int] = {}
        self.stages = {stage: StageState() for stage in workers}
        self.waiting = 0
        for rank, unit in enumerate(units):
            self._plan(rank, unit)

    def _plan(self, rank: int, unit: Unit) -> None:
        blocked = False
        for stage, worker in self._workers.items():
            state = self.stages[stage]
            state.total += unit.trajectories
            source = None if blocked else worker.source(unit)
            work = None if source is None else self._finished(stage, unit, source, worker.again)
            if work is not None:
                state.done += unit.trajectories
                state.works.append(work)
            elif source is not None:
                state.left += 1
                self._push(self._new, rank, stage, unit, source)
                blocked = True
            elif blocked:
                state.left += 1
                self._blocked[stage, unit] = rank
            else:
                self.waiting += 1
                continue
            if work is None:
                self._stages_left[unit] = self._stages_left.get(unit, 0) + 1

    @staticmethod
    def _push(
        heaps: dict[str, list["_Entry"]], rank: int, stage: Stage, unit: Unit, source: str
    ) -> None:
        heap = heaps.setdefault(unit.cell.model, [])
        heapq.heappush(heap, (rank, stage, unit, source))

    def take(self, model: str | None, most_open: int) -> UnitTask | None:
        """Return a task that can be begun now; see :meth:`stp.campaign.jobs.Tasks.take`."""
        more = self._open < most_open
        for heaps in (self._new, self._begun) if more else (self._begun, self._new):
            found = _of_model(heaps, model)
            if found:
                rank, stage, unit, source = heapq.heappop(min(found, key=lambda heap: heap[0][0]))
                self._open += heaps is self._new
                job = self._workers[stage].job(unit)
                return UnitTask(stage=stage, unit=unit, source=source, job=job, rank=rank)
        return None

    def ready(self, model: str | None) -> int:
        """Return how many tasks can be begun now; see :meth:`stp.campaign.jobs.Tasks.ready`."""
        both = (self._new, self._begun)
        return sum(len(heap) for heaps in both for heap in _of_model(heaps, model))

    def written(self, stage: Stage, unit: Unit) -> list[tuple[Stage, Work]]:
        """Take note that a unit is written; return what of it turns out to be done already.

        The next stage can begin with it, unless what it made before still holds.
        """
        found = []
        self._finish(stage, unit)
        for later, worker in self._workers.items():
            rank = self._blocked.pop((later, unit), None)
            if rank is None:
                continue
            source = worker.source(unit)
            work = None if source is None else self._finished(later, unit, source, worker.again)
            if work is not None:
                self._finish(later, unit)
                found.append((later, work))
            elif source is not None:
                self._push(self._begun, rank, later, unit, source)
        return found

    def _finish(self, stage: Stage, unit: Unit) -> None:
        self.stages[stage].left -= 1
        self._stages_left[unit] -= 1
        if not self._stages_left[unit]:
            del self._stages_left[unit]
            self._open -= 1


def _of_model(heaps: dict[str, list[_Entry]], model: str | None) -> list[list[_Entry]]:
    """Return the heaps of a model, or of all, that are not empty."""
    names = list(heaps) if model is None else [model]
    return [heap for name in names if (heap := heaps.get(name))]
