"""Rows that are not what they are called, and what is said before scores."""

import re

import pandas as pd
import pytest

from data.errors import MisuseError
from evaluator.optimal.cautions import check_rows, same_questions
from evaluator.optimal.grading import grade
from evaluator.optimal.output import write_results
from evaluator.optimal.page import render_page
from evaluator.optimal.plan import OptimalPlan
from evaluator.optimal.recipe import Recipe
from evaluator.optimal.results import make_results
from evaluator.optimal.running import run
from evaluator.optimal.stored import load_run
from evaluator.optimal.tables import score_table
from stp.asking import Settings
from stp.asking.function import CallableResponder
from tests.optimal.made import graded


def without_switch(prompt):
    """Think whatever is asked for."""
    return {"text": "\\boxed{1}", "thinking": "hm " * 20, "thinking_tokens": 40}


def ran(folder, function, **changes):
    values = {
        "name": "fn",
        "subsets": ("ovt:demo", "ut:think-sum"),
        "methods": ("thinking", "no-thinking", "oracle-router"),
        "limit": 2,
        "seeds": 2,
        "settings": Settings(temperature=0.6),
    }
    with CallableResponder(function) as responder:
        run(responder, folder, OptimalPlan(**{**values, **changes}))
    grade(folder)
    return load_run(folder)


def test_a_function_without_a_switch(tmp_path):
    found = ran(tmp_path / "run", without_switch)
    results = make_results([found], replicates=0)
    assert results.scores.rows == (("fn", "thinking"),)
    said = " ".join(results.cautions)
    what = "think although their thinking is off"
    assert f"fn, no-thinking: 8 of 8 responses without thinking (100.0%) {what}" in said
    assert "Not given, since answers without thinking think: fn, no-thinking; fn, oracle-" in said
    page = write_results(results, tmp_path / "report", title="t").read_text()
    assert page.index("think although their thinking is off") < page.index('class="lead"')


def test_answers_that_go_on_are_said():
    rows = graded().assign(ran_on=None)
    assert "next turn" not in " ".join(check_rows(rows).cautions)
    rows["ran_on"] = [row % 2 == 0 for row in range(len(rows))]
    said = " ".join(check_rows(rows).cautions)
    assert "(50.0%) go on into the next turn" in said


def test_nothing_is_left_of_no_thinking_alone(tmp_path):
    found = ran(tmp_path / "run", without_switch, methods=("no-thinking",))
    with pytest.raises(MisuseError, match="nothing is left to score"):
        make_results([found], replicates=0)


def test_a_few_that_think_are_counted_and_the_row_is_given():
    rows = graded(questions=20, models=("a",))
    place = rows.index[rows["method"] == "no-thinking"][:2]
    rows.loc[place, "thinking_tokens"] = 7
    checked = check_rows(rows)
    assert checked.left_out == frozenset()
    assert len(checked.rows) == len(rows)
    rows.loc[rows.index[rows["method"] == "no-thinking"][:8], "thinking_tokens"] = 7
    assert any("8 of 320 responses without thinking" in said for said in check_rows(rows).cautions)


def test_cut_unread_and_troubled_responses_are_said():
    rows = graded(models=("a",), methods=("thinking",))
    rows["finish"] = ["length"] * 5 + ["stop"] * (len(rows) - 5)
    rows["answer"] = pd.array([None] * 10 + ["x"] * (len(rows) - 10), dtype="string")
    rows["reason"] = ["wrong: time limit"] * 3 + [""] * (len(rows) - 3)
    said = "\n".join(check_rows(rows).cautions)
    for count, words in ((5, "were cut"), (10, "hold nothing"), (3, "were decided by trouble")):
        assert re.search(rf"a, thinking: {count} of 96 \w+ \(\d+\.\d%\) {words}", said)


def test_no_winner_across_other_questions(tmp_path):
    one = ran(tmp_path / "one", without_switch, name="one", methods=("thinking",))
    two = ran(tmp_path / "two", without_switch, name="two", methods=("thinking",), limit=1)
    results = make_results([one, two], replicates=0)
    assert not same_questions(results.rows)
    page = render_page(results, title="t")
    assert "asked different questions, so that none of them is the best" in page
    assert "has the best F1" not in page
    same = make_results([one], replicates=0)
    assert same_questions(same.rows)


def test_rows_are_in_falling_order_of_f1(tmp_path):
    from evaluator.optimal.scores import score

    rows = graded(seed=3, models=("a", "b", "c"))
    # One row without F1.
    rows = rows[~((rows["model"] == "c") & (rows["side"] == "ut"))]
    shown = score_table(score(rows, replicates=0)).frame["F1"].dropna().tolist()
    assert shown == sorted(shown, reverse=True)
    last = score_table(score(rows, replicates=0)).frame["F1"].isna().tolist()
    assert last == sorted(last)


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 0.0}])
def test_copies_are_no_samples(settings):
    values = {"name": "m", "subsets": ("ovt:demo",), "methods": ("thinking",)}
    with pytest.raises(MisuseError, match="copies"):
        OptimalPlan(**values, seeds=2, settings=Settings(**settings))
    assert OptimalPlan(**values, seeds=1, settings=Settings(**settings)).seeds == 1
    with pytest.raises(MisuseError, match="copies"):
        Recipe(settings=Settings(**settings))
