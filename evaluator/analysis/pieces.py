"""A noise-aware curve: the piecewise constant one that explains the counts best.

The earliest maximum over many noisy P(k) is often a lucky position. Here a trajectory's counts are
explained by stretches of constant accuracy: among all cuts of 0..n into stretches, the one with the
least negative binomial log-likelihood plus a penalty per stretch, found exactly by dynamic
programming (O(n^2) per trajectory). The penalty is that of the Bayesian information criterion,
ln(n + 1) times 1/2 for each of the two parameters of a stretch, its level and its start.
"""

# mypy: disallow-untyped-decorators=False

from dataclasses import dataclass

import numba as nb
import numpy as np

from stp.curves import Curves, Int32Array
from stp.ragged import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pieces:
    """What the fitted curves say, per trajectory.

    Attributes
    ----------
    k_star
        Where the highest stretch starts, the earliest on ties; int64 ``(trajectories,)``.
    best_accuracy, full_accuracy
        Levels of the highest and of the last stretch; float64 ``(trajectories,)``.
    count
        Number of stretches; int64 ``(trajectories,)``.
    """

    k_star: IntArray
    best_accuracy: FloatArray
    full_accuracy: FloatArray
    count: IntArray


def fit_pieces(curves: Curves, *, penalty_factor: float = 1.0) -> Pieces:
    """Fit a piecewise constant accuracy to every trajectory's counts.

    Parameters
    ----------
    curves
        Measured curves.
    penalty_factor
        Times ln(n + 1) is the penalty of a stretch; 0 makes every change of C(k) a stretch of its
        own.

    Raises
    ------
    ValueError
        If the factor is negative.

    Examples
    --------
    >>> curves = Curves(tokens=range(8), correct=[2, 3, 2, 14, 13, 14, 14, 13],
    ...                 trajectory_offsets=[0, 8], question=[0], probes=16)
    >>> pieces = fit_pieces(curves)
    >>> pieces.k_star.tolist(), pieces.count.tolist(), pieces.best_accuracy.tolist()
    ([3], [2], [0.85])
    """
    if penalty_factor < 0:
        raise ValueError(f"penalty_factor must not be negative, not {penalty_factor}")
    k_star, best, full, count = _fit(
        curves.correct, curves.trajectory_offsets, curves.probes, penalty_factor
    )
    return Pieces(k_star=k_star, best_accuracy=best, full_accuracy=full, count=count)


@nb.njit(cache=True, nogil=True)
def _fit(
    correct: Int32Array, offsets: IntArray, probes: int, penalty_factor: float
) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    trajectories = offsets.size - 1
    longest = 1
    for s in range(trajectories):
        longest = max(longest, offsets[s + 1] - offsets[s])
    x_log_x = np.zeros(longest * probes + 1)
    for i in range(1, x_log_x.size):
        x_log_x[i] = i * np.log(i)
    sums = np.zeros(longest + 1, np.int64)
    cost = np.zeros(longest + 1)
    cut = np.zeros(longest + 1, np.int64)
    k_star = np.zeros(trajectories, np.int64)
    best = np.zeros(trajectories)
    full = np.zeros(trajectories)
    count = np.zeros(trajectories, np.int64)
    for s in range(trajectories):
        start = offsets[s]
        size = offsets[s + 1] - start
        for k in range(size):
            sums[k + 1] = sums[k] + correct[start + k]
        penalty = penalty_factor * np.log(size)
        for j in range(1, size + 1):
            cost[j] = np.inf
            for i in range(j):
                right = sums[j] - sums[i]
                all_probes = (j - i) * probes
                misfit = x_log_x[all_probes] - x_log_x[right] - x_log_x[all_probes - right]
                # Slack, so that ties in exact arithmetic go to the longest last stretch.
                if cost[i] + misfit + penalty < cost[j] - 1e-9:
                    cost[j] = cost[i] + misfit + penalty
                    cut[j] = i
        j = size
        best[s] = -1.0
        while j > 0:
            i = cut[j]
            level = (sums[j] - sums[i]) / ((j - i) * probes)
            if j == size:
                full[s] = level
            if level >= best[s]:
                best[s], k_star[s] = level, i
            count[s] += 1
            j = i
    return k_star, best, full, count
