"""Extraction: boxes, thinking, marks, retractions; each against its definition or a naive twin."""

import itertools
import string

from hypothesis import example, given
from hypothesis import strategies as st

from evaluator.answers.boxes import last_boxes, matching_brace
from evaluator.answers.code import last_fenced_block
from evaluator.answers.math_extraction import extract
from evaluator.answers.retractions import retraction
from evaluator.answers.visible import visible_text

pieces = st.lists(
    st.sampled_from(
        ["{", "}", r"\{", r"\}", r"\\", r"\boxed{", r"\fbox{", "box", "a", "12", " ", "$", "\n"]
    ),
    max_size=40,
)


def naive_matching_brace(text: str, opening: int) -> int:
    depth, position = 0, opening
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        if text[position] == "{":
            depth += 1
        if text[position] == "}":
            depth -= 1
            if depth == 0:
                return position
        position += 1
    return -1


@given(pieces)
@example(["{", r"\}", "}"])
def test_matching_brace_as_the_naive_one(parts: list[str]) -> None:
    text = "{" + "".join(parts)
    assert matching_brace(text, 0) == naive_matching_brace(text, 0)


@given(pieces)
def test_boxes_lie_in_their_text_in_order(parts: list[str]) -> None:
    text = "".join(parts)
    boxes = last_boxes(text)
    assert [box.start for box in boxes] == sorted(box.start for box in boxes)
    for box in boxes:
        assert text.startswith(("\\boxed", "\\fbox"), box.start)
        assert box.content in text[box.start : box.end] or not box.closed
    for first, second in itertools.pairwise(boxes):
        assert first.end <= second.start


@given(st.text(alphabet=string.ascii_letters + string.digits + " +-*/^_{}\\", max_size=30))
def test_a_balanced_box_is_read_whole(content: str) -> None:
    balanced = naive_matching_brace("{" + content + "}", 0) == len(content) + 1
    if balanced and "box" not in content:
        assert last_boxes(f"so $\\boxed{{{content}}}$ holds")[-1].content == content


@given(st.text(max_size=60), st.text(max_size=60))
def test_everything_before_the_last_end_marker_is_thinking(thinking: str, answer: str) -> None:
    answer = answer.replace("<", "").replace("[", "")
    assert visible_text(f"{thinking}</think>{answer}") == answer
    assert visible_text(f"<think>{thinking.replace('</think>', '')}") is None


def test_thinking_of_other_families() -> None:
    final = "<|start|>assistant<|channel|>final<|message|>"
    assert visible_text(f"<|channel|>analysis<|message|>a<|end|>{final}b<|return|>") == "b"
    assert (
        visible_text("<|channel|>analysis<|message|>a<|end|><|channel|>analysis<|message|>b")
        is None
    )
    assert visible_text("analysisWe add.assistantfinal4") == "4"
    assert visible_text("[THINK]a[/THINK]b") == "b"
    assert visible_text("[THINK]a") is None
    assert visible_text("analysis of the problem: 4") == "analysis of the problem: 4"


def test_several_boxes_are_one_answer_only_where_they_are_joined() -> None:
    assert extract(r"$\boxed{1}$ and $\boxed{2}$") == "1, 2"
    assert extract(r"\boxed{1} so \boxed{2}") == "2"
    assert extract("a = \\boxed{1}\nb = \\boxed{2}", parts=1) == "2"
    assert extract("a is \\boxed{1}\nb is \\boxed{2}", parts=2) == "1, 2"
    assert extract("a is \\boxed{1}\nWait, it is \\boxed{2}", parts=2) == "2"


def test_retractions() -> None:
    assert retraction("") == (False, None)
    assert retraction(". This is the only solution.") == (False, None)
    assert retraction(".\n\nWait, that is wrong. It should be 9.") == (True, "9")
    assert retraction(". Hold on, that's incorrect.") == (True, None)
    assert retraction(". Wait, let me check: 2 + 2 = 4, fine.") == (False, None)


def test_an_answer_that_ran_away_is_none() -> None:
    assert extract("\\boxed{" + "1" * 1999 + "}") is not None
    assert extract("\\boxed{" + "1" * 2001 + "}") is None


def test_fences() -> None:
    assert last_fenced_block("~~~\nx\n~~~\n") == "x\n"
    assert last_fenced_block("````python\n```\nx\n```\n````\n") == "```\nx\n```\n"
    assert last_fenced_block("```python\na\n```\nthen\n```python\nb") is None
    assert last_fenced_block("```python\na\n```\n```") == "a\n"
    assert last_fenced_block("```python\n\n```") is None
    assert last_fenced_block("no fence, `x = 1`") is None
    assert last_fenced_block("```python\r\na = 1\r\n```\r\n") == "a = 1\r\n"
