"""Where more answers are most informative: adaptive probing, as a pure function of the counts.

A further answer at position k is right with probability P(k). The expected reduction, by m of
them, of the variance of a quantity f of the trajectory is, with a linear estimate,

    Cov(f, P(k))^2 / (Var(P(k)) + E[P(k) (1 - P(k))] / m),

all under the posterior, and so from drawn curves. f is AD and OR up to the tolerance, both
fractions, and their gains are added. Choosing by the counts so far does not bias the posterior: the
likelihood of the answers is the same however their number was chosen. It would bias raw maxima.
"""

# mypy: disallow-untyped-decorators=False

import numba as nb
import numpy as np

from evaluator.analysis.latent.fitting import fit
from evaluator.analysis.latent.values import LatentCurves
from oracle.checks import whole_number
from stp.curves import Curves, Int32Array
from stp.ragged import FloatArray, IntArray

_DRAWS = 120
# Nothing is asked for less than a tenth of a point, squared: levels near 0 and 1 lie so close.
_LEAST_GAIN = 1e-6


def expected_gains(
    latent: LatentCurves, *, answers: int = 4, tolerance: float = 0.03
) -> FloatArray:
    """Return by how much some more answers at a position lower the variance of AD and OR.

    Parameters
    ----------
    latent
        A fit; with few draws gains are noisy: take 100 or more.
    answers
        How many more, at one position alone.
    tolerance
        Of OR.

    Returns
    -------
    numpy.ndarray
        float64 ``(positions,)``, squared fractions.

    Raises
    ------
    ValueError
        If there are fewer than two draws, or a number is out of its range.
    """
    answers = whole_number("answers", answers, least=1)
    if latent.draws < 2:
        raise ValueError("gains need at least two draws of every curve")
    wanted = latent.measures(tolerance)[:, :2]
    curves = latent.curves
    total = np.zeros(curves.positions)
    squares = np.zeros(curves.positions)
    products = np.zeros((2, curves.positions))
    lengths = np.diff(curves.trajectory_offsets)
    centre = wanted.mean(axis=0)
    for draw in range(latent.draws):
        accuracy = latent.drawn_accuracy(draw)
        total += accuracy
        squares += accuracy**2
        for i in range(2):
            products[i] += accuracy * np.repeat(wanted[draw, i] - centre[i], lengths)
    mean = total / latent.draws
    variance = np.maximum(squares / latent.draws - mean**2, 0.0)
    noise = np.maximum(mean - squares / latent.draws, 0.0) / answers
    covariance = products / latent.draws
    # Draws that do not differ have no covariance either: nothing is to be gained there.
    below = np.maximum(variance + noise, 1e-12)
    return np.asarray((covariance**2).sum(axis=0) / below)


def choose_positions(
    latent: LatentCurves,
    *,
    budget: float,
    most: int,
    answers: int | None = None,
    tolerance: float = 0.03,
    answer_tokens: FloatArray | None = None,
) -> Int32Array:
    """Return how many more answers to sample at every position in the next round.

    Positions are taken by expected gain for a token until the budget is spent. In one round a
    trajectory gets answers at no more than half of its positions (at least one), since gains
    of neighbours are not additive: the next round uses the answers of this one.

    Parameters
    ----------
    latent
        A fit of all answers so far.
    budget
        Tokens of this round's answers, over all positions.
    most
        Answers that a position may have in all.
    answers
        That a chosen position gets, or as many as ``most`` leaves. Left out: an eighth of
        ``most``, 4 at least.
    tolerance
        Of OR.
    answer_tokens
        Expected tokens of an answer at every position; float64 ``(positions,)``. Left out: one
        everywhere, so that the budget is in answers.

    Returns
    -------
    numpy.ndarray
        int32 ``(positions,)``.

    Raises
    ------
    ValueError
        As :func:`expected_gains`, or if the budget is negative or no number.
    """
    if not 0 <= budget < np.inf:
        raise ValueError(f"budget must be a number of 0 or more, not {budget!r}")
    most = whole_number("most", most, least=1)
    answers = max(4, most // 8) if answers is None else answers
    curves = latent.curves
    gain = expected_gains(latent, answers=answers, tolerance=tolerance)
    tokens = np.ones(curves.positions) if answer_tokens is None else np.maximum(answer_tokens, 1.0)
    room = np.minimum(answers, np.maximum(most - curves.all_probes_k, 0)).astype(np.int64)
    # Stable, so that equal gains are taken in the order of the positions.
    order = np.argsort(-gain / tokens, kind="stable")
    lengths = np.diff(curves.trajectory_offsets)
    owner = np.repeat(np.arange(curves.trajectories), lengths)
    places_s = np.maximum(lengths // 2, 1)
    chosen = _take(order, owner, gain, tokens, room, places_s, float(budget))
    return np.asarray(chosen, np.int32)


def next_answers(curves: Curves, answer_tokens: FloatArray, budget: float, most: int) -> Int32Array:
    """Return how many more answers to sample at every position, from the curves so far.

    The chooser of a campaign's rounds: see :func:`stp.campaign.rounds.run_rounds`.
    """
    latent = fit(curves, draws=_DRAWS)
    return choose_positions(latent, budget=budget, most=most, answer_tokens=answer_tokens)


@nb.njit(cache=True, nogil=True)
def _take(
    order: IntArray,
    owner: IntArray,
    gain: FloatArray,
    tokens: FloatArray,
    room: IntArray,
    places_s: IntArray,
    budget: float,
) -> IntArray:
    """Go through positions in order; ``places_s`` is what each trajectory may still have.

    A position whose answers are too dear for what is left is passed over.
    """
    chosen = np.zeros(order.size, np.int64)
    left = budget
    for at in order:
        if gain[at] < _LEAST_GAIN:
            continue
        s = owner[at]
        count = min(room[at], int(left // tokens[at]))
        if count > 0 and places_s[s] > 0:
            chosen[at] = count
            left -= count * tokens[at]
            places_s[s] -= 1
    return chosen
