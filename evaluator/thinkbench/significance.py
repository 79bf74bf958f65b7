"""Whether models differ: paired tests over tasks, and a bootstrap over questions."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.analysis.intervals import central_range
from evaluator.thinkbench.pools import PoolKind
from stp.ragged import FloatArray
from stp.seeds import PAPER_SEED

DEFAULT_REPLICATES = 10_000
ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """One model against another, on the same tasks.

    Attributes
    ----------
    first, second
        The models.
    difference
        Mean over tasks of first minus second.
    statistic, p_value
        Student's paired t-test over tasks, two-sided (paper 000, Eq. 52). None if the
        differences are all equal, or there are fewer than two tasks.
    p_bonferroni
        ``p_value`` times the number of pairs, at most 1.
    low, high, p_bootstrap
        Percentile interval and two-sided p-value of a bootstrap over questions; None without one.
    """

    first: str
    second: str
    difference: float
    statistic: float | None
    p_value: float | None
    p_bonferroni: float | None
    low: float | None = None
    high: float | None = None
    p_bootstrap: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the corrected t-test says that the two differ, at 5 %."""
        return self.p_bonferroni is not None and self.p_bonferroni < ALPHA


def paired_tests(scores: Mapping[str, Sequence[float]]) -> list[PairedTest]:
    """Return the paired t-tests of all pairs of models, with Bonferroni's correction.

    Parameters
    ----------
    scores
        For every model its score on each task, the tasks in one order.

    Raises
    ------
    data.errors.MisuseError
        If the models have different numbers of tasks.

    Examples
    --------
    >>> (test,) = paired_tests({"a": [0.9, 0.8, 0.7], "b": [0.5, 0.5, 0.5]})
    >>> round(test.difference, 2), round(test.p_value, 3)
    (0.3, 0.035)
    """
    lengths = {len(values) for values in scores.values()}
    if len(lengths) > 1:
        raise MisuseError(f"models were scored on different numbers of tasks: {sorted(lengths)}")
    pairs = list(itertools.combinations(scores, 2))
    return [_paired(first, second, scores, len(pairs)) for first, second in pairs]


def _paired(
    first: str, second: str, scores: Mapping[str, Sequence[float]], pairs: int
) -> PairedTest:
    differences = np.asarray(scores[first], dtype=np.float64) - np.asarray(
        scores[second], dtype=np.float64
    )
    count = len(differences)
    mean = float(differences.mean())
    deviation = float(differences.std(ddof=1)) if count > 1 else 0.0
    # Equal differences leave a deviation of rounding only, and a t without meaning.
    if deviation <= 1e-12 * max(1.0, float(np.abs(differences).max())):
        statistic = p_value = None
    else:
        statistic = mean / (deviation / math.sqrt(count))
        p_value = float(2 * stats.t.sf(abs(statistic), count - 1))
    return PairedTest(
        first=first,
        second=second,
        difference=mean,
        statistic=statistic,
        p_value=p_value,
        p_bonferroni=None if p_value is None else min(1.0, p_value * pairs),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bootstrap:
    """Replicates of every model's mean O-Score, drawn over questions.

    Attributes
    ----------
    models
        Names, in the order of the columns.
    replicates
        ``(replicates, models)``.
    paired
        Whether all models share the same questions in a replicate.
    """

    models: tuple[str, ...]
    replicates: FloatArray
    paired: bool

    def interval(self, model: str, level: float = 0.95) -> tuple[float, float]:
        """Return the percentile interval of a model's score."""
        low, high = central_range(self.replicates[:, self.models.index(model)], level)
        return float(low), float(high)

    def compare(self, first: str, second: str, level: float = 0.95) -> tuple[float, float, float]:
        """Return interval and two-sided p-value of a difference of two models' scores.

        The p-value is twice the smaller share of replicates on one side of 0 (half of those at 0),
        with one added to both counts, so it is never 0.
        """
        at, other = self.models.index(first), self.models.index(second)
        differences = self.replicates[:, at] - self.replicates[:, other]
        count = len(differences)
        ties = np.count_nonzero(differences == 0) / 2
        below = np.count_nonzero(differences < 0) + ties
        above = np.count_nonzero(differences > 0) + ties
        p_value = min(1.0, 2 * (min(below, above) + 1) / (count + 1))
        low, high = central_range(differences, level)
        return float(low), float(high), float(p_value)


def bootstrap_scores(
    outcomes: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]],
    *,
    paired: bool,
    kind: PoolKind = "global",
    replicates: int = DEFAULT_REPLICATES,
    seed: int = PAPER_SEED,
    progress: Progress = NOBODY,
) -> Bootstrap:
    """Return replicates of the models' mean O-Scores; the pool is taken again in each.

    Parameters
    ----------
    outcomes
        For every model and task, two arrays over questions: right (0 or 1) and tokens.
    paired
        Draw the same questions for all models; their arrays are then in one order.
    kind
        The pool's kind.
    replicates, seed
        How many, from which seed.
    progress
        Called with the tasks drawn and all tasks.

    Returns
    -------
    Bootstrap
        Within a task, questions are drawn with replacement; tasks are kept.

    Raises
    ------
    data.errors.MisuseError
        If ``paired`` and the arrays differ in length, or ``replicates`` is below 1.
    """
    if replicates < 1:
        raise MisuseError(f"replicates is {replicates}; it must be at least 1")
    models, tasks = tuple(outcomes), sorted(next(iter(outcomes.values())))
    accuracy = np.empty((replicates, len(models), len(tasks)))
    tokens = np.empty_like(accuracy)
    for at, task in enumerate(tasks):
        rng = np.random.default_rng([seed, at])
        arrays = [outcomes[model][task] for model in models]
        sizes = {len(right) for right, _ in arrays}
        if paired and len(sizes) > 1:
            raise MisuseError(f"{task}: models have different numbers of questions")
        weights = _weights(rng, len(arrays[0][0]), replicates) if paired else None
        for model, (right, used) in enumerate(arrays):
            drawn = _weights(rng, len(right), replicates) if weights is None else weights
            accuracy[:, model, at] = drawn @ right / len(right)
            tokens[:, model, at] = drawn @ used / len(used)
        progress(at + 1, len(tasks))
    axes = (1, 2) if kind == "global" else (1,)
    low = tokens.min(axis=axes, keepdims=True)
    spread = tokens.max(axis=axes, keepdims=True) - low
    share = np.divide(tokens - low, spread, out=np.zeros_like(tokens), where=spread > 0)
    efficiency = 1.0 - share
    below = accuracy + efficiency
    scores = np.divide(2 * accuracy * efficiency, below, out=np.zeros_like(below), where=below > 0)
    return Bootstrap(models=models, replicates=scores.mean(axis=2), paired=paired)


def _weights(rng: np.random.Generator, questions: int, replicates: int) -> FloatArray:
    """Return how often each question is drawn, ``(replicates, questions)``."""
    drawn = rng.multinomial(questions, np.full(questions, 1 / questions), size=replicates)
    return drawn.astype(np.float64)
