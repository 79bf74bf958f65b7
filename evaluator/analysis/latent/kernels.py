"""Compiled passes over trajectories: forward, backward, and draws of whole paths.

All take some trajectories of a cell, ``part``, longest first, and walk through them side by side:
at position k those that have one are the first rows, and a step of all of them is one product of
matrices. Threads share a cell part by part and the caller adds up what they return in a fixed
order, so results do not depend on the threads.

Names, as in Rabiner's tutorial on hidden Markov models (1989): the chain is in level i at one
position and in level j at the next with probability ``move[i, j]``; ``back`` is its transpose.
``alpha`` holds, ``part.size`` rows a position, the probability of every level given the counts up
to there. ``w`` is likelihood times beta over the norm: what a position adds on the way back.
"""

# mypy: disallow-untyped-decorators=False

import numba as nb
import numpy as np
import numpy.typing as npt

from stp.curves import Int32Array
from stp.ragged import FloatArray, IntArray

PathArray = npt.NDArray[np.int8]
KeyArray = npt.NDArray[np.uint64]
MassArray = npt.NDArray[np.float32]

# Sums over levels may be taken in any order, so that they are taken several at a time.
_SUMS = {"reassoc"}


@nb.njit(cache=True, nogil=True)
def _going_on(offsets: IntArray, part: IntArray, k: int, known: int) -> int:
    """Return how many trajectories have a position k, from the number at a neighbouring one."""
    while known and offsets[part[known - 1] + 1] - offsets[part[known - 1]] <= k:
        known -= 1
    while known < part.size and offsets[part[known] + 1] - offsets[part[known]] > k:
        known += 1
    return int(known)


@nb.njit(cache=True, nogil=True, fastmath=_SUMS)
def _forward(
    code: Int32Array,
    offsets: IntArray,
    part: IntArray,
    likelihood: FloatArray,
    start: FloatArray,
    move: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return alpha ``(longest * part.size, levels)`` and norm ``(longest, part.size)``."""
    count, levels = part.size, start.size
    longest = offsets[part[0] + 1] - offsets[part[0]]
    alpha = np.empty((longest * count, levels))
    norm = np.empty((longest, count))
    rows = count
    for k in range(longest):
        before = alpha[(k - 1) * count : (k - 1) * count + rows]
        rows = _going_on(offsets, part, k, rows)
        now = alpha[k * count : k * count + rows]
        if k == 0:
            now[:] = start
        else:
            np.dot(before[:rows], move, now)
        for b in range(rows):
            seen = likelihood[code[offsets[part[b]] + k]]
            one = now[b]
            total = 0.0
            for j in range(levels):
                one[j] *= seen[j]
                total += one[j]
            scale = 1.0 / total
            for j in range(levels):
                one[j] *= scale
            norm[k, b] = total
    return alpha, norm


@nb.njit(cache=True, nogil=True)
def _step_back(
    code: Int32Array,
    offsets: IntArray,
    part: IntArray,
    likelihood: FloatArray,
    norm_k: FloatArray,
    back: FloatArray,
    k: int,
    beta: FloatArray,
    w: FloatArray,
) -> None:
    """Replace beta of position k by that of k - 1, and leave what k adds in w.

    Rows of ``beta`` and ``w`` are those of the trajectories that have a position k.
    """
    for b in range(beta.shape[0]):
        seen = likelihood[code[offsets[part[b]] + k]]
        scale = 1.0 / norm_k[b]
        for j in range(seen.size):
            w[b, j] = seen[j] * beta[b, j] * scale
    np.dot(w, back, beta)


@nb.njit(cache=True, nogil=True)
def expected_moves(
    code: Int32Array,
    offsets: IntArray,
    part: IntArray,
    likelihood: FloatArray,
    log_scale: FloatArray,
    start: FloatArray,
    move: FloatArray,
    back: FloatArray,
) -> tuple[FloatArray, FloatArray, float]:
    """Return expected moves between levels, expected starts, and the log-likelihood.

    Of moves, the factor ``move`` itself is left to the caller: it is the same in every term.
    """
    count, levels = part.size, start.size
    alpha, norm = _forward(code, offsets, part, likelihood, start, move)
    beta = np.ones((count, levels))
    w = np.empty((count, levels))
    moves = np.zeros((levels, levels))
    log_likelihood = 0.0
    rows = 0
    for k in range(norm.shape[0] - 1, -1, -1):
        rows = _going_on(offsets, part, k, rows)
        for b in range(rows):
            log_likelihood += np.log(norm[k, b]) + log_scale[code[offsets[part[b]] + k]]
        if k:
            _step_back(code, offsets, part, likelihood, norm[k], back, k, beta[:rows], w[:rows])
            before = alpha[(k - 1) * count : (k - 1) * count + rows]
            moves += np.dot(before.T, w[:rows])
    return moves, (alpha[:count] * beta).sum(axis=0), log_likelihood


@nb.njit(cache=True, nogil=True, fastmath=_SUMS)
def add_posterior(
    code: Int32Array,
    offsets: IntArray,
    part: IntArray,
    likelihood: FloatArray,
    start: FloatArray,
    move: FloatArray,
    back: FloatArray,
    place: IntArray,
    mass: MassArray,
) -> None:
    """Add each position's posterior probabilities of the levels to its row of ``mass``.

    ``place`` is the row of every trajectory's first position.
    """
    count, levels = part.size, start.size
    alpha, norm = _forward(code, offsets, part, likelihood, start, move)
    beta = np.ones((count, levels))
    w = np.empty((count, levels))
    rows = 0
    for k in range(norm.shape[0] - 1, -1, -1):
        rows = _going_on(offsets, part, k, rows)
        for b in range(rows):
            one = alpha[k * count + b]
            total = 0.0
            for j in range(levels):
                total += one[j] * beta[b, j]
            scale = 1.0 / total
            row = mass[place[part[b]] + k]
            for j in range(levels):
                row[j] += one[j] * beta[b, j] * scale
        if k:
            _step_back(code, offsets, part, likelihood, norm[k], back, k, beta[:rows], w[:rows])


@nb.njit(cache=True, nogil=True, inline="always")
def mixed(x: np.uint64) -> np.uint64:
    """Return the finaliser of splitmix64: neighbouring numbers become unrelated ones."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(x ^ (x >> np.uint64(31)))


@nb.njit(cache=True, nogil=True, fastmath=_SUMS)
def draw_paths(
    code: Int32Array,
    offsets: IntArray,
    part: IntArray,
    likelihood: FloatArray,
    start: FloatArray,
    move: FloatArray,
    back: FloatArray,
    key: KeyArray,
    path: PathArray,
) -> None:
    """Draw a path of levels for each trajectory.

    The random number of position k is a hash of the trajectory's key and k, so a path depends on
    nothing but its own counts, its key and the chain.
    """
    count, levels = part.size, start.size
    alpha, _ = _forward(code, offsets, part, likelihood, start, move)
    weight = np.empty(levels)
    for b in range(count):
        s = part[b]
        after = -1
        for k in range(offsets[s + 1] - offsets[s] - 1, -1, -1):
            one = alpha[k * count + b]
            total = 0.0
            for j in range(levels):
                weight[j] = one[j] if after < 0 else one[j] * back[after, j]
                total += weight[j]
            raw = mixed(key[s] + np.uint64(k + 1) * np.uint64(0x9E3779B97F4A7C15))
            # 53 bits make a number in 0..1, 1 excluded.
            left = float(raw >> np.uint64(11)) * (1.0 / 9007199254740992.0) * total
            chosen = -1
            for j in range(levels):
                if weight[j] > 0.0:
                    chosen = j
                    left -= weight[j]
                    if left < 0.0:
                        break
            path[offsets[s] + k] = chosen
            after = chosen


@nb.njit(cache=True, nogil=True)
def measures_of_path(
    tokens: IntArray, offsets: IntArray, accuracy: FloatArray, tolerance: float
) -> FloatArray:
    """Return each trajectory's OR up to the tolerance, AD, P(0), P(n) and best P.

    Float64 ``(5, trajectories)``. The reference is the first position within the tolerance of the
    best accuracy.
    """
    found = np.zeros((5, offsets.size - 1))
    for s in range(offsets.size - 1):
        first, last = offsets[s], offsets[s + 1] - 1
        best = 0.0
        for row in range(first, last + 1):
            best = max(best, accuracy[row])
        reference = first
        # A hair's breadth: 0.8 - 0.05 is not 0.75 in binary.
        while accuracy[reference] < best - tolerance - 1e-12:
            reference += 1
        full = tokens[last]
        if full > 0:
            found[0, s] = (full - tokens[reference]) / full
            found[1, s] = best - accuracy[last]
        found[2, s] = accuracy[first]
        found[3, s] = accuracy[last]
        found[4, s] = best
    return found
