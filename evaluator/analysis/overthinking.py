"""How much thinking came too late, and what it cost: OR and AD.

Sees a :class:`stp.curves.Curves` and nothing else. The definitions are those of section 3 of
"Constructing Pareto Frontiers of Optimal Reasoning Termination Methods for Overthinking in
Reasoning Models" (paper 002):

* k* is the earliest position whose accuracy P(k) is the highest of its trajectory.
* Overthinking ratio, OR = (L(n) - L(k*)) / L(n): the fraction of thinking tokens after k*.
* Accuracy degradation, AD = P(k*) - P(n): the accuracy lost by thinking to the end.

A flat curve has k* = 0, so OR = 1 and AD = 0. An empty trajectory, L(n) = 0, has OR = AD = 0.

Averages go trajectories -> question -> cell (model x benchmark) -> equal weight over benchmarks
-> equal weight over models. :mod:`evaluator.analysis.nesting` is the only place where trajectories
are put into groups, here as in the bootstrap.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from evaluator.analysis.nesting import Nesting, nesting_of, with_averages
from stp.curves import Curves, Int32Array
from stp.ragged import FloatArray

STATISTICS = (
    "overthinking_ratio",
    "accuracy_degradation",
    "zero_accuracy",
    "full_accuracy",
    "best_accuracy",
    "original_accuracy",
    "full_tokens",
    "positions",
)
"""The columns that are averaged: fractions, except ``full_tokens`` (thinking tokens, L(n)) and
``positions`` (n + 1)."""


def per_trajectory(curves: Curves) -> pd.DataFrame:
    """Return OR, AD and the reference position of every trajectory.

    Parameters
    ----------
    curves
        Measured curves.

    Returns
    -------
    pandas.DataFrame
        One row per trajectory, in the order of ``curves``. Columns: the indices ``model``,
        ``benchmark``, ``question``, ``sample``; ``positions`` (n + 1), ``full_tokens`` (L(n)),
        ``k_star``, ``k_star_tokens`` (L(k*)); the fractions ``overthinking_ratio``,
        ``accuracy_degradation``, ``zero_accuracy`` (P(0)), ``full_accuracy`` (P(n)),
        ``best_accuracy`` (P(k*)) and ``original_accuracy`` (1, 0, or NaN if the trajectory's
        own final answer is not known).

    Examples
    --------
    >>> curves = Curves(tokens=[0, 5, 20], correct=[1, 4, 3], trajectory_offsets=[0, 3],
    ...                 question=[0], probes=4)
    >>> frame = per_trajectory(curves)
    >>> frame.loc[0, ["k_star", "overthinking_ratio", "accuracy_degradation"]].tolist()
    [1.0, 0.75, 0.25]
    """
    k_star = curves.k_star_s
    at = curves.rows_at(k_star)
    k_star_tokens = curves.tokens[at]
    full_tokens = curves.full_tokens_s
    best: Int32Array = curves.correct[at]
    thinks = full_tokens > 0
    return pd.DataFrame(
        {
            "model": curves.model,
            "benchmark": curves.benchmark,
            "question": curves.question,
            "sample": curves.sample,
            "positions": np.diff(curves.trajectory_offsets),
            "full_tokens": full_tokens,
            "k_star": k_star,
            "k_star_tokens": k_star_tokens,
            "overthinking_ratio": np.where(
                thinks, (full_tokens - k_star_tokens) / np.maximum(full_tokens, 1), 0.0
            ),
            "accuracy_degradation": np.where(
                thinks, (best - curves.full_correct_s) / curves.probes, 0.0
            ),
            "zero_accuracy": curves.zero_correct_s / curves.probes,
            "full_accuracy": curves.full_correct_s / curves.probes,
            "best_accuracy": best / curves.probes,
            "original_accuracy": np.where(
                curves.original_correct >= 0, curves.original_correct.astype(np.float64), np.nan
            ),
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """The paper's averages, level by level. Every frame holds the columns :data:`STATISTICS`.

    Attributes
    ----------
    trajectories
        What :func:`per_trajectory` returns.
    questions
        Means over a question's trajectories, indexed by (model, benchmark, question); with
        ``trajectories``, how many there are.
    cells
        Means over a cell's questions, indexed by (model, benchmark); with ``questions`` and
        ``trajectories``, how many there are.
    models
        Equal-weight means over the benchmarks of each model, indexed by model.
    benchmarks
        Equal-weight means over the models of each benchmark, indexed by benchmark.
    overall
        Equal-weight mean over models of ``models``.
    """

    trajectories: pd.DataFrame
    questions: pd.DataFrame
    cells: pd.DataFrame
    models: pd.DataFrame
    benchmarks: pd.DataFrame
    overall: "pd.Series[float]"


def summarise(trajectories: Curves | pd.DataFrame) -> Summary:
    """Average trajectories up to one number, level by level.

    Parameters
    ----------
    trajectories
        Measured curves, or a frame as :func:`per_trajectory` returns it.

    Returns
    -------
    Summary
        Where cells are missing (a model that was not run on some benchmark), a mean is taken
        over those that are there; ``Summary.cells`` shows which. NaN (an unknown original answer)
        is left out of its own mean.

    Raises
    ------
    ValueError
        If there is no trajectory.
    """
    if isinstance(trajectories, Curves):
        trajectories = per_trajectory(trajectories)
    nesting = nesting_of(trajectories)
    values = trajectories[list(STATISTICS)].to_numpy(np.float64)
    averages = with_averages(nesting.cell_means(values))
    cells = _cells(nesting, averages)
    return Summary(
        trajectories=trajectories,
        questions=_questions(nesting, nesting.question_means(values)),
        cells=cells,
        models=_frame(averages[:-1, -1], pd.Index(nesting.models, name="model")),
        benchmarks=_frame(averages[-1, :-1], pd.Index(nesting.benchmarks, name="benchmark")),
        overall=pd.Series(averages[-1, -1], index=list(STATISTICS)),
    )


def _frame(values: FloatArray, index: pd.Index) -> pd.DataFrame:
    return pd.DataFrame(values, index, columns=list(STATISTICS))


def _questions(nesting: Nesting, means: FloatArray) -> pd.DataFrame:
    """Return the means of the (model, question) pairs that have a trajectory."""
    model, question = np.nonzero(nesting.pair_sizes)
    benchmark = np.searchsorted(nesting.question_offsets, question, side="right") - 1
    index = pd.MultiIndex.from_arrays(
        [nesting.models[model], nesting.benchmarks[benchmark], nesting.questions[question]],
        names=["model", "benchmark", "question"],
    )
    frame = _frame(means[model, question], index)
    frame["trajectories"] = nesting.pair_sizes[model, question]
    return frame.sort_index()


def _cells(nesting: Nesting, averages: FloatArray) -> pd.DataFrame:
    """Return the means of the cells that have a trajectory."""
    starts = nesting.question_offsets[:-1]
    trajectories = np.add.reduceat(nesting.pair_sizes, starts, axis=1)
    questions = np.add.reduceat((nesting.pair_sizes > 0).astype(np.int64), starts, axis=1)
    model, benchmark = np.nonzero(trajectories)
    index = pd.MultiIndex.from_arrays(
        [nesting.models[model], nesting.benchmarks[benchmark]], names=["model", "benchmark"]
    )
    frame = _frame(averages[model, benchmark], index)
    frame["questions"] = questions[model, benchmark]
    frame["trajectories"] = trajectories[model, benchmark]
    return frame
