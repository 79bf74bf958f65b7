"""The parser of the generated tasks on responses written as models write; see ``responses``."""

from collections import Counter

from data.tasks import task_names
from evaluator.answers import Checker
from tests.thinkbench.responses import cases


def test_at_least_99_percent_are_judged_right_and_no_wrong_answer_is_accepted():
    given = list(cases())
    assert len(given) >= 600
    assert {case.question.answer_kind for case in given} == set(task_names())
    assert min(Counter(case.question.answer_kind for case in given).values()) >= 40
    with Checker() as checker:
        verdicts = checker.check_many([(case.question, case.response) for case in given])
    missed = [
        (case.note, case.question.answer_kind, case.response, verdict.answer)
        for case, verdict in zip(given, verdicts, strict=True)
        if verdict.right != case.right
    ]
    accepted = [
        case.response
        for case, verdict in zip(given, verdicts, strict=True)
        if verdict.right and not case.right
    ]
    assert accepted == []
    assert len(missed) <= len(given) // 100, missed
