"""What OR and AD would have been with fewer probes, or with fewer trajectories.

Paper 002, B.2. Probe thinning keeps m of the probes at every position, without replacement and
independently across positions; it is integrated exactly
(:mod:`evaluator.analysis.earliest_maximum`).
Trajectory thinning keeps some of the trajectories of every (model, question), without
replacement; a trajectory's own OR and AD stay what they are. It is drawn, with a seed.
"""

# mypy: disallow-untyped-decorators=False

from collections.abc import Sequence
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt
import pandas as pd

from data.progress import NOBODY, Progress
from evaluator.analysis.earliest_maximum import expected_choice, kept_share_table
from evaluator.analysis.intervals import central_range
from evaluator.analysis.nesting import AVERAGE, check_columns, nesting_of, with_averages
from evaluator.analysis.overthinking import per_trajectory
from oracle.checks import LARGEST_SEED, whole_number
from oracle.resampling import raw_numbers
from stp.curves import Curves
from stp.ragged import FloatArray, IntArray
from stp.seeds import PAPER_SEED

DRAWS = 2000
# A lane of the random stream that is not used by the bootstrap, whose lanes are model numbers.
_LANE = 1 << 32
THINNED = ("overthinking_ratio", "accuracy_degradation", "keep_probability")


def thin_probes(curves: Curves, m: int) -> pd.DataFrame:
    """Return the exact expectation of every trajectory's OR and AD with m probes per position.

    Parameters
    ----------
    curves
        Measured curves.
    m
        Probes kept at every position, 1..``curves.probes``. With all of them the result is that
        of :func:`evaluator.analysis.overthinking.per_trajectory`.

    Returns
    -------
    pandas.DataFrame
        One row per trajectory, in the order of ``curves``: ``model``, ``benchmark``,
        ``question``, ``sample``; the expected ``overthinking_ratio`` and
        ``accuracy_degradation`` (fractions), and ``keep_probability``, the probability that the
        earliest maximiser is the one found with all probes. An empty trajectory has OR = AD = 0.

    Raises
    ------
    ValueError
        If ``m`` is out of range.

    Examples
    --------
    >>> curves = Curves(tokens=[0, 6, 10], correct=[0, 2, 1], trajectory_offsets=[0, 3],
    ...                 question=[0], probes=2)
    >>> thin_probes(curves, 1)[list(THINNED)].round(3).values.tolist()
    [[0.4, 0.5, 1.0]]
    """
    return expected_choice(curves, kept_share_table(curves.probes, m))


def probe_sensitivity(curves: Curves, counts: Sequence[int] = (4, 8, 12, 16)) -> pd.DataFrame:
    """Return the averages of OR, AD and the keep probability for several numbers of probes.

    Parameters
    ----------
    curves
        Measured curves.
    counts
        Numbers of probes, each 1..``curves.probes``.

    Returns
    -------
    pandas.DataFrame
        Indexed by (``probes``, ``model``, ``benchmark``), the columns :data:`THINNED`. The number
        -1 (:data:`evaluator.analysis.nesting.AVERAGE`) stands for the equal-weight average, so the
        row ``(m, -1, -1)`` is the paper's macro-average.

    Raises
    ------
    ValueError
        If no number is given, one is given twice or out of range, or there is no trajectory.
    """
    _check_counts(counts)
    frames = {m: thin_probes(curves, m) for m in counts}
    nesting = nesting_of(next(iter(frames.values())))
    index = pd.MultiIndex.from_product(
        [frames, [*nesting.models.tolist(), AVERAGE], [*nesting.benchmarks.tolist(), AVERAGE]],
        names=["probes", "model", "benchmark"],
    )
    cells = np.stack(
        [
            with_averages(nesting.cell_means(frame[list(THINNED)].to_numpy(np.float64)))
            for frame in frames.values()
        ]
    )
    result = pd.DataFrame(cells.reshape(-1, len(THINNED)), index, columns=list(THINNED))
    return result.dropna(how="all")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThinnedDraws:
    """Averages over seeded subsets of trajectories.

    Attributes
    ----------
    kept
        Trajectories kept of every (model, question).
    statistics
        Names of the averaged columns.
    models, benchmarks
        Numbers behind the axes of ``draws``, :data:`evaluator.analysis.nesting.AVERAGE` last.
    draws
        float64 ``(draws, models + 1, benchmarks + 1, statistics)``.
    """

    kept: int
    statistics: tuple[str, ...]
    models: tuple[int, ...]
    benchmarks: tuple[int, ...]
    draws: FloatArray

    def ranges(self, level: float = 0.95) -> pd.DataFrame:
        """Return the mean and the central range of the draws.

        Returns
        -------
        pandas.DataFrame
            Indexed by (``statistic``, ``model``, ``benchmark``), -1 for averages; ``mean``,
            ``low``, ``high``. The range is conditional on the observed trajectories: it is not
            a confidence interval.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.
        """
        low, high = central_range(self.draws, level)
        index = pd.MultiIndex.from_product(
            [self.models, self.benchmarks, self.statistics],
            names=["model", "benchmark", "statistic"],
        )
        columns = {"mean": self.draws.mean(axis=0), "low": low, "high": high}
        frame = pd.DataFrame({name: a.reshape(-1) for name, a in columns.items()}, index)
        return frame.reorder_levels(["statistic", "model", "benchmark"]).dropna().sort_index()


def thin_trajectories(
    trajectories: Curves | pd.DataFrame,
    kept: int,
    *,
    draws: int = DRAWS,
    seed: int = PAPER_SEED,
    statistics: Sequence[str] = ("overthinking_ratio", "accuracy_degradation"),
    progress: Progress = NOBODY,
) -> ThinnedDraws:
    """Average OR and AD over random subsets of each question's trajectories.

    Parameters
    ----------
    trajectories
        Curves, or a frame as :func:`evaluator.analysis.overthinking.per_trajectory` returns it.
    kept
        Trajectories kept of every (model, question), without replacement. A question that has no
        more than ``kept`` keeps all of its own.
    draws, seed
        How many subsets, and what they are drawn with: the stream of :mod:`oracle.resampling`,
        draw d in place of the replicate, group 0, lane 2^32, which the bootstrap does not use.
    statistics
        Columns of the frame, without NaN.
    progress
        Called with (draws done, all draws).

    Raises
    ------
    ValueError
        If ``kept`` or ``draws`` is not an integer of 1 or more, ``seed`` not in 0..2^64 - 1, or a
        value not known.
    KeyError
        If a statistic is not a column.

    Notes
    -----
    The expectation over subsets is the average over all trajectories, whatever ``kept`` is, as
    long as every question has at least ``kept``.
    """
    if kept < 1 or draws < 1:
        raise ValueError(f"kept and draws must be at least 1, not {kept} and {draws}")
    kept = whole_number("kept", kept, least=1)
    draws = whole_number("draws", draws, least=1)
    seed = whole_number("seed", seed, least=0, most=LARGEST_SEED)
    frame = per_trajectory(trajectories) if isinstance(trajectories, Curves) else trajectories
    check_columns(frame, statistics)
    nesting = nesting_of(frame)
    values = frame[list(statistics)].to_numpy(np.float64)[nesting.order]
    if np.isnan(values).any():
        raise ValueError("a value to be averaged is NaN; leave that column out")
    cells = np.empty((draws, nesting.models.size, nesting.benchmarks.size, len(statistics)))
    count = int(np.minimum(nesting.pair_sizes, kept).sum())
    for d in range(draws):
        raw = raw_numbers(seed, d, 0, _LANE, count)
        _fill_draw(cells[d], kept, values, nesting.question_offsets, nesting.pair_offsets, raw)
        progress(d + 1, draws)
    return ThinnedDraws(
        kept=kept,
        statistics=tuple(statistics),
        models=(*nesting.models.tolist(), AVERAGE),
        benchmarks=(*nesting.benchmarks.tolist(), AVERAGE),
        draws=with_averages(cells),
    )


def trajectory_sensitivity(
    curves: Curves,
    counts: Sequence[int] = (2, 4, 8, 16),
    *,
    draws: int = DRAWS,
    seed: int = PAPER_SEED,
    progress: Progress = NOBODY,
) -> pd.DataFrame:
    """Return the averages of OR and AD and their ranges for several numbers of trajectories.

    Parameters
    ----------
    curves
        Measured curves.
    counts
        Trajectories kept of every (model, question).
    draws, seed
        As for :func:`thin_trajectories`.
    progress
        Called with (draws done, all draws of all counts).

    Returns
    -------
    pandas.DataFrame
        Indexed by (``trajectories``, ``statistic``, ``model``, ``benchmark``), -1 for averages;
        ``mean``, ``low``, ``high`` of :meth:`ThinnedDraws.ranges`.

    Raises
    ------
    ValueError
        If no number is given, or one is given twice or below 1; as :func:`thin_trajectories`.
    """
    _check_counts(counts)
    frame = per_trajectory(curves)
    ranges = {}
    for i, kept in enumerate(counts):
        told = progress.part(i * draws, len(counts) * draws)
        thinned = thin_trajectories(frame, kept, draws=draws, seed=seed, progress=told)
        ranges[kept] = thinned.ranges()
    return pd.concat(ranges, names=["trajectories"])


def _check_counts(counts: Sequence[int]) -> None:
    """Refuse an empty list of numbers to compare, or one with repeated numbers."""
    if len(counts) == 0 or len(set(counts)) != len(counts):
        raise ValueError(f"counts must hold different numbers, at least one, not {list(counts)}")


@nb.njit(cache=True, nogil=True)
def _fill_draw(
    cells: FloatArray,
    kept: int,
    values: FloatArray,
    question_offsets: IntArray,
    pair_offsets: IntArray,
    raw: npt.NDArray[np.uint64],
) -> None:
    """Fill ``cells`` with the means over one random subset of every (model, question)."""
    models, benchmarks, columns = cells.shape
    order = np.empty(np.diff(pair_offsets).max(), np.int64)
    total = np.empty(columns)
    at = 0
    for m in range(models):
        for b in range(benchmarks):
            total[:] = 0.0
            present = 0
            for q in range(question_offsets[b], question_offsets[b + 1]):
                low = pair_offsets[m * question_offsets[benchmarks] + q]
                size = pair_offsets[m * question_offsets[benchmarks] + q + 1] - low
                take = kept if kept < size else size
                if take == 0:
                    continue
                present += 1
                for i in range(size):
                    order[i] = low + i
                # The first steps of a Fisher-Yates shuffle.
                for i in range(take):
                    j = i + np.int64(raw[at] % np.uint64(size - i))
                    at += 1
                    order[i], order[j] = order[j], order[i]
                    for v in range(columns):
                        total[v] += values[order[i], v] / take
            for v in range(columns):
                cells[m, b, v] = total[v] / present if present else np.nan
