"""From graded rows to the scores of the benchmark, with intervals.

Averages go responses -> question -> subset -> equal weight over the subsets of a side. Replicates
of the bootstrap draw questions within each subset, the same for all methods and models, and for
each the responses (seeds) again; F1 is made again in every replicate, from its own two parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.analysis.bootstrap import IntervalEstimate, bootstrap_values
from evaluator.analysis.intervals import LEVEL, central_range
from evaluator.analysis.nesting import nesting_of
from evaluator.optimal.metrics import T_MAX, area_fractions, check_t_max
from stp.ragged import FloatArray
from stp.seeds import PAPER_SEED

REPLICATES = 10_000
STATISTICS = ("accuracy", "area", "thinking_tokens", "output_tokens", "credit")
MEASURES = ("f1", "ovt_accuracy", "ovt_thinking_tokens", "auc_oaa", "ut_accuracy", "ut_tokens")
"""The columns of the paper's tables: F1, then the overthinking side, then the other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Scores of every method of every model.

    Attributes
    ----------
    rows
        (model, method) of each row of the arrays below.
    subsets
        Names of the subsets and the side of each, in the order of the arrays.
    by_subset
        float64 ``(rows, subsets, statistics)``, statistics as in :data:`STATISTICS`; ``area`` is
        AUC_OAA. NaN if a method has no responses of a subset, or tokens are unknown.
    values
        float64 ``(rows, measures)``, measures as in :data:`MEASURES`; fractions and tokens. NaN
        where a side was not asked, or its tokens are unknown. A side is the mean of the subsets
        that the row was asked.
    replicates
        The same from each bootstrap replicate; float64 ``(replicates, rows, measures)``.
    questions, responses
        int64 ``(rows, subsets)``.
    undecided
        Responses without a verdict that were left out; int64 ``(rows,)``.
    t_max
        Of AUC_OAA.
    """

    rows: tuple[tuple[str, str], ...]
    subsets: tuple[tuple[str, str], ...]
    by_subset: FloatArray
    values: FloatArray
    replicates: FloatArray
    questions: npt.NDArray[np.int64]
    responses: npt.NDArray[np.int64]
    undecided: npt.NDArray[np.int64]
    t_max: int

    def same_subsets(self) -> bool:
        """Whether all rows were asked the same subsets; otherwise they are not comparable."""
        asked = (self.questions > 0)[:, [side != "none" for _, side in self.subsets]]
        return bool((asked == asked[0]).all())

    def interval(self, row: int, measure: str, level: float = LEVEL) -> IntervalEstimate:
        """Return a measure of a row with its percentile interval; NaN ends without replicates."""
        place = MEASURES.index(measure)
        return _interval(float(self.values[row, place]), self.replicates[:, row, place], level)

    def difference(
        self, row: int, other: int, measure: str, level: float = LEVEL
    ) -> IntervalEstimate:
        """Return a measure of one row minus that of another, from paired replicates."""
        place = MEASURES.index(measure)
        return _interval(
            float(self.values[row, place] - self.values[other, place]),
            self.replicates[:, row, place] - self.replicates[:, other, place],
            level,
        )


def score(
    graded: pd.DataFrame,
    *,
    t_max: int = T_MAX,
    replicates: int = REPLICATES,
    seed: int = PAPER_SEED,
    allow_undecided: bool = False,
    workers: int | None = None,
    progress: Progress = NOBODY,
) -> Scores:
    """Score graded rows of one or several runs.

    Parameters
    ----------
    graded
        Rows as :class:`evaluator.optimal.stored.OptimalRun` has them, of several runs put
        together, or :func:`evaluator.optimal.bridging.method_rows`: ``right`` may be a fraction of
        the probes of a trajectory.
    t_max
        Of AUC_OAA.
    replicates, seed
        Of the bootstrap; 0 replicates for none.
    allow_undecided
        Leave responses without a verdict out, instead of refusing.
    workers
        Threads; they change no number.
    progress
        Told how many replicates are done.

    Raises
    ------
    data.errors.MisuseError
        If there are no rows, some have no verdict, or ``t_max`` is out of range.
    """
    check_t_max(t_max)
    kept, missing = _decided(graded, allow_undecided=allow_undecided)
    rows = tuple(kept[["model", "method"]].drop_duplicates().itertuples(index=False, name=None))
    subsets = tuple(kept[["subset", "side"]].drop_duplicates().itertuples(index=False, name=None))
    table = _columns(kept, rows, [name for name, _ in subsets], t_max)
    columns = list(STATISTICS)
    estimate = nesting_of(table).cell_means(table[columns].to_numpy(np.float64))
    cells = np.empty((0, *estimate.shape))
    if replicates:
        cells = bootstrap_values(
            table, columns, replicates=replicates, seed=seed, workers=workers, progress=progress
        ).replicates[:, :-1, :-1]
    questions, responses = _counts(table, (len(rows), len(subsets)))
    asked, sides = responses > 0, [side for _, side in subsets]
    unknown = _unknown_tokens(kept, rows, subsets)
    by_subset = np.where(unknown, np.nan, estimate)
    drawn = np.where(unknown, np.nan, cells)
    return Scores(
        rows=rows,
        subsets=subsets,
        by_subset=by_subset,
        values=_measures(by_subset, sides, asked),
        replicates=_measures(drawn, sides, asked),
        questions=questions,
        responses=responses,
        undecided=np.array([int(missing.get(row, 0)) for row in rows], np.int64),
        t_max=t_max,
    )


def _decided(
    graded: pd.DataFrame, *, allow_undecided: bool
) -> tuple[pd.DataFrame, "pd.Series[int]"]:
    """Return the rows with a verdict, and how many have none by (model, method)."""
    undecided = graded["right"].isna()
    if undecided.any() and not allow_undecided:
        raise MisuseError(
            f"{int(undecided.sum()):,} of {len(graded):,} responses have no verdict (the judge "
            "gave none that can be read); score again, take another judge, or leave them out with "
            "--allow-undecided"
        )
    kept = graded[~undecided]
    if kept.empty:
        raise MisuseError("no graded responses: nothing to score")
    return kept, graded[undecided].groupby(["model", "method"]).size()


def _columns(
    kept: pd.DataFrame,
    rows: Sequence[tuple[str, str]],
    subsets: Sequence[str],
    t_max: int,
) -> pd.DataFrame:
    """Return one row a response with integer indices and the value columns."""
    row_of = {row: place for place, row in enumerate(rows)}
    pairs = zip(kept["model"], kept["method"], strict=True)
    right = kept["right"].to_numpy(np.float64)
    thinking = kept["thinking_tokens"].to_numpy(np.float64, na_value=np.nan)
    # One question has one number in all models and methods: their draws are paired.
    questions = kept["subset"].astype(str) + "\x1f" + kept["question"].astype(str)
    return pd.DataFrame(
        {
            "model": [row_of[pair] for pair in pairs],
            "benchmark": kept["subset"].map({name: i for i, name in enumerate(subsets)}).to_numpy(),
            "question": pd.factorize(questions, sort=True)[0],
            "sample": kept["sample"].to_numpy(),
            "accuracy": right,
            "area": area_fractions(right, thinking, t_max),
            "thinking_tokens": thinking,
            "output_tokens": kept["output_tokens"].to_numpy(np.float64, na_value=np.nan),
            "credit": kept["credit"].to_numpy(np.float64, na_value=np.nan),
        }
    )


def _counts(
    table: pd.DataFrame, shape: tuple[int, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return how many questions and responses each row has of each subset; ``(rows, subsets)``."""
    cells = pd.MultiIndex.from_product([range(size) for size in shape])
    found = table.groupby(["model", "benchmark"])["question"].agg(["nunique", "size"])
    counts = found.reindex(cells, fill_value=0).to_numpy()
    return counts[:, 0].reshape(shape), counts[:, 1].reshape(shape)


def _unknown_tokens(
    kept: pd.DataFrame,
    rows: Sequence[tuple[str, str]],
    subsets: Sequence[tuple[str, str]],
) -> npt.NDArray[np.bool_]:
    """Return what is not known of a cell because some of its token counts are not.

    A mean over the responses whose tokens happen to be known would be a mean of something else.
    """
    unknown = np.zeros((len(rows), len(subsets), len(STATISTICS)), np.bool_)
    names = [name for name, _ in subsets]
    missing = kept[["thinking_tokens", "output_tokens"]].isna()
    for i, (model, method) in enumerate(rows):
        here = (kept["model"] == model) & (kept["method"] == method)
        for j, subset in enumerate(names):
            thinking, output = missing[here & (kept["subset"] == subset)].any()
            unknown[i, j] = [False, thinking, thinking, output, False]
    return unknown


def _measures(cells: FloatArray, sides: Sequence[str], asked: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the measures from subset means; ``(..., rows, subsets, statistics)`` to measures.

    ``asked`` says which subsets a row has, ``(rows, subsets)``: what was not asked is left out of
    its mean, while what is asked and unknown makes the mean unknown.
    """

    def mean(side: str, statistic: str) -> FloatArray:
        here = asked & np.array([s == side for s in sides])
        values = np.where(here, cells[..., STATISTICS.index(statistic)], 0.0)
        counts = here.sum(axis=-1).astype(np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray(values.sum(axis=-1) / np.where(counts > 0, counts, np.nan))

    auc, accuracy = mean("ovt", "area"), mean("ut", "accuracy")
    with np.errstate(invalid="ignore", divide="ignore"):
        total = auc + accuracy
        f1 = np.where(total == 0, 0.0, 2 * auc * accuracy / total)
    return np.stack(
        [
            f1,
            mean("ovt", "accuracy"),
            mean("ovt", "thinking_tokens"),
            auc,
            accuracy,
            mean("ut", "output_tokens"),
        ],
        axis=-1,
    )


def _interval(estimate: float, replicates: FloatArray, level: float) -> IntervalEstimate:
    if np.isnan(estimate):
        return IntervalEstimate(estimate=estimate, low=np.nan, high=np.nan)
    low, high = central_range(replicates, level)
    return IntervalEstimate(estimate=estimate, low=float(low), high=float(high))


def over_models(scores: Scores) -> pd.DataFrame:
    """Return each method's measures averaged over the models that have it, equal weight.

    F1 is the mean of the models' F1, as in the paper's Tables 3 and 4.

    Returns
    -------
    pandas.DataFrame
        Indexed by method; ``models``, the measures, and ``low`` and ``high`` of F1.
    """
    methods = list(dict.fromkeys(method for _, method in scores.rows))
    records = []
    for method in methods:
        chosen = [i for i, (_, name) in enumerate(scores.rows) if name == method]
        record: dict[str, object] = {"models": len(chosen)}
        record |= dict(zip(MEASURES, scores.values[chosen].mean(axis=0).tolist(), strict=True))
        found = _interval(
            float(scores.values[chosen, 0].mean()),
            scores.replicates[:, chosen, 0].mean(axis=1),
            LEVEL,
        )
        records.append({**record, "f1_low": found.low, "f1_high": found.high})
    return pd.DataFrame(records, index=pd.Index(methods, name="method"))
