"""What graded responses come to: per task, per category and overall, over folds and all together.

Overall and category figures give tasks equal weight (paper 000, Algorithm 4). A fold is an
independent sample, so the interval of a task is that of all its responses; ``std`` is over folds,
with one degree of freedom less, and None for a single fold.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from evaluator.thinkbench.error_kinds import ERROR_KINDS
from evaluator.thinkbench.grading import Graded
from evaluator.thinkbench.patterns import PATTERNS

LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean with what is known of its spread.

    Attributes
    ----------
    mean
        Over all responses of a task; over tasks where there are several.
    std
        Standard deviation of the folds' means; None for one fold.
    low, high
        95 % interval: Wilson's for rates, Student's for counts, and for averages over tasks these
        combined (method of variance estimates recovery). Both equal the mean for one count.
    """

    mean: float
    std: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The measures of one task, of a category, or of all tasks.

    Attributes
    ----------
    name
        Of the task or category; ``"overall"``.
    tasks
        Names of the tasks in it.
    responses, right, parsed, followed
        Integer counts over all folds.
    accuracy
        Right among all.
    parsed_accuracy
        Right among those with an answer; None if nothing was parsed.
    following
        Answers that stand where they were asked for.
    tokens, words, characters
        Of a response.
    thinking_tokens, answer_tokens
        The two parts; None if a response's are unknown.
    estimated
        Responses whose tokens are an estimate, since nobody counted them.
    parted
        Responses whose thinking was separated from the answer by tags written in the text.
    cut
        Responses that a token limit ended.
    ran_on
        Responses whose answer goes on into the next turn; those of which nobody knows are none.
    tool_calls
        Mean calls of tools in a response.
    errors, patterns
        Wrong answers by kind, long traces by pattern.
    """

    name: str
    tasks: tuple[str, ...]
    responses: int
    right: int
    parsed: int
    followed: int
    accuracy: Estimate
    parsed_accuracy: float | None
    following: Estimate
    tokens: Estimate
    thinking_tokens: Estimate | None
    answer_tokens: Estimate | None
    words: Estimate
    characters: Estimate
    estimated: int
    cut: int
    parted: int
    ran_on: int
    tool_calls: float
    errors: Mapping[str, int]
    patterns: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """All groups of a run.

    Attributes
    ----------
    tasks, categories
        By name.
    overall
        All tasks, equal weight.
    """

    tasks: Mapping[str, Group]
    categories: Mapping[str, Group]
    overall: Group

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain values; what is unknown is null."""
        return {
            "tasks": {name: dataclasses.asdict(group) for name, group in self.tasks.items()},
            "categories": {
                name: dataclasses.asdict(group) for name, group in self.categories.items()
            },
            "overall": dataclasses.asdict(self.overall),
        }


def measure(graded: Sequence[Graded]) -> Measures:
    """Return the measures of graded responses; a task without any is left out."""
    by_task: dict[str, list[Graded]] = {}
    for row in graded:
        by_task.setdefault(row.task, []).append(row)
    category_of = {row.task: row.category for row in graded}
    categories = sorted(set(category_of.values()))
    return Measures(
        tasks={task: _group(task, {task: rows}) for task, rows in sorted(by_task.items())},
        categories={
            category: _group(
                category, {task: by_task[task] for task in by_task if category_of[task] == category}
            )
            for category in categories
        },
        overall=_group("overall", by_task),
    )


def _group(name: str, by_task: Mapping[str, Sequence[Graded]]) -> Group:
    rows = [row for task in by_task.values() for row in task]
    right = sum(row.right for row in rows)
    parsed = sum(row.answer is not None for row in rows)

    def count(value: Callable[[Graded], float | None]) -> Estimate | None:
        values = {task: [value(row) for row in given] for task, given in by_task.items()}
        if not rows or any(item is None for given in values.values() for item in given):
            return None
        return _combined([_of_counts(task, value) for task in by_task.values()], by_task, value)

    def known(value: Callable[[Graded], float]) -> Estimate:
        found = count(value)
        return found if found is not None else Estimate(mean=0.0, std=None, low=0.0, high=0.0)

    def rate(value: Callable[[Graded], bool]) -> Estimate:
        return _combined([_of_rate(task, value) for task in by_task.values()], by_task, value)

    return Group(
        name=name,
        tasks=tuple(sorted(by_task)),
        responses=len(rows),
        right=right,
        parsed=parsed,
        followed=sum(row.followed for row in rows),
        accuracy=rate(lambda row: row.right),
        parsed_accuracy=_parsed_accuracy(by_task),
        following=rate(lambda row: row.followed),
        tokens=known(lambda row: row.tokens),
        thinking_tokens=count(lambda row: row.thinking_tokens),
        answer_tokens=count(lambda row: row.answer_tokens),
        words=known(lambda row: row.words),
        characters=known(lambda row: row.characters),
        estimated=sum(row.estimated for row in rows),
        cut=sum(row.finish == "length" for row in rows),
        parted=sum(row.parted for row in rows),
        ran_on=sum(row.ran_on is True for row in rows),
        tool_calls=known(lambda row: row.tool_calls).mean,
        errors={kind: sum(row.error == kind for row in rows) for kind in ERROR_KINDS},
        patterns={pattern: sum(row.pattern == pattern for row in rows) for pattern in PATTERNS},
    )


def _parsed_accuracy(by_task: Mapping[str, Sequence[Graded]]) -> float | None:
    """Return right among parsed, each task that has parsed answers with equal weight."""
    rates = []
    for rows in by_task.values():
        parsed = [row for row in rows if row.answer is not None]
        if parsed:
            rates.append(sum(row.right for row in parsed) / len(parsed))
    return sum(rates) / len(rates) if rates else None


def _of_rate(rows: Sequence[Graded], value: Callable[[Graded], bool]) -> tuple[float, float, float]:
    """Return mean, low and high of a rate: Wilson's interval."""
    return wilson(sum(bool(value(row)) for row in rows), len(rows))


def wilson(successes: int, total: int) -> tuple[float, float, float]:
    """Return a rate and its Wilson interval.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(8, 10)]
    [0.8, 0.49, 0.943]
    """
    if total == 0:
        return 0.0, 0.0, 1.0
    found = stats.binomtest(successes, total).proportion_ci(LEVEL, method="wilson")
    return successes / total, float(found.low), float(found.high)


def _of_counts(
    rows: Sequence[Graded], value: Callable[[Graded], float | None]
) -> tuple[float, float, float]:
    """Return mean, low and high of a count: Student's interval, none below 0."""
    values = np.array([value(row) for row in rows], dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean, mean
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = float(stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1)) * error
    return mean, max(0.0, mean - half), mean + half


def _combined(
    parts: Sequence[tuple[float, float, float]],
    by_task: Mapping[str, Sequence[Graded]],
    value: Callable[[Graded], float | None],
) -> Estimate:
    """Return the equal-weight average over tasks, with the tasks' intervals combined."""
    if not parts:
        return Estimate(mean=0.0, std=None, low=0.0, high=0.0)
    count = len(parts)
    mean = sum(part[0] for part in parts) / count
    below = math.sqrt(sum((part[0] - part[1]) ** 2 for part in parts)) / count
    above = math.sqrt(sum((part[2] - part[0]) ** 2 for part in parts)) / count
    return Estimate(
        mean=mean, std=_fold_deviation(by_task, value), low=mean - below, high=mean + above
    )


def _fold_deviation(
    by_task: Mapping[str, Sequence[Graded]], value: Callable[[Graded], float | None]
) -> float | None:
    """Return the standard deviation over folds of the folds' averages over tasks."""
    folds = sorted({row.fold for rows in by_task.values() for row in rows})
    if len(folds) < 2:
        return None
    means = []
    for fold in folds:
        of_fold = [
            [float(value(row) or 0) for row in rows if row.fold == fold]
            for rows in by_task.values()
        ]
        if any(not values for values in of_fold):
            return None
        means.append(sum(sum(values) / len(values) for values in of_fold) / len(of_fold))
    return float(np.std(means, ddof=1))
