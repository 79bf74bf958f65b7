"""Correlations of measures over models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from evaluator.analysis.exact_tests import EXACT_UP_TO, exact_p


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """The correlation of two measures over models.

    Attributes
    ----------
    first, second
        Names of the measures.
    count
        Models that have both.
    pearson, pearson_p, spearman, spearman_p
        Coefficients and two-sided p-values; None for fewer than three models or a constant. Of
        few models the p-values are exact (:mod:`evaluator.analysis.exact_tests`): the share of all
        orders of one measure whose coefficient is at least as far from 0. Over three models none is
        below 1/3.
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
    ranks_a, ranks_b = stats.rankdata(a), stats.rankdata(b)
    pearson, spearman = stats.pearsonr(a, b), stats.spearmanr(a, b)
    pearson_p, spearman_p = finite(pearson.pvalue), finite(spearman.pvalue)
    if known <= EXACT_UP_TO:
        pearson_p, spearman_p = exact_p(a, b), exact_p(ranks_a, ranks_b)
    return Correlation(
        first=first,
        second=second,
        count=known,
        pearson=finite(pearson.statistic),
        pearson_p=pearson_p,
        spearman=finite(spearman.statistic),
        spearman_p=spearman_p,
    )


def finite(value: float) -> float | None:
    """Return a number, or None for NaN and infinities: an undefined coefficient is unknown."""
    return float(value) if math.isfinite(value) else None
