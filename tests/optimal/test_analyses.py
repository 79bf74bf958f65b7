"""Analyses: tests of significance, correlations, fits, and examples that are no chance."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluator.optimal.analyses import (
    by_group,
    by_size,
    holm,
    linear_fit,
    options_fit,
    rank_correlations,
    sign_flip_p_value,
    thinking_deltas,
    thinking_methods,
)
from evaluator.optimal.examples import find_examples
from evaluator.optimal.insights import insights
from evaluator.optimal.scores import score
from evaluator.optimal.tables import all_tables, deltas_table, groups_table
from tests.optimal.made import graded, typed


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_flipping_signs_is_exact_where_it_can_be(values):
    differences = np.array(values, float)
    moved = [value for value in values if value]
    patterns = list(itertools.product((1, -1), repeat=len(moved)))
    extreme = sum(
        abs(sum(s * v for s, v in zip(pattern, moved, strict=True))) >= abs(sum(moved))
        for pattern in patterns
    )
    assert sign_flip_p_value(differences) == pytest.approx(extreme / len(patterns))


def test_many_questions_are_sampled_and_agree_with_the_t_test():
    differences = np.random.default_rng(0).normal(0.15, 1, 400)
    found = sign_flip_p_value(differences)
    assert found == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.01)
    assert found == sign_flip_p_value(differences)


@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=12))
def test_adjusted_p_values_are_no_smaller_and_keep_their_order(values):
    p = np.array(values)
    adjusted = holm(p)
    assert (adjusted >= p - 1e-12).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-12).all()
    assert (adjusted >= stats.false_discovery_control(p) - 1e-12).all()


def clear(effect):
    """A model that thinking helps on hard questions and hurts on easy ones, where effect says."""
    rows = graded(0, models=("m",), questions=6, seeds=16)
    thinks = rows["method"] == "thinking"
    easy = rows["side"] == "ovt"
    chosen = rows["question"].isin(effect)
    right = (rows["sample"] % 2 == 0).to_numpy()
    right = np.where(chosen, (thinks ^ easy).to_numpy(), right)
    return typed(rows.assign(right=right))


def test_examples_are_those_and_only_those_that_are_no_chance():
    effect = {"ovt-math/1", "ut-math/2", "ut-reasoning/0"}
    found = find_examples(clear(effect))
    assert {each.question for each in found} == effect
    for each in found:
        easy = each.question.startswith("ovt")
        assert each.kind == ("overthinking" if easy else "underthinking")
        assert each.worse == ("thinking" if easy else "no-thinking")
        assert (each.better_right, each.worse_right) == (16, 0)
        assert each.q_value <= 0.05
    assert find_examples(clear(set())) == []


def test_examples_need_repeated_samples():
    rows = clear({"ovt-math/1", "ut-math/2"})
    assert find_examples(rows[rows["sample"] < 2]) == []


def test_deltas_are_paired_by_question():
    rows = clear({f"ovt-general/{q}" for q in range(6)})
    found = thinking_deltas(rows, "answer_type")
    assert set(found.index.get_level_values(1)) == {"numeric", "choice"}
    assert (found["delta"] == -1).all()
    assert found["questions"].tolist() == [3, 3]
    # Three questions of one direction: 2 of 8 sign patterns are as extreme.
    assert found["p_value"].tolist() == [0.25, 0.25]
    assert not found["significant"].any()
    by_benchmark = thinking_deltas(rows, "benchmark")
    assert bool(by_benchmark.loc[("m", "ovt-general-b"), "p_value"] == 2 / 64)
    plain = rows[rows["method"] == "no-thinking"]
    assert thinking_deltas(plain, "answer_type").empty


def test_groups_are_means_over_questions():
    rows = graded(3, ragged=True)
    found = by_group(rows, "domain")
    mine = rows[(rows["model"] == "a") & (rows["method"] == "thinking") & (rows["domain"] == "d1")]
    per_question = mine.groupby("question")["thinking_tokens"].mean()
    assert found.loc[("a", "thinking", "d1"), "thinking_tokens"] == pytest.approx(
        per_question.mean()
    )
    assert found.loc[("a", "thinking", "d1"), "questions"] == len(per_question)


def test_rank_correlations_are_spearmans():
    rows = graded(5)
    found = rank_correlations(rows, "domain")
    groups = by_group(rows, "domain").xs("thinking", level="method")
    mean = groups.groupby(level="domain")[["thinking_tokens", "accuracy"]].mean()
    expected = stats.spearmanr(mean["thinking_tokens"], mean["accuracy"])
    assert found[0].rho == pytest.approx(expected.statistic)
    assert found[0].groups == 4
    assert len(found) == 2


def test_a_line_through_too_few_points_says_so():
    assert np.isnan(linear_fit([4.0], [1.0]).slope)
    two = linear_fit([4.0, 8.0], [10.0, 30.0])
    assert two.slope == pytest.approx(5)
    assert np.isnan(two.p_value)


def test_options_with_irrelevant_ones_added_are_compared_on_the_same_questions():
    records = []
    for total in (4, 6, 8):
        for q in range(3):
            if total == 4 and q == 2:
                continue  # has six options by itself
            for sample in range(2):
                records.append((f"ovt-general+{total}", q, total, sample, 100 * q + 42 * total))
    base = graded(0, models=("m",), methods=("thinking",)).iloc[: len(records)].copy()
    rows = typed(
        base.assign(
            subset=[r[0] for r in records],
            side="none",
            question=[f"{r[0]}/{r[0]}/q{r[1]}" for r in records],
            options=[r[2] for r in records],
            sample=[r[3] for r in records],
            thinking_tokens=[r[4] for r in records],
        )
    )
    by_options, fit = options_fit(rows)
    assert by_options["questions"].tolist() == [2, 2, 2]
    assert fit.slope == pytest.approx(42)
    assert fit.r_squared == pytest.approx(1)


def test_sizes_are_in_order_and_unknown_ones_left_out():
    rows = pd.concat([graded(0), graded(1, models=("c",)).assign(size=pd.NA)], ignore_index=True)
    models, fit = by_size(typed(rows))
    assert models.index.tolist() == ["a", "b"]
    assert fit.points == 2


@pytest.mark.parametrize("name", ["default", "mine", "step-by-step"])
def test_a_method_of_any_name_is_analysed_as_thinking_is(name):
    rows = graded(3, questions=12)
    renamed = rows.assign(method=rows["method"].replace({"thinking": name}))
    before, after = (
        {t.name: t.frame for t in all_tables(each, score(each, replicates=10))}
        for each in (rows, renamed)
    )
    assert set(before) == set(after)
    for table in ("deltas_discipline", "thinking_answer_type", "correlations", "options", "sizes"):
        pd.testing.assert_frame_equal(before[table], after[table])
    stems = [
        [view.stem for view in insights(each, score(each, replicates=10))]
        for each in (rows, renamed)
    ]
    assert stems[0] == stems[1]
    assert {"subsets-area", "thinking-discipline", "options", "sizes-accuracy"} <= set(stems[0])


def test_several_ways_of_thinking_stand_below_each_other():
    rows = graded(1, methods=("step-by-step", "thinking", "no-thinking", "oracle-router"))
    rows.loc[rows["method"] == "step-by-step", "thinking_tokens"] = 77
    rows.loc[rows["method"] == "oracle-router", "thinking_tokens"] = 5
    assert thinking_methods(rows) == ["thinking", "step-by-step"]
    table = groups_table(rows, "discipline", 1000)
    assert table.frame.index.names == ["method", "discipline"]
    assert (table.frame.loc["step-by-step", "thinking tokens"] == 77).all()
    deltas = deltas_table(rows, "discipline").frame
    assert set(deltas.index.get_level_values("method")) == {"thinking", "step-by-step"}


def test_figures_show_what_tables_hold():
    rows = graded(2, questions=12)
    found = score(rows, replicates=10)
    views = {view.stem: view for view in insights(rows, found)}
    by_options, fit = options_fit(rows)
    measured, line = views["options"].lines
    assert measured.y == pytest.approx(by_options["thinking_tokens"].tolist())
    assert line.y == pytest.approx([fit.intercept + fit.slope * x for x in line.x])
    models, _ = by_size(rows)
    assert views["sizes-thinking-tokens"].lines[0].y == models["thinking_tokens"].tolist()
    groups = by_group(rows[rows["side"] != "none"], "discipline")["thinking_tokens"]
    bars = views["thinking-discipline"]
    for name, values in bars.series:
        for group, value in zip(bars.groups, values, strict=True):
            assert value == pytest.approx(groups[name, "thinking", group])
    subset = views["subsets-accuracy"]
    assert [name for name, _ in subset.series] == ["ovt-math", "ovt-general"]


def test_every_table_counts_the_area_up_to_the_same_threshold():
    rows = graded(2, questions=12)
    tables = {table.name: table for table in all_tables(rows, score(rows, replicates=0, t_max=50))}
    own = rows[rows["side"] != "none"]
    groups = by_group(own, "discipline", t_max=50).xs("thinking", level="method")
    expected = 100 * groups.groupby(level="discipline")["auc_oaa"].mean()
    shown = tables["thinking_discipline"].frame["AUC OAA"]
    assert shown.to_dict() == pytest.approx(expected.to_dict())
    models, _ = by_size(rows, t_max=50)
    assert tables["sizes"].frame["AUC OAA"].tolist() == pytest.approx(
        (100 * models["auc_oaa"]).tolist()
    )
    assert models["auc_oaa"].tolist() != by_size(rows)[0]["auc_oaa"].tolist()


def test_examples_of_a_model_that_thinks_by_default():
    rows = clear(["ovt-math/0", "ut-math/1"])
    renamed = rows.assign(method=rows["method"].replace({"thinking": "default"}))
    before, after = find_examples(rows), find_examples(renamed)
    assert [each.question for each in before] == [each.question for each in after]
    assert {each.better for each in after} <= {"default", "no-thinking"}
