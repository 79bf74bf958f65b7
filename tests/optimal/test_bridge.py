"""The bridge: areas of stopping rules against a slow twin, and the frontier beside them."""

import itertools

import numpy as np
import pytest

from data.errors import MisuseError
from evaluator.optimal.bridging import (
    bridge,
    campaign_rows,
    per_stop,
    sides_of,
    stop_ideal,
    stop_without_loss,
)
from evaluator.optimal.scores import MEASURES, score
from stp.curves import Curves


def curves(seed, trajectories=12, questions=4, probes=4, most=900):
    generator = np.random.default_rng(seed)
    tokens, correct, offsets = [], [], [0]
    for _ in range(trajectories):
        steps = int(generator.integers(0, 7))
        tokens += [0, *np.sort(generator.integers(0, most, steps)).tolist()]
        correct += generator.integers(0, probes + 1, steps + 1).tolist()
        offsets.append(len(tokens))
    return Curves(
        tokens=tokens,
        correct=correct,
        trajectory_offsets=offsets,
        question=np.arange(trajectories) % questions,
        probes=probes,
        benchmark_names=("math500_level_1",),
        model_names=("m",),
    )


def walks(measured):
    bounds = measured.trajectory_offsets
    for start, end in itertools.pairwise(bounds):
        yield measured.tokens[start:end].tolist(), measured.correct[start:end].tolist()


@pytest.mark.parametrize("seed", range(6))
def test_stops_are_those_of_the_slow_twin(seed):
    measured = curves(seed, most=1500)
    ideal, safe = stop_ideal(measured), stop_without_loss(measured)
    for place, (tokens, correct) in enumerate(walks(measured)):
        areas = [c * max(0, 1000 - t) for t, c in zip(tokens, correct, strict=True)]
        assert ideal[place] == areas.index(max(areas))
        assert safe[place] == next(k for k, c in enumerate(correct) if c >= correct[-1])


@pytest.mark.parametrize("seed", range(4))
def test_no_stop_beats_the_ideal_one_and_losing_no_accuracy_loses_none(seed):
    measured = curves(seed)
    told = []
    (cell,) = bridge(measured, replicates=50, progress=lambda *far: told.append(far))
    assert told == [(0, 1)]
    full, none, safe, ideal = cell.rules
    assert ideal.auc_oaa >= max(full.auc_oaa, none.auc_oaa, safe.auc_oaa) - 1e-12
    assert safe.accuracy >= full.accuracy - 1e-12
    assert safe.auc_oaa >= full.auc_oaa - 1e-12
    assert none.auc_oaa == pytest.approx(none.accuracy)
    assert cell.lost_area == pytest.approx(full.accuracy - full.auc_oaa)
    assert cell.won_back_low <= cell.won_back <= cell.won_back_high + 1e-9
    # The area under each curve is its AUC_OAA.
    assert cell.full_curve.sum() / 1000 == pytest.approx(full.auc_oaa)
    assert cell.ideal_curve.sum() / 1000 == pytest.approx(ideal.auc_oaa)


def test_the_frontier_stands_beside_it():
    (cell,) = bridge(curves(1), replicates=10)
    assert cell.budgets[0] == 0
    assert cell.budgets[-1] == 1
    assert (np.diff(cell.frontier) >= 0).all()


def test_questions_weigh_the_same_however_many_trajectories_they_have():
    measured = curves(2).select([0, 4, 8, 1])
    frame = per_stop(measured, np.diff(measured.trajectory_offsets) - 1)
    (cell,) = bridge(measured, replicates=10)
    by_question = frame.groupby("question")["right"].mean()
    assert cell.rules[0].accuracy == pytest.approx(by_question.mean())


def test_a_campaign_alone_is_scored_by_its_rules():
    measured = curves(3, most=1400)
    rows = campaign_rows(measured, sides=sides_of(measured.benchmark_names))
    found = score(rows, replicates=10)
    (cell,) = bridge(measured, replicates=10)
    for place, (model, method) in enumerate(found.rows):
        rule = next(rule for rule in cell.rules if method == f"probed: {rule.rule}")
        assert model == "m"
        auc = found.values[place, MEASURES.index("auc_oaa")]
        assert auc == pytest.approx(rule.auc_oaa)


def test_nothing_lost_is_no_fraction():
    flat = Curves(tokens=[0], correct=[3], trajectory_offsets=[0, 1], question=[0], probes=4)
    (cell,) = bridge(flat, replicates=5)
    assert cell.lost_area == 0
    assert np.isnan(cell.won_back_fraction)


def test_sides_are_known_or_said():
    found = sides_of(["math500_level_2", "ut-maze", "demo"], ovt=["demo"])
    assert found["math500_level_2"] == ("ovt-math", "ovt")
    assert found["ut-maze"] == ("ut-reasoning", "ut")
    assert found["demo"] == ("ovt:demo", "ovt")
    with pytest.raises(MisuseError, match="--ovt demo or --ut demo"):
        sides_of(["demo"])


def test_the_paper_s_benchmarks_stay_in_its_subsets_where_their_side_is_said():
    names = ["math500_level_1", "aime2025", "hmmt_feb_2025"]
    found = sides_of(names, ovt=names[:1], ut=names[1:])
    assert found["math500_level_1"] == ("ovt-math", "ovt")
    assert found["aime2025"] == found["hmmt_feb_2025"] == ("ut-math", "ut")
    assert sides_of(names, ut=names[:1])["math500_level_1"] == ("ut:math500_level_1", "ut")


def test_sides_that_cannot_be_are_told_in_words_that_can_be_typed():
    with pytest.raises(MisuseError, match="--ovt 'my sums' or --ut 'my sums'"):
        sides_of(["my sums"])
    with pytest.raises(MisuseError, match="--ut MATH: no such benchmark; there are 'my sums'"):
        sides_of(["my sums"], ovt=["my sums"], ut=["MATH"])
    with pytest.raises(MisuseError, match="by --ovt and by --ut"):
        sides_of(["demo"], ovt=["demo"], ut=["demo"])


@pytest.mark.parametrize("t_max", [10**30, 10**9, 0, float("inf")])
def test_a_t_max_that_is_none_is_refused(t_max):
    measured = curves(1)
    sides = {"math500_level_1": ("ovt-math", "ovt")}
    for work in (
        lambda: bridge(measured, t_max=t_max),
        lambda: stop_ideal(measured, t_max),
        lambda: campaign_rows(measured, sides=sides, t_max=t_max),
        lambda: score(campaign_rows(measured, sides=sides), t_max=t_max, replicates=0),
    ):
        with pytest.raises(MisuseError, match="t_max must be"):
            work()
