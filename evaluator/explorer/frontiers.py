"""Frontiers as pieces: of one cell with the exact integers, and of all cells on average."""

from collections.abc import Sequence

import numpy as np

from evaluator.analysis.frontiers import (
    STRATEGY_LABELS,
    CellFrontiers,
    average_endpoints,
    average_frontiers,
)
from evaluator.explorer.source import Piece
from oracle.actions import STRATEGIES
from oracle.frontier import Frontier, grid_budgets

POINTS = 400
"""Intervals of the grid of budgets at which a frontier is read off."""


def cell_frontier(cell: CellFrontiers, name: str) -> Piece:
    """Return the frontiers of a cell: at each budget the tokens and right probes reached."""
    lines = []
    for strategy, states in zip(STRATEGIES, cell.states, strict=True):
        cost, reward = _states_within(states)
        lines.append(
            {
                "strategy": strategy,
                "name": STRATEGY_LABELS[strategy],
                "x": np.round(cost / max(cell.full_cost, 1), 5).tolist(),
                "y": np.round(reward / cell.probes, 5).tolist(),
                "tokens": cost.tolist(),
                "right": reward.tolist(),
            }
        )
    return {
        "name": name,
        "lines": lines,
        "zero": cell.zero_reward / cell.probes,
        "full": cell.full_reward / cell.probes,
        "tokens": cell.full_cost,
        "probes": cell.probes,
    }


def _states_within(states: Frontier) -> tuple[np.ndarray, np.ndarray]:
    """Return the best states within the budgets of a grid, each once."""
    budgets = grid_budgets(states.full_cost, POINTS)
    places = np.unique(np.searchsorted(states.cost, budgets, side="right") - 1)
    places = places[places >= 0]
    return states.cost[places], states.reward[places]


def average_frontier(cells: Sequence[CellFrontiers]) -> Piece:
    """Return the frontiers averaged over cells, benchmarks and models weighing the same."""
    zero, full = average_endpoints(cells)
    return {
        "name": "Average of all cells",
        "lines": [
            {
                "strategy": found.strategy,
                "name": STRATEGY_LABELS[found.strategy],
                "x": np.round(found.budget_fraction, 5).tolist(),
                "y": np.round(found.accuracy, 5).tolist(),
            }
            for found in average_frontiers(cells, POINTS)
        ],
        "zero": zero,
        "full": full,
    }
