"""Benchmarks read from real question files, if there are any."""

from collections import Counter

import pytest

from data import get_benchmark
from data.catalogue.math_levels import last_box
from data.files import read_rows
from tests.requirements import require_question_files

pytestmark = pytest.mark.questions

COUNTS = {
    "aime2024": 30,
    "aime2025": 30,
    "aime2026": 30,
    "gsm8k": 1319,
    "hmmt_feb_2025": 30,
    "math500": 500,
    "math500_level_1": 43,
    "math500_level_2": 90,
    "math500_level_3": 105,
    "math500_level_4": 128,
    "math500_level_5": 134,
}


@pytest.mark.parametrize("name, count", COUNTS.items())
def test_counts_ids_and_kinds(name, count):
    benchmark = get_benchmark(name)
    questions = benchmark.load(require_question_files())
    assert len(questions) == count == benchmark.expected_count
    assert len({question.id for question in questions}) == count
    assert {question.answer_kind for question in questions} == {"math"}
    assert benchmark.load(require_question_files(), limit=4) == questions[:4]


def test_aime_is_one_group_of_ninety():
    years = [get_benchmark(f"aime{year}") for year in (2024, 2025, 2026)]
    questions = [q for year in years for q in year.load(require_question_files())]
    assert {year.group for year in years} == {"AIME"}
    assert len({question.id for question in questions}) == 90
    assert all(0 <= int(question.reference) <= 999 for question in questions)


def test_one_hmmt_answer_lists_two_values():
    questions = get_benchmark("hmmt_feb_2025").load(require_question_files())
    two = [question for question in questions if ", " in question.reference]
    assert [question.id for question in two] == ["hmmt_feb_2025-10"]
    assert two[0].reference.count("\\sqrt{17}") == 2


def test_gsm8k_references_are_plain_integers():
    questions = get_benchmark("gsm8k").load(require_question_files())
    assert all(question.reference.lstrip("-").isdecimal() for question in questions)
    assert max(int(question.reference) for question in questions) > 1_000_000


def test_the_levels_of_math500_are_a_partition():
    folder = require_question_files()
    levels = [q for n in range(1, 6) for q in get_benchmark(f"math500_level_{n}").load(folder)]
    whole = get_benchmark("math500").load(folder)
    assert Counter(levels) == Counter(whole)


def test_the_last_box_of_each_solution_is_the_published_answer():
    rows = read_rows(require_question_files() / "math500.jsonl")
    for row in rows:
        box = last_box(str(row["solution"]))
        assert box.replace(" ", "") == str(row["answer"]).replace(" ", "")
