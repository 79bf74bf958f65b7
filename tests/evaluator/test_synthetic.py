"""Synthetic worlds: their truth, their dimensions, and the way through a campaign's folder."""

import runpy
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from data.errors import MisuseError
from evaluator.analysis.overthinking import per_trajectory, summarise
from evaluator.simulation.estimators import (
    bias_table,
    coverage,
    true_overthinking,
    world_estimates,
    world_intervals,
)
from evaluator.simulation.store import write_campaign
from evaluator.simulation.worlds import make_world, paper_population
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


def test_the_truth_is_read_off_the_accuracies():
    world = make_world(SMALL, 1)
    curves, offsets = world.curves, world.curves.trajectory_offsets
    for tolerance in (0.0, 0.05):
        found = true_overthinking(world, tolerance)
        for s in range(0, curves.trajectories, 41):
            accuracy = world.accuracy[offsets[s] : offsets[s + 1]]
            tokens = curves.tokens[offsets[s] : offsets[s + 1]]
            k = next(k for k, p in enumerate(accuracy) if p >= accuracy.max() - tolerance)
            ratio = (tokens[-1] - tokens[k]) / tokens[-1]
            assert found.loc[s, "overthinking_ratio"] == pytest.approx(ratio)
            degradation = accuracy.max() - accuracy[-1]
            assert found.loc[s, "accuracy_degradation"] == pytest.approx(degradation)


def test_the_bias_table_has_no_error_for_the_truth():
    table = bias_table(SMALL, 1)
    errors = ["overthinking_ratio_error", "accuracy_degradation_error"]
    assert (table.loc["truth", errors] == 0).all()
    assert (table.loc["measured", errors] > 0).all()
    measured = summarise(per_trajectory(make_world(SMALL, 1).curves)).overall
    assert table.loc["measured", "overthinking_ratio"] == pytest.approx(
        measured["overthinking_ratio"]
    )


def test_intervals_of_a_world_surround_its_estimates():
    found = world_intervals(SMALL, 3, replicates=50)
    assert np.allclose(found.estimate, world_estimates(SMALL, 3))
    assert (found.low <= found.estimate).all() and (found.estimate <= found.high).all()
    held, share = coverage(
        np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [2.0], [3.0]]), np.array([1.5])
    )
    assert (held.tolist(), share.tolist()) == ([1], [1 / 3])


SCRIPT = Path(__file__).parents[2] / "scripts" / "bootstrap_ci.py"


def test_the_interval_script_reads_a_table(tmp_path):
    frame = pd.DataFrame(
        [
            (m, b, f"{b}-{q}", s, (q + s) / 10, q / 10)
            for m in ("one", "two")
            for b in ("x", "y")
            for q in range(4)
            for s in range(3)
        ],
        columns=["model", "benchmark", "question", "sample", "mine", "theirs"],
    )
    path = tmp_path / "values.csv"
    frame.to_csv(path, index=False)
    asked = ["--difference", "mine-theirs", "--difference", "one-two"]
    done = subprocess.run(
        [sys.executable, SCRIPT, path, *asked, "--replicates", "300", "--csv"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(StringIO(done.stdout)).set_index(["statistic", "model", "benchmark"])
    # Three columns (a difference among them) of 3 x 3 cells and averages, two of models apart.
    assert len(table) == 3 * 3 * 3 + 2 * 3
    assert table.loc[("mine", "one", "x"), "estimate"] == pytest.approx(0.25)
    difference = table.loc[("mine - theirs", "average", "average")]
    assert difference["estimate"] == pytest.approx(0.1)
    assert 0 <= difference["low"] < 0.1 < difference["high"] <= 0.2
    # Equal values, the same questions: only the trajectories' draws differ.
    apart = table.loc[("mine", "one - two", "average")]
    assert apart["estimate"] == 0
    assert -0.1 < apart["low"] < 0 < apart["high"] < 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "cannot be read"),
        (["VALUES", "--column", "nothing"], "no column of numbers named 'nothing'"),
        (["VALUES", "--difference", "a-b"], "is not A-B"),
        (["VALUES", "VALUES"], "one table"),
        (["nowhere"], "no campaign here"),
    ],
)
def test_the_interval_script_says_what_is_wrong(tmp_path, monkeypatch, capsys, arguments, message):
    path = tmp_path / "values.csv"
    path.write_text("question,x\n1,0.5\n2,0.25\n")
    words = [str(path) if word == "VALUES" else word for word in arguments]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
