"""Jobs: what an engine has to do for a unit, with the rows that it needs.

A job is a plain value that can be sent to another process or machine; it reads and writes no
store. Whoever has an engine and knows how the model is prompted can run it.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from stp.campaign.answer import answer_positions, answer_unit
from stp.campaign.asks import Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.generate import generate_unit
from stp.campaign.prepare import Subject
from stp.campaign.probe import ChosenProbes, probe_unit
from stp.campaign.row_counts import counted
from stp.campaign.tables import Work
from stp.campaign.trajectories import OnProgress
from stp.campaign.units import Stage, Unit
from stp.engines.base import Engine


class Job(Protocol):
    """The work of one stage on one unit."""

    @property
    def unit(self) -> Unit:
        """The unit."""

    def ask(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> Asking[tuple[pa.Table, ...]]:
        """Ask for what is needed; return the unit's rows, in the order of ``STAGE_TABLES``.

        The engine says what it can; what is asked of it is yielded.

        Raises
        ------
        data.errors.EngineError
            If a tree fails; there are no rows then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTask:
    """A job, what its unit's rows are made from, and its rank: lower ones go first."""

    stage: Stage
    unit: Unit
    source: str
    job: Job
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A task with the rows of its unit, and the work that they took."""

    task: UnitTask
    tables: tuple[pa.Table, ...]
    work: Work


class Tasks(Protocol):
    """What is left to do."""

    def take(self, model: str | None, most_open: int) -> UnitTask | None:
        """Return a task that can be begun now.

        Parameters
        ----------
        model
            Of this model; None for any.
        most_open
            Once this many units are begun and not finished, no new unit is begun.

        Returns
        -------
        UnitTask or None
            None if there is none now: units that are written may lead to more.
        """

    def ready(self, model: str | None) -> int:
        """Return how many tasks of a model (None: of any) can be begun now."""


OnTask = Callable[[UnitTask, float, int, int], None]
"""Called with a task, the fraction of it that is done, and the samples that ended since the last
call and their tokens."""


class JobPool(Protocol):
    """Whoever does tasks side by side."""

    def run(self, tasks: Tasks, stop: threading.Event, on_progress: OnTask) -> Iterator[Done]:
        """Do tasks in any order; yield each when it is done; after a stop begin no more.

        A task that is yielded counts as written when the next one is asked for.

        Raises
        ------
        data.errors.EngineError
            If a unit cannot be done; the others that were begun are done first.
        """

    def close(self) -> None:
        """Free what is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateJob:
    """Questions to trajectories. ``questions`` are the rows of the unit's cell."""

    unit: Unit
    questions: pa.Table

    def ask(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> Asking[tuple[pa.Table, ...]]:
        """Ask for the unit's trajectories; return their rows."""
        make = generate_unit if config.generation.mode == "thinking" else answer_unit
        rows = yield from make(
            self.unit, self.questions, subject=subject, config=config, on_progress=on_progress
        )
        return (counted("trajectories", rows, subject.format),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob:
    """Trajectories to positions and probes.

    ``before`` are the positions and the first probes of the unit where it has some.
    """

    unit: Unit
    questions: pa.Table
    trajectories: pa.Table
    before: tuple[pa.Table, pa.Table] | None = None

    def ask(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> Asking[tuple[pa.Table, ...]]:
        """Ask for the unit's probes; return the rows of its positions and probes."""
        if config.generation.mode != "thinking":
            return answer_positions(self.unit, self.trajectories)
        positions, probes = yield from probe_unit(
            self.unit,
            self.questions,
            self.trajectories,
            subject=subject,
            config=config,
            chosen=None if self.before is None else _more(*self.before, config.probing.probes),
            on_progress=on_progress,
        )
        if self.before is not None:
            positions, first = self.before
            order = [(key, "ascending") for key in _PROBE_ORDER]
            probes = pa.concat_tables([first, probes]).sort_by(order)
        return positions, counted("probes", probes, subject.format)


_PROBE_ORDER = ("question", "trajectory", "position", "sample")


def _more(positions: pa.Table, probes: pa.Table, wanted: int) -> ChosenProbes:
    """Return which samples every position lacks."""
    lacking = range(probes.num_rows // max(1, positions.num_rows), wanted)
    chosen: dict[tuple[int, int], dict[int, range]] = {}
    for row in positions.select(_PROBE_ORDER[:3]).to_pylist():
        chosen.setdefault((row["question"], row["trajectory"]), {})[row["position"]] = lacking
    return chosen
