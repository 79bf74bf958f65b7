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
from oracle.actions import STRATEGIES, Strategy, question_groups
from oracle.frontier import Frontier, exact_frontier, grid_budgets, stopping_positions
from stp.curves import Curves, IntArray
from stp.ragged import greatest, group_offsets

POINTS = 400
"""Intervals of the grid of budgets at which a frontier is read off."""
REPLICATES = 1_000
"""Replicates of a cell's bands: enough for two digits, and fast enough for a waiting user."""
_STEPS = 100
"""Intervals of the grid of the bands, and of the shares of actions."""


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


def frontier_bands(curves: Curves) -> Piece:
    """Return 95 % intervals of a cell's frontiers, and what its units do, at every hundredth.

    Early exit decides for each trajectory, the others for each question: of these units, ``none``
    is the share that does not think, ``all`` that which thinks to the end.
    """
    from evaluator.analysis.pipeline import frontier_bands as bands_of

    bands = bands_of(curves, REPLICATES, workers=1)
    lines = []
    for strategy in STRATEGIES:
        low, high = bands[strategy]
        none, whole = action_shares(curves, exact_frontier(curves, strategy), strategy)
        lines.append(
            {"strategy": strategy, "low": _round(low), "high": _round(high)}
            | {"none": _round(none), "all": _round(whole)}
        )
    return {"steps": _STEPS, "replicates": REPLICATES, "lines": lines}


def action_shares(
    curves: Curves, states: Frontier, strategy: Strategy
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of units that do not think, and that think to the end, at each budget.

    Returns
    -------
    float64 ``(101,)`` each
        At ``floor(j x full_cost / 100)`` tokens.
    """
    places = states.state_within(grid_budgets(states.full_cost, _STEPS))
    last = np.diff(curves.trajectory_offsets) - 1
    order, offsets = _members(curves, strategy)
    shares = {}
    for state in np.unique(places).tolist():
        choice = states.actions.choice[states.actions_at(state)]
        stops = stopping_positions(curves, strategy, choice)[order]
        thinks = greatest(stops, offsets) > 0
        cut = greatest(last[order] - stops, offsets) > 0
        shares[state] = (1 - thinks.mean(), (thinks & ~cut).mean())
    found = np.array([shares[state] for state in places.tolist()], np.float64)
    return found[:, 0], found[:, 1]


def _members(curves: Curves, strategy: Strategy) -> tuple[IntArray, IntArray]:
    """Return the trajectories in order of the units that decide, and where each unit's begin."""
    if strategy == "early_exit":
        return np.arange(curves.trajectories), np.arange(curves.trajectories + 1)
    groups = question_groups(curves)
    order = np.argsort(groups.group, kind="stable").astype(np.int64)
    return order, group_offsets(groups.group[order], groups.count)


def _round(values: np.ndarray) -> list[float]:
    return np.round(values, 4).tolist()  # type: ignore[no-any-return]
