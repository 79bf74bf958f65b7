"""The fitted value: the accuracies behind the counts, and what follows for OR and AD."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student_t

from evaluator.analysis.latent.chains import Learned
from evaluator.analysis.latent.kernels import PathArray, measures_of_path
from evaluator.analysis.nesting import AVERAGE, make_nesting, with_averages
from stp.curves import Curves
from stp.ragged import FloatArray

MEASURES = (
    "overthinking_ratio",
    "accuracy_degradation",
    "zero_accuracy",
    "full_accuracy",
    "best_accuracy",
    "degraded",
)
"""What is averaged; all fractions."""

LEVEL_ROOM = 0.01
"""Added to a tolerance where drawn curves are compared: in the middle, levels are 4 points apart,
and a plateau between two of them is drawn as both."""

CORRECTION_ERROR = 0.13
"""What the model is off by in a cell's average of AD, as a share of what it takes off the raw
measure: root mean square over ten families of worlds, 16 and 4 probes. An empirical figure, not a
theorem."""

SPREAD_ERROR = 0.4
"""The same for OR, as a share of the posterior's standard deviation for a trajectory; over five
families."""

GRID_ERROR = 0.001
"""What an average may be off by in any case: levels near 0 and 1 are tenths of a point apart."""

TAIL = 0.025
"""Probability left out at each end of an interval."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentCurves:
    """What counts say about the accuracy P(k) behind them.

    Attributes
    ----------
    curves
        What was fitted.
    mean, low, high
        Posterior mean of P at every position, and the ends of a 95 % interval; float64
        ``(positions,)``, as ``curves.tokens``.
    levels
        The values that P takes in paths; float64 ``(levels,)``, from 0 to 1.
    paths
        Drawn curves, as indices of ``levels``; int8 ``(draws, positions)``. In a draw all
        trajectories of a cell have one chain, which is drawn too.
    learned
        The chain of every cell, by (model, benchmark).
    raw_s
        Whether a trajectory's cell did not converge, so that everything here is read off its raw
        counts; bool ``(trajectories,)``.
    notes
        Warnings: cells that did not converge, or are too small to learn from.
    """

    curves: Curves
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    levels: FloatArray
    paths: PathArray
    learned: dict[tuple[int, int], Learned]
    raw_s: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """Say in a line what was fitted."""
        return f"LatentCurves({self.curves!r}, {self.draws} draws, {len(self.learned)} cells)"

    @property
    def draws(self) -> int:
        """Number of drawn curves for every trajectory."""
        return int(self.paths.shape[0])

    def drawn_accuracy(self, draw: int) -> FloatArray:
        """Return P at every position in one draw; float64 ``(positions,)``.

        Where a cell did not converge, this is the raw accuracy.
        """
        accuracy = self.levels[self.paths[draw]]
        if self.raw_s.any():
            raw_k = np.repeat(self.raw_s, np.diff(self.curves.trajectory_offsets))
            accuracy = np.where(raw_k, self.mean, accuracy)
        return np.asarray(accuracy)

    def measures(self, tolerance: float = 0.03) -> FloatArray:
        """Return the measures of each trajectory on each drawn curve.

        Parameters
        ----------
        tolerance
            The reference position is the first whose accuracy is within this of the best.

        Returns
        -------
        numpy.ndarray
            float64 ``(draws, 5, trajectories)``: OR up to the reference position, AD, P(0), P(n)
            and the best P.

        Raises
        ------
        ValueError
            If the tolerance is not in 0..1.
        """
        tolerance = _fraction("tolerance", tolerance)
        tokens, offsets = self.curves.tokens, self.curves.trajectory_offsets
        found = np.stack(
            [
                measures_of_path(tokens, offsets, self.drawn_accuracy(d), tolerance + LEVEL_ROOM)
                for d in range(self.draws)
            ]
        )
        if self.raw_s.any():
            raw = measures_of_path(tokens, offsets, self.mean, tolerance)
            found[:, :, self.raw_s] = raw[:, self.raw_s]
        return found

    def per_trajectory(self, tolerance: float = 0.03) -> pd.DataFrame:
        """Return OR and AD of the accuracies behind each trajectory's counts.

        Parameters
        ----------
        tolerance
            OR is the fraction of thinking after the first position whose accuracy is within this
            of the best. Without a tolerance "the first best" is not defined up to noise.

        Returns
        -------
        pandas.DataFrame
            One row per trajectory, in the order of the curves: ``model``, ``benchmark``,
            ``question``, ``sample``; posterior means of the fractions ``overthinking_ratio``,
            ``accuracy_degradation`` (P(best) - P(n)), ``degraded`` (probability that it is more
            than the tolerance), ``zero_accuracy``, ``full_accuracy`` and ``best_accuracy``; and
            of the first two the ends of an interval over the draws, ``*_low`` and ``*_high``
            (2.5 % and 97.5 %; with 20 draws, near the least and the greatest).

        Raises
        ------
        ValueError
            If the tolerance is not in 0..1.
        """
        found = self.measures(tolerance)
        curves = self.curves
        mean = found.mean(axis=0)
        low, high = np.quantile(found[:, :2], [TAIL, 1 - TAIL], axis=0)
        return pd.DataFrame(
            {
                "model": curves.model,
                "benchmark": curves.benchmark,
                "question": curves.question,
                "sample": curves.sample,
                "overthinking_ratio": mean[0],
                "accuracy_degradation": mean[1],
                "degraded": (found[:, 1] > tolerance).mean(axis=0),
                "zero_accuracy": mean[2],
                "full_accuracy": mean[3],
                "best_accuracy": mean[4],
                "overthinking_ratio_low": low[0],
                "overthinking_ratio_high": high[0],
                "accuracy_degradation_low": low[1],
                "accuracy_degradation_high": high[1],
            }
        )

    def _model_error(self, values: FloatArray, tolerance: float) -> FloatArray:
        """Return by how much the model may be off where it does not hold, per trajectory.

        Float64 ``(6, trajectories)``. Unlike the noise of the counts it has one sign in all
        trajectories of a cell, so averages of these are averaged, not added up as squares.
        """
        curves = self.curves
        raw = measures_of_path(
            curves.tokens,
            curves.trajectory_offsets,
            curves.all_correct_k / curves.all_probes_k,
            tolerance,
        )
        raw = _with_degraded(raw[None], tolerance)[0]
        error = CORRECTION_ERROR * np.abs(raw - values.mean(axis=0))
        # A correction of OR may be near 0 while two errors cancel; its posterior's width is not.
        error[0] = SPREAD_ERROR * values[:, 0].std(axis=0)
        # P(0) and P(n) are not maxima: their counts are not flattered, and little is corrected.
        error[2:4] = 0.0
        error[:, self.raw_s] = 0.0
        return np.asarray(error)

    def averages(self, tolerance: float = 0.03) -> pd.DataFrame:
        """Return averages over trajectories of what :meth:`per_trajectory` estimates.

        Trajectories -> question -> cell -> equal weight over benchmarks and models.

        Parameters
        ----------
        tolerance
            As for :meth:`per_trajectory`.

        Returns
        -------
        pandas.DataFrame
            Indexed by (``model``, ``benchmark``, ``measure``), -1 for averages over models or
            benchmarks. ``estimate``, and ``low`` and ``high``: a 95 % interval for the average of
            these trajectories (what other questions would give is not in it), by Student's t from
            the spread over the draws and from what the model itself has been off by in worlds of
            known truth (:data:`CORRECTION_ERROR`, :data:`SPREAD_ERROR`, :data:`GRID_ERROR`). One
            draw has no spread: NaN.

        Raises
        ------
        ValueError
            If the tolerance is not in 0..1.
        """
        values = _with_degraded(self.measures(tolerance), tolerance)
        curves = self.curves
        nesting = make_nesting(
            model=curves.model,
            benchmark=curves.benchmark,
            question=curves.question,
            sample=curves.sample,
        )
        drawn = np.stack([with_averages(nesting.cell_means(one.T)) for one in values])
        estimate = drawn.mean(axis=0)
        model_error = with_averages(nesting.cell_means(self._model_error(values, tolerance).T))
        spread = np.full_like(estimate, np.nan)
        if self.draws > 1:
            # The mean of the draws is off by its own share, as in Rubin's rule for imputations.
            variance = (1 + 1 / self.draws) * drawn.var(axis=0, ddof=1)
            variance += model_error**2 + GRID_ERROR**2
            spread = student_t.ppf(1 - TAIL, self.draws - 1) * np.sqrt(variance)
        index = pd.MultiIndex.from_product(
            [[*nesting.models, AVERAGE], [*nesting.benchmarks, AVERAGE], MEASURES],
            names=["model", "benchmark", "measure"],
        )
        frame = pd.DataFrame(
            {
                "estimate": estimate.reshape(-1),
                "low": np.maximum(estimate - spread, 0.0).reshape(-1),
                "high": np.minimum(estimate + spread, 1.0).reshape(-1),
            },
            index,
        )
        return frame.dropna(subset="estimate")


def _with_degraded(found: FloatArray, tolerance: float) -> FloatArray:
    """Append whether AD is more than the tolerance to measures ``(draws, 5, trajectories)``."""
    degraded = (found[:, 1:2] > tolerance).astype(np.float64)
    return np.concatenate([found, degraded], axis=1)


def _fraction(name: str, value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie in 0..1, not {value!r}")
    return float(value)
