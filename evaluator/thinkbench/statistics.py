"""Significance, stability and shape: pure functions of arrays, without runs or files.

Axes: ``_m`` model, ``_t`` task, ``_q`` question.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from data.errors import MisuseError
from evaluator.thinkbench.pools import PoolKind, Results, make_pool, score_all

FloatArray = npt.NDArray[np.float64]

DEFAULT_REPLICATES = 10_000
DEFAULT_SEED = 20260721
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
        Student's paired t-test over tasks, two-sided (paper 000, Eq. 52). None where the
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
        return _percentiles(self.replicates[:, self.models.index(model)], level)

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
        return (*_percentiles(differences, level), float(p_value))


def bootstrap_scores(
    outcomes: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]],
    *,
    paired: bool,
    kind: PoolKind = "global",
    replicates: int = DEFAULT_REPLICATES,
    seed: int = DEFAULT_SEED,
    progress: Callable[[int, int], None] | None = None,
) -> Bootstrap:
    """Return replicates of the models' mean O-Scores; the pool is taken anew in each.

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
        if progress is not None:
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


def _percentiles(values: FloatArray, level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut:
    """What happens to the other models' scores when one leaves the pool.

    Attributes
    ----------
    removed
        The model that leaves.
    kendall, spearman
        Rank correlation of the others' scores before and after; None for fewer than two others
        or where all scores are equal.
    mean_rank_change
        Mean absolute change of the others' ranks (ties share a mean rank).
    largest_drift
        Greatest absolute change of a score.
    """

    removed: str
    kendall: float | None
    spearman: float | None
    mean_rank_change: float
    largest_drift: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """Leave-one-out over a pool (paper 000, Table 17).

    Attributes
    ----------
    rows
        One per model that was left out.
    kendall, spearman
        Means over rows; None where none has one.
    mean_rank_change
        Mean over rows.
    largest_drift
        Greatest over rows.
    """

    rows: tuple[LeaveOneOut, ...]
    kendall: float | None
    spearman: float | None
    mean_rank_change: float
    largest_drift: float


def leave_one_out(
    results: Results, kind: PoolKind = "global", removed: Sequence[str] | None = None
) -> Stability:
    """Return how stable the ranking is when models leave the pool one at a time.

    Parameters
    ----------
    results
        The models' accuracies and tokens.
    kind
        The pool's kind.
    removed
        Which models leave; by default each in turn.

    Raises
    ------
    data.errors.MisuseError
        If there are fewer than three models.
    """
    if len(results) < 3:
        raise MisuseError(f"leave-one-out needs three models or more, not {len(results)}")
    before = {
        model: score.mean_oscore
        for model, score in score_all(results, make_pool(results, kind)).items()
    }
    rows = []
    for gone in results if removed is None else removed:
        others = {model: tasks for model, tasks in results.items() if model != gone}
        after = score_all(others, make_pool(others, kind))
        old = np.array([before[model] for model in others])
        new = np.array([after[model].mean_oscore for model in others])
        ranks = stats.rankdata(-old), stats.rankdata(-new)
        rows.append(
            LeaveOneOut(
                removed=gone,
                kendall=_finite(stats.kendalltau(old, new).statistic),
                spearman=_finite(stats.spearmanr(old, new).statistic)
                if len(set(old)) > 1 and len(set(new)) > 1
                else None,
                mean_rank_change=float(np.abs(ranks[0] - ranks[1]).mean()),
                largest_drift=float(np.abs(old - new).max()),
            )
        )
    return Stability(
        rows=tuple(rows),
        kendall=_mean([row.kendall for row in rows]),
        spearman=_mean([row.spearman for row in rows]),
        mean_rank_change=float(np.mean([row.mean_rank_change for row in rows])),
        largest_drift=max(row.largest_drift for row in rows),
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """How two measures go together over models.

    Attributes
    ----------
    first, second
        Names of the measures.
    count
        Models that have both.
    pearson, pearson_p, spearman, spearman_p
        Coefficients and two-sided p-values; None for fewer than three models or a constant.
    """

    first: str
    second: str
    count: int
    pearson: float | None
    pearson_p: float | None
    spearman: float | None
    spearman_p: float | None


def correlate(
    first: str, second: str, x: Sequence[float | None], y: Sequence[float | None]
) -> Correlation:
    """Return the correlation of two measures; models that lack one are left out.

    Examples
    --------
    >>> round(correlate("a", "b", [1, 2, 3], [2, 4, 6.5]).pearson, 3)
    0.998
    """
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    known = len(pairs)
    if known < 3 or any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return Correlation(
            first=first,
            second=second,
            count=known,
            pearson=None,
            pearson_p=None,
            spearman=None,
            spearman_p=None,
        )
    a, b = np.array(pairs, dtype=np.float64).T
    pearson, spearman = stats.pearsonr(a, b), stats.spearmanr(a, b)
    return Correlation(
        first=first,
        second=second,
        count=known,
        pearson=_finite(pearson.statistic),
        pearson_p=_finite(pearson.pvalue),
        spearman=_finite(spearman.statistic),
        spearman_p=_finite(spearman.pvalue),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNormalFit:
    """A log-normal distribution fitted to token counts by maximum likelihood.

    Attributes
    ----------
    mu, sigma
        Mean and standard deviation (n in the denominator) of ln(tokens).
    count
        Responses with at least one token; others have no logarithm.
    distance
        Kolmogorov and Smirnov's: greatest difference of the two distribution functions.
    at_limit
        Fraction of responses that a limit cut: a peak that no log-normal has.
    """

    mu: float
    sigma: float
    count: int
    distance: float
    at_limit: float


def fit_log_normal(tokens: Sequence[int], cut: int = 0) -> LogNormalFit | None:
    """Return the fit, or None for fewer than two different counts (paper 000, Eq. 53).

    Parameters
    ----------
    tokens
        Token counts of responses.
    cut
        How many of them a limit ended.
    """
    logs = np.log([count for count in tokens if count > 0])
    if len(logs) < 2 or logs.min() == logs.max():
        return None
    mu, sigma = float(logs.mean()), float(logs.std())
    distance = float(stats.kstest(logs, "norm", args=(mu, sigma)).statistic)
    return LogNormalFit(
        mu=mu, sigma=sigma, count=len(logs), distance=distance, at_limit=cut / len(tokens)
    )


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
