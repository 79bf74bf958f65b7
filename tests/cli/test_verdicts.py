"""Verdicts on the command line: what is shown, and what a new checker would change."""

import pytest
import typer
from typer.testing import CliRunner

from data.errors import MisuseError
from evaluator.answers import Verdict
from stp.campaign import graded
from stp.campaign.graded import changed_verdicts, graded_answers
from stp.cli import verdicts
from tests.campaign.rows import rows_of, table_rows


def call(function, *arguments):
    app = typer.Typer()
    app.command()(function)
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "160"}
    )


def test_answers_are_counted_once_each(campaign):
    answers = graded_answers(campaign).answers
    stored = table_rows(campaign, "verdicts")
    assert sum(answer.count for answer in answers) == len(stored)
    keys = [(a.question.id, a.verdict.answer, a.verdict.reason, a.verdict.right) for a in answers]
    assert len(set(keys)) == len(keys)
    right = graded_answers(campaign, right=True).answers
    wrong = graded_answers(campaign, right=False).answers
    assert len(right) + len(wrong) == len(answers)
    assert all(answer.verdict.right for answer in right)
    assert not any(answer.verdict.right for answer in wrong)


def test_a_sample_is_repeatable_and_in_order(campaign):
    answers = graded_answers(campaign).answers
    assert graded_answers(campaign, limit=3).answers == graded_answers(campaign, limit=3).answers
    sample = graded_answers(campaign, limit=3).answers
    places = [answers.index(answer) for answer in sample]
    assert places == sorted(places)
    assert len(sample) == min(3, len(answers))
    with pytest.raises(MisuseError, match=r"no benchmark .another. in this campaign"):
        graded_answers(campaign, benchmark="another")


def test_the_page_shows_all_that_an_auditor_needs(campaign):
    answer = next(a for a in graded_answers(campaign).answers if a.verdict.answer is not None)
    outcome = call(verdicts.show_verdicts, campaign, "--n", 1000)
    assert outcome.exit_code == 0, outcome.output
    for part in (answer.question.id, answer.response.strip()[-20:], answer.verdict.answer,
                 answer.question.reference, answer.verdict.reason):  # fmt: skip
        assert part in outcome.output


def test_wrong_and_right_together_are_a_misuse(campaign):
    outcome = call(verdicts.show_verdicts, campaign, "--wrong", "--right")
    assert isinstance(outcome.exception, MisuseError)


def test_nothing_changes_under_the_same_checker(campaign):
    found = changed_verdicts(campaign)
    assert found.changed == ()
    assert found.responses == len(table_rows(campaign, "verdicts"))
    assert "0 of" in call(verdicts.grade_diff, campaign).output


def test_changed_verdicts_are_listed_with_their_responses(campaign, monkeypatch):
    class Contrary(graded.Checker):
        def check_many(self, pairs):
            return [
                Verdict(not verdict.right, verdict.answer, "right: turned round")
                for verdict in super().check_many(pairs)
            ]

    before = rows_of(campaign)
    judged = sum(row["answer"] is not None for row in table_rows(campaign, "verdicts"))
    assert judged
    monkeypatch.setattr(graded, "Checker", Contrary)
    found = changed_verdicts(campaign)
    assert sum(item.answer.count for item in found.changed) >= judged
    item = next(item for item in found.changed if item.answer.verdict.answer is not None)
    output = call(verdicts.grade_diff, campaign).output
    assert item.answer.response.strip()[-15:] in output
    assert "turned round" in output
    assert rows_of(campaign) == before


@pytest.mark.parametrize("extracted", [None, "7", "not there"])
def test_the_tail_marks_what_was_extracted(extracted):
    text = verdicts._tail("x" * 1000 + r" so \boxed{7}", extracted)
    assert text.plain.startswith("…")
    assert len(text.plain) <= verdicts.TAIL_CHARACTERS + 1
    assert bool(text.spans) == (extracted == "7")


def test_what_a_stranger_wrote_does_not_reach_the_terminal_as_control():
    from stp.cli.seen import seen

    hostile = "a\x1b]0;title\x07b\x00\r\x9b2J\u202ec\n\td"
    shown = seen(hostile)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    assert "a␛]0;title␇b␀␍" in shown
