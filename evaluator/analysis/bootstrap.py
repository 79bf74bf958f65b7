"""Paired two-stage bootstrap of averages over trajectories (paper 002, A.5).

A replicate draws, within each benchmark, as many questions as it has, with replacement, the same
for all models. For every model and every occurrence of a question it then draws as many of that
pair's trajectories as were observed, with replacement; two occurrences of a question draw
independently. Values of a trajectory are fixed: probe labels are not drawn again. Averages go
trajectories -> question occurrence -> cell -> equal weight over benchmarks and models, within the
replicate. All value columns share the draws, so any difference between columns, models or
benchmarks is paired.

The random stream is that of :mod:`oracle.resampling`, where every draw is a function of the seed,
the replicate, the benchmark and the model. So results are the same bits for any number of workers,
and replicate i here and replicate i of the frontiers (:func:`oracle.bootstrap_frontiers`) are the
same questions and trajectories, when the trajectories of a question are in order of their sample
numbers, as :func:`stp.campaign.curves.load_curves` gives them, and no model lacks a question.
"""

# mypy: disallow-untyped-decorators=False
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt
import pandas as pd

from data.progress import NOBODY, Progress
from evaluator.analysis.intervals import LEVEL, central_range
from evaluator.analysis.nesting import (
    AVERAGE,
    Nesting,
    check_columns,
    mean_of_known,
    nesting_of,
    with_averages,
)
from evaluator.analysis.overthinking import per_trajectory
from oracle.checks import LARGEST_SEED, whole_number
from oracle.resampling import draw_questions, raw_numbers
from stp.curves import Curves
from stp.ragged import FloatArray, IntArray
from stp.seeds import PAPER_SEED

REPLICATES = 10_000
STATISTICS = (
    "overthinking_ratio",
    "accuracy_degradation",
    "original_accuracy",
    "full_tokens",
    "zero_accuracy",
    "full_accuracy",
)
"""Columns of ``overthinking.per_trajectory``, resampled when none are named."""

# Replicates handed to a worker at once: small enough for a progress bar, large enough that handing
# over costs nothing.
_CHUNK = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One number of an analysis: a statistic of a cell, or of an average over cells.

    Attributes
    ----------
    statistic
        A value column.
    model, benchmark
        Numbers as in the curves; :data:`evaluator.analysis.nesting.AVERAGE` for the equal-weight
        average.
    """

    statistic: str
    model: int = AVERAGE
    benchmark: int = AVERAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalEstimate:
    """An estimate and its percentile interval, in the unit of the statistic."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveBootstrap:
    """Replicates of every statistic of every cell and average.

    Attributes
    ----------
    statistics
        Names of the value columns.
    models, benchmarks
        Numbers behind the axes, :data:`evaluator.analysis.nesting.AVERAGE` last.
    estimate
        Averages of the data themselves; float64 ``(models, benchmarks, statistics)``. NaN if
        a cell is missing or a value is known of none of its trajectories.
    replicates
        float64 ``(replicates, models, benchmarks, statistics)``. NaN if a replicate drew
        only values that are not known; intervals leave these out.
    seed
        What the replicates were drawn with.
    """

    statistics: tuple[str, ...]
    models: tuple[int, ...]
    benchmarks: tuple[int, ...]
    estimate: FloatArray
    replicates: FloatArray
    seed: int

    def replicates_of(self, quantity: Quantity) -> FloatArray:
        """Return the replicates of one number; float64 ``(replicates,)``."""
        return np.asarray(self.replicates[(slice(None), *self._place(quantity))])

    def interval(self, quantity: Quantity, *, level: float = LEVEL) -> IntervalEstimate:
        """Return the estimate of one number and its percentile interval."""
        estimate = float(self.estimate[self._place(quantity)])
        return _interval(estimate, self.replicates_of(quantity), level)

    def difference(self, a: Quantity, b: Quantity, *, level: float = LEVEL) -> IntervalEstimate:
        """Return the interval of a minus b, from paired replicates.

        Examples
        --------
        ``difference(Quantity(statistic="overthinking_ratio", model=0),
        Quantity(statistic="overthinking_ratio", model=1))`` compares two models;
        two value columns of one run compare two methods.
        """
        estimate = float(self.estimate[self._place(a)] - self.estimate[self._place(b)])
        return _interval(estimate, self.replicates_of(a) - self.replicates_of(b), level)

    def intervals(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Return the intervals of all numbers.

        Returns
        -------
        pandas.DataFrame
            Indexed by (``statistic``, ``model``, ``benchmark``), -1 for averages; columns
            ``estimate``, ``low``, ``high``, ``standard_error`` (the replicates' standard
            deviation). Missing cells are left out.
        """
        low, high = central_range(self.replicates, level)
        index = pd.MultiIndex.from_product(
            [self.models, self.benchmarks, self.statistics],
            names=["model", "benchmark", "statistic"],
        )
        columns = {
            "estimate": self.estimate,
            "low": low,
            "high": high,
            "standard_error": _deviation(self.replicates),
        }
        frame = pd.DataFrame({name: a.reshape(-1) for name, a in columns.items()}, index)
        return frame.reorder_levels(["statistic", "model", "benchmark"]).dropna().sort_index()

    def model_differences(self, statistic: str, *, level: float = LEVEL) -> pd.DataFrame:
        """Return the paired differences between all pairs of models, per benchmark and average.

        Returns
        -------
        pandas.DataFrame
            Indexed by (``model``, ``other_model``, ``benchmark``); ``estimate``, ``low``,
            ``high`` of model minus other model.
        """
        models = self.models[:-1]
        rows = {}
        for i, model in enumerate(models):
            for other in models[i + 1 :]:
                for benchmark in self.benchmarks:
                    found = self.difference(
                        Quantity(statistic=statistic, model=model, benchmark=benchmark),
                        Quantity(statistic=statistic, model=other, benchmark=benchmark),
                        level=level,
                    )
                    rows[model, other, benchmark] = (found.estimate, found.low, found.high)
        index = pd.MultiIndex.from_tuples(list(rows), names=["model", "other_model", "benchmark"])
        frame = pd.DataFrame(list(rows.values()), index, columns=["estimate", "low", "high"])
        return frame.dropna()

    def _place(self, quantity: Quantity) -> tuple[int, int, int]:
        try:
            return (
                self.models.index(quantity.model),
                self.benchmarks.index(quantity.benchmark),
                self.statistics.index(quantity.statistic),
            )
        except ValueError:
            raise KeyError(
                f"{quantity} is not in this bootstrap: statistics {', '.join(self.statistics)}; "
                f"models {self.models[:-1]}; benchmarks {self.benchmarks[:-1]}"
            ) from None


def bootstrap_curves(
    curves: Curves,
    *,
    statistics: Sequence[str] = STATISTICS,
    replicates: int = REPLICATES,
    seed: int = PAPER_SEED,
    workers: int | None = None,
    progress: Progress = NOBODY,
) -> CurveBootstrap:
    """Resample the paper's statistics of measured curves.

    Parameters are those of :func:`bootstrap_values`; ``statistics`` are columns of
    :func:`evaluator.analysis.overthinking.per_trajectory`. A benchmark number is a reporting
    group: pool AIME's years into one before.
    """
    return bootstrap_values(
        per_trajectory(curves),
        statistics,
        replicates=replicates,
        seed=seed,
        workers=workers,
        progress=progress,
    )


def bootstrap_values(
    trajectories: pd.DataFrame,
    columns: Sequence[str],
    *,
    replicates: int = REPLICATES,
    seed: int = PAPER_SEED,
    workers: int | None = None,
    progress: Progress = NOBODY,
) -> CurveBootstrap:
    """Resample averages of any values of trajectories.

    Parameters
    ----------
    trajectories
        One row per trajectory: ``model``, ``benchmark``, ``question``, ``sample`` (integers) and
        the value columns. The order of rows does not matter.
    columns
        Value columns, numbers; NaN is a value that is not known, and is left out of its mean.
        Columns of several methods on the same trajectories give paired differences.
    replicates, seed
        How many, and what they are drawn with, below 2^64.
    workers
        Threads; all processors when left out. It does not change the result.
    progress
        Called with (replicates done, all replicates) in the calling thread.

    Returns
    -------
    CurveBootstrap

    Raises
    ------
    ValueError
        If there is no trajectory, a number is out of range, or a question is in two benchmarks.
    KeyError
        If a column is missing.
    """
    _check(replicates, seed, workers)
    check_columns(trajectories, columns)
    nesting = nesting_of(trajectories)
    values = trajectories[list(columns)].to_numpy(np.float64)
    cells = _replicate_cells(
        nesting,
        values,
        replicates=replicates,
        seed=seed,
        workers=workers or len(os.sched_getaffinity(0)),
        progress=progress,
    )
    estimate = nesting.cell_means(values)
    return CurveBootstrap(
        statistics=tuple(columns),
        models=(*nesting.models.tolist(), AVERAGE),
        benchmarks=(*nesting.benchmarks.tolist(), AVERAGE),
        estimate=with_averages(estimate),
        # A cell that drew unknown values only makes its averages unknown in that replicate, not
        # averages over fewer cells.
        replicates=with_averages(cells, ~np.isnan(estimate)),
        seed=seed,
    )


def _check(replicates: int, seed: int, workers: int | None) -> None:
    whole_number("replicates", replicates, least=1)
    whole_number("seed", seed, least=0, most=LARGEST_SEED)
    if workers is not None:
        whole_number("workers", workers, least=1)


def _replicate_cells(
    nesting: Nesting,
    values: FloatArray,
    *,
    replicates: int,
    seed: int,
    workers: int,
    progress: Progress,
) -> FloatArray:
    """Return cell means of every replicate; float64 ``(replicates, models, benchmarks, v)``."""
    known = ~np.isnan(values[nesting.order])
    ordered = np.ascontiguousarray(np.where(known, values[nesting.order], 0.0))
    all_known = bool(known.all())
    cells = np.empty(
        (replicates, nesting.models.size, nesting.benchmarks.size, values.shape[1]), np.float64
    )

    def fill(first: int) -> int:
        last = min(first + _CHUNK, replicates)
        for r in range(first, last):
            for b in range(nesting.benchmarks.size):
                group = int(nesting.benchmarks[b])
                start, stop = nesting.question_offsets[b : b + 2]
                drawn = start + draw_questions(seed, r, group, int(stop - start))
                for m in range(nesting.models.size):
                    pairs = m * nesting.questions.size + drawn
                    count = nesting.pair_offsets[pairs + 1] - nesting.pair_offsets[pairs]
                    raw = raw_numbers(seed, r, group, int(nesting.models[m]) + 1, int(count.sum()))
                    _fill_means(
                        cells[r, m, b], pairs, nesting.pair_offsets, raw, ordered, known, all_known
                    )
        return last - first

    done = 0
    pool = ThreadPoolExecutor(workers)
    try:
        for future in as_completed([pool.submit(fill, i) for i in range(0, replicates, _CHUNK)]):
            done += future.result()
            progress(done, replicates)
    finally:
        # After Ctrl-C or an error nobody waits for what has not begun.
        pool.shutdown(cancel_futures=True)
    return cells


@nb.njit(cache=True, nogil=True)
def _fill_means(
    means: FloatArray,
    pairs: IntArray,
    pair_offsets: IntArray,
    raw: npt.NDArray[np.uint64],
    values: FloatArray,
    known: npt.NDArray[np.bool_],
    all_known: bool,
) -> None:
    """Fill ``means`` with a replicate's means of one cell, whose occurrences are ``pairs``."""
    columns = means.size
    sums = np.empty(columns)
    counts = np.empty(columns, np.int64)
    total = np.zeros(columns)
    present = np.zeros(columns, np.int64)
    at = 0
    for pair in pairs:
        low = pair_offsets[pair]
        here = pair_offsets[pair + 1] - low
        if here == 0:
            continue
        size = np.uint64(here)
        # For a power of two a mask is the remainder, and several times faster.
        mask = np.uint64(here - 1)
        masks = size & mask == 0
        sums[:] = 0.0
        counts[:] = here if all_known else 0
        for _ in range(here):
            row = low + np.int64(raw[at] & mask if masks else raw[at] % size)
            at += 1
            for v in range(columns):
                sums[v] += values[row, v]
            if not all_known:
                for v in range(columns):
                    counts[v] += known[row, v]
        for v in range(columns):
            if counts[v] > 0:
                total[v] += sums[v] / counts[v]
                present[v] += 1
    for v in range(columns):
        means[v] = total[v] / present[v] if present[v] else np.nan


def _deviation(replicates: FloatArray) -> FloatArray:
    """Return the standard deviation over the replicates that are known."""
    mean = mean_of_known(replicates, axis=0)
    squares = mean_of_known((replicates - mean) ** 2, axis=0)
    counts = (~np.isnan(replicates)).sum(axis=0)
    return np.asarray(np.sqrt(squares * counts / np.maximum(counts - 1, 1)))


def _interval(estimate: float, replicates: FloatArray, level: float) -> IntervalEstimate:
    low, high = central_range(replicates, level)
    return IntervalEstimate(estimate=estimate, low=float(low), high=float(high))
