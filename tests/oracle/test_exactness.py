"""The fast programs against the textbook program on more than 100,000 hurtful problems.

Every instance goes through the pruned tree, with leaves small enough that several levels are
merged, and through the core's searches, none of which may be wrong where it says it is settled.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import core, dense, grid, tree
from oracle.actions import make_actions
from oracle.frontier import frontier_of_actions
from oracle.prices import price_hull
from oracle.search import BELOW_BASE, UNSETTLED
from oracle.textbook import textbook_frontier
from tests.effort import QUICK, tries
from tests.oracle import generators, twins

INSTANCES = tries(8_000)


def expected_rewards(cost, reward, budgets):
    at = np.searchsorted(cost, budgets, side="right") - 1
    return np.where(at < 0, BELOW_BASE, reward[np.maximum(at, 0)])


@pytest.mark.parametrize("generator", generators.ALL, ids=lambda g: g.__name__)
def test_equals_the_textbook(generator, monkeypatch):
    assert QUICK or INSTANCES * len(generators.ALL) >= 100_000
    rng = np.random.default_rng([29, generators.ALL.index(generator)])
    settled = 0
    for trial in range(INSTANCES):
        # From one unit per leaf to everything in one leaf.
        monkeypatch.setattr(tree, "LEAF_REWARD_MOST", [1, 20, 100, 10**6][trial % 4])
        monkeypatch.setattr(tree, "LEAF_REWARD_LEAST", 1)
        reward, cost, offsets = generator(rng)
        actions = make_actions(reward=reward, cost=cost, unit_offsets=offsets)
        true_cost, true_reward = textbook_frontier(actions)
        with monkeypatch.context() as patch:
            patch.setattr(dense, "SMALL_WORK", -1)
            frontiers = [frontier_of_actions(actions)]
        frontiers.append(frontier_of_actions(actions))
        for frontier in frontiers:
            assert np.array_equal(frontier.cost, true_cost)
            assert np.array_equal(frontier.reward, true_reward)
        near = rng.choice(true_cost, 4) + np.array([-1, 0, 1, 0])
        budgets = np.sort(np.append(near, rng.integers(0, true_cost[-1] + 3, 4)))
        found, _ = core.grid_rewards(
            core.prepare_core(actions),
            np.ones((1, actions.units), np.int64),
            (budgets - actions.base_cost)[None, :],
            10**6,
        )
        sure = found[0] != UNSETTLED
        settled += int(sure.sum())
        found = np.where(found[0] >= 0, found[0] + actions.base_reward, found[0])
        assert np.array_equal(found[sure], expected_rewards(true_cost, true_reward, budgets)[sure])
    assert settled > 0.9 * 8 * INSTANCES


@pytest.mark.parametrize("generator", generators.ALL, ids=lambda g: g.__name__)
def test_large_instances(generator):
    """Joined instances: thousands of units, arrays of many blocks, 32 and 64 bits."""
    rng = np.random.default_rng([31, generators.ALL.index(generator)])
    parts = [generator(rng) for _ in range(60)]
    starts = np.cumsum([0] + [part[0].size for part in parts])
    actions = make_actions(
        reward=np.concatenate([part[0] for part in parts]),
        cost=np.concatenate([part[1] for part in parts]),
        unit_offsets=np.concatenate(
            [[0]] + [part[2][1:] + start for part, start in zip(parts, starts[:-1], strict=True)]
        ),
    )
    true_cost, true_reward = textbook_frontier(actions)
    frontier = frontier_of_actions(actions)
    assert np.array_equal(frontier.cost, true_cost)
    assert np.array_equal(frontier.reward, true_reward)
    for state in rng.integers(0, true_cost.size, 5).tolist():
        rows = frontier.actions_at(state)
        assert actions.cost[rows].sum() == true_cost[state]
        assert actions.reward[rows].sum() == true_reward[state]
    budgets = rng.integers(0, true_cost[-1] + 2, 40)
    expected = expected_rewards(true_cost, true_reward, budgets)
    assert np.array_equal(
        grid.best_rewards(actions, budgets).reward, np.where(expected < 0, -1, expected)
    )


@pytest.mark.parametrize("generator", generators.ALL, ids=lambda g: g.__name__)
def test_every_combination(generator):
    rng = np.random.default_rng([37, generators.ALL.index(generator)])
    for _ in range(20):
        reward, cost, offsets = generator(rng)
        units = min(4, offsets.size - 1)
        options = [
            list(zip(cost[a:b].tolist(), reward[a:b].tolist(), strict=True))[:6]
            for a, b in itertools.pairwise(offsets[: units + 1].tolist())
        ]
        kept = np.concatenate([[0], np.cumsum([len(o) for o in options])])
        actions = make_actions(
            reward=[r for o in options for _, r in o],
            cost=[c for o in options for c, _ in o],
            unit_offsets=kept,
        )
        frontier = frontier_of_actions(actions)
        naive = twins.undominated(twins.all_points(options))
        assert list(zip(frontier.cost.tolist(), frontier.reward.tolist(), strict=True)) == naive


@pytest.mark.parametrize("kinds", [1, 3])
def test_thousands_of_equal_units(kinds):
    rng = np.random.default_rng([39, kinds])
    rewards = np.sort(rng.integers(0, 17, (kinds, 5)), axis=1)
    costs = np.sort(rng.integers(0, 400, (kinds, 5)), axis=1)
    pick = rng.integers(0, kinds, 4000)
    actions = make_actions(
        reward=rewards[pick].reshape(-1),
        cost=costs[pick].reshape(-1),
        unit_offsets=5 * np.arange(pick.size + 1),
    )
    true_cost, true_reward = textbook_frontier(actions)
    frontier = frontier_of_actions(actions)
    assert np.array_equal(frontier.cost, true_cost)
    assert np.array_equal(frontier.reward, true_reward)
    budgets = rng.integers(0, true_cost[-1] + 2, 101)
    expected = expected_rewards(true_cost, true_reward, budgets)
    found = grid.best_rewards(actions, budgets).reward
    assert np.array_equal(found, np.where(expected < 0, -1, expected))


problems = st.builds(
    lambda seed, generator: generator(np.random.default_rng(seed)),
    st.integers(0, 2**32),
    st.sampled_from(generators.ALL),
)


def random_problem(rng):
    return generators.ALL[int(rng.integers(0, len(generators.ALL)))](rng)


def frontier_of(reward, cost, offsets):
    return frontier_of_actions(make_actions(reward=reward, cost=cost, unit_offsets=offsets))


@settings(max_examples=tries(300, 100), deadline=None)
@given(problems, st.randoms(use_true_random=False))
def test_permutation_of_units_changes_nothing(problem, random):
    reward, cost, offsets = problem
    order = random.sample(range(offsets.size - 1), offsets.size - 1)
    rows = np.concatenate([np.arange(offsets[u], offsets[u + 1]) for u in order])
    shuffled = np.concatenate([[0], np.cumsum(np.diff(offsets)[order])])
    one, two = frontier_of(reward, cost, offsets), frontier_of(reward[rows], cost[rows], shuffled)
    assert np.array_equal(one.cost, two.cost)
    assert np.array_equal(one.reward, two.reward)


@settings(max_examples=tries(300, 100), deadline=None)
@given(problems, st.floats(0, 1), st.integers(0, 30), st.floats(0, 1.2))
def test_an_added_action_never_hurts(problem, where, gain, share):
    reward, cost, offsets = problem
    before = frontier_of(reward, cost, offsets)
    unit = int(where * (offsets.size - 2))
    after = frontier_of(
        np.insert(reward, offsets[unit + 1], gain),
        np.insert(cost, offsets[unit + 1], int(share * int(cost.max()))),
        offsets + (np.arange(offsets.size) > unit),
    )
    assert after.cost[0] <= before.cost[0]
    assert np.all(after.reward_within(before.cost) >= before.reward)


@settings(max_examples=tries(300, 100), deadline=None)
@given(problems, st.lists(st.floats(0, 1.1), min_size=2, max_size=20))
def test_more_budget_never_hurts(problem, shares):
    actions = make_actions(reward=problem[0], cost=problem[1], unit_offsets=problem[2])
    budgets = np.sort(np.array([int(share * actions.top_cost) for share in shares]))
    rewards = grid.best_rewards(actions, budgets).reward
    assert np.all(np.diff(rewards) >= 0)
    frontier = frontier_of_actions(actions)
    assert np.all(np.diff(frontier.cost) > 0)
    assert np.all(np.diff(frontier.reward) > 0)


@settings(max_examples=tries(300, 100), deadline=None)
@given(problems)
def test_doubling_every_unit_scales_the_hull(problem):
    reward, cost, offsets = problem
    once = price_hull(make_actions(reward=reward, cost=cost, unit_offsets=offsets))
    both = make_actions(
        reward=np.concatenate([reward, reward]),
        cost=np.concatenate([cost, cost]),
        unit_offsets=np.concatenate([offsets, offsets[1:] + offsets[-1]]),
    )
    twice = price_hull(both)
    assert np.array_equal(2 * once.cost, twice.cost)
    assert np.array_equal(2 * once.reward, twice.reward)
    frontier = frontier_of_actions(both)
    states = np.searchsorted(frontier.cost, 2 * once.cost)
    assert np.array_equal(frontier.reward[states], 2 * once.reward)


def test_multiplicities_equal_units_written_out():
    from oracle.bootstrap import repeated_units

    rng = np.random.default_rng(53)
    for _ in range(tries(1500, 500)):
        reward, cost, offsets = random_problem(rng)
        actions = make_actions(reward=reward, cost=cost, unit_offsets=offsets)
        prepared = core.prepare_core(actions)
        copies = rng.integers(0, 4, (2, actions.units))
        top = (copies * prepared.cost[prepared.offsets[1:] - 1]).sum(axis=1)
        budgets = np.sort(rng.integers(0, top[:, None] + 2, (2, 6)), axis=1)
        found, _ = core.grid_rewards(prepared, copies, budgets, 10**7)
        for row in range(2):
            units = repeated_units(prepared, copies[row])
            explicit = frontier_of(*units) if units[2].size > 1 else None
            sure = found[row] != UNSETTLED
            expected = explicit.reward_within(budgets[row]) if explicit else np.zeros(6, np.int64)
            assert np.array_equal(found[row][sure], expected[sure])
