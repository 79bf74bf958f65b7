"""Pools: the models whose tokens a token efficiency is measured against, and the scores in them.

``global``: T_min and T_max are the least and the greatest mean tokens over all models and tasks.
``per-task``: one range per task. A pool is frozen and written out with whatever is scored in it.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from data.errors import MisuseError
from evaluator.thinkbench.oscore import (
    arithmetic_score,
    geometric_score,
    overthinking_score,
    token_efficiency,
    weighted_score,
)

PoolKind = Literal["global", "per-task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """A model's accuracy (a fraction) and mean tokens on a task."""

    accuracy: float
    tokens: float


PoolResults = Mapping[str, Mapping[str, TaskResult]]
"""By model and task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What tokens are measured against.

    Attributes
    ----------
    kind
        One range for all tasks, or one per task.
    models, tasks
        What the ranges are taken over.
    ranges
        Least and greatest mean tokens by task; the same for all tasks of a global pool.
    """

    kind: PoolKind
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float]]

    def range_of(self, task: str) -> tuple[float, float]:
        """Return a task's T_min and T_max.

        Raises
        ------
        data.errors.MisuseError
            If the pool has no such task.
        """
        try:
            return self.ranges[task]
        except KeyError:
            raise MisuseError(
                f"the pool has no task {task!r}; it was made from {', '.join(self.tasks)}"
            ) from None

    def describe(self) -> str:
        """Return the pool in a phrase, to stand beside its scores."""
        count = len(self.models)
        models = f"{count} model{'s' if count != 1 else ''}"
        if self.kind == "global":
            low, high = self.ranges[self.tasks[0]]
            return f"global pool of {models}: {low:,.1f} to {high:,.1f} tokens"
        return f"per-task pool of {models}"

    def to_json(self) -> dict[str, Any]:
        """Return the pool as plain values."""
        return dataclasses.asdict(self)


def make_pool(results: PoolResults, kind: PoolKind = "global") -> Pool:
    """Return the pool of some models.

    Raises
    ------
    data.errors.MisuseError
        If there are no models, or they were not measured on the same tasks.
    """
    if kind not in get_args(PoolKind):
        raise MisuseError(f"no pool {kind!r}; there are {', '.join(get_args(PoolKind))}")
    tasks = common_tasks(results)
    by_task = {task: [results[model][task].tokens for model in results] for task in tasks}
    if kind == "global":
        tokens = [value for values in by_task.values() for value in values]
        by_task = dict.fromkeys(tasks, tokens)
    return Pool(
        kind=kind,
        models=tuple(results),
        tasks=tasks,
        ranges={task: (min(values), max(values)) for task, values in by_task.items()},
    )


def common_tasks(results: PoolResults) -> tuple[str, ...]:
    """Return the tasks that all models were measured on.

    Raises
    ------
    data.errors.MisuseError
        If they differ: scores over different tasks cannot be compared.
    """
    if not results:
        raise MisuseError("a pool needs at least one model")
    first, *others = results.items()
    for model, tasks in others:
        odd = sorted(set(tasks) ^ set(first[1]))
        if odd:
            raise MisuseError(
                f"{first[0]} and {model} were not measured on the same tasks (one lacks "
                f"{odd[0]}); run both on the same ones"
            )
    if not first[1]:
        raise MisuseError(f"{first[0]} was measured on no task")
    return tuple(sorted(first[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A model's scores in a pool.

    Attributes
    ----------
    efficiency, oscore
        By task.
    mean_efficiency, mean_oscore
        Averages over tasks (Definition 4): the score that models are ranked by.
    oscore_of_means
        The score of average accuracy and average efficiency (Algorithm 4).
    arithmetic, geometric, weighted
        Averages over tasks of the other means (B.1, B.3); ``weighted`` by beta.
    """

    efficiency: Mapping[str, float]
    oscore: Mapping[str, float]
    mean_efficiency: float
    mean_oscore: float
    oscore_of_means: float
    arithmetic: float
    geometric: float
    weighted: Mapping[str, float]


BETAS = (0.5, 2.0)


def score_model(tasks: Mapping[str, TaskResult], pool: Pool) -> Score:
    """Return one model's scores in a pool, which it need not be part of.

    Raises
    ------
    data.errors.MisuseError
        If it was measured on a task that the pool has not.
    """
    names = sorted(tasks)
    efficiency = {
        name: float(token_efficiency(tasks[name].tokens, *pool.range_of(name))) for name in names
    }
    pairs = [(tasks[name].accuracy, efficiency[name]) for name in names]
    oscore = {
        name: float(overthinking_score(*pair)) for name, pair in zip(names, pairs, strict=True)
    }
    accuracy = _mean([right for right, _ in pairs])
    mean_efficiency = _mean(list(efficiency.values()))
    return Score(
        efficiency=efficiency,
        oscore=oscore,
        mean_efficiency=mean_efficiency,
        mean_oscore=_mean(list(oscore.values())),
        oscore_of_means=float(overthinking_score(accuracy, mean_efficiency)),
        arithmetic=_mean([float(arithmetic_score(*pair)) for pair in pairs]),
        geometric=_mean([float(geometric_score(*pair)) for pair in pairs]),
        weighted={
            f"{beta:g}": _mean([float(weighted_score(*pair, beta=beta)) for pair in pairs])
            for beta in BETAS
        },
    )


def score_all(results: PoolResults, pool: Pool) -> dict[str, Score]:
    """Return the scores of several models in one pool."""
    return {model: score_model(tasks, pool) for model, tasks in results.items()}


def _mean(values: Sequence[float]) -> float:
    # A sum of equal values may round to a hair above them.
    return min(max(values), max(min(values), sum(values) / len(values)))


def pareto_set(points: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Return the models that no other one beats (paper 000, D): greatest accuracy and efficiency.

    Parameters
    ----------
    points
        Accuracy and efficiency by model, more is better in both.

    Returns
    -------
    tuple of str
        In falling order of accuracy. Models with equal points are all in it or all not.

    Examples
    --------
    >>> pareto_set({"a": (0.9, 0.2), "b": (0.5, 0.9), "c": (0.4, 0.8), "d": (0.9, 0.2)})
    ('a', 'd', 'b')
    """
    order = sorted(points, key=lambda model: (-points[model][0], -points[model][1]))
    kept: list[str] = []
    best = -math.inf
    for accuracy, group in itertools.groupby(order, key=lambda model: points[model][0]):
        del accuracy
        models = list(group)
        most = points[models[0]][1]
        if most > best:
            kept += [model for model in models if points[model][1] == most]
            best = most
    return tuple(kept)
