"""A method in a few numbers, each made from its operating points.

Every number is a pure function of :class:`~evaluator.otbench.points.Points`, so that a bootstrap
replicate's points give a replicate of each.
"""

import numpy as np

from evaluator.otbench.points import Points
from stp.ragged import FloatArray

_NOISE = 1e-12

SUMMARIES: dict[str, str] = {
    "curve_area": "area of the method curve above P(0), up to full thinking",
    "hypervolume_share": "that area over the frontier's",
    "tokens_saved_fraction": "tokens saved at full thinking's accuracy, the best setting",
    "frontier_saved_fraction": "tokens that the frontier saves there",
    "best_accuracy": "accuracy of the best setting",
    "mean_gap": "frontier less method, averaged over the method curve",
    "selected_tokens_fraction": "tokens of the setting selected on validation questions",
    "selected_accuracy": "its accuracy",
    "selected_change": "its accuracy less full thinking's",
    "selected_gap": "the frontier at the same tokens, less its accuracy",
    "selected_share": "share of the frontier's gain over full thinking that it realises",
    "selected_signal_fraction": "tokens of its signals, over full thinking's",
}
"""The numbers, with their meaning; fractions of 1 throughout."""


def summarise(points: Points, selected: int) -> dict[str, float]:
    """Return the numbers of a method.

    Parameters
    ----------
    points
        On test questions.
    selected
        The setting that validation questions selected.

    Returns
    -------
    dict
        By the names of :data:`SUMMARIES`; NaN if a number has no meaning: a share of a gain
        that the frontier does not have.
    """
    gap = gaps(points)
    full = points.full_accuracy
    area = float((points.grid_accuracy - points.zero_accuracy).mean())
    return {
        "curve_area": area,
        "hypervolume_share": _ratio(
            area,
            float((points.grid_frontier - points.zero_accuracy).mean()),
        ),
        "tokens_saved_fraction": saved_at(points.tokens_fraction, points.accuracy, full),
        "frontier_saved_fraction": _frontier_saved(points),
        "best_accuracy": float(points.accuracy.max()),
        "mean_gap": float(gap[points.on_curve].mean()),
        "selected_tokens_fraction": float(points.tokens_fraction[selected]),
        "selected_accuracy": float(points.accuracy[selected]),
        "selected_change": float(points.accuracy[selected] - full),
        "selected_gap": float(gap[selected]),
        "selected_share": float(shares(points)[selected]),
        "selected_signal_fraction": float(points.signal_fraction[selected]),
    }


def gaps(points: Points) -> FloatArray:
    """Return the frontier less the accuracy, at the same tokens; float64 ``(settings,)``."""
    # Never below 0 but for rounding: the frontier is over the same cells.
    return np.maximum(points.frontier_accuracy - points.accuracy, 0.0)


def shares(points: Points) -> FloatArray:
    """Return the share of the frontier's gain over full thinking that each setting realises.

    (accuracy - P(n)) over (frontier - P(n)), at the same tokens; NaN if the frontier gains
    nothing there.
    """
    gain = points.frontier_accuracy - points.full_accuracy
    own = points.accuracy - points.full_accuracy
    share = np.full(gain.size, np.nan)
    np.divide(own, gain, out=share, where=gain > _NOISE)
    return share


def saved_at(tokens_fraction: FloatArray, accuracy: FloatArray, level: float) -> float:
    """Return the tokens saved by the cheapest point of at least this accuracy.

    0 if there is none: full thinking itself is always possible.
    """
    enough = accuracy >= level - _NOISE
    if not enough.any():
        return 0.0
    return max(0.0, 1.0 - float(tokens_fraction[enough].min()))


def _frontier_saved(points: Points) -> float:
    """Return what the averaged frontier saves at P(n), from its grid: a multiple of 0.01."""
    budgets = np.linspace(0.0, 1.0, points.grid_frontier.size)
    return saved_at(budgets, points.grid_frontier, points.full_accuracy)


def select(points: Points) -> int:
    """Return the setting to use, by validation points: cheapest that keeps P(n), else the best.

    Ties go to the higher accuracy, then to the earlier setting.
    """
    keeps = np.flatnonzero(points.accuracy >= points.full_accuracy - _NOISE)
    if keeps.size:
        order = np.lexsort((keeps, -points.accuracy[keeps], points.tokens_fraction[keeps]))
        return int(keeps[order[0]])
    order = np.lexsort((points.tokens_fraction, -points.accuracy))
    return int(order[0])


def _ratio(value: float, of: float) -> float:
    return value / of if of > _NOISE else float("nan")
