"""Benchmarks read from made-up files: layouts, packed tests, choice orders."""

import json
from collections import Counter

import pytest

from data import MisuseError, get_benchmark
from data.catalogue.math_levels import LEVEL_COUNTS, SUBJECTS
from data.code_tests import CodeTests
from tests.data.made import (
    gpqa_rows,
    livecodebench_rows,
    write_csv,
    write_jsonl,
    write_parquet,
)


def test_gpqa_letters_are_balanced_and_options_are_those_of_the_row(tmp_path):
    rows = gpqa_rows()
    write_csv(tmp_path / "gpqa_diamond.csv", rows)
    questions = get_benchmark("gpqa_diamond").load(tmp_path)
    assert len(questions) == 198
    counts = Counter(question.reference for question in questions)
    assert sorted(counts) == ["A", "B", "C", "D"]
    assert max(counts.values()) - min(counts.values()) == 1
    for row, question in zip(rows, questions, strict=True):
        assert question.id == row["Record ID"]
        assert set(question.choices) == {
            row[column].strip()
            for column in (
                "Correct Answer",
                "Incorrect Answer 1",
                "Incorrect Answer 2",
                "Incorrect Answer 3",
            )
        }
        right = question.choices["ABCD".index(question.reference)]
        assert right == row["Correct Answer"].strip()
        for letter, option in zip("ABCD", question.choices, strict=True):
            assert f"\n{letter}. {option}" in question.prompt
    wrong_orders = {
        next(option for option in question.choices if not option.startswith("right"))[:2]
        for question in questions
    }
    assert len(wrong_orders) > 1, "the wrong options stand in one order everywhere"


def test_gpqa_order_is_stored_not_drawn(tmp_path):
    write_csv(tmp_path / "gpqa_diamond.csv", gpqa_rows())
    first = get_benchmark("gpqa_diamond").load(tmp_path, limit=12)
    assert "".join(question.reference for question in first) == "BDAAACCCBCCA"


def test_gpqa_letter_does_not_follow_the_row(tmp_path):
    write_csv(tmp_path / "gpqa_diamond.csv", gpqa_rows())
    letters = [question.reference for question in get_benchmark("gpqa_diamond").load(tmp_path)]
    repeated = sum(a == b for a, b in zip(letters, letters[4:], strict=False))
    assert repeated < len(letters) / 2


@pytest.mark.parametrize("write, name", [(write_jsonl, "test6.jsonl"), (write_parquet, "lcb")])
def test_livecodebench_tests_are_public_then_private(tmp_path, write, name):
    target = tmp_path / ("livecodebench.parquet" if name == "lcb" else name)
    write(target, livecodebench_rows())
    questions = get_benchmark("livecodebench").load(tmp_path)
    assert len(questions) == 175
    program, function = questions[0], questions[1]
    assert json.loads(program.reference) == {
        "fn_name": None,
        "inputs": ["0\n", "1"],
        "outputs": ["0\n", "2"],
        "time_limit_seconds": 6.0,
    }
    assert json.loads(function.reference)["fn_name"] == "double"
    assert json.loads(function.reference)["inputs"] == ["1\n", "2"]
    assert "standard input" in program.prompt and "```" not in program.prompt
    assert "```python\nclass Solution:\n    def double(self, n):" in function.prompt
    assert "standard input" not in function.prompt


def test_livecodebench_reference_is_the_form_that_the_checker_reads(tmp_path):
    write_jsonl(tmp_path / "livecodebench.jsonl", livecodebench_rows())
    for question in get_benchmark("livecodebench").load(tmp_path, limit=4):
        read = CodeTests.from_json(question.reference)
        assert read.to_json() == question.reference
        assert len(read.inputs) == 2


@pytest.mark.parametrize(
    "change, message",
    [
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "no tests"),
        ({"private_test_cases": "@@@"}, "private tests cannot be read"),
        ({"public_test_cases": '[{"input": 1, "output": "2", "testtype": "stdin"}]'}, "a text"),
        (
            {"public_test_cases": '[{"input": "1", "output": "2", "testtype": "functional"}]'},
            "kind",
        ),
    ],
)
def test_livecodebench_refuses_damaged_tests_with_the_row(tmp_path, change, message):
    rows = livecodebench_rows()
    rows[2].update(change)
    write_jsonl(tmp_path / "livecodebench.jsonl", rows)
    with pytest.raises(MisuseError, match=rf"row 3 \(q2\).*{message}"):
        get_benchmark("livecodebench").load(tmp_path)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [("{}", "func_name"), ("[]", "func_name"), ("{", "metadata: not valid JSON")],
)
def test_livecodebench_refuses_a_function_without_a_name(tmp_path, metadata, message):
    rows = livecodebench_rows()
    rows[1]["metadata"] = metadata
    write_jsonl(tmp_path / "livecodebench.jsonl", rows)
    with pytest.raises(MisuseError, match=message):
        get_benchmark("livecodebench").load(tmp_path)


def _math_rows() -> dict[str, list[dict]]:
    levels = [level for level, count in LEVEL_COUNTS.items() for _ in range(count)]
    titles = ("Algebra", "Counting & Probability", "Geometry", "Intermediate Algebra")
    titles += ("Number Theory", "Prealgebra", "Precalculus")
    rows: dict[str, list[dict]] = {subject: [] for subject in SUBJECTS}
    for number, level in enumerate(levels):
        subject, title = SUBJECTS[number % 7], titles[number % 7]
        rows[subject].append(
            {
                "problem": f"Problem {number}",
                "level": f"Level {level}",
                "type": title,
                "solution": f"Not $\\boxed{{0}}$ but $\\boxed{{\\frac{{{number}}}{{2}}}}$.",
            }
        )
    return rows


def test_math_by_level_from_the_files_that_the_hub_has(tmp_path):
    for subject, rows in _math_rows().items():
        write_parquet(tmp_path / "math" / subject / "test-00000-of-00001.parquet", rows)
    for level, count in LEVEL_COUNTS.items():
        questions = get_benchmark(f"math_level_{level}").load(tmp_path)
        assert len(questions) == count
        for question in questions[:5]:
            number = question.prompt.removeprefix("Problem ")
            assert question.reference == f"\\frac{{{number}}}{{2}}"
            assert question.id.split("/")[0] in SUBJECTS


def test_contest_rows_with_numbers_give_the_ids_of_rows_with_ids(tmp_path):
    numbered = [
        {"problem_idx": number, "answer": number, "problem": f"P{number}", "problem_type": ["x"]}
        for number in range(1, 31)
    ]
    write_parquet(tmp_path / "aime2025/data/train-00000-of-00001.parquet", numbered)
    named = [
        {"id": f"aime2026-{number}", "answer": f"{number}", "problem": f"P{number}"}
        for number in range(1, 31)
    ]
    write_jsonl(tmp_path / "aime_2026.jsonl", named)
    ids_2025 = [question.id for question in get_benchmark("aime2025").load(tmp_path)]
    ids_2026 = [question.id for question in get_benchmark("aime2026").load(tmp_path)]
    assert ids_2025 == [f"aime2025-{number}" for number in range(1, 31)]
    assert ids_2026 == [f"aime2026-{number}" for number in range(1, 31)]


def test_an_aime_answer_outside_its_range_is_refused(tmp_path):
    rows = [{"id": n, "problem": f"P{n}", "answer": "1000" if n == 7 else "7"} for n in range(30)]
    write_jsonl(tmp_path / "aime2024.jsonl", rows)
    with pytest.raises(MisuseError, match=r"aime2024-7.*'1000'"):
        get_benchmark("aime2024").load(tmp_path)


def _gsm_plus_rows(seeds):
    kinds = (
        "numerical substitution", "digit expansion", "adding operation", "reversing operation",
        "distraction insertion", "problem understanding", "integer-decimal-fraction conversion",
        "critical thinking",
    )  # fmt: skip
    return [
        {
            "question": f"What is {seed} + {place}?",
            "solution": "It is that.",
            "answer": "None" if kind == "critical thinking" else f"{1000 + seed + place:,}",
            "perturbation_type": kind,
            "seed_question": "?",
            "seed_solution": "!",
            "seed_answer": "2",
        }
        for seed in range(seeds)
        for place, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(("name", "seeds"), [("gsm_plus", 1319), ("gsm_plus_mini", 300)])
def test_gsm_plus_leaves_out_what_has_no_answer(tmp_path, name, seeds):
    write_jsonl(tmp_path / f"{name}.jsonl", _gsm_plus_rows(seeds))
    benchmark = get_benchmark(name)
    questions = benchmark.load(tmp_path)
    assert len(questions) == benchmark.expected_count == 7 * seeds
    assert questions[0].id == f"{name}-1"
    assert questions[0].reference == "1000"
    # Ids count all rows: the eighth is the one that is left out.
    assert questions[7].id == f"{name}-9"
    assert {question.reference for question in questions} & {"None", ""} == set()


def test_gsm_plus_without_an_answer_is_refused(tmp_path):
    rows = _gsm_plus_rows(300)
    rows[2]["answer"] = "None"
    write_jsonl(tmp_path / "gsm_plus_mini.jsonl", rows)
    with pytest.raises(MisuseError, match="row 3: no answer"):
        get_benchmark("gsm_plus_mini").load(tmp_path)
