"""Prefixes: copied ids, mended boundaries, and a tree that an engine can take."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stp.formats import ThinkingFormat, get_family
from stp.prefixes import branch_ids, prefix_branch, probe_tree
from stp.segmentation import boundary_token_ids, content_token_ids, segment
from tests.effort import tries
from tests.small_tokenizers import (
    CHATML_OPEN,
    THINK_WORDS,
    byte_level_tokenizer,
    ids_of,
    with_template,
)

TOKENIZER = byte_level_tokenizer((*THINK_WORDS, "he", "llo", "hello"))
FORM = ThinkingFormat(get_family("demo"), with_template(TOKENIZER, CHATML_OPEN))
BOUNDARY = boundary_token_ids(TOKENIZER)
CONTENT = content_token_ids(TOKENIZER, BOUNDARY)
PROMPT = FORM.prompt_ids("2 + 2?", "")


def ids(*tokens):
    return ids_of(TOKENIZER, *tokens)


def sent(thinking, lengths, position):
    branch = prefix_branch(PROMPT, thinking, lengths, position, format=FORM, content_ids=CONTENT)
    return branch_ids(PROMPT + thinking, branch)


def test_stored_pieces_are_sent_as_they_are():
    """A vocabulary with `he`, `llo` and `hello`: decoding and encoding would join the two."""
    thinking = ids("he", "llo")
    assert tuple(FORM.tokenizer.encode("hello", add_special_tokens=False)) == ids("hello")
    assert sent(thinking, (0, 2), 1) == PROMPT + thinking + FORM.close_ids


THINKING = ids("So", ".\n\n", " it", ");\n\n//", " is", "\n\n", " 4")
LENGTHS = (0, 2, 4, 6, 7)


@pytest.mark.parametrize(
    ("position", "kept"),
    [
        (0, ()),
        (1, ids("So", ".")),
        (2, ids("So", ".\n\n", " it", ");")),
        (3, ids("So", ".\n\n", " it", ");\n\n//", " is")),
        (4, THINKING),
    ],
)
def test_the_boundary_before_the_close_is_mended(position, kept):
    assert sent(THINKING, LENGTHS, position) == PROMPT + kept + FORM.close_ids


def test_a_trajectory_that_ends_on_a_boundary_is_mended_at_its_end():
    assert sent(THINKING[:4], (0, 2, 4), 2) == (
        PROMPT + ids("So", ".\n\n", " it", ");") + FORM.close_ids
    )


def test_an_empty_trajectory_has_one_prefix():
    assert sent((), (0,), 0) == PROMPT + FORM.close_ids


def test_a_prompt_that_ends_on_a_boundary_is_left_alone():
    prompt = (*PROMPT, *ids("\n\n"))
    branch = prefix_branch(prompt, THINKING, LENGTHS, 0, format=FORM, content_ids=CONTENT)
    assert branch.cut == len(prompt)


@settings(max_examples=tries(200, 70), deadline=None)
@given(
    thinking=st.lists(st.sampled_from(ids("So", ".\n\n", "\n\n", ");\n\n//", " 4")), max_size=40),
    step_tokens=st.integers(1, 12),
)
def test_tree_laws(thinking, step_tokens):
    thinking = tuple(thinking)
    lengths = segment(thinking, BOUNDARY, step_tokens)
    tree = probe_tree(
        PROMPT,
        thinking,
        lengths,
        format=FORM,
        content_ids=CONTENT,
        seeds=lambda position: (position, position + 100),
        max_tokens=9,
    )
    assert tree.trunk_ids == PROMPT + thinking
    assert len(tree.branches) == len(lengths)
    cuts = [branch.cut for branch in tree.branches]
    assert cuts == sorted(cuts)
    for position, (branch, length) in enumerate(zip(tree.branches, lengths, strict=True)):
        assert branch.seeds == (position, position + 100)
        text = FORM.decode(branch_ids(tree.trunk_ids, branch)[len(PROMPT) :])
        whole = FORM.decode(thinking[:length])
        ends_on_boundary = length > 0 and thinking[length - 1] in BOUNDARY
        # What is cut off is the last boundary token from its first double newline on.
        if ends_on_boundary:
            last = FORM.decode(thinking[length - 1 : length])
            whole = whole.removesuffix(last) + last.partition("\n\n")[0]
        assert text == whole + "</think>\n\n"
    assert tree.stop_ids == FORM.answer_stop_ids
    assert tree.sampling == FORM.family.sampling


def test_some_positions_and_their_seeds():
    tree = probe_tree(
        PROMPT,
        THINKING,
        LENGTHS,
        format=FORM,
        content_ids=CONTENT,
        seeds=[(10,), (11,), (12, 13), (14,), (15,)],
        max_tokens=9,
        positions=(2, 4),
    )
    assert [branch.seeds for branch in tree.branches] == [(12, 13), (15,)]
    assert tree.branches[0].cut == len(PROMPT) + 3
    assert tree.branches[0].suffix_ids == ids(");") + FORM.close_ids
    assert FORM.decode(branch_ids(tree.trunk_ids, tree.branches[0])).endswith(
        "<|im_start|>assistant\n<think>\nSo.\n\n it);</think>\n\n"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positions": (2, 2)}, "positions must be at least one, and rise"),
        ({"positions": ()}, "positions must be at least one, and rise"),
        ({"positions": (5,)}, "position 5 is not one of 0..4"),
        ({"lengths": (0, 2, 4, 6)}, "lengths must go from 0 to the trajectory's 7 tokens"),
        ({"lengths": ()}, "lengths must go from 0"),
        ({"lengths": (0, 9, 7)}, r"L\(1\) = 9 does not fit"),
    ],
)
def test_misuse_is_a_value_error(change, message):
    arguments = {"lengths": LENGTHS} | change
    with pytest.raises(ValueError, match=message):
        probe_tree(
            PROMPT,
            THINKING,
            arguments.pop("lengths"),
            format=FORM,
            content_ids=CONTENT,
            seeds=lambda _: (1,),
            max_tokens=9,
            **arguments,
        )
