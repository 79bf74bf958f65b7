"""Units of work: which questions and trajectories are done together.

A unit is a fixed chunk of one cell (one model on one benchmark). Every stage writes the rows of a
unit as one shard, and what they are made from depends on the unit alone; several may be under way
at once. A unit says what to do, never how or where, so units can be handed to other processes and
machines.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

Stage = Literal["generate", "probe", "grade", "rounds", "signals"]
STAGES: tuple[Stage, ...] = ("generate", "probe", "grade")
"""The stages of a run. Rounds of more probes follow where the plan is adaptive; signals are read
on request."""

TableName = Literal[
    "questions",
    "trajectories",
    "positions",
    "probes",
    "verdicts",
    "more_probes",
    "more_verdicts",
    "prompt_signals",
    "signals",
]

STAGE_TABLES: dict[Stage, tuple[TableName, ...]] = {
    "generate": ("trajectories",),
    "probe": ("positions", "probes"),
    "grade": ("verdicts",),
    "rounds": ("more_probes", "more_verdicts"),
    "signals": ("prompt_signals", "signals"),
}
"""The tables that a stage writes for a unit, in the order of writing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One model on one benchmark, and how many questions it has."""

    model: str
    benchmark: str
    questions: int

    @property
    def folder(self) -> str:
        """Where its shards lie below a table's folder."""
        return f"{quote(self.model, safe=' +')}/{quote(self.benchmark, safe=' +')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A chunk of a cell: questions ``[question_start, question_stop)`` × trajectories likewise.

    ``number`` counts the units of a cell from 0. ``campaign`` is a digest of what the campaign asks
    of the cell: a shard that was made for something else does not belong here. ``grown_probes`` is
    the number of probes where it is another than the one that the unit was planned with; else 0.
    """

    cell: Cell
    number: int
    question_start: int
    question_stop: int
    trajectory_start: int
    trajectory_stop: int
    campaign: str = ""
    grown_probes: int = 0

    @property
    def trajectories(self) -> int:
        """Trajectories in the unit, if none of its prompts is too long."""
        questions = self.question_stop - self.question_start
        return questions * (self.trajectory_stop - self.trajectory_start)

    def shard(self, table: TableName) -> str:
        """Return the path of its shard of a table, below the campaign's folder."""
        return f"{table}/{self.cell.folder}/{self.number:06d}.parquet"

    def round_shard(self, table: TableName, number: int) -> str:
        """Return the path of its shard of a table of a round of more probes, counted from 1."""
        return f"{table}/{self.cell.folder}/{self.number:06d}-{number:03d}.parquet"

    def __str__(self) -> str:
        """Name the unit as a person would look for it."""
        return (
            f"{self.cell.model} on {self.cell.benchmark}, questions {self.question_start} to "
            f"{self.question_stop - 1}, trajectories {self.trajectory_start} to "
            f"{self.trajectory_stop - 1}"
        )


def questions_shard(cell: Cell) -> str:
    """Return the path of a cell's questions, below the campaign's folder."""
    return f"questions/{cell.folder}.parquet"


def plan_units(
    cell: Cell,
    *,
    questions_per_unit: int,
    trajectories_per_unit: int,
    trajectories: range,
    questions: range | None = None,
    first: int = 0,
    campaign: str = "",
    grown_probes: int = 0,
) -> Iterator[Unit]:
    """Yield the units of a cell, or of some questions of it; each (question, trajectory) is in one.

    The last chunk of either kind may be smaller than the rest. ``first`` is the number of the first
    unit; ``campaign`` and ``grown_probes`` are given to each.
    """
    questions = range(cell.questions) if questions is None else questions
    number = first
    for question in questions[::questions_per_unit]:
        for trajectory in trajectories[::trajectories_per_unit]:
            yield Unit(
                cell=cell,
                number=number,
                question_start=question,
                question_stop=min(question + questions_per_unit, questions.stop),
                trajectory_start=trajectory,
                trajectory_stop=min(trajectory + trajectories_per_unit, trajectories.stop),
                campaign=campaign,
                grown_probes=grown_probes,
            )
            number += 1
