"""What public functions of the oracle refuse, and that nothing overflows at their edges."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from oracle.checks import LARGEST_INT64, whole_number
from oracle.scale_out import bootstrap_frontiers_on_ray
from stp.curves import Curves

CURVES = Curves(
    tokens=[0, 9, 20, 0, 7],
    correct=[1, 4, 3, 0, 2],
    trajectory_offsets=[0, 3, 5],
    question=[0, 1],
    probes=4,
)
EMPTY = Curves(tokens=[], correct=[], trajectory_offsets=[0], question=[], probes=4)
FRONTIER = oracle.exact_frontier(CURVES, "early_exit")
ACTIONS = oracle.make_actions(reward=[0, 3, 0, 2], cost=[0, 5, 0, 4], unit_offsets=[0, 2, 4])


@pytest.mark.parametrize("steps", [0, -1, 2.5, float("nan"), None])
def test_a_grid_has_one_step_or_more(steps):
    with pytest.raises(ValueError, match="steps must be positive"):
        oracle.grid_budgets(100, steps)
    with pytest.raises(ValueError, match="steps must be positive"):
        oracle.bootstrap_frontiers(CURVES, replicates=2, steps=steps)
    with pytest.raises(ValueError, match="steps must be positive"):
        bootstrap_frontiers_on_ray(CURVES, replicates=2, steps=steps)


@pytest.mark.parametrize("cost", [-5, 10.5, 2**63])
def test_a_grid_is_of_whole_tokens(cost):
    with pytest.raises(ValueError, match="full_cost must be"):
        oracle.grid_budgets(cost, 4)


def test_a_grid_near_the_largest_cost_is_exact():
    largest = LARGEST_INT64
    assert oracle.grid_budgets(largest, 2).tolist() == [0, largest // 2, largest]


@pytest.mark.parametrize("fraction", [1.01, 30, 100.0, 1e300, Fraction(10**40)])
def test_per_cent_are_no_fractions(fraction):
    with pytest.raises(ValueError, match="divide percentages by 100"):
        FRONTIER.accuracy_at([0.5, fraction])


@pytest.mark.parametrize("fraction", [1.0, float("inf"), Fraction(1)])
@pytest.mark.parametrize("strategy", oracle.STRATEGIES)
def test_more_than_everything_buys_the_last_state(fraction, strategy):
    frontier = oracle.exact_frontier(CURVES, strategy)
    assert frontier.accuracy_at([fraction]).tolist() == [frontier.reward[-1] / frontier.probes]


@given(st.floats(min_value=0, allow_nan=False), st.integers(0, 2**62))
def test_a_budget_is_what_integers_say_wherever_it_fits(fraction, cost):
    (budget,) = oracle.budget_tokens([fraction], cost).tolist()
    if fraction == float("inf"):
        assert budget == LARGEST_INT64
        return
    exact = Fraction(fraction).limit_denominator(10**6) * cost
    assert budget == min(exact.numerator // exact.denominator, LARGEST_INT64)


@pytest.mark.parametrize("fraction", [float("nan"), None, "half", -0.1, float("-inf")])
def test_a_fraction_is_a_number_of_zero_or_more(fraction):
    with pytest.raises(ValueError, match="a budget fraction must"):
        FRONTIER.accuracy_at([0.5, fraction])


def test_a_budget_in_tokens_is_whole():
    with pytest.raises(ValueError, match="budget must be"):
        FRONTIER.actions_within(10.7)
    beyond = FRONTIER.actions_within(10**30)
    assert beyond.tolist() == FRONTIER.actions_at(FRONTIER.cost.size - 1).tolist()
    with pytest.raises(ValueError, match="full_cost must be"):
        oracle.budget_tokens([0.5], -3)


@pytest.mark.parametrize(
    "frontier",
    [
        oracle.exact_frontier(EMPTY, "routing"),
        oracle.frontier_of_actions(ACTIONS, probes=0),
        oracle.frontier_of_actions(oracle.make_actions(reward=[0], cost=[0], unit_offsets=[0, 1])),
    ],
)
def test_without_probes_there_is_no_accuracy(frontier):
    with pytest.raises(ValueError, match="no probes"):
        frontier.accuracy_at([1.0])
    assert frontier.reward_within([frontier.cost[-1]]).tolist() == [frontier.reward[-1]]


@pytest.mark.parametrize("changed", [{"probes": -1}, {"full_cost": -10}, {"full_cost": 1.5}])
def test_a_frontier_of_actions_is_a_part_of_something(changed):
    with pytest.raises(ValueError, match=f"{next(iter(changed))} must be 0 or more"):
        oracle.frontier_of_actions(ACTIONS, **changed)


@pytest.mark.parametrize(
    ("stops", "message"),
    [
        ([-1, 0], "trajectory 0 has positions 0..2, not -1"),
        ([0, 2], "trajectory 1 has positions 0..1, not 2"),
        ([0.5, 0], "must hold integers"),
        ([0], "one entry for 2 trajectories"),
        ([True, False], "must hold integers"),
        (np.array([0, 2**63], np.uint64), "outside the range of int64"),
    ],
)
def test_a_stop_is_a_position_of_its_trajectory(stops, message):
    with pytest.raises(ValueError, match=message):
        oracle.measured_point(CURVES, stops)
    with pytest.raises(ValueError, match=message):
        oracle.stopping_positions(CURVES, "early_exit", stops)


@pytest.mark.parametrize(
    ("strategy", "choice", "message"),
    [
        ("routing", [7, 0], "0 or 1"),
        ("routing", [0], "one entry for 2"),
        ("fixed_budget", [-7, 0], "caps in tokens"),
        ("fixed_budget", [0.5, 0], "must hold integers"),
        ("fixed_budget", np.array([2**63, 0], np.uint64), "outside the range of int64"),
        ("greedy", [0, 0], "unknown strategy 'greedy'"),
    ],
)
def test_a_choice_is_one_of_its_strategy(strategy, choice, message):
    with pytest.raises(ValueError, match=message):
        oracle.stopping_positions(CURVES, strategy, choice)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"replicates": -1}, "replicates must be positive"),
        ({"replicates": 1.5}, "replicates must be positive"),
        ({"workers": 0}, "workers must be positive"),
        ({"seed": -1}, "seed must be in 0"),
        ({"seed": 2**64}, "seed must be in 0"),
        ({"seed": 1.5}, "seed must be in 0"),
    ],
)
def test_a_bootstrap_says_which_number_is_wrong(changed, message):
    with pytest.raises(ValueError, match=message):
        oracle.bootstrap_frontiers(CURVES, **{"replicates": 2, **changed})


def test_replicates_are_asked_for_as_they_are_there():
    prepared = oracle.FrontierBootstrap(CURVES, strategies=["routing"])
    with pytest.raises(ValueError, match="first must be"):
        prepared.block(-1, 2)
    with pytest.raises(ValueError, match="count must be positive"):
        prepared.block(0, 0)
    found = prepared.block(0, 2)
    with pytest.raises(ValueError, match="'early_exit' was not solved; there are routing"):
        found.accuracy(model=0, benchmark=0, strategy="early_exit")
    with pytest.raises(ValueError, match="'early_exit' was not solved"):
        found.macro_accuracy("early_exit")
    with pytest.raises(ValueError, match="no replicate"):
        oracle.percentile_interval(np.empty((0, 3)))


def test_stops_are_copied():
    stops = np.array([1, 0])
    found = oracle.stopping_positions(CURVES, "early_exit", stops)
    stops[0] = 0
    assert found.tolist() == [1, 0]


def test_what_int64_does_not_hold_is_refused():
    beyond = np.array([0, 2**63], np.uint64)
    with pytest.raises(ValueError, match="cost holds values outside the range of int64"):
        oracle.make_actions(reward=[0, 1], cost=beyond, unit_offsets=[0, 2])
    with pytest.raises(ValueError, match="budgets holds values outside the range of int64"):
        oracle.best_rewards(ACTIONS, beyond)


@pytest.mark.parametrize("value", [True, False, np.True_, 1.0, "1", None])
def test_what_is_no_number_is_no_whole_number(value):
    with pytest.raises(ValueError, match=r"steps must be 0 or more, and an integer, not "):
        whole_number("steps", value, least=0)
    assert whole_number("steps", np.int8(1), least=0) == 1


def test_a_fleet_is_of_cells_with_probes_and_whole_weights():
    for weight in (1.5, True, 0, None, "2"):
        with pytest.raises(ValueError, match=r"weights\[1\] must be positive, and an integer"):
            oracle.fleet_frontier([FRONTIER, FRONTIER], [1, weight])
    with pytest.raises(ValueError, match="without probes"):
        oracle.equal_weights([FRONTIER, oracle.exact_frontier(EMPTY, "routing")])
    with pytest.raises(ValueError, match="at least one cell"):
        oracle.equal_weights([])
