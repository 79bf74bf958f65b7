"""Scores against a slow twin, and the bootstrap's laws."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from data.errors import MisuseError
from evaluator.optimal import f1_otb, scores
from evaluator.optimal.results import make_results
from evaluator.optimal.scores import MEASURES, over_models, score
from evaluator.optimal.tables import all_tables
from tests.optimal.made import graded


def mean(values):
    return math.fsum(values) / len(values)


def slow_measures(rows, model, method, t_max=1000):
    """Responses, then questions, then subsets, one by one."""
    mine = rows[(rows["model"] == model) & (rows["method"] == method)]

    def side_mean(side, value):
        subsets = []
        for subset in dict.fromkeys(mine[mine["side"] == side]["subset"]):
            questions = []
            part = mine[mine["subset"] == subset]
            for question in dict.fromkeys(part["question"]):
                responses = part[part["question"] == question].to_dict("records")
                questions.append(mean([value(r) for r in responses]))
            subsets.append(mean(questions))
        return mean(subsets)

    auc = side_mean("ovt", lambda r: r["right"] * max(0, t_max - r["thinking_tokens"]) / t_max)
    accuracy = side_mean("ut", lambda r: float(r["right"]))
    return {
        "f1": f1_otb(auc, accuracy),
        "ovt_accuracy": side_mean("ovt", lambda r: float(r["right"])),
        "ovt_thinking_tokens": side_mean("ovt", lambda r: float(r["thinking_tokens"])),
        "auc_oaa": auc,
        "ut_accuracy": accuracy,
        "ut_tokens": side_mean("ut", lambda r: float(r["output_tokens"])),
    }


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_slow_twin(seed, ragged, monkeypatch):
    rows = graded(seed, ragged=ragged)
    with monkeypatch.context() as patch:
        patch.setattr(scores, "bootstrap_values", None)  # Nothing is resampled.
        found = score(rows, replicates=0)
    assert found.replicates.shape[0] == 0
    for place, (model, method) in enumerate(found.rows):
        expected = slow_measures(rows, model, method)
        for column, name in enumerate(MEASURES):
            assert found.values[place, column] == pytest.approx(expected[name], abs=1e-9), name


def test_subsets_weigh_the_same_however_many_questions_they_have():
    rows = graded(1, models=("a",), methods=("thinking",))
    few = rows[~((rows["subset"] == "ut-math") & (rows["question"] != "ut-math/0"))]
    found = score(few, replicates=0)
    part = {name: found.by_subset[0, j, 0] for j, (name, _) in enumerate(found.subsets)}
    accuracy = found.values[0, MEASURES.index("ut_accuracy")]
    assert accuracy == pytest.approx((part["ut-math"] + part["ut-reasoning"]) / 2)


def test_subsets_on_no_side_change_no_score():
    rows = graded(2)
    extra = graded(3, subsets=(("ovt-general+8", "none"),))
    one = score(rows, replicates=50)
    two = score(pd.concat([rows, extra], ignore_index=True), replicates=50)
    np.testing.assert_allclose(one.values, two.values)


def test_f1_of_every_replicate_is_that_of_its_parts():
    found = score(graded(4), replicates=100)
    f1, auc, accuracy = (
        found.replicates[..., MEASURES.index(name)] for name in ("f1", "auc_oaa", "ut_accuracy")
    )
    np.testing.assert_allclose(f1, 2 * auc * accuracy / (auc + accuracy))
    interval = found.interval(0, "f1")
    assert interval.low < interval.estimate < interval.high


def test_replicates_of_methods_are_paired_and_do_not_depend_on_threads():
    rows = graded(5, models=("a",))
    # The same responses under two names: only the draws of responses differ, around nothing.
    same = rows[rows["method"] == "thinking"].assign(method="copy")
    both = pd.concat([rows, same], ignore_index=True)
    found = score(both, replicates=60, workers=1)
    again = score(both, replicates=60, workers=2)
    np.testing.assert_array_equal(found.replicates, again.replicates)
    questions = found.difference(0, 2, "ut_accuracy")
    assert questions.estimate == 0
    assert questions.low <= 0 <= questions.high


def test_unknown_tokens_are_unknown_not_zero():
    rows = graded(6, models=("a",), methods=("thinking",))
    rows.loc[(rows["subset"] == "ovt-math").idxmax(), "thinking_tokens"] = pd.NA
    found = score(rows, replicates=20)
    values = dict(zip(MEASURES, found.values[0], strict=True))
    assert math.isnan(values["auc_oaa"])
    assert math.isnan(values["f1"])
    assert math.isnan(values["ovt_thinking_tokens"])
    assert values["ovt_accuracy"] > 0
    assert values["ut_accuracy"] > 0
    assert math.isnan(found.interval(0, "f1").low)
    table = all_tables(rows, found)[0]
    assert "unknown" in table.note
    assert "–" in table.to_markdown()


def test_responses_without_a_verdict_are_refused_or_left_out_and_counted():
    rows = graded(7, models=("a",), methods=("thinking",))
    rows.loc[0, "right"] = pd.NA
    with pytest.raises(MisuseError, match="1 of 96 responses have no verdict"):
        score(rows, replicates=0)
    found = score(rows, replicates=0, allow_undecided=True)
    assert found.undecided.tolist() == [1]
    assert found.responses.sum() == 95


def test_one_side_alone_has_no_f1():
    found = score(graded(8, subsets=(("ovt-math", "ovt"),)), replicates=10)
    assert np.isnan(found.values[:, 0]).all()
    assert not np.isnan(found.values[:, MEASURES.index("auc_oaa")]).any()


def test_nothing_right_scores_zero():
    rows = graded(9, models=("a",), methods=("thinking",)).assign(right=False)
    found = score(rows.astype({"right": "boolean"}), replicates=10)
    assert found.values[0, 0] == 0
    assert found.interval(0, "f1").high == 0


def test_methods_are_averaged_over_models():
    found = score(graded(10), replicates=30)
    means = over_models(found)
    assert means.loc["thinking", "models"] == 2
    own = [found.values[i, 0] for i, (_, m) in enumerate(found.rows) if m == "thinking"]
    assert means.loc["thinking", "f1"] == pytest.approx(mean(own))


def test_no_rows_are_one_line():
    with pytest.raises(MisuseError, match="nothing to score"):
        score(graded(0).iloc[:0], replicates=0)


def test_two_runs_of_one_name_are_refused():
    run = SimpleNamespace(rows=graded(0))
    with pytest.raises(MisuseError, match="two runs are called 'a'"):
        make_results([run, run], replicates=0)
