"""UT-Reasoning: the eleven tasks, that they come back, and that verifiers are safe to feed."""

import inspect
import json
import os
import re
import subprocess
import sys
import time

import pytest
from reasoning_gym.factory import DATASETS

from data import Question, get_benchmark
from data.catalogue.underthinking import TASKS
from data.errors import MisuseError
from data.reasoning_gym_tasks import entry_of, gym_questions
from evaluator.answers import BadReferenceError, Checker
from evaluator.answers.judges import judge_for
from evaluator.answers.reasoning_gym import (
    ALGEBRA_TASKS,
    ARITHMETIC_TASKS,
    LITERAL_TASKS,
    partial_credit,
    spellings,
)

# Made by trial and error there: half a second a question.
SLOW_TASKS = {"puzzle24": 2, "knight_swap": 6}


def first(dataset, count=4):
    task = next(task for task in TASKS if task.dataset == dataset)
    return gym_questions(dataset, task.parameters, count=count)


@pytest.fixture(scope="module")
def checker():
    with Checker() as made:
        yield made


def test_there_are_the_papers_eleven_with_its_settings():
    settings = {task.dataset: task.parameters for task in TASKS}
    assert settings == {
        "ab": {"length": 20},
        "advanced_geometry": {"min_coord": -20, "max_coord": 20},
        "knight_swap": {},
        "tsumego": {"min_board_size": 15, "max_board_size": 19, "max_stones": 20},
        "fraction_simplification": {},
        "propositional_logic": {},
        "bitwise_arithmetic": {"difficulty": 4},
        "letter_counting": {"min_words": 25, "max_words": 35},
        "maze": {"min_dist": 15, "max_dist": 25, "min_grid_size": 15, "max_grid_size": 25},
        "puzzle24": {"min_value": 8, "max_value": 10},
        "quantum_lock": {"difficulty": 25},
    }
    for task in TASKS:
        assert get_benchmark(f"ut-{task.dataset}").expected_count == 50


@pytest.mark.parametrize("dataset", [task.dataset for task in TASKS])
def test_own_answers_are_right_and_others_are_not(dataset, checker):
    count = SLOW_TASKS.get(dataset, 50)
    questions = get_benchmark(f"ut-{dataset}").load(limit=count)
    assert len({question.id for question in questions}) == count
    for question in questions:
        own = json.loads(question.reference)["answer"]
        assert checker.check(question, f"Therefore \\boxed{{{own}}}.").right, own
        assert not checker.check(question, "I cannot say.").right
        assert not checker.check(question, "\\boxed{}").right
        wrong = checker.check(question, "\\boxed{Zzz}")
        assert not wrong.right
        assert 0 <= partial_credit(wrong) < 1


def test_questions_do_not_depend_on_the_hash_seed():
    program = (
        "from data.reasoning_gym_tasks import gym_questions; import hashlib;"
        "from data.catalogue.underthinking import TASKS;"
        "texts = [repr(q) for t in TASKS"
        "         for q in gym_questions(t.dataset, t.parameters, count=2)];"
        "print(hashlib.sha256('|'.join(texts).encode()).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_fewer_questions_are_the_beginning_of_more_and_another_seed_gives_others():
    assert first("ab", 2) == first("ab", 5)[:2]
    assert gym_questions("ab", {"length": 20}, seed=1, count=2) != first("ab", 2)


@pytest.mark.parametrize(
    ("dataset", "write"),
    [
        ("advanced_geometry", lambda own: own.replace("°", "^\\circ")),
        ("propositional_logic", lambda own: own.replace("∧", "\\land ").replace("∨", "\\lor ")),
        ("fraction_simplification", lambda own: own.strip("$").replace("\\dfrac", "\\frac")),
        ("quantum_lock", lambda own: own.replace("→", "\\rightarrow")),
        ("quantum_lock", lambda own: f"\\text{{{own}}}"),
        ("ab", lambda own: own.replace("#", "\\#")),
        ("ab", lambda own: f"\\texttt{{{own}}}"),
        ("letter_counting", lambda own: f"\\mathbf{{{own}}}"),
        ("tsumego", lambda own: f"\\text{{{own.lower()}}}"),
        ("puzzle24", lambda own: own.replace("*", "\\times ")),
        ("puzzle24", lambda own: f"{own} = 24"),
    ],
)
def test_answers_in_latex_are_read(dataset, write, checker):
    for question in first(dataset, 2):
        own = json.loads(question.reference)["answer"]
        assert checker.check(question, f"\\boxed{{{write(own)}}}").right, write(own)


def test_the_last_box_counts_and_a_box_that_was_cut_is_no_answer(checker):
    question = first("letter_counting")[0]
    own = json.loads(question.reference)["answer"]
    assert checker.check(question, f"\\boxed{{1}}, no: \\boxed{{{own}}}").right
    assert not checker.check(question, f"\\boxed{{{own}}} or rather \\boxed{{1}}").right
    assert checker.check(question, f"\\boxed{{{own}").answer is None


def test_partial_credit_is_no_accuracy(checker):
    question = first("letter_counting")[0]
    own = json.loads(question.reference)["answer"]
    verdict = checker.check(question, f"\\boxed{{about {own}}}")
    assert not verdict.right
    assert 0 < partial_credit(verdict) < 1


def test_twenty_four_of_other_numbers_is_wrong_though_the_verifier_takes_it(checker):
    question = first("puzzle24", 1)[0]
    # Four numbers of the range, and 24.2 cut down to 24; none of the given ones is used up.
    for answer in ("9 + 9 + 8 - 8/10 - 0", "8*9/9 + 8 + 8", "10 + 8 + 8 - 8 + 6"):
        assert not checker.check(question, f"\\boxed{{{answer}}}").right
    judge = judge_for(question)
    assert judge.credit("9*8/9*10 - 8*8 + 8") < 1
    verdict = checker.check(question, "\\boxed{8*9*10/9 - 8*7}")
    assert not verdict.right


@pytest.mark.parametrize(
    ("dataset", "parameters"),
    [
        ("puzzle24", {"min_value": 8, "max_value": 10}),
        ("countdown", {}),
        ("polynomial_multiplication", {}),
        ("simple_integration", {}),
        ("spiral_matrix", {}),
        ("n_queens", {}),
    ],
)
def test_answers_are_never_run_as_programs(dataset, parameters, tmp_path, checker):
    question = gym_questions(dataset, parameters, count=1)[0]
    mark = tmp_path / "ran"
    attack = f"__import__('pathlib').Path('{mark}').touch()"
    for answer in (attack, f"[{attack}]", f"({attack}, 1)[1]", f"8*3 if {attack} else 24"):
        assert not checker.check(question, f"<answer>{answer}</answer>").right
        assert not checker.check(question, f"\\boxed{{{answer}}}").right
    assert not mark.exists()
    # Nor do they take the machine's memory.
    assert not checker.check(question, "\\boxed{9**9**9**9}").right


def test_every_verifier_that_evaluates_answers_is_known():
    found = set()
    for name, (dataset, _) in DATASETS.items():
        score = inspect.getsource(dataset.score_answer)
        if re.search(r"(?<![_\w.])eval\(|parse_expr\(answer|exec\(", score):
            found.add(name)
    # Evaluates its own reference, not the answer.
    found.discard("number_sorting")
    assert found == ARITHMETIC_TASKS | ALGEBRA_TASKS | LITERAL_TASKS


def test_any_other_data_set_can_be_asked(checker):
    for dataset in ("rearc", "chain_sum", "polynomial_multiplication", "spiral_matrix"):
        question = gym_questions(dataset, {}, count=1)[0]
        own = json.loads(question.reference)["answer"]
        assert checker.check(question, f"<answer>{own}</answer>").right, dataset


def test_a_name_or_a_setting_that_there_is_not_is_one_line():
    with pytest.raises(MisuseError, match=r"no task 'mazes'; there are maze"):
        gym_questions("mazes", {}, count=1)
    with pytest.raises(MisuseError, match="maze"):
        gym_questions("maze", {"min_distance": 3}, count=1)


def test_a_reference_of_another_kind_is_an_error_not_a_verdict(checker):
    question = Question(id="q", prompt="?", reference="17", answer_kind="reasoning_gym")
    with pytest.raises(BadReferenceError, match="question q"):
        checker.check(question, "\\boxed{17}")


def test_references_hold_what_verifiers_need_exactly():
    question = gym_questions("rearc", {}, count=1)[0]
    dataset, _, entry = entry_of(question.reference)
    assert dataset == "rearc"
    assert isinstance(entry["metadata"]["output"], tuple)


def test_spellings_start_with_what_was_written():
    assert next(iter(spellings(r"\frac{1}{2}"))) == r"\frac{1}{2}"
    assert "1/2" in set(spellings(r"\frac{1}{2}"))


def test_a_task_that_makes_all_questions_at_once_is_made_in_a_moment():
    begin = time.process_time()
    questions = gym_questions("acre", {}, count=3)
    assert time.process_time() - begin < 30
    assert questions[:2] == gym_questions("acre", {}, count=2)
