"""The metrics of OptimalThinkingBench (paper 004, sections 2.1 and 2.3): OAA, AUC_OAA, F1.

Pure functions of arrays. Correctness and token counts are integers; a score appears only at the
end, by one division. Products are averaged, not means multiplied: a right answer counts with its
own thinking tokens.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from data.errors import MisuseError

T_MAX = 1000
"""Most thinking tokens of the area under the curve (paper 004, section 3.1)."""

MOST_T_MAX = 1_000_000
"""Largest ``t_max`` of a report: its curves have a value for every threshold."""

_Integers = npt.NDArray[np.int64]

_EXACT_SUM = 2**62


def oaa(correct: npt.ArrayLike, thinking_tokens: npt.ArrayLike, t: int) -> float:
    """Return the overthinking-adjusted accuracy at a threshold, OAA_t (section 2.1).

    Parameters
    ----------
    correct
        1 for each right response and 0 for each wrong one; integers or booleans ``(responses,)``.
    thinking_tokens
        Thinking tokens of each response, at least 0; integers ``(responses,)``. A model that does
        not think has 0 of them.
    t
        The threshold. A right response counts if it has fewer than ``t`` thinking tokens.

    Returns
    -------
    float
        The fraction of responses that are right with fewer than ``t`` thinking tokens.

    Raises
    ------
    data.errors.MisuseError
        If there are no responses, the arrays differ in length, or a value is no such integer. An
        unknown number of tokens is not a number: leave the metric out, do not write 0.

    Examples
    --------
    >>> oaa([1, 1, 0], [0, 10, 0], t=10)
    0.3333333333333333
    """
    right, tokens = _checked(correct, thinking_tokens)
    return int(np.count_nonzero(right & (tokens < _threshold("t", t)))) / right.size


def oaa_curve(
    correct: npt.ArrayLike, thinking_tokens: npt.ArrayLike, t_max: int = T_MAX
) -> npt.NDArray[np.float64]:
    """Return OAA_t for every t from 0 to ``t_max``; float64 ``(t_max + 1,)``.

    Parameters and errors are those of :func:`oaa`. The first value is 0: no response has fewer
    than 0 tokens.

    Examples
    --------
    >>> oaa_curve([1, 1], [0, 2], t_max=3).tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    right, tokens = _checked(correct, thinking_tokens)
    last = check_t_max(t_max)
    counts = np.bincount(tokens[right & (tokens < last)], minlength=last)
    return np.concatenate([np.zeros(1), np.cumsum(counts) / right.size])


def auc_oaa(correct: npt.ArrayLike, thinking_tokens: npt.ArrayLike, t_max: int = T_MAX) -> float:
    r"""Return the area under the OAA curve, AUC_OAA (equation 1).

    With integer token counts the paper's sum of OAA_t over t = 0..t_max, divided by t_max, is
    :math:`\sum_i c_i \max(0, t_{max} - T_i) / (n\, t_{max})`, which is what is computed.

    Parameters
    ----------
    correct, thinking_tokens
        As in :func:`oaa`.
    t_max
        Thinking tokens from which on a right response counts nothing; at least 1.

    Returns
    -------
    float
        Between 0 and the accuracy; the accuracy itself where nothing was thought.

    Raises
    ------
    data.errors.MisuseError
        As :func:`oaa`, and if ``t_max`` is below 1.

    Examples
    --------
    >>> auc_oaa([1, 1, 0, 1], [0, 400, 0, 2500])
    0.4
    """
    right, tokens = _checked(correct, thinking_tokens)
    last = _threshold("t_max", t_max, least=1)
    # What is left of t_max is summed as Python integers where int64 could not hold it.
    left = np.maximum(0, last - tokens[right])
    total = sum(left.tolist()) if last > _EXACT_SUM // right.size else int(left.sum())
    return total / (right.size * last)


def area_fractions(
    right: npt.NDArray[np.float64], tokens: npt.NDArray[np.float64], t_max: int = T_MAX
) -> npt.NDArray[np.float64]:
    """Return what each response adds to AUC_OAA, from 0 to 1; its mean is the AUC_OAA.

    Parameters
    ----------
    right
        How right each response is: 0, 1, or the right fraction of a trajectory's probes.
    tokens
        Thinking tokens; NaN if unknown, and then the result is NaN.
    t_max
        As in :func:`auc_oaa`.

    Raises
    ------
    data.errors.MisuseError
        If the arrays differ in shape, a fraction is not in 0..1, a count is negative or infinite,
        or ``t_max`` is not an integer of at least 1.

    Examples
    --------
    >>> area_fractions(np.array([1.0, 0.5]), np.array([250.0, 0.0])).tolist()
    [0.75, 0.5]
    """
    last = _threshold("t_max", t_max, least=1)
    if right.shape != tokens.shape:
        raise MisuseError(f"right has the shape {right.shape} and tokens {tokens.shape}")
    # NaN is no comparison's answer: this way round it is refused.
    if not ((right >= 0) & (right <= 1)).all():
        raise MisuseError("right must hold fractions from 0 to 1 and nothing else")
    if ((tokens < 0) | np.isinf(tokens)).any():
        raise MisuseError("thinking tokens must be numbers of at least 0, or NaN if unknown")
    return np.asarray(right * np.maximum(0.0, last - tokens) / last)


def f1_otb(auc: float, accuracy: float) -> float:
    """Return the F1 score of OptimalThinkingBench (section 2.3).

    Parameters
    ----------
    auc
        AUC_OAA on the overthinking questions, at least 0.
    accuracy
        Accuracy on the underthinking questions, in the same unit: fractions or percent.

    Returns
    -------
    float
        The harmonic mean of the two, in their unit; 0 if both are 0.

    Raises
    ------
    data.errors.MisuseError
        If one is negative or no number.

    Examples
    --------
    >>> round(f1_otb(83.3, 57.9), 1)
    68.3
    """
    for name, value in (("auc", auc), ("accuracy", accuracy)):
        if not 0 <= value < math.inf:
            raise MisuseError(f"{name} must be a number of at least 0, not {value!r}")
    larger, smaller = max(auc, accuracy), min(auc, accuracy)
    if larger == 0:
        return 0.0
    # Divided first, so that no product leaves the range of a float.
    return 2.0 * smaller / (1.0 + smaller / larger)


def check_t_max(t_max: int) -> int:
    """Return a ``t_max`` that a curve can be made of.

    Raises
    ------
    data.errors.MisuseError
        If it is not an integer from 1 to :data:`MOST_T_MAX`.
    """
    if _threshold("t_max", t_max, least=1) > MOST_T_MAX:
        raise MisuseError(f"t_max must be at most {MOST_T_MAX:,}, not {t_max:,}")
    return int(t_max)


def _threshold(name: str, value: Any, least: int = 0) -> int:
    whole = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    # Compared first: an infinity and a NaN are not integers.
    if not whole or not least <= value < _EXACT_SUM or value != int(value):
        raise MisuseError(f"{name} must be an integer from {least} to 2^62, not {value!r:.40}")
    return int(value)


def _checked(
    correct: npt.ArrayLike, thinking_tokens: npt.ArrayLike
) -> tuple[npt.NDArray[np.bool_], _Integers]:
    """Return correctness as booleans and tokens as integers, or say what is wrong with them."""
    right: npt.NDArray[Any] = np.asarray(correct)
    tokens: npt.NDArray[Any] = np.asarray(thinking_tokens)
    if right.ndim != 1 or right.shape != tokens.shape:
        raise MisuseError(
            f"correct has the shape {right.shape} and thinking_tokens {tokens.shape}; both need "
            "one value for each response"
        )
    if right.size == 0:
        raise MisuseError("no responses: a score of nothing is not a number")
    if right.dtype != np.bool_:
        if not (np.issubdtype(right.dtype, np.integer) and np.isin(right, (0, 1)).all()):
            raise MisuseError("correct must hold 0 and 1 (integers or booleans) and nothing else")
        right = right.astype(np.bool_)
    if np.ma.is_masked(correct) or np.ma.is_masked(thinking_tokens):
        raise MisuseError("masked values are not numbers; leave their responses out")
    whole = tokens.dtype.kind in "iu"
    if not whole or tokens.min() < 0 or int(tokens.max()) >= 2**63:
        raise MisuseError(
            "thinking_tokens must hold integers of at least 0; where they are unknown there is no "
            "overthinking-adjusted accuracy"
        )
    return right, tokens.astype(np.int64)
