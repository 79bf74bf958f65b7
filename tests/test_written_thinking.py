"""Thinking between tags in a text, by characters and by token ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stp.formats.written import part_ids, written_thinking
from stp.tokenizers import token_bytes
from tests.small_tokenizers import byte_level_tokenizer


def parts(text, **options):
    found = written_thinking(text, **options)
    if found is None:
        return None, text
    return text[found.start : found.end], text[found.answer :] if found.closed else None


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("It is 4.", None, "It is 4."),
        ("", None, ""),
        ("<think>2 + 2</think>4", "2 + 2", "4"),
        ("\n <think>\n2 + 2\n</think>\n\n4", "\n2 + 2\n", "\n\n4"),
        ("2 + 2</think>4", "2 + 2", "4"),
        ("<think>2 + 2", "2 + 2", None),
        ("<think></think>4", "", "4"),
        ("<THINK>2</Think>4", "2", "4"),
        ("[THINK]2[/THINK]4", "2", "4"),
        ("<thought>2</thought>4", "2", "4"),
        ("◁think▷é2◁/think▷4", "é2", "4"),
        # The last end counts, as where answers are read from texts.
        ("<think>2</think>4</think>5", "2</think>4", "5"),
        ("<think>2</think><think>3", "2</think><think>3", None),
        ("Sure. <think>2</think>4", "2", "4"),
        # Tags that an answer only speaks of.
        ("The tag <think> opens it.", None, "The tag <think> opens it."),
        ("```\n<think>x</think>\n```", None, "```\n<think>x</think>\n```"),
        ("a < b and b > c", None, "a < b and b > c"),
    ],
)
def test_where_thinking_stands(text, thinking, answer):
    assert parts(text) == (thinking, answer)


def test_thinking_that_the_prompt_opened():
    assert parts("2 + 2", open_from_start=True) == ("2 + 2", None)
    assert parts("2 + 2</think>4", open_from_start=True) == ("2 + 2", "4")


TOKENIZER = byte_level_tokenizer()
FORMS = token_bytes(TOKENIZER)


@pytest.mark.parametrize("added", [("<think>", "</think>"), ()])
def test_ids_are_parted_as_the_text_is(added):
    tokenizer = byte_level_tokenizer(added=added)
    forms = token_bytes(tokenizer)
    ids = tokenizer.encode("<think>\nSo it is 4.</think>\nYes").ids
    thinking, answer, answered = part_ids(ids, forms)
    assert b"".join(forms[i] for i in thinking).strip() in (b"So it is 4.", b"So it is 4")
    assert b"".join(forms[i] for i in answer).strip() == b"Yes"
    assert answered


def test_a_token_across_the_end_is_the_answers():
    whole = byte_level_tokenizer(added=())
    forms = token_bytes(whole)
    ids = whole.encode("<think>So it is</think>The answer").ids
    thinking, answer, _ = part_ids(ids, forms)
    assert b"".join(forms[i] for i in thinking) == b"So it is"
    assert b"".join(forms[i] for i in answer) == b">The answer"


@given(st.lists(st.integers(0, len(FORMS) - 1), max_size=30))
def test_no_id_is_in_both_parts_and_their_order_stays(ids):
    thinking, answer, answered = part_ids(ids, FORMS)
    rest = iter(ids)
    assert all(token in rest for token in (*thinking, *answer))
    found = written_thinking(b"".join(FORMS[i] for i in ids).decode("utf-8", "surrogateescape"))
    assert answered is (found is None or found.closed)
    if found is None:
        assert answer == tuple(ids)
