"""The earliest maximiser of independent random counts, integrated exactly.

A measured curve has C_k right answers among its probes at position k. Keep some of the probes, at
random: the counts X_k are independent across positions, and the reference position becomes the
earliest maximiser of X. With F_k(x) = Pr(X_k <= x), position k is it with count x with probability

    Pr(X_k = x)  x  prod over j < k of F_j(x - 1)  x  prod over j > k of F_j(x),

two running products per trajectory, so the work is positions x largest count. Nothing is drawn.
"""

# mypy: disallow-untyped-decorators=False

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numba as nb
import numpy as np
import pandas as pd

from oracle.checks import whole_number
from stp.curves import Curves, Int32Array
from stp.ragged import FloatArray, IntArray

# A running product below this cannot matter to a sum of at most a few million terms, and the
# numbers near the smallest that a float can hold are many times slower to multiply.
_NOTHING = 1e-200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountTable:
    """Distribution of a count X of kept right probes, for every count c of all right probes.

    Attributes
    ----------
    mass
        Pr(X = x); float64 ``(probes + 1, m + 1)``.
    cumulated
        Pr(X <= x - 1) in column x, so that column 0 is zero; float64 ``(probes + 1, m + 2)``.
    measure
        What is averaged over the chosen position when it has counts c and x; float64
        ``(probes + 1, m + 1)``.
    """

    mass: FloatArray
    cumulated: FloatArray
    measure: FloatArray


def kept_share_table(probes: int, m: int) -> CountTable:
    """Return X ~ Hypergeometric(probes, c, m), measured by the accuracy X / m itself.

    Raises
    ------
    ValueError
        If m is not an integer in 1..probes.

    Examples
    --------
    >>> kept_share_table(2, 1).mass.tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    m = whole_number("m", m, least=1, most=probes)
    x = np.arange(m + 1)
    return _hypergeometric(probes, m, np.tile(x / m, (probes + 1, 1)))


def held_out_table(probes: int, m: int) -> CountTable:
    """Return X ~ Hypergeometric(probes, c, m), measured by the accuracy of the probes left over.

    Raises
    ------
    ValueError
        If m is not an integer in 1..probes - 1, so that there are no probes on one of the sides.
    """
    if probes < 2:
        raise ValueError(f"{probes} probes at a position cannot be split; both parts need probes")
    m = whole_number("m", m, least=1, most=probes - 1)
    c, x = np.arange(probes + 1)[:, np.newaxis], np.arange(m + 1)
    return _hypergeometric(probes, m, (c - x) / (probes - m))


def expected_choice(curves: Curves, table: CountTable) -> pd.DataFrame:
    """Return expectations over the earliest maximiser k* of every trajectory, exactly.

    Returns
    -------
    pandas.DataFrame
        One row per trajectory, in the order of ``curves``: ``model``, ``benchmark``,
        ``question``, ``sample``; of (L(n) - L(k*)) / L(n) ``overthinking_ratio``; of the table's
        measure at k* less the accuracy at n ``accuracy_degradation``; and ``keep_probability``,
        that k* is the one found with all probes. An empty trajectory has OR = AD = 0.

    Raises
    ------
    ValueError
        If the table is one of another number of probes.
    """
    if table.mass.shape[0] != curves.probes + 1:
        raise ValueError(
            f"the table is for {table.mass.shape[0] - 1} probes at a position, and the curves have "
            f"{curves.probes}"
        )
    ratio, measure, keep = _integrate(
        curves.tokens,
        curves.correct,
        curves.trajectory_offsets,
        curves.k_star_s,
        table.mass,
        table.cumulated,
        table.measure,
    )
    # E[X_n] / m = C_n / probes: the probes that are kept, or held out, are a random part of all.
    degradation = measure - curves.full_correct_s / curves.probes
    return pd.DataFrame(
        {
            "model": curves.model,
            "benchmark": curves.benchmark,
            "question": curves.question,
            "sample": curves.sample,
            "overthinking_ratio": ratio,
            "accuracy_degradation": np.where(curves.full_tokens_s > 0, degradation, 0.0),
            "keep_probability": keep,
        }
    )


def _hypergeometric(probes: int, m: int, measure: FloatArray) -> CountTable:
    mass = np.empty((probes + 1, m + 1))
    cumulated = np.zeros((probes + 1, m + 2))
    for c in range(probes + 1):
        total = Fraction(0)
        for x in range(m + 1):
            # Exact, and rounded once.
            share = Fraction(comb(c, x) * comb(probes - c, m - x), comb(probes, m))
            total += share
            mass[c, x], cumulated[c, x + 1] = float(share), float(total)
    return CountTable(mass=mass, cumulated=cumulated, measure=np.ascontiguousarray(measure))


@nb.njit(cache=True, nogil=True)
def _integrate(
    tokens: IntArray,
    correct: Int32Array,
    offsets: IntArray,
    reference: IntArray,
    mass: FloatArray,
    cumulated: FloatArray,
    measure: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    values = mass.shape[1]
    trajectories = offsets.size - 1
    longest = 1
    for s in range(trajectories):
        longest = max(longest, offsets[s + 1] - offsets[s])
    after = np.empty((longest, values))
    before = np.empty(values)
    ratio = np.zeros(trajectories)
    measured = np.zeros(trajectories)
    keep = np.zeros(trajectories)
    for s in range(trajectories):
        start = offsets[s]
        last = offsets[s + 1] - start - 1
        after[last] = 1.0
        for k in range(last, 0, -1):
            c = correct[start + k]
            for x in range(values):
                product = after[k, x] * cumulated[c, x + 1]
                after[k - 1, x] = product if product > _NOTHING else 0.0
        before[:] = 1.0
        full = tokens[start + last]
        for k in range(last + 1):
            c = correct[start + k]
            chosen = 0.0
            for x in range(values):
                share = mass[c, x] * before[x] * after[k, x]
                chosen += share
                measured[s] += measure[c, x] * share
                product = before[x] * cumulated[c, x]
                before[x] = product if product > _NOTHING else 0.0
            if full > 0:
                ratio[s] += chosen * (full - tokens[start + k]) / full
            if k == reference[s]:
                keep[s] = chosen
    return ratio, measured, keep
