"""Thinning against full enumeration, against simulation, and against its laws."""

import doctest
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.analysis import earliest_maximum, thinning
from evaluator.analysis.nesting import AVERAGE
from evaluator.analysis.overthinking import per_trajectory, summarise
from evaluator.analysis.thinning import (
    THINNED,
    probe_sensitivity,
    thin_probes,
    thin_trajectories,
    trajectory_sensitivity,
)
from stp.curves import Curves


def one_curve(tokens, correct, probes):
    return Curves(
        tokens=tokens,
        correct=correct,
        trajectory_offsets=[0, len(tokens)],
        question=[0],
        probes=probes,
    )


def enumerate_subsets(tokens, correct, probes, m):
    """Average over every choice of m labelled probes at every position, one by one."""
    labels = [[1] * c + [0] * (probes - c) for c in correct]
    full, reference = tokens[-1], correct.index(max(correct))
    subsets = [list(itertools.combinations(row, m)) for row in labels]
    ratio = degradation = keep = 0.0
    count = 0
    for choice in itertools.product(*subsets):
        x = [sum(kept) for kept in choice]
        k = x.index(max(x))
        if full > 0:
            ratio += (full - tokens[k]) / full
            degradation += (x[k] - x[-1]) / m
        keep += k == reference
        count += 1
    return np.array([ratio, degradation, keep]) / count


@st.composite
def small_curves(draw):
    probes = draw(st.integers(1, 4))
    positions = draw(st.integers(1, 4))
    steps = draw(st.lists(st.integers(0, 9), min_size=positions - 1, max_size=positions - 1))
    tokens = [0, *np.cumsum(steps).tolist()]
    correct = [draw(st.integers(0, probes)) for _ in range(positions)]
    return tokens, correct, probes, draw(st.integers(1, probes))


@given(small_curves())
@settings(max_examples=80)
def test_thinning_equals_full_enumeration(case):
    tokens, correct, probes, m = case
    found = thin_probes(one_curve(tokens, correct, probes), m)
    assert np.abs(found[list(THINNED)].to_numpy()[0] - enumerate_subsets(*case)).max() < 1e-12


def test_thinning_equals_enumeration_at_sixteen_probes():
    # C(16, 4)^3 choices are too many; counts of 4 kept at 3 positions are not.
    tokens, correct, m = [0, 7, 19], [9, 13, 12], 4
    table = earliest_maximum.kept_share_table(16, m).mass
    expected = np.zeros(3)
    for x in itertools.product(range(m + 1), repeat=3):
        weight = np.prod([table[c, v] for c, v in zip(correct, x, strict=True)])
        k = x.index(max(x))
        expected += weight * np.array([(19 - tokens[k]) / 19, (x[k] - x[-1]) / m, k == 1])
    found = thin_probes(one_curve(tokens, correct, 16), m)[list(THINNED)].to_numpy()[0]
    assert np.abs(found - expected).max() < 1e-12


@pytest.mark.parametrize("m", [4, 8, 12])
def test_thinning_equals_simulation_on_a_long_curve(m):
    rng = np.random.default_rng(3)
    positions, draws = 300, 20_000
    tokens = np.concatenate([[0], np.cumsum(rng.integers(1, 500, positions - 1))])
    correct = rng.binomial(16, 0.1 + 0.5 * np.sin(np.linspace(0, 3, positions)))
    kept = rng.hypergeometric(correct, 16 - correct, m, size=(draws, positions))
    k = kept.argmax(axis=1)
    ratio = (tokens[-1] - tokens[k]) / tokens[-1]
    degradation = (kept.max(axis=1) - kept[:, -1]) / m
    found = thin_probes(one_curve(tokens, correct, 16), m).iloc[0]
    for name, sample in (
        ("overthinking_ratio", ratio),
        ("accuracy_degradation", degradation),
        ("keep_probability", k == correct.argmax()),
    ):
        error = abs(found[name] - sample.mean())
        assert error < 4.5 * max(sample.std(), 1e-3) / np.sqrt(draws), name


def made_curves(seed, models=2, questions=(3, 2), samples=4, probes=16):
    rng = np.random.default_rng(seed)
    total = sum(questions)
    trajectories = models * total * samples
    lengths = rng.integers(1, 12, trajectories)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = rng.integers(0, 40, offsets[-1])
    tokens[offsets[:-1]] = 0
    summed = np.cumsum(tokens)
    question = np.tile(np.repeat(np.arange(total), samples), models)
    return Curves(
        tokens=summed - np.repeat(summed[offsets[:-1]], lengths),
        correct=rng.integers(0, probes + 1, offsets[-1]),
        trajectory_offsets=offsets,
        question=question,
        probes=probes,
        benchmark=np.repeat(np.arange(len(questions)), questions)[question],
        model=np.repeat(np.arange(models), total * samples),
    )


@given(st.integers(0, 10_000), st.integers(1, 16))
@settings(max_examples=30)
def test_all_probes_kept_is_the_measurement_itself(seed, probes):
    curves = made_curves(seed, probes=probes)
    full, measured = thin_probes(curves, probes), per_trajectory(curves)
    for name in ("overthinking_ratio", "accuracy_degradation"):
        assert np.allclose(full[name], measured[name], rtol=0, atol=1e-13)
    assert (full["keep_probability"] == 1).all()


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_degradation_falls_with_the_number_of_probes(seed):
    curves = made_curves(seed)
    values = [thin_probes(curves, m)["accuracy_degradation"].to_numpy() for m in range(1, 17)]
    for fewer, more in itertools.pairwise(values):
        assert (fewer >= more - 1e-12).all()


def test_flat_and_empty_curves():
    zero = thin_probes(one_curve([0, 5, 9], [0, 0, 0], 16), 4).iloc[0]
    ones = thin_probes(one_curve([0, 5, 9], [16, 16, 16], 16), 4).iloc[0]
    for flat in (zero, ones):
        assert flat[list(THINNED)].tolist() == [1.0, 0.0, 1.0]
    # Flat at 8 of 16 does not stay flat when probes are left out.
    assert thin_probes(one_curve([0, 5, 9], [8, 8, 8], 16), 4).iloc[0]["overthinking_ratio"] < 1
    empty = thin_probes(one_curve([0], [7], 16), 4).iloc[0]
    assert empty[list(THINNED)].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("m", [0, 17, -1])
def test_a_number_of_probes_out_of_range_is_refused(m):
    with pytest.raises(ValueError, match=r"m must be in 1\.\.16"):
        thin_probes(one_curve([0], [7], 16), m)


def test_sensitivity_averages_as_the_paper_does():
    curves = made_curves(5)
    table = probe_sensitivity(curves, (4, 16))
    assert table.index.names == ["probes", "model", "benchmark"]
    frame = thin_probes(curves, 4)
    cells = frame.groupby(["model", "benchmark", "question"])[list(THINNED)].mean()
    cells = cells.groupby(["model", "benchmark"]).mean()
    assert np.allclose(table.loc[4, 1, 0], cells.loc[1, 0])
    overall = cells.groupby("model").mean().mean()
    assert np.allclose(table.loc[4, AVERAGE, AVERAGE], overall)
    summary = summarise(per_trajectory(curves))
    for name in ("overthinking_ratio", "accuracy_degradation"):
        assert table.loc[(16, AVERAGE, AVERAGE), name] == pytest.approx(summary.overall[name])
        assert table.loc[(16, AVERAGE, 1), name] == pytest.approx(summary.benchmarks.loc[1, name])


def test_thinned_trajectories_with_all_kept_have_no_spread():
    curves = made_curves(1)
    draws = thin_trajectories(curves, 4, draws=50)
    ranges = draws.ranges()
    expected = summarise(per_trajectory(curves)).overall["overthinking_ratio"]
    row = ranges.loc["overthinking_ratio", AVERAGE, AVERAGE]
    assert np.allclose(row, expected)
    assert np.allclose(draws.draws, draws.draws[0])


def test_thinned_trajectories_have_the_variance_of_sampling_without_replacement():
    rng = np.random.default_rng(0)
    sizes, kept, draws = np.array([16, 16, 9, 5]), 3, 20_000
    question = np.repeat(np.arange(4), sizes)
    value = rng.normal(size=question.size)
    frame = pd.DataFrame(
        {
            "model": 0,
            "benchmark": 0,
            "question": question,
            "sample": np.concatenate([np.arange(n) for n in sizes]),
            "value": value,
        }
    )
    found = thin_trajectories(frame, kept, draws=draws, statistics=["value"]).draws[:, 0, 0, 0]
    groups = [value[question == q] for q in range(4)]
    mean = np.mean([group.mean() for group in groups])
    variance = (
        np.sum([(1 - kept / g.size) * g.var(ddof=1) / kept for g in groups]) / len(groups) ** 2
    )
    assert found.mean() == pytest.approx(mean, abs=4.5 * np.sqrt(variance / draws))
    assert found.var() == pytest.approx(variance, rel=0.06)


def test_ranges_narrow_with_the_number_of_trajectories():
    table = trajectory_sensitivity(made_curves(4, samples=8), (2, 4, 8), draws=300)
    overall = table.xs((AVERAGE, AVERAGE), level=("model", "benchmark"))
    width = (overall["high"] - overall["low"]).unstack("statistic")
    assert (width.loc[2] > width.loc[4]).all()
    assert (width.loc[4] > 0).all()
    assert np.allclose(width.loc[8], 0)


def test_every_subset_is_equally_likely():
    frame = pd.DataFrame(
        {
            "model": 0,
            "benchmark": 0,
            "question": 0,
            "sample": range(5),
            "value": 2.0 ** np.arange(5),
        }
    )
    draws = thin_trajectories(frame, 2, draws=20_000, statistics=["value"]).draws[:, 0, 0, 0]
    sums, counts = np.unique(np.round(2 * draws).astype(int), return_counts=True)
    assert sums.size == 10
    assert np.abs(counts - 2000).max() < 4.5 * np.sqrt(2000 * 0.9)


def test_thinned_draws_are_repeatable_and_depend_on_the_seed():
    curves = made_curves(2)
    first = thin_trajectories(curves, 2, draws=30, seed=1).draws
    assert (first == thin_trajectories(curves, 2, draws=30, seed=1).draws).all()
    assert (first[:10] == thin_trajectories(curves, 2, draws=10, seed=1).draws).all()
    assert (first != thin_trajectories(curves, 2, draws=30, seed=2).draws).any()


def test_thinning_of_trajectories_refuses_what_cannot_be():
    curves = made_curves(2)
    with pytest.raises(ValueError, match="at least 1"):
        thin_trajectories(curves, 0)
    with pytest.raises(ValueError, match="NaN"):
        thin_trajectories(curves, 2, draws=2, statistics=["original_accuracy"])


def test_examples_in_the_documentation():
    for module in (thinning, earliest_maximum):
        assert doctest.testmod(module).failed == 0
