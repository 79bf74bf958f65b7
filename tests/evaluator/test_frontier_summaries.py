"""Savings and averaged frontiers against direct searches over the frontier's states."""

import numpy as np
import pytest

from evaluator.analysis.frontiers import (
    average_endpoints,
    average_frontiers,
    average_savings,
    cell_frontiers,
    rewards_on_grid,
    savings,
)
from oracle import STRATEGIES
from tests.evaluator.synthetic import make_curves


@pytest.mark.parametrize("seed", range(6))
def test_rewards_on_grid_are_the_best_within_each_budget(seed):
    (cell,) = cell_frontiers(make_curves(seed=seed))
    for states in cell.states:
        got = rewards_on_grid(states, 40)
        for j in range(41):
            budget = j * cell.full_cost // 40
            best = max(
                r
                for c, r in zip(states.cost.tolist(), states.reward.tolist(), strict=True)
                if c <= budget
            )
            assert got[j] == best
        assert got[0] >= cell.zero_reward
        assert got[-1] >= cell.full_reward


@pytest.mark.parametrize("seed", range(6))
def test_savings_are_the_cheapest_state_that_keeps_full_accuracy(seed):
    cells = cell_frontiers(make_curves(models=2, benchmarks=2, seed=seed))
    table = savings(cells).set_index(["model", "benchmark", "strategy"])
    assert len(table) == 12
    for cell in cells:
        for strategy, states in zip(STRATEGIES, cell.states, strict=True):
            row = table.loc[(cell.model, cell.benchmark, strategy)]
            pairs = list(zip(states.cost.tolist(), states.reward.tolist(), strict=True))
            keep = min(c for c, r in pairs if r >= cell.full_reward)
            assert row["equal_tokens_fraction"] == keep / cell.full_cost
            assert row["best_accuracy"] == max(r for _, r in pairs) / cell.probes
            assert 0 <= row["equal_tokens_fraction"] <= 1
        ordered = [
            table.loc[(cell.model, cell.benchmark, s), "equal_tokens_fraction"] for s in STRATEGIES
        ]
        assert ordered == sorted(ordered, reverse=True)


def test_averages_weigh_benchmarks_then_models_equally():
    curves = make_curves(models=2, benchmarks=2, seed=3)
    # Model 1 lacks benchmark 1, so its one cell has the weight of model 0's two.
    curves = curves.select((curves.model == 0) | (curves.benchmark == 0))
    cells = cell_frontiers(curves)
    accuracies = {
        (c.model, c.benchmark): rewards_on_grid(c.states[2], 10) / c.probes for c in cells
    }
    expected = ((accuracies[0, 0] + accuracies[0, 1]) / 2 + accuracies[1, 0]) / 2
    early_exit = average_frontiers(cells, 10)[2]
    assert early_exit.strategy == "early_exit"
    np.testing.assert_allclose(early_exit.accuracy, expected)
    zero, full = average_endpoints(cells)
    table = average_savings(cells, 10).set_index("strategy")
    enough = [j for j in range(11) if expected[j] >= full - 1e-12]
    assert table.loc["early_exit", "equal_tokens_fraction"] == enough[0] / 10
    assert table.loc["early_exit", "zero_accuracy"] == zero


def test_a_cell_without_thinking_needs_nothing():
    curves = make_curves(questions=1, trajectories=2)
    curves = type(curves)(
        tokens=[0, 0], correct=[1, 3], trajectory_offsets=[0, 1, 2], question=[0, 0], probes=4
    )
    table = savings(cell_frontiers(curves))
    assert table["equal_tokens_fraction"].tolist() == [0, 0, 0]
    assert table["best_accuracy"].tolist() == [0.5, 0.5, 0.5]
