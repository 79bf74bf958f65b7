"""Jobs: what an engine has to do for a unit, with the rows that it needs.

A job is a plain value that can be sent to another process or machine; it reads and writes no
store. Whoever has an engine and knows how the model is spoken to can run it.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from stp.campaign.answer import answer_positions, answer_unit
from stp.campaign.config import CampaignConfig
from stp.campaign.generate import generate_unit
from stp.campaign.prepare import Subject
from stp.campaign.probe import probe_unit
from stp.campaign.row_counts import counted
from stp.campaign.tables import Work
from stp.campaign.trajectories import OnProgress
from stp.campaign.units import Unit
from stp.engines.base import Engine


class Job(Protocol):
    """The work of one stage on one unit."""

    @property
    def unit(self) -> Unit:
        """The unit."""

    def run(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> tuple[pa.Table, ...]:
        """Return the unit's rows, in the order of ``STAGE_TABLES``.

        Raises
        ------
        data.errors.EngineError
            If the engine fails; there are no rows then.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job, and what its unit's rows are made from."""

    unit: Unit
    source: str
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A task with the rows of its unit, and the work that they took."""

    task: Task
    tables: tuple[pa.Table, ...]
    work: Work


class Pool(Protocol):
    """Whoever does tasks side by side."""

    def run(self, tasks: Iterator[Task], stop: threading.Event) -> Iterator[Done]:
        """Do tasks in any order; yield each when it is done; after a stop begin no more.

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

    def run(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> tuple[pa.Table, ...]:
        """Return the unit's trajectories."""
        make = generate_unit if config.generation.mode == "thinking" else answer_unit
        rows = make(
            self.unit,
            self.questions,
            subject=subject,
            config=config,
            engine=engine,
            on_progress=on_progress,
        )
        return (counted("trajectories", rows, subject.format),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob:
    """Trajectories to positions and probes."""

    unit: Unit
    questions: pa.Table
    trajectories: pa.Table

    def run(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> tuple[pa.Table, ...]:
        """Return the unit's positions and probes."""
        if config.generation.mode != "thinking":
            return answer_positions(self.unit, self.trajectories)
        positions, probes = probe_unit(
            self.unit,
            self.questions,
            self.trajectories,
            subject=subject,
            config=config,
            engine=engine,
            on_progress=on_progress,
        )
        return positions, counted("probes", probes, subject.format)
