"""Synthetic worlds: their truth, their dimensions, and the way through a campaign's folder."""

from dataclasses import replace

import numpy as np
import pytest

from data.errors import MisuseError
from evaluator.synthetic import make_world, paper_population
from evaluator.synthetic_store import write_campaign
from stp.campaign.curves import load_curves
from stp.campaign.status import campaign_status

SMALL = paper_population().sized(models=2, scale=0.03)


def test_the_population_has_the_dimensions_of_the_paper():
    population = paper_population()
    assert len(population.models) == 6
    assert [benchmark.questions for benchmark in population.benchmarks] == [90, 500, 198, 175]
    assert (population.trajectories, population.probes, population.step_tokens) == (16, 16, 256)
    world = make_world(population.sized(scale=0.1), 0)
    tokens = world.curves.full_tokens_s.mean()
    assert 7_800 < tokens < 8_800
    # At full size 3 million positions are 32.5 a trajectory.
    assert 31 < world.curves.positions / world.curves.trajectories < 36


def test_the_counts_have_the_accuracy_that_is_said():
    world = make_world(SMALL, 1)
    curves = world.curves
    assert world.accuracy.min() == 0 and world.accuracy.max() == 1
    assert (curves.correct[world.accuracy == 0] == 0).all()
    assert (curves.correct[world.accuracy == 1] == 16).all()
    noise = (curves.correct / 16 - world.accuracy) / np.sqrt(
        np.maximum(world.accuracy * (1 - world.accuracy), 1e-9) / 16
    )
    between = (world.accuracy > 0) & (world.accuracy < 1)
    assert abs(noise[between].mean()) < 4.5 / np.sqrt(between.sum())
    assert noise[between].std() == pytest.approx(1, rel=0.03)


def test_steps_are_those_of_the_target_length():
    world = make_world(replace(SMALL, thinking_limit=9_000), 1)
    full = world.curves.full_tokens_s
    steps = np.diff(world.curves.trajectory_offsets) - 1
    assert (steps == np.maximum(1, (2 * full + 256) // 512)).all()
    assert (full[world.cut] == 9_000).all() and (full[~world.cut] <= 9_000).all()
    assert world.cut.any()
    assert (world.curves.original_correct[world.cut] == 0).all()


def test_a_world_depends_on_its_seed_alone():
    one, again, other = make_world(SMALL, 5), make_world(SMALL, 5), make_world(SMALL, 6)
    assert (one.curves.correct == again.curves.correct).all()
    assert one.curves.positions != other.curves.positions
    # A cell does not depend on how many models there are.
    fewer = make_world(replace(SMALL, models=SMALL.models[:1]), 5)
    assert (fewer.curves.correct == one.curves.correct[: fewer.curves.positions]).all()


def test_curves_without_wander_and_width_are_flat_pieces():
    world = make_world(replace(SMALL, wander=0.0, width=1e-10), 3)
    starts = world.curves.trajectory_offsets[:-1]
    changes = np.abs(np.diff(world.accuracy)) > 1e-9
    changes[starts[1:] - 1] = False
    per_trajectory = np.add.reduceat(np.append(changes, False).astype(int), starts)
    assert per_trajectory.max() == 2


def test_a_written_world_is_a_complete_campaign_with_the_same_curves(tmp_path):
    world = make_world(SMALL, 1)
    folder = tmp_path / "campaign"
    seen = []
    write_campaign(world, SMALL, folder, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == len(seen)
    assert campaign_status(folder).finished
    found = load_curves(folder)
    for name in (
        "tokens",
        "correct",
        "trajectory_offsets",
        "question",
        "benchmark",
        "model",
        "sample",
        "original_correct",
    ):
        assert np.array_equal(getattr(found, name), getattr(world.curves, name)), name
    assert found.question_names == world.curves.question_names
    assert found.benchmark_names == world.curves.benchmark_names
    assert found.model_names == world.curves.model_names
    with pytest.raises(MisuseError, match="already"):
        write_campaign(world, SMALL, folder)
