"""Operating points: what a method's settings cost and reach, beside the frontier of its strategy.

Costs (retained thinking tokens) and rewards (right probes) are integers in every cell. A point is
their equal-weight average over benchmarks, then models, normalised by full thinking. The frontier
is asked at exactly the tokens that the setting spent in each cell, so the gap is never negative and
nothing is interpolated; at the same fraction of full thinking everywhere (Figure 4 of paper 002),
a method may lie above the averaged frontier, since it may spend more tokens in cells where they
help most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oracle import exact_frontier
from oracle.actions import Strategy
from oracle.frontier import Frontier, grid_budgets
from stp.curves import Curves
from stp.ragged import BoolArray, FloatArray, IntArray

GRID_STEPS = 100
# Averages of exact fractions carry rounding noise near 1e-16 a cell.
_NOISE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellTotals:
    """What settings cost and reached in every cell.

    Attributes
    ----------
    model, benchmark
        Of every cell, int64 ``(cells,)``.
    cost, reward
        int64 ``(settings, cells)``.
    signal_tokens
        int64 ``(settings, cells)``.
    full_cost, full_reward, zero_reward, probes
        Of full thinking and of none, int64 ``(cells,)``.
    weight
        Of every cell in an average: equal over benchmarks, then over models; float64 ``(cells,)``.
    """

    model: IntArray
    benchmark: IntArray
    cost: IntArray
    reward: IntArray
    signal_tokens: IntArray
    full_cost: IntArray
    full_reward: IntArray
    zero_reward: IntArray
    probes: IntArray
    weight: FloatArray

    def average(self, values: FloatArray) -> FloatArray:
        """Return averages over the last axis, the cells."""
        return np.asarray(values @ self.weight, np.float64)


def cell_totals(curves: Curves, stop: IntArray, signal_tokens: IntArray) -> CellTotals:
    """Add up decisions in every cell.

    Parameters
    ----------
    curves
        What was decided on.
    stop, signal_tokens
        int64 ``(settings, trajectories)``.
    """
    rows = curves.rows_at(stop)
    cost_s, reward_s = curves.tokens[rows], curves.correct[rows].astype(np.int64)
    cells = np.unique(np.stack([curves.model, curves.benchmark], axis=1), axis=0).astype(np.int64)
    inside = [
        np.flatnonzero((curves.model == model) & (curves.benchmark == benchmark))
        for model, benchmark in cells.tolist()
    ]

    def per_cell(values: npt.NDArray[np.integer]) -> IntArray:
        sums = [values[..., s].sum(axis=-1, dtype=np.int64) for s in inside]
        return np.asarray(np.stack(sums, axis=-1), np.int64)

    _, place, count = np.unique(cells[:, 0], return_inverse=True, return_counts=True)
    return CellTotals(
        weight=1.0 / (count[place] * count.size),
        model=cells[:, 0],
        benchmark=cells[:, 1],
        cost=per_cell(cost_s),
        reward=per_cell(reward_s),
        signal_tokens=per_cell(signal_tokens),
        full_cost=per_cell(curves.full_tokens_s),
        full_reward=per_cell(curves.full_correct_s),
        zero_reward=per_cell(curves.zero_correct_s),
        probes=np.array([s.size * curves.probes for s in inside], np.int64),
    )


def cell_frontiers_of(curves: Curves, strategy: Strategy) -> tuple[Frontier, ...]:
    """Return the exact frontier of every cell, in the order of :func:`cell_totals`."""
    return tuple(exact_frontier(cell, strategy) for _, _, cell in curves.cells())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """The operating points of a method's settings, averaged over cells.

    Attributes
    ----------
    tokens_fraction, accuracy
        Retained tokens over full thinking's, and right probes over all; float64 ``(settings,)``.
    frontier_accuracy
        The frontier at the same tokens in every cell, averaged.
    common_frontier_accuracy
        The averaged frontier at ``tokens_fraction``, the same in every cell.
    signal_fraction
        Tokens of the method's signals over full thinking's.
    on_curve
        The non-dominated points: the method curve.
    zero_accuracy, full_accuracy
        Averaged P(0) and P(n).
    grid_accuracy, grid_frontier
        Best accuracy of the method, and of the frontier, within j / 100 of full thinking, j = 0 to
        100; float64 ``(101,)``. The method may always stop at k = 0.
    """

    tokens_fraction: FloatArray
    accuracy: FloatArray
    frontier_accuracy: FloatArray
    common_frontier_accuracy: FloatArray
    signal_fraction: FloatArray
    on_curve: BoolArray
    zero_accuracy: float
    full_accuracy: float
    grid_accuracy: FloatArray
    grid_frontier: FloatArray


def operating_points(totals: CellTotals, frontiers: Sequence[Frontier]) -> Points:
    """Return the points of all settings.

    Parameters
    ----------
    totals
        Of the settings.
    frontiers
        One per cell, of the method's strategy.
    """
    reached = [
        frontier.reward_within(totals.cost[:, cell]) for cell, frontier in enumerate(frontiers)
    ]
    tokens = fractions_of_full(totals)
    common = [
        frontier.reward_within(budgets_at(tokens, int(frontier.full_cost)))
        for frontier in frontiers
    ]
    grid = [frontier.reward_within(grid_budgets(frontier.full_cost)) for frontier in frontiers]
    return assemble(
        totals,
        frontier_reward=np.stack(reached, axis=1),
        common_reward=np.stack(common, axis=1),
        grid_reward=np.stack(grid, axis=1),
    )


def fractions_of_full(totals: CellTotals) -> FloatArray:
    """Return retained tokens over full thinking's, averaged over cells; ``(settings,)``."""
    return totals.average(totals.cost / np.maximum(totals.full_cost, 1))


def budgets_at(tokens_fraction: FloatArray, full_cost: int) -> IntArray:
    """Return the budgets in one cell at fractions of its full thinking, in tokens.

    A fraction is an average of exact ones, so its rounding noise must not lose a token.
    """
    return np.floor(tokens_fraction * full_cost + 1e-6).astype(np.int64)


def assemble(
    totals: CellTotals, *, frontier_reward: IntArray, common_reward: IntArray, grid_reward: IntArray
) -> Points:
    """Return points from rewards; ``(settings, cells)``, likewise, and ``(101, cells)``."""

    def mean(reward: IntArray) -> FloatArray:
        return totals.average(reward / totals.probes)

    tokens, accuracy = fractions_of_full(totals), mean(totals.reward)
    zero = float(mean(totals.zero_reward[None])[0])
    return Points(
        tokens_fraction=tokens,
        accuracy=accuracy,
        frontier_accuracy=mean(frontier_reward),
        common_frontier_accuracy=mean(common_reward),
        signal_fraction=totals.average(totals.signal_tokens / np.maximum(totals.full_cost, 1)),
        on_curve=non_dominated(tokens, accuracy),
        zero_accuracy=zero,
        full_accuracy=float(mean(totals.full_reward[None])[0]),
        grid_accuracy=best_within(tokens, accuracy, zero),
        grid_frontier=mean(grid_reward),
    )


def non_dominated(cost: FloatArray, gain: FloatArray) -> BoolArray:
    """Return which points no other one beats: cheaper and as good, or as cheap and better.

    Of equal points the first counts.
    """
    order = np.lexsort((np.arange(cost.size), -gain, cost))
    keep = np.zeros(cost.size, np.bool_)
    best = -np.inf
    for index in order.tolist():
        if gain[index] > best + _NOISE:
            keep[index] = True
            best = gain[index]
    return keep


def best_within(
    tokens_fraction: FloatArray, accuracy: FloatArray, zero_accuracy: float
) -> FloatArray:
    """Return the best accuracy of points within j / 100 of full thinking; float64 ``(101,)``."""
    budgets = np.arange(GRID_STEPS + 1) / GRID_STEPS
    order = np.argsort(tokens_fraction, kind="stable")
    best = np.maximum.accumulate(np.concatenate([[zero_accuracy], accuracy[order]]))
    place = np.searchsorted(tokens_fraction[order], budgets + _NOISE, side="right")
    return np.asarray(best[place], np.float64)
