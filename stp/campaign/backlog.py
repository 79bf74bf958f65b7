"""What is left of a campaign's engine stages: which units can be begun, and in which order.

The units that come first in the campaign go first, whatever stage they are in: a unit whose
trajectories were just written is probed before new ones are begun.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from stp.campaign.jobs import UnitTask
from stp.campaign.tables import Work
from stp.campaign.units import Stage, Unit
from stp.campaign.workers import EngineWorker

FinishedWork = Callable[[Stage, Unit, str, bool], Work | None]
"""Returns the work of a stage that has done a unit from this source, or None."""


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
        workers: Mapping[Stage, EngineWorker],
        units: Iterable[Unit],
        finished: FinishedWork,
    ) -> None:
        self._workers = workers
        self._finished = finished
        self._ready: dict[str, list[tuple[int, Stage, Unit, str]]] = {}
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
                self._push(rank, stage, unit, source)
                blocked = True
            elif blocked:
                state.left += 1
                self._blocked[stage, unit] = rank
            else:
                self.waiting += 1

    def _push(self, rank: int, stage: Stage, unit: Unit, source: str) -> None:
        heap = self._ready.setdefault(unit.cell.model, [])
        heapq.heappush(heap, (rank, stage, unit, source))

    def take(self, model: str | None) -> UnitTask | None:
        """Return a task that can be begun now; see :meth:`stp.campaign.jobs.Tasks.take`."""
        names = [model] if model is not None else list(self._ready)
        heaps = [heap for name in names if (heap := self._ready.get(name))]
        if not heaps:
            return None
        rank, stage, unit, source = heapq.heappop(min(heaps, key=lambda heap: heap[0][0]))
        job = self._workers[stage].job(unit)
        return UnitTask(stage=stage, unit=unit, source=source, job=job, rank=rank)

    def written(self, stage: Stage, unit: Unit) -> list[tuple[Stage, Work]]:
        """Take note that a unit is written; return what of it turns out to be done already.

        The next stage can begin with it, unless what it made before still holds.
        """
        self.stages[stage].left -= 1
        found = []
        for later, worker in self._workers.items():
            rank = self._blocked.pop((later, unit), None)
            if rank is None:
                continue
            source = worker.source(unit)
            work = None if source is None else self._finished(later, unit, source, worker.again)
            if work is not None:
                self.stages[later].left -= 1
                found.append((later, work))
            elif source is not None:
                self._push(rank, later, unit, source)
        return found
