"""Choices: every letter in every decoration, and nothing that is not a letter."""

import itertools

import pytest

from data.question import Question
from evaluator.answers.choices import ChoiceJudge

OPTIONS = ("12 m/s", "15 m/s", "18 m/s", "21 m/s")
DECORATIONS = (
    "{}", "({})", "{}.", "{})", "**{}**", "({}).", "**({})**", r"\boxed{{{}}}",
    r"\boxed{{\text{{{}}}}}",
    r"\(\boxed{{\mathrm{{{}}}}}\)", "`{}`", "[{}]", "'{}'",
)  # fmt: skip
MARKS = (
    "Answer: {}", "**Answer:** {}", "**Answer: {}**", "Final Answer: {}",
    "The correct answer is {}",
    "The answer is {}", "So the correct option is {}.", "I choose {}", "\"answer\": \"{}\"",
    "<answer>{}</answer>",
    "Reasoning.\n\n{}", "{}\n\nReasoning.", "The answer is {} because the force is zero.",
)  # fmt: skip


def judge(reference: str = "A", choices: tuple[str, ...] = OPTIONS) -> ChoiceJudge:
    return ChoiceJudge(
        Question(id="q", prompt="", reference=reference, answer_kind="choice", choices=choices)
    )


@pytest.mark.parametrize("letter", "ABCD")
def test_letters_in_all_decorations(letter: str) -> None:
    reader = judge()
    for mark, decoration in itertools.product(MARKS, DECORATIONS):
        response = mark.format(decoration.format(letter))
        assert reader.extract(response) == letter, response


@pytest.mark.parametrize("letter", "abcd")
def test_lower_case_where_it_stands_alone(letter: str) -> None:
    reader = judge()
    for response in (
        f"Answer: {letter}",
        f"({letter})",
        rf"\boxed{{{letter}}}",
        f"answer: **{letter}**",
    ):
        assert reader.extract(response) == letter.upper(), response


@pytest.mark.parametrize("index", range(4))
def test_the_options_text_stands_for_its_letter(index: int) -> None:
    reader, option = judge(), OPTIONS[index]
    for response in (
        f"Answer: {option}",
        f"The answer is {option}.",
        rf"\boxed{{{option}}}",
        f"**{option}**",
    ):
        assert reader.extract(response) == "ABCD"[index], response


def test_no_option_no_answer() -> None:
    reader = judge()
    for response in (
        "", "A long story without an end", "Answer: E", "Answer: 16 m/s", "Cannot say.",
        "Answer: A or D",
        "Answer: (A) and (B)", r"\boxed{A, B, C}", r"\boxed{\Delta}", r"\boxed{A_1}",
        r"\boxed{AB}", "A/B",
        "Answer: Both", "Answer: D'Alembert", "answer: a force", "The answer depends on B.",
    ):  # fmt: skip
        assert reader.extract(response) is None, response


def test_two_options_with_one_text_are_told_apart_by_letter_only() -> None:
    reader = judge(choices=("same", "same", "other"))
    assert reader.extract("Answer: same") is None
    assert reader.extract("Answer: B) same") == "B"
    assert reader.extract("Answer: other") == "C"


def test_options_that_are_letters() -> None:
    reader = judge(choices=("C", "A", "B"))
    assert reader.extract("Answer: A") == "A"


def test_the_last_mark_counts() -> None:
    reader = judge()
    assert reader.extract("Answer: A\n\nAnswer: B") == "B"
    assert reader.extract("\\boxed{A}\n\nOn reflection, Answer: C") == "C"
    assert reader.extract("Answer: A. No: option C is correct.") == "C"
    assert reader.extract("Answer: B\n\nOption A is incorrect.") == "B"


def test_an_empty_option_does_not_move_the_others_values() -> None:
    reader = judge("C", (r"\frac{1}{2}", "", r"\frac{3}{4}", "2"))
    assert reader.extract(r"\boxed{0.75}") == "C"
    assert reader.extract(r"\boxed{\frac{4}{2}}") == "D"


def test_two_options_of_one_value_are_told_apart_by_text_and_letter_only() -> None:
    reader = judge(choices=(r"\frac{1}{2}", "0.5", "0.75"))
    assert reader.extract(r"\boxed{\frac{2}{4}}") is None
    assert reader.extract(r"\boxed{0.5}") == "B"
    assert reader.extract(r"\boxed{\frac{3}{4}}") == "C"
