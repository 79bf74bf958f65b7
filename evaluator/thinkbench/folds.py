"""The O-Score over folds (paper 000, Algorithm 6): each fold scored by itself, in one pool."""

from dataclasses import dataclass

import numpy as np

from evaluator.thinkbench.pools import Pool, TaskResult, score_model
from evaluator.thinkbench.stored import ThinkRun


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldScores:
    """A run's O-Score in each fold, their mean and their variance (one degree of freedom less)."""

    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over folds."""
        return float(np.mean(self.scores))

    @property
    def variance(self) -> float:
        """Variance over folds, k - 1 in the denominator."""
        return float(np.var(self.scores, ddof=1))


def fold_scores(run: ThinkRun, pool: Pool) -> FoldScores | None:
    """Return a run's O-Scores by fold; None for one fold, or where a task of a fold is missing.

    The pool is that of all folds together: a fold is measured with the same rule as the others,
    and mean tokens outside of the pool's range count as its ends.
    """
    folds = sorted({row.fold for row in run.graded})
    if len(folds) < 2:
        return None
    rows: dict[tuple[int, str], list[tuple[bool, int]]] = {}
    for row in run.graded:
        rows.setdefault((row.fold, row.task), []).append((row.right, row.tokens))
    if len(rows) < len(folds) * len(pool.tasks):
        return None
    return FoldScores(
        scores=tuple(
            score_model(
                {
                    task: TaskResult(
                        accuracy=float(np.mean([right for right, _ in rows[fold, task]])),
                        tokens=float(np.mean([tokens for _, tokens in rows[fold, task]])),
                    )
                    for task in pool.tasks
                },
                pool,
            ).mean_oscore
            for fold in folds
        )
    )
