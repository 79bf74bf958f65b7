"""The values that an accuracy can take in the chain, and how likely counts are under each.

The levels are equally spaced in arcsin(sqrt(P)): a count's noise has about the same width
everywhere on that scale, so the grid is as fine as counts can tell apart, finer near 0 and 1, and
holds 0 and 1 themselves. Every level stands for the stretch of accuracies nearer to it than to its
neighbours; 0 and 1 stand for themselves.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from stp.curves import Int32Array
from stp.ragged import FloatArray, IntArray

LEVELS = 41
"""How many; steps of 4 points around one half, of less than 1 near 0 and 1."""


def accuracy_levels(count: int = LEVELS) -> FloatArray:
    """Return the levels, rising from 0 to 1; float64 ``(count,)``.

    Examples
    --------
    >>> accuracy_levels(5).round(3).tolist()
    [0.0, 0.146, 0.5, 0.854, 1.0]
    """
    return np.asarray(np.sin(np.linspace(0.0, np.pi / 2, count)) ** 2)


def level_edges(levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper end of what each level stands for; float64 ``(levels,)`` each."""
    angle = np.arcsin(np.sqrt(levels))
    between = np.sin((angle[1:] + angle[:-1]) / 2) ** 2
    low, high = np.append(0.0, between), np.append(between, 1.0)
    # The ends are points: a chain that is sure of "never right" says 0 to 0.
    high[0], low[-1] = 0.0, 1.0
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readings:
    """What was counted at every position, as rows of one table.

    Attributes
    ----------
    code
        Each position's row in ``likelihood``; int32 ``(positions,)``.
    likelihood
        Of the counts under every level, divided by the largest of its row; float64
        ``(rows, levels)``. Many probes make likelihoods too small for a float, their ratios never.
    log_scale
        Logarithm of what each row was divided by; float64 ``(rows,)``.
    """

    code: Int32Array
    likelihood: FloatArray
    log_scale: FloatArray


def read_counts(correct: Int32Array, probes: Int32Array, levels: FloatArray) -> Readings:
    """Return the binomial likelihood of every position's count under every level.

    Parameters
    ----------
    correct, probes
        Right answers and all answers at every position; int32 ``(positions,)``. Where nothing was
        probed, every level is as likely.
    levels
        Float64 ``(levels,)`` in 0..1.
    """
    pairs = correct.astype(np.int64) << 32 | probes.astype(np.int64)
    distinct, code = np.unique(pairs, return_inverse=True)
    c: IntArray = (distinct >> 32)[:, None]
    n: IntArray = (distinct & 0xFFFFFFFF)[:, None]
    ways = gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1)
    log = ways + xlogy(c, levels) + xlog1py(n - c, -levels)
    scale = log.max(axis=1)
    return Readings(
        code=code.astype(np.int32).reshape(-1),
        likelihood=np.exp(log - scale[:, None]),
        log_scale=scale,
    )
