"""Every line of the tables gets its verdict; half of the lines are wrong answers."""

import json
from pathlib import Path

import pytest

from data.question import Question
from evaluator.answers import Checker
from tests.answers.tables import FOLDER, KINDS, read_table
from tests.requirements import require_bubblewrap

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "code"])
def test_every_line_gets_its_verdict(kind: str) -> None:
    cases = read_table(kind)
    with Checker(workers=1) as checker:
        verdicts = checker.check_many([(case.question, case.response) for case in cases])
    wrong = [
        f"{case.place}: {case.question.reference!r} / {case.response!r}: {verdict}"
        for case, verdict in zip(cases, verdicts, strict=True)
        if verdict.right != case.right
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_every_program_gets_its_verdict() -> None:
    require_bubblewrap()
    cases = read_table("code")
    with Checker(workers=2) as checker:
        verdicts = checker.check_many([(case.question, case.response) for case in cases])
    wrong = [
        f"{case.place} ({case.note}): {verdict.reason}"
        for case, verdict in zip(cases, verdicts, strict=True)
        if verdict.right != case.right
    ]
    assert not wrong, "\n".join(wrong)


def test_the_tables_are_large_and_half_of_them_negative() -> None:
    cases = [case for kind in KINDS for case in read_table(kind)]
    wrong = sum(not case.right for case in cases)
    assert len(cases) >= 400
    assert 0.45 <= wrong / len(cases) <= 0.55
    assert len(
        {(case.question.reference, case.question.answer_kind, case.response) for case in cases}
    )


def test_cases_that_public_checkers_got_wrong() -> None:
    path = SHARED / "answers.jsonl"
    if not path.is_file():
        pytest.skip("no file of shared cases beside the project; the tables hold their kinds")
    wrong = []
    with Checker(workers=1) as checker:
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            kind = "math" if case["kind"] == "thinking" else case["kind"]
            for choices in ((), ("one", "two", "three", "four")):
                question = Question(
                    id=case["id"],
                    prompt="",
                    reference=case["reference"],
                    answer_kind=kind,
                    choices=choices if kind == "choice" else (),
                )
                verdict = checker.check(question, case["response"])
                if verdict.right != case["right"]:
                    wrong.append(f"{line}: {verdict}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.bubblewrap
def test_cases_that_this_checker_once_got_wrong() -> None:
    path = SHARED / "answers_2.jsonl"
    if not path.is_file():
        pytest.skip("no file of shared cases beside the project; the tables hold their kinds")
    require_bubblewrap()
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    questions = [
        Question(
            id=case["id"],
            prompt="",
            reference=case["reference"],
            answer_kind=case["kind"],
            choices=tuple(case.get("choices", ())),
        )
        for case in cases
    ]
    with Checker(workers=1) as checker:
        verdicts = checker.check_many(
            [(question, case["response"]) for question, case in zip(questions, cases, strict=True)]
        )
    wrong = [
        f"{case['id']}: {verdict}"
        for case, verdict in zip(cases, verdicts, strict=True)
        if verdict.right != case["right"]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("set_*.jsonl")), ids=lambda path: path.stem)
def test_sets_written_by_somebody_who_had_not_seen_the_rules(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 600
    assert 0.4 <= sum(not row["right"] for row in rows) / len(rows) <= 0.6
    questions = [
        Question(
            id=f"{path.stem}-{number}",
            prompt=row.get("question") or "",
            reference=row["reference"],
            answer_kind=row["kind"],
            choices=tuple(row.get("choices") or ()),
        )
        for number, row in enumerate(rows)
    ]
    with Checker(workers=1) as checker:
        verdicts = checker.check_many(
            [(question, row["response"]) for question, row in zip(questions, rows, strict=True)]
        )
    wrong = [
        f"{row['reference']!r} / {row['response']!r} ({row.get('why')}): {verdict}"
        for row, verdict in zip(rows, verdicts, strict=True)
        if verdict.right != row["right"]
    ]
    assert not wrong, "\n".join(wrong)
