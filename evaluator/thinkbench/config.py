"""What a run of LLMThinkBench is: its questions, how they are put, and how they are answered."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from data.errors import ConfigError, MisuseError
from data.hints import did_you_mean
from data.prompts import STYLES, Prompts
from data.puzzles import puzzle_names
from data.tasks import TaskParameters, task_names
from data.tasks.base import DEFAULT_HIGH, DEFAULT_LOW, DEFAULT_SAMPLES
from evaluator.runs.plain import to_plain
from stp.asking import Settings
from stp.seeds import PAPER_SEED

Style = Literal["standard", "concise", "ultra-concise"]

DEFAULT_FOLDS: Final = 3
DEFAULT_SETTINGS: Final = Settings(temperature=0.1, top_p=0.9)
"""Sampling of paper 000, E.1; the length of a response is the model's own affair."""


MOST_QUESTIONS: Final = 10_000_000
"""What a run holds in memory; more are a slip of the hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkConfig:
    """A run's questions and settings; two runs with equal ones ask the same.

    Attributes
    ----------
    tasks
        Names of tasks and puzzles, sorted; by default the fourteen tasks.
    samples
        Questions of a task in a fold.
    folds
        Independent samples, from fold 0 on.
    seed
        Another seed gives other questions and other samples.
    low, high
        Range of the values, both included.
    sizes
        Numbers in an instance, in turn; each task's own where it is None.
    task_sizes
        Sizes of single tasks, before ``sizes``.
    style
        How the answer is asked for.
    prompts
        In which words.
    settings
        How the model answers.
    """

    tasks: tuple[str, ...] = field(default_factory=task_names)
    samples: int = DEFAULT_SAMPLES
    folds: int = DEFAULT_FOLDS
    seed: int = PAPER_SEED
    low: int = DEFAULT_LOW
    high: int = DEFAULT_HIGH
    sizes: tuple[int, ...] | None = None
    task_sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    style: Style = "standard"
    prompts: Prompts = field(default_factory=Prompts)
    settings: Settings = DEFAULT_SETTINGS

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ConfigError("tasks is empty; name at least one, or leave it out for all")
        known = (*task_names(), *puzzle_names())
        for name in (*self.tasks, *self.task_sizes):
            if name not in known:
                raise MisuseError(
                    f"no task {name!r}{did_you_mean(name, known)} (there are {', '.join(known)})"
                )
        object.__setattr__(self, "tasks", tuple(sorted(set(self.tasks))))
        unused = sorted(set(self.task_sizes) - set(self.tasks))
        if unused:
            raise ConfigError(f"sizes are given for {unused[0]}, which is not among the tasks")
        for name in ("samples", "folds", "seed", "low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(f"{name} is {value!r:.60}; a whole number is needed")
        if self.folds < 1:
            raise MisuseError(f"folds must be at least 1, not {self.folds}")
        questions = len(self.tasks) * self.folds * self.samples
        if questions > MOST_QUESTIONS:
            raise MisuseError(
                f"{questions:,} questions (tasks x folds x samples); at most {MOST_QUESTIONS:,}"
            )
        if self.style not in get_args(Style):
            raise ConfigError(
                f"no prompt style {self.style!r}{did_you_mean(self.style, STYLES)} (there are "
                f"{', '.join(STYLES)})"
            )
        for name in self.tasks:
            self.parameters(name, 0)

    def parameters(self, task: str, fold: int) -> TaskParameters:
        """Return what one fold of a task is made from."""
        return TaskParameters(
            samples=self.samples,
            fold=fold,
            seed=self.seed,
            low=self.low,
            high=self.high,
            sizes=self.task_sizes.get(task, self.sizes),
        )

    def fold_seeds(self) -> dict[str, list[str]]:
        """Return the stable hash of (seed, fold, task), per task and fold, as hexadecimal."""
        return {
            task: [
                hashlib.blake2b(f"{self.seed}/{fold}/{task}".encode(), digest_size=8).hexdigest()
                for fold in range(self.folds)
            ]
            for task in self.tasks
        }

    def questions_hash(self) -> str:
        """Return a digest of all that decides the questions: runs that share it can be paired."""
        values = to_plain(self)
        del values["settings"], values["style"], values["prompts"]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
