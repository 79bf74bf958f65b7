"""The O-Score of LLMThinkBench (paper 000, 3.3): accuracy and token efficiency in one number.

Pure functions of numbers or arrays. Accuracy and efficiency are fractions from 0 to 1, tokens are
mean output tokens. The range of tokens comes from a pool of models and has to be reported with the
score; ``evaluator.thinkbench.pools`` keeps the two together.
"""

from typing import overload

import numpy as np
import numpy.typing as npt

from data.errors import MisuseError
from stp.ragged import FloatArray

Numbers = float | npt.ArrayLike


@overload
def token_efficiency(tokens: float, t_min: float, t_max: float) -> float: ...
@overload
def token_efficiency(
    tokens: npt.ArrayLike, t_min: npt.ArrayLike, t_max: npt.ArrayLike
) -> float | FloatArray: ...
def token_efficiency(tokens: Numbers, t_min: Numbers, t_max: Numbers) -> float | FloatArray:
    """Return how concise a model is within its pool (paper 000, Eq. 5).

    Parameters
    ----------
    tokens
        Mean output tokens of a response, 0 or more; a number or an array.
    t_min, t_max
        Least and greatest mean tokens in the pool. Tokens outside of them, as of a model that is
        not in the pool, count as the nearer of the two.

    Returns
    -------
    float or ndarray
        From 0 (the pool's most tokens) to 1 (its fewest). 1 if the pool has one value only.

    Raises
    ------
    data.errors.MisuseError
        If a number is negative or not finite, or ``t_min`` is above ``t_max``.

    Examples
    --------
    >>> token_efficiency(250, 100, 400)
    0.5
    >>> token_efficiency(100, 100, 100)
    1.0
    """
    given, least, most = (
        _checked(name, value, most=np.inf)
        for name, value in (("tokens", tokens), ("t_min", t_min), ("t_max", t_max))
    )
    if np.any(least > most):
        raise MisuseError(f"t_min {least} is above t_max {most}")
    spread = np.asarray(most - least)
    share = np.divide(
        np.clip(given, least, most) - least,
        spread,
        out=np.zeros(np.broadcast(given, spread).shape),
        where=spread > 0,
    )
    return _plain(1.0 - share)


@overload
def overthinking_score(accuracy: float, efficiency: float) -> float: ...
@overload
def overthinking_score(
    accuracy: npt.ArrayLike, efficiency: npt.ArrayLike
) -> float | FloatArray: ...
def overthinking_score(accuracy: Numbers, efficiency: Numbers) -> float | FloatArray:
    """Return the O-Score: the harmonic mean of accuracy and token efficiency (paper 000, Eq. 6).

    It lies between the lesser and the greater of the two, and is 0 if either is 0.

    Parameters
    ----------
    accuracy, efficiency
        Fractions from 0 to 1; numbers or arrays.

    Returns
    -------
    float or ndarray
        From 0 to 1.

    Raises
    ------
    data.errors.MisuseError
        If a value is not between 0 and 1.

    Examples
    --------
    >>> round(overthinking_score(0.9, 0.1), 2), overthinking_score(0.6, 0.6)
    (0.18, 0.6)
    >>> overthinking_score(0.0, 0.0)
    0.0
    """
    return weighted_score(accuracy, efficiency, beta=1.0)


def weighted_score(accuracy: Numbers, efficiency: Numbers, *, beta: float) -> float | FloatArray:
    """Return the weighted harmonic mean ``(1 + b²) A E / (b² A + E)`` (paper 000, B.3).

    Parameters
    ----------
    accuracy, efficiency
        Fractions from 0 to 1; numbers or arrays.
    beta
        Above 0. 1 gives the O-Score; above 1 efficiency counts for more, below 1 accuracy does.

    Raises
    ------
    data.errors.MisuseError
        If a value is out of its range.

    Examples
    --------
    >>> round(weighted_score(0.9, 0.5, beta=0.5), 3), round(weighted_score(0.9, 0.5, beta=2), 3)
    (0.776, 0.549)
    """
    right, concise = _fractions(accuracy, efficiency)
    if not (np.isfinite(beta) and beta > 0):
        raise MisuseError(f"beta is {beta}; it must be above 0")
    # Both scaled down by the larger of the weights, so that no beta overflows.
    weight = 1.0 / (1.0 + beta**-2) if beta > 1 else beta**2 / (1.0 + beta**2)
    below = weight * right + (1.0 - weight) * concise
    return _plain(np.divide(right * concise, below, out=np.zeros(np.shape(below)), where=below > 0))


def arithmetic_score(accuracy: Numbers, efficiency: Numbers) -> float | FloatArray:
    """Return the arithmetic mean of accuracy and efficiency (paper 000, B.1).

    Raises
    ------
    data.errors.MisuseError
        If a value is not between 0 and 1.

    Examples
    --------
    >>> arithmetic_score(1.0, 0.1)
    0.55
    """
    right, concise = _fractions(accuracy, efficiency)
    return _plain((right + concise) / 2)


def geometric_score(accuracy: Numbers, efficiency: Numbers) -> float | FloatArray:
    """Return the geometric mean of accuracy and efficiency (paper 000, B.1).

    Raises
    ------
    data.errors.MisuseError
        If a value is not between 0 and 1.

    Examples
    --------
    >>> round(geometric_score(1.0, 0.1), 2)
    0.32
    """
    right, concise = _fractions(accuracy, efficiency)
    return _plain(np.sqrt(right * concise))


def score_gradient(accuracy: float, efficiency: float) -> tuple[float, float]:
    """Return what a little more accuracy, and a little more efficiency, add to the O-Score.

    Paper 000, Eq. 12 and 13: ``2 E² / (A + E)²`` and ``2 A² / (A + E)²``. Both are 0 at the
    origin, where the score has no derivative.

    Raises
    ------
    data.errors.MisuseError
        If a value is not between 0 and 1.

    Examples
    --------
    >>> score_gradient(0.5, 0.5)
    (0.5, 0.5)
    """
    right, concise = (float(value) for value in _fractions(accuracy, efficiency))
    both = right + concise
    if both == 0:
        return 0.0, 0.0
    # Divided before squared: squares of numbers near 0 are 0.
    return 2 * (concise / both) ** 2, 2 * (right / both) ** 2


def score_hessian(accuracy: float, efficiency: float) -> FloatArray:
    """Return the O-Score's second derivatives, shape (2, 2).

    ``4 / (A + E)³ · [[−E², A E], [A E, −A²]]``, with the eigenvalues 0 (towards the origin) and
    ``−4 (A² + E²) / (A + E)³``: the score is concave. Paper 000 prints another matrix (Eq. 22),
    which is not this function's.

    Raises
    ------
    data.errors.MisuseError
        If a value is not between 0 and 1, both are 0, or so near to it that float64 does not hold
        the derivatives.

    Examples
    --------
    >>> score_hessian(0.5, 0.5).tolist()
    [[-1.0, 1.0], [1.0, -1.0]]
    """
    right, concise = (float(value) for value in _fractions(accuracy, efficiency))
    both = right + concise
    if both == 0:
        raise MisuseError("the O-Score has no second derivatives where both parts are 0")
    if both < 4 / np.finfo(np.float64).max:
        raise MisuseError(
            f"accuracy {accuracy} and efficiency {efficiency}: so near to 0 the second derivatives "
            "of the O-Score are larger than any float64"
        )
    # Divided before multiplied: cubes of numbers near 0 are 0.
    right, concise = right / both, concise / both
    matrix = np.array([[-(concise**2), right * concise], [right * concise, -(right**2)]])
    return np.asarray(matrix * (4 / both), dtype=np.float64)


def _fractions(accuracy: Numbers, efficiency: Numbers) -> tuple[FloatArray, FloatArray]:
    return _checked("accuracy", accuracy, most=1), _checked("efficiency", efficiency, most=1)


def _checked(name: str, value: Numbers, *, most: float) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    # Written so that NaN fails.
    if not bool(np.all((array >= 0) & (array <= most) & np.isfinite(array))):
        wanted = "0 or more" if most == np.inf else "a fraction from 0 to 1"
        raise MisuseError(f"{name} is {value!r}; it must be {wanted}")
    return array


def _plain(values: FloatArray | np.float64) -> float | FloatArray:
    array = np.asarray(values, dtype=np.float64)
    return float(array) if array.ndim == 0 else array
