"""What the proofs in docs/frontiers_proofs.md assume, asserted."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from oracle import convolve, core, dense, tree
from oracle.actions import make_actions
from oracle.frontier import frontier_of_actions, grid_budgets
from oracle.grid import best_rewards
from oracle.textbook import textbook_frontier
from tests.oracle import generators
from tests.requirements import require_module


def value_function(rng, units=6):
    rows = [np.sort(rng.integers(1, 17, 3)) for _ in range(units)]
    costs = [np.sort(rng.integers(1, 400, 3)) for _ in range(units)]
    actions = make_actions(
        reward=np.concatenate([np.append(0, r) for r in rows]),
        cost=np.concatenate([np.append(0, c) for c in costs]),
        unit_offsets=4 * np.arange(units + 1),
    )
    return root_values(tree.unit_arrays(actions.reward, actions.cost, actions.unit_offsets))


def root_values(arrays):
    return tree.solve_tree(arrays).levels[-1].values


def convolution(f, g):
    out = np.full(f.size + g.size - 1, np.iinfo(np.int64).max)
    for i, j in itertools.product(range(f.size), range(g.size)):
        out[i + j] = min(out[i + j], int(f[i]) + int(g[j]))
    return out


def hull_of(values):
    vertices = np.empty(values.size, np.int64)
    return vertices[: convolve._lower_hull(values, vertices, True)].copy()


def test_hulls_merge():
    rng = np.random.default_rng(131)
    for _ in range(40):
        f, g = value_function(rng), value_function(rng)
        hull_f, hull_g = hull_of(f), hull_of(g)
        merged, splits = (np.empty(hull_f.size + hull_g.size, np.int64) for _ in range(2))
        count = convolve._merge_hulls(f, g, hull_f, hull_g, merged, splits, True)
        h = convolution(f, g)
        vertices = hull_of(h)
        assert set(vertices.tolist()) <= set(merged[:count].tolist())
        for vertex, split in zip(merged[:count], splits[:count], strict=True):
            i = hull_f[split]
            assert h[vertex] == f[i] + g[vertex - i]


def test_both_slope_comparisons_agree():
    rng = np.random.default_rng(137)
    for _ in range(2000):
        dy_a, dy_b = (int(x) for x in rng.integers(0, 50, 2))
        dx_a, dx_b = (int(x) for x in rng.integers(1, 12, 2))
        exact = Fraction(dy_a, dx_a) <= Fraction(dy_b, dx_b)
        for products_fit in (True, False):
            assert convolve._less_steep(dy_a, dx_a, dy_b, dx_b, products_fit) == exact


def test_bound_holds_for_any_price():
    rng = np.random.default_rng(139)
    for _ in range(20):
        f, g = value_function(rng).astype(np.int64), value_function(rng).astype(np.int64)
        h = convolution(f, g)
        i, j = np.arange(f.size), np.arange(g.size)
        for price in rng.integers(0, 60, 5):
            reduced_f, reduced_g = f - price * i, g - price * j
            gap = h - price * np.arange(h.size) - reduced_f.min() - reduced_g.min()
            assert np.all(gap >= 0)
            for t in range(h.size):
                best = [k for k in range(max(0, t - g.size + 1), min(t, f.size - 1) + 1)
                        if f[k] + g[t - k] == h[t]]  # fmt: skip
                assert all(reduced_f[k] - reduced_f.min() <= gap[t] for k in best)
                assert all(reduced_g[t - k] - reduced_g.min() <= gap[t] for k in best)


def test_given_up_merges_are_completed():
    rng = np.random.default_rng(149)
    for _ in range(20):
        reward, cost, offsets = generators.correlated(rng)
        actions = make_actions(reward=reward, cost=cost, unit_offsets=offsets)
        arrays = tree.unit_arrays(actions.reward, actions.cost, actions.unit_offsets)
        units = arrays.unit.size
        if units < 2:
            continue
        half = units // 2
        cut = arrays.offsets[half]
        left = root_values(
            tree.UnitArrays(
                arrays.reward[:cut],
                arrays.cost[:cut],
                arrays.offsets[: half + 1],
                arrays.unit[:half],
            )
        )
        whole = root_values(arrays)
        h = np.zeros_like(whole)
        dense.add_units(
            left, arrays.reward, arrays.cost.astype(left.dtype), arrays.offsets[half:], h
        )
        assert np.array_equal(h, whole)


def test_merges_that_give_up(monkeypatch):
    """Costs in step with rewards: no pruning works, and the dense program takes over."""
    rng = np.random.default_rng(151)
    monkeypatch.setattr(tree, "LEAF_REWARD_MOST", 200)
    rewards = 2 * rng.integers(50, 129, 40)
    costs = 1000 * rewards + rng.integers(0, 2, 40)
    actions = make_actions(
        reward=np.stack([0 * rewards, rewards], axis=1).reshape(-1),
        cost=np.stack([0 * costs, costs], axis=1).reshape(-1),
        unit_offsets=2 * np.arange(41),
    )
    arrays = tree.unit_arrays(actions.reward, actions.cost, actions.unit_offsets)
    f = root_values(arrays)
    hull = hull_of(f)
    merged, splits = (np.empty(2 * hull.size, np.int64) for _ in range(2))
    count = convolve._merge_hulls(f, f, hull, hull, merged, splits, True)
    h = np.empty(2 * f.size - 1, f.dtype)
    assert not convolve._convolve(f, f, hull, hull, splits[:count], h, 1000)
    cost, reward = textbook_frontier(actions)
    frontier = frontier_of_actions(actions)
    assert np.array_equal(frontier.cost, cost)
    assert np.array_equal(frontier.reward, reward)


def test_few_units_differ_from_greedy():
    """Some optimum differs from the greedy choice on at most 2q units."""
    rng = np.random.default_rng(157)
    for _ in range(60):
        units, q = 8, 3
        r = rng.integers(1, q + 1, units)
        c = rng.integers(1, 60, units)
        order = np.argsort(c / r, kind="stable")
        choices = np.array(list(itertools.product([0, 1], repeat=units)))
        rewards, costs = choices @ r, choices @ c
        greedy = np.zeros(units, np.int64)
        for step in range(units + 1):
            base = int(greedy @ r)
            # Rewards between this greedy state and the next belong to it.
            for t in range(base, base + (int(r[order[step]]) if step < units else 1)):
                best = costs[rewards >= t].min()
                optimal = choices[(rewards >= t) & (costs == best)]
                assert np.abs(optimal - greedy).sum(axis=1).min() <= 2 * q
            if step < units:
                greedy[order[step]] = 1


def test_slopes_in_float64():
    rng = np.random.default_rng(163)
    for _ in range(3000):
        bits = int(rng.integers(1, 44))
        r = [int(x) for x in rng.integers(1, 2**8, 2)]
        c = int(rng.integers(2 ** (bits - 1), 2**bits))
        # The nearest different slopes there are.
        d = c * r[1] // r[0] + int(rng.integers(-1, 2))
        if d < 0 or max(c, d) * max(r) >= core.EXACT_SLOPES:
            continue
        one, two = Fraction(c, r[0]), Fraction(d, r[1])
        assert (c / r[0] < d / r[1]) == (one < two)
        assert (c / r[0] == d / r[1]) == (one == two)


def test_products_beyond_exact_slopes_go_to_the_full_program():
    actions = make_actions(
        reward=[0, 2**13, 2**13 + 1, 0, 5], cost=[0, 2**45, 2**46, 0, 9], unit_offsets=[0, 3, 5]
    )
    assert not core.prepare_core(actions).exact
    grid = best_rewards(actions, np.array([0, 9, 2**45, 2**46 + 9]))
    assert grid.reward.tolist() == [0, 5, 2**13, 2**13 + 6]


@pytest.mark.slow
def test_solvers_agree_on_large_instances():
    """HiGHS (in scipy), one budget at a time, on as many units as AIME has under early exit."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    rng = np.random.default_rng(167)
    parts = []
    while sum(p[2].size - 1 for p in parts) < 1440:
        parts.append(generators.measured(rng))
    reward = np.concatenate([p[0] for p in parts])
    cost = np.concatenate([p[1] for p in parts])
    starts = np.cumsum([0] + [p[0].size for p in parts])
    offsets = np.concatenate(
        [[0]] + [p[2][1:] + s for p, s in zip(parts, starts[:-1], strict=True)]
    )
    actions = make_actions(reward=reward, cost=cost, unit_offsets=offsets)
    budgets = grid_budgets(actions.top_cost, 7)
    found = best_rewards(actions, budgets).reward
    unit = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    one_each = csr_array((np.ones(reward.size), (unit, np.arange(reward.size))))
    for budget, ours in zip(budgets.tolist(), found.tolist(), strict=True):
        solved = milp(
            -reward.astype(float),
            constraints=[
                LinearConstraint(one_each, 1, 1),
                LinearConstraint(csr_array(cost.astype(float)[None, :]), -np.inf, budget),
            ],
            integrality=np.ones(reward.size),
            bounds=Bounds(0, 1),
            options={"mip_rel_gap": 0},
        )
        assert solved.success
        assert round(-solved.fun) == ours


def test_scip_agrees():
    require_module("ortools")
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("SCIP")
    rng = np.random.default_rng(173)
    reward, cost, offsets = generators.measured(rng)
    actions = make_actions(reward=reward, cost=cost, unit_offsets=offsets)
    budget = actions.top_cost // 3
    taken = [solver.BoolVar("") for _ in range(reward.size)]
    for a, b in itertools.pairwise(offsets.tolist()):
        solver.Add(sum(taken[a:b]) == 1)
    solver.Add(sum(int(c) * x for c, x in zip(cost, taken, strict=True)) <= budget)
    solver.Maximize(sum(int(r) * x for r, x in zip(reward, taken, strict=True)))
    assert solver.Solve() == pywraplp.Solver.OPTIMAL
    ours = best_rewards(actions, np.array([budget])).reward[0]
    assert round(solver.Objective().Value()) == ours
