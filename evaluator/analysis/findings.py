"""What the paper reports beside its tables: spread within a question, ranks, and sentences.

Paper 002, section 3.2. Averages are those of :mod:`evaluator.analysis.overthinking`.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from evaluator.analysis.headline import Headline
from evaluator.analysis.nesting import AVERAGE, nesting_of, with_averages
from evaluator.analysis.overthinking import Summary
from evaluator.present.names import benchmark_name, model_name
from evaluator.present.numbers import percent
from stp.curves import Curves
from stp.ragged import FloatArray, index_within, offsets_of, row_of

SPREAD = ("overthinking_ratio", "accuracy_degradation")


def pair_differences(trajectories: pd.DataFrame) -> pd.DataFrame:
    """Return how much OR and AD differ between the trajectories of one model and question.

    Parameters
    ----------
    trajectories
        What :func:`evaluator.analysis.overthinking.per_trajectory` returns.

    Returns
    -------
    pandas.DataFrame
        Indexed by (``model``, ``benchmark``), -1 for the equal-weight average; the columns
        ``overthinking_ratio`` and ``accuracy_degradation`` hold the mean of ``|x_i - x_j|`` over
        the pairs of a question's trajectories, averaged over questions. Questions with a single
        trajectory have no pair and are left out.
    """
    nesting = nesting_of(trajectories)
    values = trajectories[list(SPREAD)].to_numpy(np.float64)
    # Each trajectory carries its pair's mean difference, so that the usual averages apply.
    spread = np.full(values.shape, np.nan)
    group = np.empty(len(trajectories), np.int64)
    sizes = np.diff(nesting.pair_offsets)
    group[nesting.order] = row_of(nesting.pair_offsets)
    for column in range(values.shape[1]):
        spread[:, column] = _mean_differences(values[:, column], group, sizes)[group]
    cells = with_averages(nesting.cell_means(spread))
    index = pd.MultiIndex.from_product(
        [[*nesting.models.tolist(), AVERAGE], [*nesting.benchmarks.tolist(), AVERAGE]],
        names=["model", "benchmark"],
    )
    return pd.DataFrame(cells.reshape(-1, len(SPREAD)), index, columns=list(SPREAD))


def _mean_differences(values: FloatArray, group: np.ndarray, sizes: np.ndarray) -> FloatArray:
    """Return the mean absolute difference over pairs within every group; NaN without a pair.

    In a sorted group of R values the i-th counts (2 i - R + 1) times: as the larger one of i
    pairs, and as the smaller one of R - 1 - i.
    """
    order = np.lexsort((values, group))
    rank = index_within(offsets_of(sizes))
    weight = 2 * rank - sizes[group[order]] + 1
    sums = np.bincount(group, weights=_scatter(weight * values[order], order), minlength=sizes.size)
    pairs = sizes * (sizes - 1) / 2
    means = np.full(sizes.size, np.nan)
    np.divide(sums, pairs, out=means, where=pairs > 0)
    return means


def _scatter(values: FloatArray, order: np.ndarray) -> FloatArray:
    placed = np.empty_like(values)
    placed[order] = values
    return placed


def rank_correlation(summary: Summary) -> float:
    """Return Spearman's correlation of OR and AD over cells.

    NaN with fewer than three cells, or where either is the same in all of them.
    """
    cells = summary.cells
    varied = cells[list(SPREAD)].nunique().min() > 1
    if len(cells) < 3 or not varied:
        return float("nan")
    return float(spearmanr(cells[SPREAD[0]], cells[SPREAD[1]]).statistic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """A campaign in sentences, every number taken from the data."""

    sentences: tuple[str, ...]

    def to_markdown(self) -> str:
        """Return the sentences as a list."""
        return "".join(f"- {sentence}\n" for sentence in self.sentences)


def describe(
    curves: Curves, summary: Summary, headline: Headline, changes: pd.DataFrame
) -> Findings:
    """Put a campaign into sentences.

    Parameters
    ----------
    curves
        Measured curves.
    summary
        Their averages.
    headline
        The report's first sentences.
    changes
        What :func:`evaluator.analysis.step_changes.changes_by_progress` returns.
    """
    overall = summary.overall
    sentences = [
        headline.scope[0].upper() + headline.scope[1:],
        headline.sentence,
        f"Accuracy without thinking is {percent(overall['zero_accuracy'])}, after full thinking "
        f"{percent(overall['full_accuracy'])}, at the reference position "
        f"{percent(overall['best_accuracy'])}; a trajectory has {overall['full_tokens']:,.0f} "
        "thinking tokens on average.",
        headline.potential,
        *_model_range(curves, summary),
        *_benchmark_range(curves, summary),
        *filter(None, [rank_sentence(summary)]),
        *_spread(summary),
        *_steps(changes),
    ]
    return Findings(sentences=tuple(sentences))


def _points(fraction: float) -> str:
    return f"{100 * float(fraction):.1f} points"


def _model_range(curves: Curves, summary: Summary) -> list[str]:
    models = summary.models
    if len(models) < 2:
        return []
    ratio, loss = models["overthinking_ratio"], models["accuracy_degradation"]
    name = [model_name(curves, int(m)) for m in models.index]
    return [
        f"Over models, OR ranges from {percent(ratio.min())} ({name[int(ratio.argmin())]}) to "
        f"{percent(ratio.max())} ({name[int(ratio.argmax())]}), AD from {_points(loss.min())} "
        f"({name[int(loss.argmin())]}) to {_points(loss.max())} ({name[int(loss.argmax())]})."
    ]


def _benchmark_range(curves: Curves, summary: Summary) -> list[str]:
    benchmarks = summary.benchmarks
    if len(benchmarks) < 2:
        return []
    name = [benchmark_name(curves, int(b)) for b in benchmarks.index]
    ratio, loss = benchmarks["overthinking_ratio"], benchmarks["accuracy_degradation"]
    high, low = int(ratio.argmax()), int(loss.argmax())
    sentence = (
        f"Over benchmarks, {name[high]} has the highest OR ({percent(ratio.iloc[high])}, AD "
        f"{_points(loss.iloc[high])})"
    )
    if high == low:
        return [f"{sentence} and the highest AD."]
    return [
        f"{sentence} and {name[low]} the highest AD ({_points(loss.iloc[low])}, OR "
        f"{percent(ratio.iloc[low])})."
    ]


def rank_sentence(summary: Summary) -> str:
    """Say what :func:`rank_correlation` is; nothing if it is not known."""
    value = rank_correlation(summary)
    if np.isnan(value):
        return ""
    return f"Over {len(summary.cells)} cells, Spearman's correlation of OR and AD is {value:.3f}."


def _spread(summary: Summary) -> list[str]:
    frame = pair_differences(summary.trajectories)
    average = frame.to_dict("index")[AVERAGE, AVERAGE]
    if any(np.isnan(value) for value in average.values()):
        return []
    return [
        "Two trajectories of the same model and question differ by "
        f"{_points(average['overthinking_ratio'])} of OR and "
        f"{_points(average['accuracy_degradation'])} of AD on average."
    ]


def _steps(changes: pd.DataFrame) -> list[str]:
    """Compare the first and the last third of the bins of progress."""
    if len(changes) < 3:
        return []
    counts = changes[["positive", "negative", "flat"]].mul(changes["steps"], axis=0)
    counts["steps"] = changes["steps"]
    third = pd.Series(np.minimum(3 * np.arange(len(changes)) // len(changes), 2), changes.index)
    sums = counts.groupby(third).sum()
    parts = [
        f"{percent(row['flat'] / row['steps'])} leave the accuracy as it is, "
        f"{percent(row['positive'] / row['steps'])} raise it, "
        f"{percent(row['negative'] / row['steps'])} lower it"
        for row in (sums.to_dict("index")[0], sums.to_dict("index")[2])
    ]
    edge = changes["from_tokens"][third > 0].iloc[0]
    late = changes["from_tokens"][third > 1].iloc[0]
    return [
        f"Of the steps that end within {edge:,} tokens, {parts[0]}; of those that end after "
        f"{late:,} tokens, {parts[1]}."
    ]
