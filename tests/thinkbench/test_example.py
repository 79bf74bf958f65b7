"""The function of the README's example scores, and the README runs it."""

from pathlib import Path

import pytest

from data.tasks import get_task, task_names
from data.tasks.base import TaskParameters, make_questions
from docs.examples import arithmetic
from evaluator.answers import Checker
from stp.cli.main import main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", task_names())
def test_careful_is_right_on_every_task_and_hasty_on_some(name):
    questions = make_questions(get_task(name), TaskParameters(samples=8, sizes=(8,)), 8)
    with Checker(workers=1) as checker:
        found = checker.check_many([(q, arithmetic.careful(q.prompt)["text"]) for q in questions])
    assert all(verdict.right for verdict in found), found
    assert arithmetic.hasty(questions[0].prompt)["thinking"] == ""


def test_the_readme_runs_it():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("careful", "hasty"):
        assert f"docs/examples/arithmetic.py:{name}" in text


def test_a_model_that_is_named_twice_is_refused_before_it_is_asked(tmp_path, capsys):
    model = f"{ROOT / 'docs/examples/arithmetic.py'}:careful"
    with pytest.raises(SystemExit) as ended:
        main(["think", "run", model, model, "--out", str(tmp_path / "t"), "--samples", "1"])
    assert ended.value.code == 2
    assert "careful is named twice" in capsys.readouterr().err
    assert not (tmp_path / "t").exists()
