"""Which tasks need thinking (paper 004, section 2.2): a small thinking model against a large one.

A task is kept if the small model, thinking, is better than the large model, not thinking, by more
than λ. The paper says 0.1 in its text and 0.3 in its appendix; it is a parameter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from data.catalogue.underthinking import TASKS
from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.optimal.grading import grade
from evaluator.optimal.plan import SEEDS, TEMPERATURE, OptimalPlan
from evaluator.optimal.running import run
from evaluator.optimal.scores import score
from stp.asking import ModelSpec, Responder, Settings

LAMBDA = 0.1
QUESTIONS = 50
MATHEMATICS = ("gsm8k", "math500", "aime2025", "hmmt_feb_2025")
"""What ``math`` names: the paper tries four standard benchmarks and keeps the last two of these; it
does not say which the others are, so that the first two are our assumption."""
LEFT_OUT = frozenset({"acre", "composite", "word_ladder"})
"""Tasks that ``all`` does not name: ``composite`` is made of others, and of nothing without them;
``acre`` makes all questions at once, and ``word_ladder`` few, where we draw from a million."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedTask:
    """A task, how both models did, and whether it is kept.

    Attributes
    ----------
    task
        Reasoning Gym's name, or a benchmark's.
    small_thinking, large_plain
        Accuracies, fractions.
    gap, low, high
        The first minus the second, and its paired bootstrap interval.
    kept
        Whether the gap is above λ.
    """

    task: str
    small_thinking: float
    large_plain: float
    gap: float
    low: float
    high: float
    kept: bool


def task_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return names of Reasoning Gym's tasks: the given ones, or the eleven of the benchmark.

    For ``["all"]`` those of Reasoning Gym, all but :data:`LEFT_OUT`; for ``["none"]`` none.

    Raises
    ------
    data.errors.MisuseError
        If a name is given twice.
    """
    if not names:
        return tuple(task.dataset for task in TASKS)
    if list(names) == ["none"]:
        return ()
    if list(names) == ["all"]:
        from data.reasoning_gym_tasks import gym_module

        gym_module()
        from reasoning_gym.factory import DATASETS

        return tuple(sorted(set(DATASETS) - LEFT_OUT))
    if len(set(names)) < len(names):
        raise MisuseError("a task is named twice")
    return tuple(names)


def benchmark_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return names of benchmarks: the given ones; for ``["math"]`` those of :data:`MATHEMATICS`.

    Raises
    ------
    data.errors.MisuseError
        If a name is given twice.
    """
    if names and list(names) == ["math"]:
        return MATHEMATICS
    if len(set(names or ())) < len(names or ()):
        raise MisuseError("a benchmark is named twice")
    return tuple(names or ())


def select(
    small: str | ModelSpec | Responder,
    large: str | ModelSpec | Responder,
    folder: Path,
    *,
    tasks: Sequence[str],
    benchmarks: Sequence[str] = (),
    data_dir: Path | None = None,
    threshold: float = LAMBDA,
    limit: int = QUESTIONS,
    seeds: int = SEEDS,
    settings: Settings | None = None,
    replicates: int = 2000,
    progress: Progress = NOBODY,
) -> list[SelectedTask]:
    """Measure both models on tasks, and say which are kept.

    Parameters
    ----------
    small, large
        The thinking model, and the one that answers without thinking; any two models.
    folder
        Both runs go there, in folders ``small`` and ``large``; resumed if there.
    tasks
        Names of Reasoning Gym's tasks.
    benchmarks
        Names of benchmarks of the registry, or TOML files: each is tried as a task is.
    data_dir
        Folder of question files, for benchmarks.
    threshold
        λ, between -1 and 1.
    limit, seeds
        Questions of each task, and responses to each question.
    settings
        How both models are sampled.
    replicates
        Of the bootstrap.
    progress
        Told how far it is.

    Returns
    -------
    list of SelectedTask
        One for each task and benchmark, in their order.

    Raises
    ------
    data.errors.MisuseError
        If ``threshold`` is out of its range, or there is nothing to try.
    data.errors.EngineError
        If a model leaves requests without a response. What was answered is kept.
    """
    if not -1 <= threshold <= 1:
        raise MisuseError(f"lambda must lie between -1 and 1, not {threshold}")
    subsets = {task: f"ut:gym:{task}" for task in tasks}
    subsets |= {name: f"ut:{name}" for name in benchmarks}
    if not subsets:
        raise MisuseError("no task and no benchmark to try; name some with --tasks, --benchmarks")

    def plan(name: str, model: str | ModelSpec | Responder, method: str) -> OptimalPlan:
        return OptimalPlan(
            # Both runs are rows of one table, whatever the two models are called.
            name=name,
            subsets=tuple(subsets.values()),
            data_dir=str(data_dir) if data_dir else None,
            methods=(_possible(model, method),),
            limit=limit,
            seeds=seeds,
            settings=settings or Settings(temperature=TEMPERATURE),
        )

    parts = (
        (small, plan("small", small, "thinking")),
        (large, plan("large", large, "no-thinking")),
    )
    rows = [_graded(model, folder / each.name, each, progress) for model, each in parts]
    return _selected(pd.concat(rows, ignore_index=True), subsets, threshold, replicates, progress)


def _graded(
    model: str | ModelSpec | Responder,
    folder: Path,
    plan: OptimalPlan,
    progress: Progress,
) -> pd.DataFrame:
    """Return the graded rows of one of the two models, asked first for what is missing."""
    told = progress.within(f"{plan.name} model")
    run(model, folder, plan, progress=told)
    return grade(folder, progress=told).rows.assign(method="selection")


def _possible(model: str | ModelSpec | Responder, method: str) -> str:
    """Return the mode: a model without a thinking format is asked as it is."""
    plain = isinstance(model, ModelSpec) and model.family == "none"
    return "default" if method == "no-thinking" and plain else method


def _selected(
    rows: pd.DataFrame,
    subsets: Mapping[str, str],
    threshold: float,
    replicates: int,
    progress: Progress,
) -> list[SelectedTask]:
    selected = []
    stage = progress.stage("comparing the models")
    for number, (task, subset) in enumerate(subsets.items()):
        stage(number, len(subsets))
        scores = score(rows[rows["subset"] == subset], replicates=replicates)
        small, large = (scores.rows.index((name, "selection")) for name in ("small", "large"))
        found = scores.difference(small, large, "ut_accuracy")
        accuracies = scores.by_subset[:, 0, 0]
        gap = float(accuracies[small] - accuracies[large])
        selected.append(
            SelectedTask(
                task=task,
                small_thinking=float(accuracies[small]),
                large_plain=float(accuracies[large]),
                gap=gap,
                low=found.low,
                high=found.high,
                # A gap of exactly λ in decimals is not above it, whatever its last bit says.
                kept=bool(gap > threshold + 1e-12),
            )
        )
    return selected


def selection_frame(selected: Sequence[SelectedTask]) -> pd.DataFrame:
    """Return the outcome as a table; percent and points."""
    records: list[dict[str, Any]] = [
        {
            "task": item.task,
            "small, thinking (%)": 100 * item.small_thinking,
            "large, not (%)": 100 * item.large_plain,
            "gap": 100 * item.gap,
            "low": 100 * item.low,
            "high": 100 * item.high,
            "kept": "yes" if item.kept else "no",
        }
        for item in sorted(selected, key=lambda item: -np.nan_to_num(item.gap))
    ]
    return pd.DataFrame(records).set_index("task")
