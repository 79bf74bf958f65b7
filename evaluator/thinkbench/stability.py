"""Whether a ranking stands when models leave the pool."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from data.errors import MisuseError
from evaluator.thinkbench.correlations import finite
from evaluator.thinkbench.pools import PoolKind, PoolResults, make_pool, score_all


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut:
    """What happens to the other models' scores when one leaves the pool.

    Attributes
    ----------
    removed
        The model that leaves.
    kendall, spearman
        Rank correlation of the others' scores before and after; None for fewer than two others
        or where all scores are equal.
    mean_rank_change
        Mean absolute change of the others' ranks (ties share a mean rank).
    largest_drift
        Greatest absolute change of a score.
    """

    removed: str
    kendall: float | None
    spearman: float | None
    mean_rank_change: float
    largest_drift: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """Leave-one-out over a pool (paper 000, Table 17).

    Attributes
    ----------
    rows
        One per model that was left out.
    kendall, spearman
        Means over rows; None if none has one.
    mean_rank_change
        Mean over rows.
    largest_drift
        Greatest over rows.
    """

    rows: tuple[LeaveOneOut, ...]
    kendall: float | None
    spearman: float | None
    mean_rank_change: float
    largest_drift: float


def leave_one_out(
    results: PoolResults, kind: PoolKind = "global", removed: Sequence[str] | None = None
) -> Stability:
    """Return how stable the ranking is when models leave the pool one at a time.

    Parameters
    ----------
    results
        The models' accuracies and tokens.
    kind
        The pool's kind.
    removed
        Which models leave; by default each in turn.

    Raises
    ------
    data.errors.MisuseError
        If there are fewer than three models.
    """
    if len(results) < 3:
        raise MisuseError(f"leave-one-out needs three models or more, not {len(results)}")
    before = {
        model: score.mean_oscore
        for model, score in score_all(results, make_pool(results, kind)).items()
    }
    rows = []
    for gone in results if removed is None else removed:
        others = {model: tasks for model, tasks in results.items() if model != gone}
        after = score_all(others, make_pool(others, kind))
        old = np.array([before[model] for model in others])
        new = np.array([after[model].mean_oscore for model in others])
        ranks = stats.rankdata(-old), stats.rankdata(-new)
        rows.append(
            LeaveOneOut(
                removed=gone,
                kendall=finite(stats.kendalltau(old, new).statistic),
                spearman=finite(stats.spearmanr(old, new).statistic)
                if len(set(old)) > 1 and len(set(new)) > 1
                else None,
                mean_rank_change=float(np.abs(ranks[0] - ranks[1]).mean()),
                largest_drift=float(np.abs(old - new).max()),
            )
        )
    return Stability(
        rows=tuple(rows),
        kendall=_mean([row.kendall for row in rows]),
        spearman=_mean([row.spearman for row in rows]),
        mean_rank_change=float(np.mean([row.mean_rank_change for row in rows])),
        largest_drift=max(row.largest_drift for row in rows),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
