"""Paper 000's statements on overthinking, computed from runs.

Definition 2: a model overthinks on a task if a more concise one is at least as accurate there.
Section 5.5: accuracy over a thinking budget saturates, A(b) = A_max (1 − exp(−b/τ)).
Equation 51: tokens per word, measured where tokens were counted, beside the paper's 1.33.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import optimize

from evaluator.thinkbench.grading import Graded, mean_ratio
from evaluator.thinkbench.pools import TaskResult

FEWEST_BUDGETS: Final = 3
_GRID: Final = 200


def overthinking_by_task(
    results: Mapping[str, Mapping[str, TaskResult]],
) -> dict[str, dict[str, str]]:
    """Return on which tasks each model overthinks, and compared with which model (Definition 2).

    Parameters
    ----------
    results
        Accuracy and mean tokens by model and task.

    Returns
    -------
    dict
        For each model, by task, the most concise of the models that write fewer tokens than it and
        are at least as accurate; tasks without any are left out.

    Examples
    --------
    >>> r = lambda accuracy, tokens: {"sum": TaskResult(accuracy=accuracy, tokens=tokens)}
    >>> overthinking_by_task({"long": r(0.9, 500), "short": r(0.9, 50), "poor": r(0.5, 10)})
    {'long': {'sum': 'short'}, 'short': {}, 'poor': {}}
    """
    found: dict[str, dict[str, str]] = {}
    for name, tasks in results.items():
        found[name] = {}
        for task, own in tasks.items():
            better = [
                (other[task].tokens, place, who)
                for place, (who, other) in enumerate(results.items())
                if task in other
                and other[task].tokens < own.tokens
                and other[task].accuracy >= own.accuracy
            ]
            if better:
                found[name][task] = min(better)[2]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """A saturating curve through accuracies at budgets.

    Attributes
    ----------
    limit
        A_max, the accuracy that it tends to, 0..1.
    scale
        τ in tokens: at τ it has reached 63 % of the limit. 0 if accuracy does not grow with the
        budget.
    residual
        Root mean square distance of the points, as a fraction.
    points
        How many budgets.
    fall
        Accuracy at the best budget less that at the largest: what is lost by further thinking,
        which no saturating curve has (the paper's ε).
    """

    limit: float
    scale: float
    residual: float
    points: int
    fall: float


def saturation_fit(budgets: npt.ArrayLike, accuracy: npt.ArrayLike) -> Saturation:
    """Fit A(b) = A_max (1 − exp(−b/τ)) by least squares (paper 000, section 5.5).

    For each τ the best A_max is known in closed form, so only τ is searched: on a logarithmic grid
    from a hundredth of the least budget to a hundred times the largest, then between the grid's
    neighbours. A_max stays within 0..1.

    Parameters
    ----------
    budgets
        Thinking tokens allowed, or used; above 0, shape ``(n,)``.
    accuracy
        Fractions, shape ``(n,)``.

    Raises
    ------
    ValueError
        If there are fewer than three different budgets, or a value is out of range.
    """
    b, a = np.asarray(budgets, np.float64), np.asarray(accuracy, np.float64)
    if b.ndim != 1 or b.shape != a.shape or len(set(b.tolist())) < FEWEST_BUDGETS:
        raise ValueError(f"a saturation needs {FEWEST_BUDGETS} different budgets with accuracies")
    if not (np.isfinite(b).all() and (b > 0).all() and ((a >= 0) & (a <= 1)).all()):
        raise ValueError("budgets must be above 0, and accuracies fractions from 0 to 1")

    def fitted(log_scale: float) -> tuple[float, float]:
        shape = -np.expm1(-b / np.exp(log_scale))
        limit = float(np.clip((a @ shape) / (shape @ shape), 0.0, 1.0))
        return float(np.sum((a - limit * shape) ** 2)), limit

    grid = np.linspace(np.log(b.min() / 100), np.log(b.max() * 100), _GRID)
    errors = np.array([fitted(x)[0] for x in grid])
    best = int(errors.argmin())
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    found = optimize.minimize_scalar(
        lambda x: fitted(x)[0], bounds=(low, high), method="bounded", options={"xatol": 1e-9}
    )
    log_scale = float(found.x) if found.fun <= errors[best] else float(grid[best])
    error, limit = fitted(log_scale)
    scale = float(np.exp(log_scale))
    order = np.argsort(b, kind="stable")
    return Saturation(
        limit=limit,
        # A curve that has saturated before the first budget says nothing of where.
        scale=0.0 if scale <= b.min() / 10 else scale,
        residual=float(np.sqrt(error / len(b))),
        points=len(b),
        fall=float(a.max() - a[order[-1]]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensPerWord:
    """How many tokens a word has.

    Attributes
    ----------
    mean_ratio
        The mean of the responses' ratios (Equation 51).
    slope
        Of a regression of tokens on words through the origin: long responses count more.
    exponent
        Of tokens ∝ words^exponent, by a regression of the logarithms: 1 if the ratio does not
        depend on the length. None if all responses have the same number of words.
    responses
        How many.
    """

    mean_ratio: float
    slope: float
    exponent: float | None
    responses: int


def tokens_per_word(rows: Sequence[Graded]) -> TokensPerWord | None:
    """Return what the counted responses of a run say; None if there is none.

    Responses whose tokens are an estimate, or that have no word, are left out.
    """
    pairs = [(row.words, row.tokens) for row in rows if not row.estimated and row.words]
    pairs = [pair for pair in pairs if pair[1] > 0]
    if not pairs:
        return None
    words, tokens = np.array(pairs, dtype=np.float64).T
    exponent = None
    if len(set(words.tolist())) > 1:
        exponent = float(np.polyfit(np.log(words), np.log(tokens), 1)[0])
    return TokensPerWord(
        mean_ratio=mean_ratio(tokens, words),
        slope=float((words @ tokens) / (words @ words)),
        exponent=exponent,
        responses=len(pairs),
    )
