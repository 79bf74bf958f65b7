"""OR and AD with the probe noise in view, beside the paper's.

The paper's k* is the earliest maximum over noisy accuracies, and its accuracy is read off the same
probes that chose it. So AD is too high: the expectation of a maximum is at least the maximum of the
expectations. Three other estimates stand beside it:

* *cross-fitted*: k* is chosen on half of the probes and its accuracy is measured on the other half.
  Averaged exactly over all splits that are independent across positions, from the counts alone
  (:mod:`evaluator.analysis.earliest_maximum`): no split is drawn.
* *leave one out*: the same, chosen on all probes but one and measured on that one. Its choice is
  nearly the paper's, its accuracy is not biased upwards.
* *pieces*: k* and both accuracies come from a fitted piecewise constant curve
  (:mod:`evaluator.analysis.pieces`).

In expectation the true AD, over the measured positions, lies between any cross-fitted value (what
a stopping position chosen from so few probes really gains) and the paper's. For OR there is no such
bracket: an accuracy has a level that can be measured again, a position has not. The cross-fitted OR
is exactly what probe thinning gives for the probes that chose. ``docs/statistics.md`` quotes how
far each is from the truth in simulation.
"""

import numpy as np
import pandas as pd

from evaluator.analysis.earliest_maximum import expected_choice, held_out_table
from evaluator.analysis.nesting import AVERAGE, nesting_of, with_averages
from evaluator.analysis.overthinking import per_trajectory
from evaluator.analysis.pieces import fit_pieces
from stp.curves import Curves
from stp.ragged import FloatArray


def cross_fit(curves: Curves, chosen_probes: int | None = None) -> pd.DataFrame:
    """Return OR and AD of every trajectory with k* chosen and measured on different probes.

    Parameters
    ----------
    curves
        Measured curves with at least two probes per position.
    chosen_probes
        Probes that choose k*, 1..``curves.probes - 1``; the rest measure. Half, rounded down, when
        left out; ``curves.probes - 1`` is leave one out.

    Returns
    -------
    pandas.DataFrame
        One row per trajectory, in the order of ``curves``: ``model``, ``benchmark``,
        ``question``, ``sample``; ``overthinking_ratio`` and ``accuracy_degradation``,
        expectations over all splits. AD may be negative: a lucky position may be worse than the
        end. An empty trajectory has OR = AD = 0.

    Raises
    ------
    ValueError
        If ``chosen_probes`` leaves one of the sides without a probe.
    """
    m = curves.probes // 2 if chosen_probes is None else chosen_probes
    chosen = expected_choice(curves, held_out_table(curves.probes, m))
    return chosen.drop(columns="keep_probability")


def fit_by_pieces(curves: Curves) -> pd.DataFrame:
    """Return OR and AD of every trajectory from its fitted piecewise constant curve.

    Returns
    -------
    pandas.DataFrame
        As :func:`cross_fit`. AD is at least 0.
    """
    pieces = fit_pieces(curves)
    full = curves.full_tokens_s
    rest = full - curves.tokens[curves.rows_at(pieces.k_star)]
    degradation = pieces.best_accuracy - pieces.full_accuracy
    return pd.DataFrame(
        {
            "model": curves.model,
            "benchmark": curves.benchmark,
            "question": curves.question,
            "sample": curves.sample,
            "overthinking_ratio": np.where(full > 0, rest / np.maximum(full, 1), 0.0),
            "accuracy_degradation": np.where(full > 0, degradation, 0.0),
        }
    )


def estimates(curves: Curves) -> dict[str, pd.DataFrame]:
    """Return the per-trajectory frame of each estimator.

    In this order: ``measured``, ``cross_fitted``, ``leave_one_out``, ``pieces``. With one probe per
    position only ``measured`` and ``pieces`` exist.
    """
    frames = {"measured": per_trajectory(curves)}
    if curves.probes > 1:
        frames["cross_fitted"] = cross_fit(curves)
        frames["leave_one_out"] = cross_fit(curves, curves.probes - 1)
    frames["pieces"] = fit_by_pieces(curves)
    return frames


def bias_aware(curves: Curves) -> pd.DataFrame:
    """Return OR and AD of every cell and average by each estimator of :func:`estimates`.

    Returns
    -------
    pandas.DataFrame
        Indexed by (``estimator``, ``model``, ``benchmark``), -1 for equal-weight averages; the
        fractions ``overthinking_ratio`` and ``accuracy_degradation``.
    """
    frames = estimates(curves)
    columns = ["overthinking_ratio", "accuracy_degradation"]
    nesting = nesting_of(frames["measured"])
    cells: list[FloatArray] = [
        with_averages(nesting.cell_means(frame[columns].to_numpy(np.float64)))
        for frame in frames.values()
    ]
    index = pd.MultiIndex.from_product(
        [frames, [*nesting.models.tolist(), AVERAGE], [*nesting.benchmarks.tolist(), AVERAGE]],
        names=["estimator", "model", "benchmark"],
    )
    result = pd.DataFrame(np.stack(cells).reshape(-1, len(columns)), index, columns=columns)
    return result.dropna(how="all")
