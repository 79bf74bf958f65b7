"""The bootstrap against a slow twin that draws and averages one number at a time."""

import doctest

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.analysis import nesting
from evaluator.analysis.bootstrap import (
    STATISTICS,
    Quantity,
    bootstrap_curves,
    bootstrap_values,
)
from evaluator.analysis.nesting import AVERAGE
from evaluator.analysis.overthinking import per_trajectory, summarise
from oracle.bootstrap import bootstrap_frontiers
from oracle.resampling import raw_numbers

from .test_thinning import made_curves


def naive_bootstrap(frame, column, replicates, seed):
    """Return {(replicate, model, benchmark): mean} by walking through the frame's rows."""
    models, benchmarks = sorted(set(frame["model"])), sorted(set(frame["benchmark"]))
    rows = {}
    for row in frame.sort_values("sample").to_dict("records"):
        key = row["model"], row["benchmark"], row["question"]
        rows.setdefault(key, []).append(row[column])
    questions = {b: sorted({key[2] for key in rows if key[1] == b}) for b in benchmarks}
    result = {}
    for r in range(replicates):
        for b in benchmarks:
            asked = questions[b]
            n = len(asked)
            drawn = [asked[int(x) % n] for x in raw_numbers(seed, r, b, 0, n)]
            for m in models:
                means = []
                stream = iter(raw_numbers(seed, r, b, m + 1, 1000).tolist())
                for question in drawn:
                    values = rows.get((m, b, question), [])
                    picked = [values[next(stream) % len(values)] for _ in values]
                    picked = [value for value in picked if not np.isnan(value)]
                    if picked:
                        means.append(sum(picked) / len(picked))
                result[r, m, b] = sum(means) / len(means) if means else np.nan
    return result


def made_frame(seed, *, missing=0.0, unknown=0.0):
    rng = np.random.default_rng(seed)
    keys = [
        (m, b, 10 * b + q, s)
        for m in (0, 3)
        for b, questions in ((1, 4), (2, 5))
        for q in range(questions)
        for s in range(int(rng.integers(1, 6)))
        if rng.random() >= missing
    ]
    frame = pd.DataFrame(keys, columns=["model", "benchmark", "question", "sample"])
    frame["x"] = rng.normal(size=len(frame))
    frame["y"] = np.where(rng.random(len(frame)) < unknown, np.nan, rng.random(len(frame)))
    return frame


@given(
    st.integers(0, 10_000),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.4]),
    st.sampled_from([0, 20260721, 2**40 + 7]),
)
@settings(max_examples=15)
def test_bootstrap_equals_the_naive_twin(seed, missing, unknown, stream):
    frame = made_frame(seed, missing=missing, unknown=unknown)
    if frame.groupby(["model", "benchmark"]).ngroups < 4:
        return
    found = bootstrap_values(frame, ["x", "y"], replicates=5, seed=stream)
    for column in ("x", "y"):
        expected = naive_bootstrap(frame, column, 5, stream)
        for (r, m, b), value in expected.items():
            quantity = Quantity(statistic=column, model=m, benchmark=b)
            assert found.replicates_of(quantity)[r] == pytest.approx(value, abs=1e-12, nan_ok=True)


def test_replicates_are_the_resamples_of_the_frontiers():
    curves = made_curves(8)
    found = bootstrap_curves(curves, statistics=["full_accuracy", "full_tokens"], replicates=30)
    frontiers = bootstrap_frontiers(curves, strategies=["routing"], replicates=30)
    for place, (m, b) in enumerate(zip(frontiers.model, frontiers.benchmark, strict=True)):
        accuracy = found.replicates_of(Quantity(statistic="full_accuracy", model=m, benchmark=b))
        full = frontiers.full_reward[:, place] / frontiers.probes[:, place]
        assert np.allclose(accuracy, full)
        tokens = found.replicates_of(Quantity(statistic="full_tokens", model=m, benchmark=b))
        trajectories = frontiers.probes[:, place] / curves.probes
        assert np.allclose(tokens, frontiers.full_cost[:, place] / trajectories)


def test_averages_are_made_within_each_replicate():
    found = bootstrap_values(made_frame(0), ["x"], replicates=20)
    cells = found.replicates[:, :2, :2, 0]
    overall = found.replicates_of(Quantity(statistic="x"))
    assert np.allclose(overall, cells.mean(axis=2).mean(axis=1))
    model = found.replicates_of(Quantity(statistic="x", model=3))
    assert np.allclose(model, cells[:, 1].mean(axis=1))
    benchmark = found.replicates_of(Quantity(statistic="x", benchmark=1))
    assert np.allclose(benchmark, cells[:, :, 0].mean(axis=1))


def test_the_number_of_workers_and_the_order_of_rows_do_not_matter():
    frame = made_frame(4, unknown=0.2)
    shuffled = frame.sample(frac=1, random_state=1)
    one = bootstrap_values(frame, ["x", "y"], replicates=333, workers=1)
    for workers in (2, 5):
        other = bootstrap_values(shuffled, ["x", "y"], replicates=333, workers=workers)
        assert one.replicates.tobytes() == other.replicates.tobytes()
    longer = bootstrap_values(frame, ["x", "y"], replicates=400)
    assert (longer.replicates[:333] == one.replicates).all()


def test_estimates_are_those_of_the_summary():
    curves = made_curves(7)
    found = bootstrap_curves(curves, replicates=10, statistics=STATISTICS[:2])
    summary = summarise(per_trajectory(curves))
    for name in STATISTICS[:2]:
        estimate = found.interval(Quantity(statistic=name)).estimate
        assert estimate == pytest.approx(summary.overall[name])
        cell = found.interval(Quantity(statistic=name, model=1, benchmark=0)).estimate
        assert cell == pytest.approx(summary.cells.loc[(1, 0), name])


def test_unknown_original_answers_leave_no_interval():
    found = bootstrap_curves(made_curves(7), replicates=10)
    assert np.isnan(found.interval(Quantity(statistic="original_accuracy")).low)
    assert "original_accuracy" not in found.intervals().index.get_level_values("statistic")


def test_a_replicate_that_drew_nothing_known_is_left_out_with_its_averages():
    frame = pd.DataFrame(
        [(0, 0, 0, 0, 1.0), (0, 0, 1, 0, np.nan), (0, 1, 2, 0, 5.0), (0, 1, 3, 0, 7.0)],
        columns=["model", "benchmark", "question", "sample", "x"],
    )
    found = bootstrap_values(frame, ["x"], replicates=400)
    cell = found.replicates_of(Quantity(statistic="x", model=0, benchmark=0))
    lost = np.isnan(cell)
    assert 0.15 < lost.mean() < 0.35
    average = found.replicates_of(Quantity(statistic="x"))
    assert (np.isnan(average) == lost).all()
    interval = found.interval(Quantity(statistic="x", model=0, benchmark=0))
    assert (interval.estimate, interval.low, interval.high) == (1, 1, 1)
    row = found.intervals().loc["x", AVERAGE, AVERAGE]
    assert row["standard_error"] == pytest.approx(average[~lost].std(ddof=1))
    assert row["low"] == pytest.approx(np.quantile(average[~lost], 0.025))


def test_intervals_are_percentiles_of_the_replicates():
    found = bootstrap_values(made_frame(2), ["x", "y"], replicates=500)
    quantity = Quantity(statistic="y", model=0, benchmark=2)
    low, high = np.percentile(found.replicates_of(quantity), [2.5, 97.5])
    interval = found.interval(quantity)
    assert (interval.low, interval.high) == (pytest.approx(low), pytest.approx(high))
    row = found.intervals().loc["y", 0, 2]
    assert np.allclose(row[["low", "high"]], [low, high])
    narrow = found.interval(quantity, level=0.5)
    assert low < narrow.low < narrow.high < high


def test_differences_are_paired():
    frame = made_frame(3)
    frame["z"] = frame["x"] - 0.25
    found = bootstrap_values(frame, ["x", "z"], replicates=200)
    shift = found.difference(Quantity(statistic="x"), Quantity(statistic="z"))
    assert [shift.estimate, shift.low, shift.high] == pytest.approx([0.25] * 3)
    same = Quantity(statistic="x", model=0)
    assert found.difference(same, same).high == 0
    table = found.model_differences("x")
    one = found.difference(
        Quantity(statistic="x", model=0, benchmark=1), Quantity(statistic="x", model=3, benchmark=1)
    )
    assert table.loc[0, 3, 1].tolist() == [one.estimate, one.low, one.high]
    assert table.loc[0, 3, AVERAGE].notna().all()


def test_models_share_the_drawn_questions():
    """With values that depend on the question alone, two models differ by nothing."""
    frame = pd.DataFrame(
        [(m, 0, q, s) for m in (0, 1) for q in range(30) for s in range(4)],
        columns=["model", "benchmark", "question", "sample"],
    )
    frame["x"] = frame["question"] ** 2.0
    found = bootstrap_values(frame, ["x"], replicates=100)
    pair = (Quantity(statistic="x", model=0), Quantity(statistic="x", model=1))
    difference = found.difference(*pair)
    assert (difference.low, difference.high) == (0, 0)
    assert found.interval(pair[0]).high > found.interval(pair[0]).low


def test_the_spread_is_that_of_two_stages():
    """Var = (between + within / R) / Q + within (R - 1) / R / (R Q), all variances with 1 / N."""
    rng = np.random.default_rng(9)
    questions, samples = 400, 8
    frame = pd.DataFrame(
        [(0, 0, q, s) for q in range(questions) for s in range(samples)],
        columns=["model", "benchmark", "question", "sample"],
    )
    frame["x"] = np.repeat(rng.normal(size=questions), samples) + rng.normal(size=len(frame))
    by_question = frame.groupby("question")["x"]
    variance = (
        by_question.mean().var(ddof=0) + by_question.var(ddof=0).mean() / samples
    ) / questions
    found = bootstrap_values(frame, ["x"], replicates=4000)
    spread = found.replicates_of(Quantity(statistic="x")).var()
    assert spread == pytest.approx(variance, rel=0.12)


def test_progress_is_told_until_the_end():
    seen = []
    bootstrap_values(
        made_frame(0),
        ["x"],
        replicates=120,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (120, 120)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_misuse_is_refused():
    frame = made_frame(0)
    with pytest.raises(ValueError, match="replicates"):
        bootstrap_values(frame, ["x"], replicates=0)
    with pytest.raises(ValueError, match="seed"):
        bootstrap_values(frame, ["x"], seed=-1)
    with pytest.raises(ValueError, match="workers"):
        bootstrap_values(frame, ["x"], workers=0)
    with pytest.raises(ValueError, match="no trajectory"):
        bootstrap_values(frame.iloc[:0], ["x"])
    with pytest.raises(ValueError, match="more than one benchmark"):
        bootstrap_values(frame.assign(question=1), ["x"])
    found = bootstrap_values(frame, ["x"], replicates=2)
    with pytest.raises(KeyError, match="nothing"):
        found.interval(Quantity(statistic="nothing"))
    with pytest.raises(ValueError, match="level"):
        found.interval(Quantity(statistic="x"), level=1.0)


def test_examples_in_the_documentation():
    assert doctest.testmod(nesting).failed == 0
