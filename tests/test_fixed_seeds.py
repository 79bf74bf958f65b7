"""Results under fixed seeds do not move: a change of the code must not change what is found.

Every value is reduced to a checksum. Integers are taken as they are; floats with ten significant
digits, so that another processor's last digit is no difference. If a change is meant to move a
result, say so in the changelog and write the new checksum here.
"""

import hashlib

import numpy as np
import pandas as pd
import pytest

import oracle
from evaluator.analysis import crossfit, crossfit_frontier, thinning
from evaluator.analysis.bootstrap import bootstrap_curves
from evaluator.analysis.overthinking import per_trajectory
from evaluator.optimal.bridging import stop_without_loss
from evaluator.simulation.worlds import make_world, paper_population
from evaluator.thinkbench.significance import bootstrap_scores
from stp.segmentation import segment_many
from tests.evaluator.synthetic import make_curves

EXPECTED = {
    "segmentation": "f965d2e114cd5e28",
    "exact_frontiers": "0c33d2b60c499c72",
    "frontier_bootstrap": "cbb311ea8061192d",
    "curves_bootstrap": "94bfcc6d927fd131",
    "trajectories": "b733c7237c469941",
    "probe_thinning": "d04f35667a966946",
    "trajectory_thinning": "3423179d63b9eb3b",
    "score_bootstrap": "062416747b8e354b",
    "cross_fitting": "37f81d6108d76865",
}


def checksum(*values):
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, pd.DataFrame):
            value = value.reset_index()
            digest.update(checksum(*(value[name].to_numpy() for name in value)).encode())
            continue
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = np.array([f"{number:.9e}" for number in array.ravel().tolist()])
        elif array.dtype.kind in "iub":
            array = array.astype(np.int64)
        digest.update("\n".join(map(str, array.ravel().tolist())).encode())
    return digest.hexdigest()[:16]


def measured():
    return make_curves(models=2, benchmarks=3, questions=7, trajectories=4, probes=8, seed=5)


def world():
    return make_world(paper_population().sized(models=2, scale=0.02), 20260721)


def segmentation():
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 900, 200)
    ids = rng.integers(0, 40, lengths.sum())
    return segment_many(ids, np.append(0, np.cumsum(lengths)), {3, 17}, step_tokens=24)


def exact_frontiers():
    for curves in (measured(), world().curves):
        for _, _, cell in curves.cells():
            for strategy in oracle.STRATEGIES:
                frontier = oracle.exact_frontier(cell, strategy)
                yield from (frontier.cost, frontier.reward)
                state = int(frontier.state_within([frontier.full_cost // 2])[0])
                choice = frontier.actions.choice[frontier.actions_at(state)]
                yield oracle.stopping_positions(cell, strategy, choice)


def frontier_bootstrap():
    drawn = oracle.bootstrap_frontiers(measured(), replicates=30)
    for strategy in oracle.STRATEGIES:
        yield drawn.macro_accuracy(strategy)
    yield oracle.percentile_interval(drawn.macro_accuracy("early_exit"))


def curves_bootstrap():
    for curves in (measured(), world().curves):
        drawn = bootstrap_curves(curves, replicates=120)
        yield from (drawn.replicates, drawn.intervals())
        yield drawn.model_differences("overthinking_ratio")


def trajectories():
    for curves in (measured(), world().curves):
        yield from (per_trajectory(curves), stop_without_loss(curves))


def probe_thinning():
    yield from (thinning.thin_probes(measured(), 3), thinning.probe_sensitivity(measured(), (2, 8)))


def trajectory_thinning():
    yield thinning.thin_trajectories(measured(), 2, draws=50).draws
    yield thinning.trajectory_sensitivity(measured(), (1, 3), draws=40)


def score_bootstrap():
    rng = np.random.default_rng(11)
    outcomes = {
        model: {
            task: (rng.integers(0, 2, 12).astype(float), rng.integers(5, 90, 12).astype(float))
            for task in ("sum", "sorting")
        }
        for model in "abc"
    }
    for paired in (True, False):
        drawn = bootstrap_scores(outcomes, paired=paired, replicates=60)
        yield from (drawn.replicates, drawn.interval("a"), drawn.compare("a", "b"))


def cross_fitting():
    yield crossfit.bias_aware(measured())
    yield crossfit.bias_aware(world().curves)
    for strategy in oracle.STRATEGIES:
        found = crossfit_frontier.cross_fitted_frontier(measured(), strategy, splits=2)
        yield from (found.accuracy, found.chosen_accuracy, found.measured_accuracy)


WHAT = [
    segmentation,
    exact_frontiers,
    frontier_bootstrap,
    curves_bootstrap,
    trajectories,
    probe_thinning,
    trajectory_thinning,
    score_bootstrap,
    cross_fitting,
]


@pytest.mark.parametrize("what", WHAT, ids=lambda what: what.__name__)
def test_results_under_a_fixed_seed_are_what_they_were(what):
    assert checksum(*what()) == EXPECTED[what.__name__]
