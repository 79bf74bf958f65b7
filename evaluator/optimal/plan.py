"""What a run asks: which questions, how, and how often.

A run can grow by methods, subsets and seeds; nothing that is stored changes by that.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from data.errors import MisuseError
from data.prompts import Prompts
from evaluator.optimal.methods import check_methods
from evaluator.runs.plain import from_plain, to_plain
from evaluator.runs.record import RECORD, RunRecord
from stp.asking import Settings

SEEDS = 8
TEMPERATURE = 0.6
"""Eight seeds at temperature 0.6 (paper 004, B.2)."""

GROWING: Final = ("methods", "subsets", "seeds", "size", "data_dir")
"""What may be another one when a run continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalPlan:
    """What is asked of one model.

    Attributes
    ----------
    name
        What tables call the model. Seeds are made from it.
    subsets, methods
        What is asked, and how; see :mod:`evaluator.optimal.subsets` and ``methods``.
    general
        Where OvT-General's questions are.
    data_dir
        Folder of question files.
    limit
        At most this many questions of each benchmark.
    seeds
        Responses to each question.
    seed
        What the seeds of responses are made from.
    settings
        How responses are sampled; thinking and suffix are the methods'.
    prompts
        In which words.
    size
        Parameters of the model in billions, for the analysis by size; None if unknown.
    """

    name: str
    subsets: tuple[str, ...]
    methods: tuple[str, ...]
    general: str | None = None
    data_dir: str | None = None
    limit: int | None = None
    seeds: int = SEEDS
    seed: int = 0
    settings: Settings = field(default_factory=lambda: Settings(temperature=TEMPERATURE))
    prompts: Prompts = field(default_factory=Prompts)
    size: float | None = None

    def __post_init__(self) -> None:
        check_methods(self.methods)
        if self.seeds < 1:
            raise MisuseError(f"seeds must be at least 1, not {self.seeds}")
        if self.seeds > 1 and (greedy := self.settings.greedy) is not None:
            raise MisuseError(
                f"with {greedy} all responses to a question are copies, and seeds = {self.seeds} "
                "would count copies as samples: ask for one seed, or sample"
            )
        if self.limit is not None and self.limit < 1:
            raise MisuseError(f"limit must be at least 1, not {self.limit}")
        if self.size is not None and not 0 < self.size < math.inf:
            raise MisuseError(f"size must be a number of billions above 0, not {self.size}")

    def rows_from(self) -> Mapping[str, Any]:
        """Return what graded rows depend on: from where questions were read changes no row."""
        values = to_plain(self)
        del values["data_dir"]
        return values


def plan_of(folder: Path, record: RunRecord) -> OptimalPlan:
    """Return the plan that a run's record holds.

    Raises
    ------
    data.errors.ConfigError
        If it holds no plan.
    """
    return from_plain(OptimalPlan, record.asked, str(folder / RECORD))


def grown(stored: OptimalPlan, given: OptimalPlan) -> OptimalPlan:
    """Return a plan added to the one that a folder has.

    Methods and subsets come together, and the larger number of seeds counts. Whether the rest is
    the same, :func:`evaluator.runs.record.begin_run` sees.
    """
    return replace(
        given,
        methods=tuple(dict.fromkeys((*stored.methods, *given.methods))),
        subsets=tuple(dict.fromkeys((*stored.subsets, *given.subsets))),
        seeds=max(stored.seeds, given.seeds),
        general=given.general or stored.general,
        size=given.size or stored.size,
    )
