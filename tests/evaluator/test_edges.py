"""What public functions of the evaluator refuse at their edges, in one clear line."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from data.errors import MisuseError
from evaluator.analysis.bootstrap import bootstrap_curves
from evaluator.analysis.crossfit_frontier import cross_fitted_frontier
from evaluator.analysis.earliest_maximum import expected_choice, held_out_table, kept_share_table
from evaluator.analysis.frontiers import (
    average_endpoints,
    average_frontiers,
    average_savings,
    cell_frontiers,
    rewards_on_grid,
)
from evaluator.analysis.nesting import averages_of_cells, make_nesting, nesting_of
from evaluator.analysis.overthinking import per_trajectory
from evaluator.analysis.thinning import probe_sensitivity, thin_trajectories, trajectory_sensitivity
from evaluator.simulation.worlds import paper_population
from evaluator.thinkbench.oscore import score_gradient, score_hessian
from stp.curves import Curves

CURVES = Curves(
    tokens=[0, 9, 20, 0, 7],
    correct=[1, 4, 3, 0, 2],
    trajectory_offsets=[0, 3, 5],
    question=[0, 1],
    probes=4,
)
EMPTY = Curves(tokens=[], correct=[], trajectory_offsets=[0], question=[], probes=4)
FRAME = per_trajectory(CURVES)


@pytest.mark.parametrize("counts", [[], [2, 2]])
def test_numbers_to_compare_are_there_once(counts):
    with pytest.raises(ValueError, match="counts must hold different numbers"):
        probe_sensitivity(CURVES, counts)
    with pytest.raises(ValueError, match="counts must hold different numbers"):
        trajectory_sensitivity(CURVES, counts, draws=2)


@pytest.mark.parametrize("near", [1e-100, 1e-160, 1e-300])
def test_second_derivatives_near_the_origin(near):
    # At A = E the matrix is 1 / (2 A) times that of A = 1 / 2.
    expected = np.array([[-1.0, 1.0], [1.0, -1.0]]) / (2 * near)
    assert score_hessian(near, near) == pytest.approx(expected, rel=1e-12)
    assert score_gradient(near, near) == pytest.approx((0.5, 0.5), rel=1e-12)


def test_second_derivatives_that_no_float_holds():
    with pytest.raises(MisuseError, match="larger than any float64"):
        score_hessian(5e-324, 0)
    assert score_gradient(5e-324, 0) == (0.0, 2.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kept": 1.5}, "kept must be positive"),
        ({"draws": 2.5}, "draws must be positive"),
        ({"seed": -1}, "seed must be in 0"),
    ],
)
def test_thinning_says_which_number_is_wrong(changed, message):
    with pytest.raises(ValueError, match=message):
        thin_trajectories(CURVES, **{"kept": 1, "draws": 2, **changed})


@pytest.mark.parametrize("level", [-1, 1.5, float("nan")])
def test_a_range_has_a_level(level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        thin_trajectories(CURVES, 1, draws=2).ranges(level)


def test_columns_that_are_not_there_are_named():
    with pytest.raises(KeyError, match="no column 'speed'; choose from model"):
        thin_trajectories(CURVES, 1, draws=2, statistics=["speed"])
    with pytest.raises(KeyError, match="no column 'speed'"):
        bootstrap_curves(CURVES, statistics=["speed"], replicates=2)
    with pytest.raises(KeyError, match="no column 'benchmark'"):
        nesting_of(pd.DataFrame({"model": [0], "question": [0]}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"replicates": 1.5}, "replicates must be positive"),
        ({"seed": 1.5}, "seed must be in 0"),
        ({"workers": 0}, "workers must be positive"),
    ],
)
def test_a_bootstrap_says_which_number_is_wrong(changed, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_curves(CURVES, **{"replicates": 2, **changed})


@pytest.mark.parametrize("name", ["model", "benchmark", "question", "sample"])
@pytest.mark.parametrize("values", [[0.5, 1.0], [float("nan"), 1.0], [[0, 1]], ["a", "b"]])
def test_indices_are_integers(name, values):
    given = {"model": [0, 0], "benchmark": [0, 0], "question": [0, 1], name: values}
    with pytest.raises(ValueError, match=f"{name} must"):
        make_nesting(**given)
    with pytest.raises(ValueError, match=f"{name} holds values outside the range of int64"):
        make_nesting(**{**given, name: np.array([0, 2**63], np.uint64)})


@pytest.mark.parametrize("shape", [(1, 1), (9, 1), (2,)])
def test_every_trajectory_has_a_row(shape):
    with pytest.raises(ValueError, match="a row for each of 2 trajectories"):
        nesting_of(FRAME).cell_means(np.zeros(shape))


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        ([], [], "no cell"),
        ([(0, 0)], [], "an array each"),
        ([(0, 0), (0, 1)], [np.zeros(1), np.zeros(2)], "all of one length"),
        ([(0, 0), (0, 0)], [np.zeros(1), np.ones(1)], "twice"),
    ],
)
def test_cells_are_averaged_once_each(keys, values, message):
    with pytest.raises(ValueError, match=message):
        averages_of_cells(keys, values)


@pytest.mark.parametrize("points", [0, -1, 1.5])
def test_a_grid_has_a_point_or_more(points):
    cells = cell_frontiers(CURVES)
    for call in (
        lambda: rewards_on_grid(cells[0].states[0], points),
        lambda: average_frontiers(cells, points),
        lambda: average_savings(cells, points),
    ):
        with pytest.raises(ValueError, match="must be positive"):
            call()


@pytest.mark.parametrize("average", [average_frontiers, average_endpoints, average_savings])
def test_an_average_is_of_cells(average):
    with pytest.raises(ValueError, match="no cell"):
        average(())


def test_a_table_is_for_the_probes_of_the_curves():
    with pytest.raises(ValueError, match="for 2 probes at a position, and the curves have 4"):
        expected_choice(CURVES, kept_share_table(2, 1))
    for table, most in ((kept_share_table, 4), (held_out_table, 3)):
        for m in (1.5, "x", None, True, 0, most + 1):
            with pytest.raises(ValueError, match=f"m must be in 1..{most}, and an integer"):
                table(4, m)


@pytest.mark.parametrize("changed", [{"steps": 1.5}, {"splits": 0}, {"seed": -1}])
def test_cross_fitting_says_which_number_is_wrong(changed):
    with pytest.raises(ValueError, match=f"{next(iter(changed))} must be"):
        cross_fitted_frontier(CURVES, "routing", **changed)


def test_cross_fitting_needs_trajectories():
    with pytest.raises(ValueError, match="no trajectory"):
        cross_fitted_frontier(EMPTY, "routing")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"models": ()}, "at least one model"),
        ({"benchmarks": ()}, "at least one model and one benchmark"),
        ({"trajectories": 0}, "trajectories must be positive"),
        ({"step_tokens": 0}, "step_tokens must be positive"),
        ({"thinking_limit": -1}, "thinking_limit must be positive"),
        ({"wander": float("nan")}, "wander must be"),
        ({"width": 0.0}, "width must be"),
    ],
)
def test_a_population_can_be_drawn_from(changed, message):
    with pytest.raises(ValueError, match=message):
        replace(paper_population(), **changed)
