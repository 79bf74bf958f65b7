"""Exact frontiers of curves against all combinations, and the laws they obey."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from oracle.textbook import textbook_frontier
from stp.curves import Curves
from tests.effort import tries
from tests.oracle import twins

SHAPES = ["any", "equal", "zeros", "flat", "falling", "late"]


def pairs(frontier):
    return list(zip(frontier.cost.tolist(), frontier.reward.tolist(), strict=True))


@pytest.mark.parametrize("strategy", oracle.STRATEGIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_every_combination(strategy, shape):
    rng = np.random.default_rng([7, SHAPES.index(shape)])
    for trial in range(120):
        curves = twins.random_curves(
            rng,
            questions=int(rng.integers(1, 4)),
            trajectories=int(rng.integers(1, 3)),
            steps=int(rng.integers(0, 4)),
            step=[1, 3, 50][trial % 3],
            shape=shape,
        )
        assert pairs(oracle.exact_frontier(curves, strategy)) == twins.naive_frontier(
            curves, strategy
        )


@pytest.mark.parametrize("strategy", oracle.STRATEGIES)
def test_equal_token_counts_of_one_trajectory(strategy):
    rng = np.random.default_rng(11)
    for _ in range(100):
        curves = twins.random_curves(rng)
        stalled = curves.tokens.copy()
        for s in range(curves.trajectories):
            rows = twins.rows_of(curves, s)
            if len(rows) > 2:
                stalled[rows[-2]] = stalled[rows[-1]]
        curves = oracle_curves(curves, tokens=stalled)
        assert pairs(oracle.exact_frontier(curves, strategy)) == twins.naive_frontier(
            curves, strategy
        )


def test_of_positions_that_cost_the_same_only_the_best_is_an_action():
    """Also where the worse one has no right answer, and where nothing was spent yet."""
    curves = Curves(
        tokens=[0, 0, 7, 7, 0, 5, 5],
        correct=[0, 1, 2, 3, 0, 0, 4],
        trajectory_offsets=[0, 4, 7],
        question=[0, 1],
        probes=4,
    )
    actions = oracle.strategy_actions(curves, "early_exit")
    assert actions.reward.tolist() == [1, 3, 0, 4]
    assert actions.cost.tolist() == [0, 7, 0, 5]
    assert actions.choice.tolist() == [1, 3, 0, 2]
    assert actions.unit_offsets.tolist() == [0, 2, 4]


def oracle_curves(curves, **changes):
    from dataclasses import replace

    return replace(curves, **changes)


curve_cells = st.builds(
    lambda seed, questions, trajectories, steps, step, shape: twins.random_curves(
        np.random.default_rng(seed),
        questions=questions,
        trajectories=trajectories,
        steps=steps,
        step=step,
        probes=16,
        shape=shape,
    ),
    st.integers(0, 2**32),
    st.integers(1, 25),
    st.integers(1, 6),
    st.integers(0, 9),
    st.sampled_from([1, 4, 900]),
    st.sampled_from(SHAPES),
)


@settings(max_examples=tries(150, 50), deadline=None)
@given(curve_cells)
def test_hierarchy(curves):
    budgets = np.union1d(
        np.arange(101) * oracle.exact_frontier(curves, "routing").full_cost // 100, 0
    )
    routing, fixed, exits = (
        oracle.exact_frontier(curves, strategy).reward_within(budgets)
        for strategy in oracle.STRATEGIES
    )
    assert np.all(routing <= fixed)
    assert np.all(fixed <= exits)


@settings(max_examples=tries(150, 50), deadline=None)
@given(curve_cells, st.sampled_from(oracle.STRATEGIES), st.floats(0, 1))
def test_actions_behind_a_point_add_up(curves, strategy, where):
    frontier = oracle.exact_frontier(curves, strategy)
    state = int(where * (frontier.cost.size - 1))
    rows = frontier.actions_at(state)
    actions = frontier.actions
    unit = np.searchsorted(actions.unit_offsets, rows, side="right") - 1
    assert np.array_equal(unit, np.arange(actions.units))
    stops = oracle.stopping_positions(curves, strategy, actions.choice[rows])
    assert oracle.measured_point(curves, stops) == (frontier.cost[state], frontier.reward[state])


@settings(max_examples=100, deadline=None)
@given(curve_cells, st.sampled_from(oracle.STRATEGIES))
def test_equals_the_textbook(curves, strategy):
    frontier = oracle.exact_frontier(curves, strategy)
    cost, reward = textbook_frontier(frontier.actions)
    assert np.array_equal(frontier.cost, cost)
    assert np.array_equal(frontier.reward, reward)
    assert np.all(np.diff(cost) > 0)
    assert np.all(np.diff(reward) > 0)


def test_several_models_decide_apart():
    rng = np.random.default_rng(3)
    one, two = twins.random_curves(rng), twins.random_curves(rng)
    from stp.curves import Curves

    both = Curves(
        tokens=np.concatenate([one.tokens, two.tokens]),
        correct=np.concatenate([one.correct, two.correct]),
        trajectory_offsets=np.concatenate(
            [one.trajectory_offsets, two.trajectory_offsets[1:] + one.positions]
        ),
        question=np.concatenate([one.question, two.question]),
        model=np.repeat([0, 1], [one.trajectories, two.trajectories]),
        probes=one.probes,
    )
    for strategy in oracle.STRATEGIES:
        assert pairs(oracle.exact_frontier(both, strategy)) == twins.naive_frontier(both, strategy)


def test_budgets_are_integers():
    assert oracle.budget_tokens(np.arange(101) / 100, 100).tolist() == list(range(101))
    assert 0.29 * 100 < 29
    assert oracle.budget_tokens(Fraction(1, 3), 10).tolist() == 3
    for cost in (1, 99, 66_000_001, 2**55 + 1):
        expected = [j * cost // 100 for j in range(101)]
        assert oracle.budget_tokens(np.arange(101) / 100, cost).tolist() == expected
        assert oracle.grid_budgets(cost).tolist() == expected
    with pytest.raises(ValueError, match="must not be negative"):
        oracle.budget_tokens([-0.1], 100)


def test_accuracy_is_best_reward_within_the_budget():
    rng = np.random.default_rng(5)
    for strategy in oracle.STRATEGIES:
        curves = twins.random_curves(rng, steps=3)
        frontier = oracle.exact_frontier(curves, strategy)
        points = twins.all_points(twins.units_of(curves, strategy))
        probes = curves.trajectories * curves.probes
        full = int(curves.full_tokens_s.sum())
        expected = [twins.best_within(points, j * full // 100) / probes for j in range(101)]
        assert frontier.accuracy_at(np.arange(101) / 100).tolist() == expected
        assert (frontier.probes, frontier.full_cost) == (probes, full)


def test_misuse_is_refused():
    curves = twins.random_curves(np.random.default_rng(1))
    with pytest.raises(ValueError, match="unknown strategy 'greedy'"):
        oracle.exact_frontier(curves, "greedy")
    frontier = oracle.exact_frontier(curves, "routing")
    with pytest.raises(ValueError, match="integers"):
        frontier.reward_within(0.5)
    with pytest.raises(ValueError, match="less than 0 tokens"):
        frontier.reward_within(-1)
    with pytest.raises(ValueError, match="negative"):
        oracle.make_actions(reward=[-1], cost=[0], unit_offsets=[0, 1])
    with pytest.raises(ValueError, match="at least one row"):
        oracle.make_actions(reward=[1], cost=[0], unit_offsets=[0, 0, 1])
    with pytest.raises(ValueError, match="2\\^60"):
        oracle.make_actions(reward=[1, 1], cost=[2**60, 1], unit_offsets=[0, 1, 2])


def test_import_is_light():
    code = (
        "import sys, oracle; "
        "heavy = ('numba', 'numpy', 'pandas', 'pyarrow', 'torch', 'ray'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_programs_need_numpy_numba_scipy_only():
    code = (
        "import sys, oracle\n"
        "a = oracle.make_actions(reward=[0, 2, 0, 3], cost=[0, 5, 0, 4], unit_offsets=[0, 2, 4])\n"
        "f = oracle.frontier_of_actions(a)\n"
        "print(f.cost.tolist(), f.reward.tolist())\n"
        "print([m for m in ('pandas', 'pyarrow', 'torch', 'ray', 'pydantic') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split("\n")[:2] == ["[0, 4, 9] [0, 3, 5]", "[]"]


@pytest.mark.parametrize("strategy", oracle.STRATEGIES)
def test_costs_that_could_wrap_around_are_refused(strategy):
    curves = Curves(
        tokens=[0, 2**62] * 3,
        correct=[0, 1] * 3,
        trajectory_offsets=[0, 2, 4, 6],
        question=[0, 1, 2],
        probes=1,
    )
    with pytest.raises(ValueError, match=r"reach 2\^60"):
        oracle.exact_frontier(curves, strategy)
