"""Compiled passes over trajectories: forward, backward, and draws of whole paths.

All take some trajectories of a cell (``member[first:last]``), so that threads share a cell, and
return sums; the caller adds them up in a fixed order, so results do not depend on the threads.

Names, as in Rabiner's tutorial on hidden Markov models (1989): the chain is in level i at one
position and in level j at the next with probability ``move[i, j]``; ``back`` is its transpose,
so that both passes read rows. ``alpha[k, i]`` is the probability of level i at k given the counts
up to k. ``w`` is likelihood times beta over the norm: what position k adds on the way back.
"""

# mypy: disallow-untyped-decorators=False

import numba as nb
import numpy as np
import numpy.typing as npt

from stp.curves import Int32Array
from stp.ragged import FloatArray, IntArray

PathArray = npt.NDArray[np.int8]
KeyArray = npt.NDArray[np.uint64]

# Weights below this cannot be seen in sums of numbers near 1. Most levels are that unlikely
# once counts are known, and skipping them halves the time.
_NOTHING = 1e-14


@nb.njit(cache=True, nogil=True)
def longest_of(offsets: IntArray, member: IntArray, first: int, last: int) -> int:
    """Return the most positions of one of the trajectories."""
    longest = 1
    for s in member[first:last]:
        longest = max(longest, offsets[s + 1] - offsets[s])
    return int(longest)


@nb.njit(cache=True, nogil=True)
def _forward(
    code: Int32Array,
    likelihood: FloatArray,
    start: FloatArray,
    move: FloatArray,
    alpha: FloatArray,
    norm: FloatArray,
) -> None:
    """Fill alpha and norm for one trajectory, whose codes are given."""
    levels = start.size
    for k in range(code.size):
        seen = likelihood[code[k]]
        now = alpha[k]
        if k == 0:
            now[:] = start
        else:
            now[:] = 0.0
            for i in range(levels):
                weight = alpha[k - 1, i]
                if weight > _NOTHING:
                    row = move[i]
                    for j in range(levels):
                        now[j] += weight * row[j]
        total = 0.0
        for j in range(levels):
            now[j] *= seen[j]
            total += now[j]
        for j in range(levels):
            now[j] /= total
        norm[k] = total


@nb.njit(cache=True, nogil=True)
def _step_back(
    seen: FloatArray, norm: float, back: FloatArray, beta: FloatArray, w: FloatArray
) -> None:
    """Replace beta of position k by that of k - 1, and leave what k adds in w."""
    levels = beta.size
    for j in range(levels):
        w[j] = seen[j] * beta[j] / norm
    beta[:] = 0.0
    for j in range(levels):
        weight = w[j]
        if weight > _NOTHING:
            row = back[j]
            for i in range(levels):
                beta[i] += weight * row[i]


@nb.njit(cache=True, nogil=True)
def expected_moves(
    code: Int32Array,
    offsets: IntArray,
    member: IntArray,
    first: int,
    last: int,
    likelihood: FloatArray,
    log_scale: FloatArray,
    start: FloatArray,
    move: FloatArray,
    back: FloatArray,
) -> tuple[FloatArray, FloatArray, float]:
    """Return expected moves between levels, expected starts, and the log-likelihood.

    Of moves, the factor ``move`` itself is left to the caller: it is the same in every term.
    """
    levels = start.size
    longest = longest_of(offsets, member, first, last)
    alpha = np.empty((longest, levels))
    norm = np.empty(longest)
    beta = np.empty(levels)
    w = np.empty(levels)
    moves = np.zeros((levels, levels))
    starts = np.zeros(levels)
    log_likelihood = 0.0
    for s in member[first:last]:
        own = code[offsets[s] : offsets[s + 1]]
        _forward(own, likelihood, start, move, alpha, norm)
        for k in range(own.size):
            log_likelihood += np.log(norm[k]) + log_scale[own[k]]
        beta[:] = 1.0
        for k in range(own.size - 1, 0, -1):
            _step_back(likelihood[own[k]], norm[k], back, beta, w)
            for i in range(levels):
                weight = alpha[k - 1, i]
                if weight > _NOTHING:
                    row = moves[i]
                    for j in range(levels):
                        row[j] += weight * w[j]
        for j in range(levels):
            starts[j] += alpha[0, j] * beta[j]
    return moves, starts, log_likelihood


@nb.njit(cache=True, nogil=True)
def posterior(
    code: Int32Array,
    offsets: IntArray,
    member: IntArray,
    first: int,
    last: int,
    likelihood: FloatArray,
    start: FloatArray,
    move: FloatArray,
    back: FloatArray,
    value: FloatArray,
    tail: float,
    mean: FloatArray,
    low: PathArray,
    high: PathArray,
) -> None:
    """Fill each position's posterior mean, and the levels at both tails of the posterior."""
    levels = start.size
    longest = longest_of(offsets, member, first, last)
    alpha = np.empty((longest, levels))
    norm = np.empty(longest)
    beta = np.empty(levels)
    w = np.empty(levels)
    for s in member[first:last]:
        own = code[offsets[s] : offsets[s + 1]]
        _forward(own, likelihood, start, move, alpha, norm)
        beta[:] = 1.0
        for k in range(own.size - 1, -1, -1):
            total = 0.0
            average = 0.0
            for j in range(levels):
                weight = alpha[k, j] * beta[j]
                w[j] = weight
                total += weight
                average += weight * value[j]
            at = offsets[s] + k
            mean[at] = average / total
            below = 0.0
            lowest = -1
            highest = levels - 1
            for j in range(levels):
                below += w[j] / total
                if lowest < 0 and below > tail:
                    lowest = j
                if below >= 1.0 - tail:
                    highest = j
                    break
            low[at] = lowest
            high[at] = highest
            if k:
                _step_back(likelihood[own[k]], norm[k], back, beta, w)


@nb.njit(cache=True, nogil=True, inline="always")
def mixed(x: np.uint64) -> np.uint64:
    """Return the finaliser of splitmix64: neighbouring numbers become unrelated ones."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(x ^ (x >> np.uint64(31)))


@nb.njit(cache=True, nogil=True)
def draw_paths(
    code: Int32Array,
    offsets: IntArray,
    member: IntArray,
    first: int,
    last: int,
    likelihood: FloatArray,
    start: FloatArray,
    move: FloatArray,
    back: FloatArray,
    key: KeyArray,
    path: PathArray,
) -> tuple[FloatArray, FloatArray]:
    """Draw a path of levels for each trajectory; return the moves and starts that it made.

    The random number of position k is a hash of the trajectory's key and k, so a path depends on
    nothing but its own counts, its key and the chain.
    """
    levels = start.size
    longest = longest_of(offsets, member, first, last)
    alpha = np.empty((longest, levels))
    norm = np.empty(longest)
    weight = np.empty(levels)
    moves = np.zeros((levels, levels))
    starts = np.zeros(levels)
    for s in member[first:last]:
        own = code[offsets[s] : offsets[s + 1]]
        _forward(own, likelihood, start, move, alpha, norm)
        after = -1
        for k in range(own.size - 1, -1, -1):
            total = 0.0
            for j in range(levels):
                weight[j] = alpha[k, j] if after < 0 else alpha[k, j] * back[after, j]
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
            if after >= 0:
                moves[chosen, after] += 1.0
            after = chosen
        starts[after] += 1.0
    return moves, starts


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
