"""How token counts are distributed: a log-normal fit (paper 000, Eq. 53)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


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
