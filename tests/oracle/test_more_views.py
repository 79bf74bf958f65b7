"""Prices, marginal values, the combined strategy and fleets, each against its naive twin."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import oracle
from tests.oracle import generators, twins


def small_problem(rng):
    reward, cost, offsets = generators.ALL[int(rng.integers(0, len(generators.ALL)))](rng)
    units = min(4, offsets.size - 1)
    options = [
        list(zip(cost[a:b].tolist(), reward[a:b].tolist(), strict=True))[:4]
        for a, b in itertools.pairwise(offsets[: units + 1].tolist())
    ]
    actions = oracle.make_actions(
        reward=[r for o in options for _, r in o],
        cost=[c for o in options for c, _ in o],
        unit_offsets=np.concatenate([[0], np.cumsum([len(o) for o in options])]),
    )
    return options, actions


def test_policy_at_a_price():
    rng = np.random.default_rng(101)
    for _ in range(250):
        options, actions = small_problem(rng)
        price = Fraction(int(rng.integers(0, 9)), int(rng.choice([1, 7, 400, 2**41])))
        policy = oracle.policy_at_price(actions, price)
        points = twins.all_points(options)
        best = max(r - price * c for c, r in points)
        assert policy.value == best
        assert (policy.cost, policy.reward) == min(
            (c, r) for c, r in points if r - price * c == best
        )
        assert actions.reward[policy.rows].sum() == policy.reward
        assert actions.cost[policy.rows].sum() == policy.cost
    with pytest.raises(ValueError, match="negative"):
        oracle.policy_at_price(actions, Fraction(-1))


def naive_hull(points):
    """Non-dominated points that some price makes best, ends of collinear runs only."""
    front = twins.undominated(points)
    kept = []
    for c, r in front:
        # A vertex rises to it more steeply, from every point, than from it to any other.
        before = min((Fraction(r - r0, c - c0) for c0, r0 in front if c0 < c), default=None)
        after = max((Fraction(r1 - r, c1 - c) for c1, r1 in front if c1 > c), default=None)
        if before is None or after is None or before > after:
            kept.append((c, r))
    return kept


def test_hull_and_marginal_value():
    rng = np.random.default_rng(103)
    for _ in range(120):
        options, actions = small_problem(rng)
        points = twins.all_points(options)
        front = twins.undominated(points)
        hull = oracle.price_hull(actions)
        vertices = naive_hull(points)
        assert list(zip(hull.cost.tolist(), hull.reward.tolist(), strict=True)) == vertices
        frontier = oracle.frontier_of_actions(actions)
        budgets = rng.integers(front[0][0], front[-1][0] + 3, 6)
        value = oracle.marginal_value(frontier, budgets)
        for place, budget in enumerate(budgets.tolist()):
            now = twins.best_within(points, budget)
            better = [(c, r) for c, r in front if r > now]
            expected = (better[0][1] - now, better[0][0] - budget) if better else (0, 0)
            assert (value.next_gain[place], value.next_tokens[place]) == expected
            at = max(j for j, (c, _) in enumerate(vertices) if c <= budget)
            edge = vertices[at : at + 2]
            rate = (edge[1][1] - edge[0][1], edge[1][0] - edge[0][0]) if len(edge) == 2 else (0, 0)
            assert (value.rate_gain[place], value.rate_tokens[place]) == rate


def test_hull_beyond_exact_slopes():
    rng = np.random.default_rng(104)
    for _ in range(20):
        options = [
            [(0, 0)] + [(int(c), int(r)) for c, r in zip(
                rng.integers(2**44, 2**46, 2), rng.integers(2**9, 2**10, 2), strict=True
            )]
            for _ in range(3)
        ]  # fmt: skip
        actions = oracle.make_actions(
            reward=[r for o in options for _, r in o],
            cost=[c for o in options for c, _ in o],
            unit_offsets=3 * np.arange(4),
        )
        hull = oracle.price_hull(actions)
        found = list(zip(hull.cost.tolist(), hull.reward.tolist(), strict=True))
        assert found == naive_hull(twins.all_points(options))


@pytest.mark.parametrize("shape", ["any", "equal", "zeros", "falling", "late"])
def test_combined_strategy(shape):
    rng = np.random.default_rng(107)
    for _ in range(15):
        curves = twins.random_curves(rng, questions=3, trajectories=2, steps=3, shape=shape)
        combined = oracle.combined_frontier(curves)
        frontier = combined.frontier
        found = list(zip(frontier.cost.tolist(), frontier.reward.tolist(), strict=True))
        assert found == twins.naive_frontier(curves, "combined")
        for state in range(frontier.cost.size):
            stops = combined.stopping_positions(state)
            assert oracle.measured_point(curves, stops) == found[state]
            for members in twins.questions_of(curves):
                thinks = [stops[s] > 0 for s in members if len(twins.rows_of(curves, s)) > 1]
                assert all(thinks) or not any(thinks)
        budgets = np.arange(101) / 100
        routing = oracle.exact_frontier(curves, "routing").accuracy_at(budgets)
        exits = oracle.exact_frontier(curves, "early_exit").accuracy_at(budgets)
        assert np.all(routing <= frontier.accuracy_at(budgets))
        assert np.all(frontier.accuracy_at(budgets) <= exits)


@pytest.mark.parametrize("weights", [None, (1, 1), (3, 2), (4, 6)])
def test_fleet(weights):
    rng = np.random.default_rng(109)
    for _ in range(40):
        cells = [twins.random_curves(rng, questions=q, trajectories=2, steps=2) for q in (1, 2)]
        points = [twins.all_points(twins.units_of(cell, "early_exit")) for cell in cells]
        own = [oracle.exact_frontier(cell, "early_exit") for cell in cells]
        fleet = oracle.fleet_frontier(own, weights)
        w = {None: (1, 1), (4, 6): (2, 3)}.get(weights, weights)
        assert fleet.weights == w
        naive = twins.undominated(
            {(c0 + c1, w[0] * r0 + w[1] * r1) for c0, r0 in points[0] for c1, r1 in points[1]}
        )
        frontier = fleet.frontier
        assert list(zip(frontier.cost.tolist(), frontier.reward.tolist(), strict=True)) == naive
        budget = int(rng.integers(0, frontier.cost[-1] + 3))
        states = fleet.states_within(budget)
        assert sum(int(f.cost[s]) for f, s in zip(own, states, strict=True)) <= budget
        weighted = sum(wc * int(f.reward[s]) for wc, f, s in zip(w, own, states, strict=True))
        assert weighted == twins.best_within(naive, budget)


def test_fleet_weights_and_misuse():
    rng = np.random.default_rng(113)
    cells = [twins.random_curves(rng, questions=q, trajectories=2) for q in (2, 3)]
    own = [oracle.exact_frontier(cell, "routing") for cell in cells]
    weights = oracle.equal_weights(own)
    assert weights == (3, 2)
    fleet = oracle.fleet_frontier(own, weights)
    top = np.mean([f.reward[-1] / f.probes for f in own])
    assert fleet.frontier.accuracy_at([1.0])[0] == pytest.approx(top, abs=1e-15)
    with pytest.raises(ValueError, match=r"weights\[1\] must be positive, and an integer, not 0"):
        oracle.fleet_frontier(own, (1, 0))
    with pytest.raises(ValueError, match="more than"):
        oracle.fleet_frontier(own, (10**8, 10**8 + 1))
    with pytest.raises(ValueError, match="at least one cell"):
        oracle.fleet_frontier([])


def test_one_budget_over_models_and_benchmarks():
    """The pooled frontier of several cells is the fleet frontier with equal probes."""
    rng = np.random.default_rng(127)
    cells = [twins.random_curves(rng, questions=2, trajectories=2, steps=3) for _ in range(2)]
    from stp.curves import Curves

    pooled = Curves(
        tokens=np.concatenate([cell.tokens for cell in cells]),
        correct=np.concatenate([cell.correct for cell in cells]),
        trajectory_offsets=np.concatenate(
            [cells[0].trajectory_offsets, cells[1].trajectory_offsets[1:] + cells[0].positions]
        ),
        question=np.concatenate([cell.question for cell in cells]),
        model=np.repeat([0, 1], [cell.trajectories for cell in cells]),
        probes=cells[0].probes,
    )
    for strategy in oracle.STRATEGIES:
        one = oracle.exact_frontier(pooled, strategy)
        two = oracle.fleet_frontier([oracle.exact_frontier(c, strategy) for c in cells]).frontier
        assert np.array_equal(one.cost, two.cost)
        assert np.array_equal(one.reward, two.reward)
