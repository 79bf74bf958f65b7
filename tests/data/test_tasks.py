"""Generated tasks: stable, balanced, solved as a naive twin solves them, judged exactly."""

import hashlib
import json
import re
import statistics
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import data.tasks
from data import MisuseError, Question, benchmark_names, get_benchmark
from data.draws import StableDraws
from data.tasks import TaskParameters, get_task, task_benchmark, task_names

NAMES = (
    "absolute_difference",
    "comparison",
    "division",
    "even_count",
    "find_maximum",
    "find_minimum",
    "mean",
    "median",
    "mode",
    "multiplication",
    "odd_count",
    "sorting",
    "subtraction",
    "sum",
)


def naive(name: str, numbers: list[int]) -> set[str]:
    """Return every right answer, worked out in the most obvious way."""
    if name == "sorting":
        rest, ordered = list(numbers), []
        while rest:
            ordered.append(min(rest))
            rest.remove(min(rest))
        return {str(ordered)}
    if name == "comparison":
        first, second = numbers
        return {"<" if first < second else ">" if first > second else "="}
    if name == "mode":
        return {str(value) for value in statistics.multimode(numbers)}
    if name == "multiplication":
        product = 1
        for number in numbers:
            product *= number
        return {str(product)}
    return {
        "sum": lambda: {str(sum(numbers))},
        "subtraction": lambda: {str(numbers[1] - numbers[0])},
        "division": lambda: {str(Fraction(numbers[0]) / numbers[1])},
        "absolute_difference": lambda: {str(abs(numbers[0] - numbers[1]))},
        "find_maximum": lambda: {str(sorted(numbers)[-1])},
        "find_minimum": lambda: {str(sorted(numbers)[0])},
        "mean": lambda: {str(statistics.mean(map(Fraction, numbers)))},
        "median": lambda: {str(statistics.median(map(Fraction, numbers)))},
        "odd_count": lambda: {str(len([n for n in numbers if abs(n) % 2 == 1]))},
        "even_count": lambda: {str(len([n for n in numbers if abs(n) % 2 == 0]))},
    }[name]()


def numbers_of(question: Question) -> list[int]:
    """Read the numbers back from what is asked."""
    listed = re.search(r"\[.*\]", question.prompt)
    if listed is not None:
        return json.loads(listed.group())
    return [int(text) for text in re.findall(r"-?\d+", question.prompt)][:2]


def questions_of(name: str, count: int = 60, **parameters: object) -> list[Question]:
    return task_benchmark(name, TaskParameters(**parameters)).load(limit=count)


def test_the_fourteen_are_found_and_are_benchmarks():
    assert task_names() == NAMES
    assert {f"think-{name}" for name in NAMES} <= set(benchmark_names())
    categories = Counter(get_task(name).category for name in NAMES)
    assert categories == {"basic": 7, "extremum": 2, "statistics": 3, "counting": 2}


def test_an_unknown_task_offers_the_nearest():
    for name in ("maximum", "FIND_MAXIMUM"):
        with pytest.raises(MisuseError, match=f"no task '{name}'; did you mean 'find_maximum'"):
            get_task(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("low, high", [(-1000, 1000), (-3, 3), (0, 1), (-(10**30), 10**30)])
def test_references_are_those_of_the_naive_twin(name, low, high):
    task = get_task(name)
    for question in questions_of(name, low=low, high=high):
        numbers = numbers_of(question)
        assert all(low <= number <= high for number in numbers)
        size = int(question.id.split("size")[1].split("-")[0])
        assert len(numbers) == size
        right = naive(name, numbers)
        assert set(question.reference.split(" or ")) == right
        assert all(task.right(question.reference, answer) for answer in right)
        assert question.answer_kind == name


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_those_of_the_paper(name):
    questions = get_benchmark(f"think-{name}").load()
    assert len(questions) == 1000
    assert len({question.id for question in questions}) == 1000
    values = [number for question in questions for number in numbers_of(question)]
    assert -1000 <= min(values) < -950 and 950 < max(values) <= 1000
    # The mean of n uniform values in [-1000, 1000] deviates by 578 / sqrt(n).
    assert abs(statistics.fmean(values)) < 5 * 578 / len(values) ** 0.5
    sizes = Counter(len(numbers_of(question)) for question in questions)
    expected = get_task(name).sizes
    assert sorted(sizes) == sorted(expected)
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert questions[:10] == get_benchmark(f"think-{name}").load(limit=10)


def test_list_sizes_and_product_sizes():
    assert get_task("sum").sizes == get_task("mode").sizes == (8, 16, 32, 64)
    assert get_task("multiplication").sizes == (2, 4, 8)
    assert get_task("subtraction").sizes == (2,)


@pytest.mark.parametrize("name", NAMES)
def test_folds_seeds_and_sizes_are_independent(name):
    task_size = get_task(name).sizes[-1]
    base = [q.prompt for q in questions_of(name, 30, sizes=(task_size,))]
    for other in ({"fold": 1}, {"seed": 1}):
        prompts = [q.prompt for q in questions_of(name, 30, sizes=(task_size,), **other)]
        assert not set(base) & set(prompts)
    # The questions of one size do not depend on which other sizes are asked.
    mixed = questions_of(name, 60, sizes=(task_size, task_size + 1))
    same = mixed[:30] if get_task(name).fixed_size else mixed[::2]
    assert [q.prompt for q in same] == base


def test_questions_are_bit_identical_everywhere():
    """The digest was made once; it must be this on every machine and for ever."""
    digest = hashlib.blake2b(digest_size=16)
    for name in NAMES:
        for fold in range(3):
            for question in questions_of(name, 40, fold=fold):
                digest.update(repr((question.id, question.reference)).encode())
                digest.update(repr(numbers_of(question)).encode())
    assert digest.hexdigest() == "1747c2805b65db45f8d60d109cfb701a"


def test_another_process_with_another_hash_seed_makes_the_same_questions():
    code = "import data; print([q.prompt for q in data.get_benchmark('think-mode').load(limit=9)])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{[q.prompt for q in get_benchmark('think-mode').load(limit=9)]}\n"}


@pytest.mark.parametrize("low, high", [(-1000, 1000), (5, 6), (-2, 0)])
@pytest.mark.parametrize("count", [3, 60, 100])
def test_comparison_is_balanced_over_its_relations(low, high, count):
    relations = [q.reference for q in questions_of("comparison", count, low=low, high=high)]
    counts = [relations.count(relation) for relation in "<=>"]
    assert max(counts) - min(counts) <= 1
    turns = {"".join(relations[at : at + 3]) for at in range(0, count - 2, 3)}
    assert all(set(turn) == set("<=>") for turn in turns)
    assert count < 60 or len(turns) == 6, "the relations come in one order"


def test_subtraction_is_the_second_less_the_first_and_says_so():
    task = get_task("subtraction")
    assert task.solve((4, -8)) == "-12"
    assert task.ask((4, -8)) == "Subtract 4 from -8. In other words, what is (-8) - (4)?"


@pytest.mark.parametrize("size", [2, 3, 8])
def test_a_mode_list_has_a_repeat(size):
    for question in questions_of("mode", 200, sizes=(size,), low=-(10**9), high=10**9):
        numbers = numbers_of(question)
        assert len(set(numbers)) < len(numbers)


def test_any_mode_is_right():
    task = get_task("mode")
    reference = task.solve((7, 3, 7, 3, 5))
    assert reference == "3 or 7"
    assert task.right(reference, "3") and task.right(reference, "7.0")
    assert not task.right(reference, "5")
    assert not task.right(reference, "3 or 7")


def test_a_divisor_is_never_zero():
    questions = questions_of("division", 300, low=-1, high=1)
    assert {numbers_of(question)[1] for question in questions} == {-1, 1}


def test_products_are_exact_whatever_their_size():
    (question,) = questions_of("multiplication", 1, sizes=(8,), low=10**400, high=10**401)
    assert len(question.reference) > 3200
    task = get_task("multiplication")
    assert task.right(question.reference, question.reference)
    assert not task.right(question.reference, str(int(question.reference[:40])) + "0" * 3300)


@pytest.mark.parametrize(
    "name, parameters, message",
    [
        ("sum", {"samples": 0}, "samples must be at least 1"),
        ("sum", {"fold": -1}, "fold must be at least 0"),
        ("sum", {"low": 3, "high": 3}, "holds fewer than two values"),
        ("sum", {"sizes": ()}, "at least one size"),
        ("sum", {"sizes": (8, 0)}, "size 0; the least is 1"),
        ("mode", {"sizes": (1,)}, "size 1; the least is 2"),
        ("multiplication", {"low": 0, "high": 10**999}, "8 numbers of 1000 digits"),
    ],
)
def test_impossible_parameters_are_refused(name, parameters, message):
    with pytest.raises(MisuseError, match=message):
        questions_of(name, **parameters)


@pytest.mark.parametrize(
    "name, reference, answer, right",
    [
        ("comparison", "<", "<", True),
        ("comparison", "<", "less  than", True),
        ("comparison", "<", "Less than", True),
        ("comparison", "=", "equal to", True),
        ("comparison", ">", "<", False),
        ("comparison", ">", "", False),
        ("comparison", ">", "> 4", False),
        ("find_maximum", "1000", "1000", True),
        ("subtraction", "12", "-12", False),
        ("mean", "7/2", "7/2", True),
        ("mean", "7/2", "3.5", True),
        ("mean", "7/2", "3.4", False),
        ("mean", "7/2", "35e-1", True),
        ("mean", "1/3", "0.33", True),
        ("mean", "1/3", "0.3", False),
        ("mean", "1/3", "0.34", False),
        ("mean", "2/3", "0.66", True),
        ("mean", "2/3", "0.67", True),
        ("mean", "-2/3", "-0.67", True),
        ("mean", "-2/3", "-0.66", True),
        ("mean", "-2/3", "-0.65", False),
        ("mean", "1/3", "0.333333333333333333333333333333", True),
        ("mean", "1/3", "0.333333333333333333333333333334", False),
        ("mean", "1000/3", "333", False),
        ("division", "1/300", "0.00", False),
        ("division", "1/300", "0.0033", True),
        ("division", "1/300", "3.3e-3", True),
        ("division", "1/300", "0.003", False),
        ("division", "0.004", "0.004", True),
        ("division", "0.004", "-0.004", False),
        ("division", "5", "5.001", False),
        ("division", "5", "5/0", False),
        ("median", "19/2", "9.5", True),
        ("median", "19/2", "9.51", False),
        ("even_count", "2", "2.0", True),
        ("multiplication", "84", "84.9", False),
        ("sum", "5", "5 apples", False),
        ("sum", "5", "", False),
        ("sum", "5", "５", False),
        ("sum", "5", "5e999999", False),
        ("sum", "5", "9" * 5000, False),
        ("sorting", "[-3, 5, 12]", "[-3, 5, 12]", True),
        ("sorting", "[-3, 5, 12]", "-3, 5, 12", True),
        ("sorting", "[-3, 5, 12]", "-3 5 12", True),
        ("sorting", "[-3, 5, 12]", "[-3, 12, 5]", False),
        ("sorting", "[-3, 5, 12]", "[-3.9, 5.2, 12.7]", False),
        ("sorting", "[-3, 5, 12]", "[-3, 5]", False),
        ("sorting", "[-3, 5, 12]", "[-3, 5, 12, 12]", False),
        ("sorting", "[-3, 5, 12]", "[-3, 5, twelve]", False),
        ("sorting", "[-3, 5, 12]", "", False),
    ],
)
def test_plain_answers_are_judged_exactly(name, reference, answer, right):
    assert get_task(name).right(reference, answer) is right


@given(st.fractions(), st.integers(2, 12))
def test_a_rounded_decimal_is_right_and_its_neighbours_are_not(value, digits):
    task = get_task("mean")
    scaled = round(value * 10**digits)
    if scaled == value * 10**digits:
        assert task.right(str(value), _decimal(scaled, digits))
        return
    significant = len(str(abs(scaled)))
    assert task.right(str(value), _decimal(scaled, digits)) is (significant >= 2 and scaled != 0)
    for neighbour in (scaled - 2, scaled + 2):
        assert not task.right(str(value), _decimal(neighbour, digits))


def _decimal(scaled: int, digits: int) -> str:
    sign = "-" if scaled < 0 else ""
    text = str(abs(scaled)).rjust(digits + 1, "0")
    return f"{sign}{text[:-digits]}.{text[-digits:]}"


@given(st.text(), st.sampled_from(NAMES))
def test_no_answer_makes_a_validator_raise(answer, name):
    reference = questions_of(name, 1)[0].reference
    assert get_task(name).right(reference, answer) in (True, False)


@given(st.integers(), st.integers(1, 10**40), st.integers(0, 5))
def test_draws_stay_in_their_range(low, width, key):
    draws = StableDraws("test", key)
    assert all(low <= draws.integer(low, low + width - 1) < low + width for _ in range(5))


def test_a_new_task_is_one_file(tmp_path, monkeypatch):
    (tmp_path / "last_number.py").write_text(
        "from data.tasks.base import Instance, Task, shown\n"
        "from data.tasks.plain import same_number\n"
        "TASK = Task(name='last_number', category='basic', sample=Instance.integers,\n"
        "    solve=lambda numbers: str(numbers[-1]), right=same_number,\n"
        "    ask=lambda numbers: f'What is the last number of {shown(numbers)}?')\n"
    )
    monkeypatch.setattr(data.tasks, "__path__", [*data.tasks.__path__, str(tmp_path)])
    data.tasks._tasks.cache_clear()
    try:
        assert "last_number" in task_names()
        question = questions_of("last_number", 1)[0]
        assert question.reference == str(numbers_of(question)[-1])
    finally:
        data.tasks._tasks.cache_clear()
        sys.modules.pop("data.tasks.last_number", None)
