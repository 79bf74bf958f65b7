"""The values that an accuracy can take in the chain, and the likelihood of counts under each.

The levels are equally spaced in arcsin(sqrt(P)): a count's noise has about the same width
everywhere on that scale, so the grid is as fine as counts can tell apart, finer near 0 and 1, and
holds 0 and 1 themselves. Every level stands for the stretch of accuracies nearer to it than to its
neighbours; 0 and 1 stand for themselves.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlog1py, xlogy

from stp.curves import Int32Array
from stp.ragged import FloatArray, IntArray

LEVELS = 41
"""How many; steps of 4 points around one half, of less than 1 near 0 and 1."""

_NOTHING = 1e-300


def accuracy_levels(count: int = LEVELS) -> FloatArray:
    """Return the levels, rising from 0 to 1; float64 ``(count,)``.

    Examples
    --------
    >>> accuracy_levels(5).round(3).tolist()
    [0.0, 0.146, 0.5, 0.854, 1.0]
    """
    return np.asarray(np.sin(np.linspace(0.0, np.pi / 2, count)) ** 2)


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


def mean_and_interval(
    mass: npt.NDArray[np.float32], levels: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean accuracy of weighed levels, and the ends of an interval.

    Parameters
    ----------
    mass
        Weights of the levels, of any positive sum; float32 ``(rows, levels)``.
    levels
        Float64 ``(levels,)``.
    tail
        Probability left out at either end.

    Returns
    -------
    mean, low, high
        Float64 ``(rows,)`` each. A level's weight is spread evenly, as angles, over the stretch
        that it stands for; and the ends are moved out by half a level, since true accuracies lie
        on no grid.
    """
    share = mass / mass.sum(axis=1, dtype=np.float64, keepdims=True)
    below = np.cumsum(share, axis=1)
    row, last = np.arange(share.shape[0]), levels.size - 1
    ends = []
    for wanted, outwards in ((tail, -0.5), (1.0 - tail, 0.5)):
        at = np.minimum((below < wanted).sum(axis=1), last)
        into = 1.0 - (below[row, at] - wanted) / np.maximum(share[row, at], _NOTHING)
        # Levels are equally spaced as angles; the first and the last one are points.
        inner = np.where((at > 0) & (at < last), np.clip(into, 0.0, 1.0) - 0.5, 0.0)
        angle = (at + inner + outwards) * (np.pi / 2 / last)
        ends.append(np.sin(np.clip(angle, 0.0, np.pi / 2)) ** 2)
    return share @ levels, ends[0], ends[1]
