"""What the frontiers say: tokens that could be saved, accuracy that could be reached.

Takes curves, asks ``oracle`` for the exact frontier of every cell (model x benchmark), and turns
the integer states into the accuracies and token fractions that people read. Budgets are integers,
``floor(j * full_cost / points)``; between two states nothing is interpolated (paper 002, A.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from data.progress import NOBODY, Progress
from evaluator.analysis.nesting import AVERAGE, averages_of_cells
from oracle.actions import STRATEGIES, Strategy
from oracle.checks import whole_number
from oracle.frontier import Frontier, exact_frontier, grid_budgets
from stp.curves import Curves
from stp.ragged import FloatArray, IntArray

STRATEGY_LABELS = {
    "routing": "Dynamic routing",
    "fixed_budget": "Fixed budgets",
    "early_exit": "Dynamic early exit",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellFrontiers:
    """The exact frontiers of one model on one benchmark.

    Attributes
    ----------
    model, benchmark
        Indices, as in the curves.
    probes
        Trajectories times probes: what a reward is divided by.
    full_cost, full_reward, zero_reward
        Tokens and right probes of full thinking, and right probes at k = 0.
    states
        A frontier for each of :data:`oracle.STRATEGIES`, in that order.
    """

    model: int
    benchmark: int
    probes: int
    full_cost: int
    full_reward: int
    zero_reward: int
    states: tuple[Frontier, ...]


def cell_frontiers(curves: Curves, *, progress: Progress = NOBODY) -> tuple[CellFrontiers, ...]:
    """Return the exact frontiers of every cell, in order of (model, benchmark).

    ``progress`` is called with (cells done, all cells).
    """
    found = []
    cells = list(curves.cells())
    for model, benchmark, cell in cells:
        found.append(
            CellFrontiers(
                model=model,
                benchmark=benchmark,
                probes=cell.trajectories * cell.probes,
                full_cost=int(cell.full_tokens_s.sum()),
                full_reward=int(cell.full_correct_s.sum()),
                zero_reward=int(cell.zero_correct_s.sum()),
                states=tuple(exact_frontier(cell, strategy) for strategy in STRATEGIES),
            )
        )
        progress(len(found), len(cells))
    return tuple(found)


def rewards_on_grid(states: Frontier, points: int) -> IntArray:
    """Return the best reward within each budget ``floor(j * full_cost / points)``.

    Parameters
    ----------
    states
        One frontier.
    points
        Number of grid intervals; 100 gives the paper's grid of 101 budgets.

    Returns
    -------
    numpy.ndarray
        int64 ``(points + 1,)``, j = 0..points.

    Raises
    ------
    ValueError
        If ``points`` is not an integer of 1 or more.
    """
    return states.reward_within(grid_budgets(states.full_cost, points))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AverageFrontier:
    """A strategy's accuracy over relative budgets, averaged over cells.

    Attributes
    ----------
    strategy
        One of :data:`oracle.STRATEGIES`.
    budget_fraction
        Relative budgets, 0..1; float64 ``(points + 1,)``.
    accuracy
        Averaged best accuracy at each; float64 ``(points + 1,)``.
    """

    strategy: Strategy
    budget_fraction: FloatArray
    accuracy: FloatArray


def average_frontiers(
    cells: Sequence[CellFrontiers], points: int = 1000
) -> tuple[AverageFrontier, ...]:
    """Return the averaged frontier of every strategy on a grid of ``points + 1`` budgets.

    Raises
    ------
    ValueError
        If there is no cell, or ``points`` is not an integer of 1 or more.
    """
    points = whole_number("points", points, least=1)
    grid = np.arange(points + 1) / points
    return tuple(
        AverageFrontier(
            strategy=strategy,
            budget_fraction=grid,
            accuracy=_average(
                cells, [rewards_on_grid(cell.states[i], points) / cell.probes for cell in cells]
            ),
        )
        for i, strategy in enumerate(STRATEGIES)
    )


def average_endpoints(cells: Sequence[CellFrontiers]) -> tuple[float, float]:
    """Return the averaged accuracies P(0) and P(n).

    Raises
    ------
    ValueError
        If there is no cell.
    """
    ends = [np.array([cell.zero_reward, cell.full_reward]) / cell.probes for cell in cells]
    zero, full = _average(cells, ends).tolist()
    return zero, full


def _average(cells: Sequence[CellFrontiers], values: Sequence[FloatArray]) -> FloatArray:
    """Return the macro-average of one array a cell."""
    keys = [(cell.model, cell.benchmark) for cell in cells]
    return averages_of_cells(keys, values)[AVERAGE, AVERAGE]


def savings(cells: Sequence[CellFrontiers]) -> pd.DataFrame:
    """Return what each strategy could save and reach in every cell, exactly.

    Returns
    -------
    pandas.DataFrame
        One row per cell and strategy: ``model``, ``benchmark``, ``strategy``, ``zero_accuracy``,
        ``full_accuracy``, ``equal_tokens_fraction`` (least tokens that keep P(n), over full
        thinking), ``best_accuracy`` and ``best_tokens_fraction`` (the fewest tokens that reach
        it). A cell without any thinking token has fractions 0.
    """
    rows = []
    for cell in cells:
        for strategy, states in zip(STRATEGIES, cell.states, strict=True):
            cost, reward = states.cost, states.reward
            equal = int(cost[np.searchsorted(reward, cell.full_reward, side="left")])
            rows.append(
                {
                    "model": cell.model,
                    "benchmark": cell.benchmark,
                    "strategy": strategy,
                    "zero_accuracy": cell.zero_reward / cell.probes,
                    "full_accuracy": cell.full_reward / cell.probes,
                    "equal_tokens_fraction": equal / max(cell.full_cost, 1),
                    "best_accuracy": int(reward[-1]) / cell.probes,
                    "best_tokens_fraction": int(cost[-1]) / max(cell.full_cost, 1),
                }
            )
    return pd.DataFrame(rows)


def average_savings(cells: Sequence[CellFrontiers], points: int = 1000) -> pd.DataFrame:
    """Return the same for the averaged frontiers, with budgets read off a grid.

    Returns
    -------
    pandas.DataFrame
        One row per strategy, columns as in :func:`savings` without the indices. The fractions are
        grid budgets, rounded up to a multiple of ``1 / points``; for a single cell use
        :func:`savings`, which is exact.

    Raises
    ------
    ValueError
        As :func:`average_frontiers`.
    """
    zero, full = average_endpoints(cells)
    rows = []
    for frontier in average_frontiers(cells, points):
        # Averages of exact fractions carry rounding noise near 1e-16 per cell.
        enough = frontier.accuracy >= full - 1e-12
        best = frontier.accuracy[-1]
        rows.append(
            {
                "strategy": frontier.strategy,
                "zero_accuracy": zero,
                "full_accuracy": full,
                "equal_tokens_fraction": float(frontier.budget_fraction[np.argmax(enough)]),
                "best_accuracy": float(best),
                "best_tokens_fraction": float(
                    frontier.budget_fraction[np.argmax(frontier.accuracy >= best - 1e-12)]
                ),
            }
        )
    return pd.DataFrame(rows)
