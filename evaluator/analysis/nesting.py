"""Which trajectory belongs to which question and cell, and averages that respect it.

Resampling and thinning take trajectories apart and put them together again very often, so the
nesting is found once and kept as plain index arrays. Averages go trajectories -> question -> cell
-> equal weight over benchmarks -> equal weight over models, as in
:mod:`evaluator.analysis.overthinking`.

Axes: ``_s`` trajectory, ``_u`` a (model, question) pair, ``_q`` question; ``v`` a value column.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from stp.curves import integer_array
from stp.ragged import FloatArray, IntArray, group_offsets

AVERAGE = -1
"""The index that stands for the equal-weight average over models, or over benchmarks."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nesting:
    """Trajectories in (model, question) pairs in cells.

    Attributes
    ----------
    models, benchmarks
        The numbers that occur, rising; int64 ``(models,)`` and ``(benchmarks,)``. Below, a model
        or a benchmark is its place in these.
    questions
        The question numbers, grouped by benchmark and rising within one; int64 ``(questions,)``.
        Below, a question is its place in this.
    question_offsets
        Where the questions of each benchmark start, and the end of the last; int64
        ``(benchmarks + 1,)``.
    order
        Trajectories sorted by (model, question, sample); int64 ``(trajectories,)``.
    pair_offsets
        Where the trajectories of each (model, question) start in ``order``, and the end of the
        last; int64 ``(models * questions + 1,)``. Pair u is ``model * questions + question``; it
        is empty if a model has no trajectory of a question.
    """

    models: IntArray
    benchmarks: IntArray
    questions: IntArray
    question_offsets: IntArray
    order: IntArray
    pair_offsets: IntArray

    @property
    def pair_sizes(self) -> IntArray:
        """Trajectories of each (model, question); int64 ``(models, questions)``."""
        sizes = np.diff(self.pair_offsets)
        return sizes.reshape(self.models.size, self.questions.size)

    def question_means(self, values: FloatArray) -> FloatArray:
        """Return means over the trajectories of each (model, question).

        Parameters
        ----------
        values
            One row per trajectory, in the order that the nesting was made from; float64
            ``(trajectories, v)``. NaN is left out of its mean.

        Returns
        -------
        numpy.ndarray
            float64 ``(models, questions, v)``; NaN if nothing is known.

        Raises
        ------
        ValueError
            If there is not one row for every trajectory.
        """
        if values.ndim != 2 or values.shape[0] != self.order.size:
            raise ValueError(
                f"values has shape {values.shape}; it needs a row for each of {self.order.size} "
                "trajectories, and a column for each value"
            )
        known = ~np.isnan(values)
        sums = self._pair_sums(np.where(known, values, 0.0))
        counts = self._pair_sums(known.astype(np.float64))
        means = np.full(sums.shape, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means.reshape(self.models.size, self.questions.size, values.shape[1])

    def cell_means(self, values: FloatArray) -> FloatArray:
        """Return means over the questions of each cell of :meth:`question_means`.

        Returns
        -------
        numpy.ndarray
            float64 ``(models, benchmarks, v)``; NaN if nothing is known.

        Raises
        ------
        ValueError
            As :meth:`question_means`.
        """
        by_question = self.question_means(values)
        means = np.full((self.models.size, self.benchmarks.size, values.shape[1]), np.nan)
        for b in range(self.benchmarks.size):
            part = by_question[:, self.question_offsets[b] : self.question_offsets[b + 1]]
            means[:, b] = mean_of_known(part, axis=1)
        return means

    def _pair_sums(self, values: FloatArray) -> FloatArray:
        # Differences of a running sum would lose digits; reduceat needs non-empty pairs.
        filled = np.flatnonzero(np.diff(self.pair_offsets) > 0)
        sums = np.zeros((self.pair_offsets.size - 1, values.shape[1]))
        if filled.size:
            starts = self.pair_offsets[filled]
            sums[filled] = np.add.reduceat(values[self.order], starts, axis=0)
        return sums


def make_nesting(
    *,
    model: npt.ArrayLike,
    benchmark: npt.ArrayLike,
    question: npt.ArrayLike,
    sample: npt.ArrayLike | None = None,
) -> Nesting:
    """Return the nesting of trajectories from their indices.

    Parameters
    ----------
    model, benchmark, question, sample
        Integers ``(trajectories,)``, as in :class:`stp.curves.Curves`. The order of trajectories
        within a pair is that of ``sample``, or of appearance when it is left out; so the result
        of resampling does not depend on the order of rows when ``sample`` is given.

    Raises
    ------
    ValueError
        If an index is not an integer, the lengths differ, there is no trajectory, or a question is
        in two benchmarks.
    """
    model_s, benchmark_s, question_s = (
        integer_array(name, array)
        for name, array in (("model", model), ("benchmark", benchmark), ("question", question))
    )
    sample_s = integer_array("sample", np.zeros_like(model_s) if sample is None else sample)
    if model_s.size == 0:
        raise ValueError("there is no trajectory to average")
    if not model_s.size == benchmark_s.size == question_s.size == sample_s.size:
        raise ValueError("model, benchmark, question and sample must have the same length")
    pairs = np.unique(np.stack([benchmark_s, question_s]), axis=1)
    by_number = np.argsort(pairs[1], kind="stable")
    numbers = pairs[1][by_number]
    twice = np.flatnonzero(numbers[1:] == numbers[:-1])
    if twice.size:
        raise ValueError(f"question {numbers[twice[0]]} is in more than one benchmark")
    models, benchmarks = np.unique(model_s), np.unique(benchmark_s)
    place = by_number[np.searchsorted(numbers, question_s)]
    pair = np.searchsorted(models, model_s) * numbers.size + place
    order = np.lexsort((sample_s, pair))
    return Nesting(
        models=models,
        benchmarks=benchmarks,
        questions=pairs[1],
        question_offsets=np.append(np.searchsorted(pairs[0], benchmarks), numbers.size),
        order=order.astype(np.int64),
        pair_offsets=group_offsets(pair, models.size * numbers.size),
    )


def check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse names that are not columns of a frame.

    Raises
    ------
    KeyError
        Naming one, and the columns that there are.
    """
    for name in names:
        if name not in frame.columns:
            raise KeyError(
                f"there is no column {name!r}; choose from {', '.join(map(str, frame.columns))}"
            )


def nesting_of(frame: pd.DataFrame) -> Nesting:
    """Return the nesting of a frame with the columns model, benchmark, question and sample.

    Raises
    ------
    ValueError
        As :func:`make_nesting`.
    KeyError
        If a column is missing; ``sample`` may be.
    """
    check_columns(frame, ("model", "benchmark", "question"))
    return make_nesting(
        model=frame["model"],
        benchmark=frame["benchmark"],
        question=frame["question"],
        sample=frame.get("sample"),
    )


def mean_of_known(values: FloatArray, *, axis: int) -> FloatArray:
    """Return the mean over an axis with NaN left out; NaN if nothing is known."""
    return np.squeeze(_mean_where(values, ~np.isnan(values), axis)[0], axis)


def with_averages(cells: FloatArray, present: npt.NDArray[np.bool_] | None = None) -> FloatArray:
    """Append equal-weight averages to cell values.

    Parameters
    ----------
    cells
        float64 ``(..., models, benchmarks, v)``.
    present
        Which cells are averaged over, broadcast to the shape of ``cells``; those that are not NaN
        when left out. A NaN among these makes the average NaN.

    Returns
    -------
    numpy.ndarray
        float64 ``(..., models + 1, benchmarks + 1, v)``: the last benchmark is the average over
        benchmarks, the last model the average over models (the corner is the average over models
        of the averages over benchmarks).
    """
    there = ~np.isnan(cells) if present is None else np.broadcast_to(present, cells.shape)
    over_benchmarks, any_there = _mean_where(cells, there, -2)
    wide = np.concatenate([cells, over_benchmarks], axis=-2)
    over_models, _ = _mean_where(wide, np.concatenate([there, any_there], axis=-2), -3)
    return np.concatenate([wide, over_models], axis=-3)


def averages_of_cells(
    keys: Sequence[tuple[int, int]], values: Sequence[FloatArray]
) -> dict[tuple[int, int], FloatArray]:
    """Return one array a cell with all equal-weight averages of :func:`with_averages`.

    Parameters
    ----------
    keys
        (model, benchmark) of every cell, each once.
    values
        float64 ``(v,)`` of every cell. An average over a cell with NaN is NaN: only cells that are
        not there at all are left out of averages.

    Returns
    -------
    dict
        By (model, benchmark), with :data:`AVERAGE` for averages; float64 ``(v,)`` each.

    Raises
    ------
    ValueError
        If there is no cell, a cell occurs twice, or the arrays are not one of one length per cell.
    """
    if not keys:
        raise ValueError("there is no cell to average")
    if len(set(keys)) != len(keys):
        raise ValueError("a cell is there twice; give each (model, benchmark) once")
    if len(values) != len(keys) or len({np.shape(value) for value in values}) != 1:
        raise ValueError(f"{len(keys)} cells need an array each, all of one length")
    models, benchmarks = (sorted(set(numbers)) for numbers in zip(*keys, strict=True))
    cells = np.full((len(models), len(benchmarks), len(values[0])), np.nan)
    present = np.zeros((len(models), len(benchmarks), 1), np.bool_)
    for (model, benchmark), value in zip(keys, values, strict=True):
        place = models.index(model), benchmarks.index(benchmark)
        cells[place], present[place] = value, True
    averaged = with_averages(cells, present)
    return {
        (model, benchmark): averaged[m, b]
        for m, model in enumerate([*models, AVERAGE])
        for b, benchmark in enumerate([*benchmarks, AVERAGE])
    }


def _mean_where(
    values: FloatArray, there: npt.NDArray[np.bool_], axis: int
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the mean over an axis where values are there, and whether any is; axis kept."""
    counts = there.sum(axis=axis, keepdims=True)
    sums = np.where(there, values, 0.0).sum(axis=axis, keepdims=True)
    means = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means, counts > 0
