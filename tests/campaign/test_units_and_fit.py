"""How work is cut into units, and what fits a context."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from stp.campaign import run_campaign
from stp.campaign.fit import answer_limit, fit_prompt, fit_tree
from stp.campaign.prepare import _MENDED_BOUNDARY_TOKENS
from stp.campaign.units import Cell, plan_units
from stp.engines.base import Branch, PromptTree
from stp.formats import ThinkingFormat, get_family
from stp.prefixes import probe_tree
from stp.segmentation import boundary_token_ids, content_token_ids, segment
from tests.campaign.fakes import ScriptedEngine, write_model_folder
from tests.campaign.rows import table_rows
from tests.effort import tries
from tests.small_tokenizers import (
    CHATML_OPEN,
    THINK_WORDS,
    byte_level_tokenizer,
    ids_of,
    with_template,
)


@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_units_hold_every_trajectory_once(questions, trajectories, per_unit, of_each):
    cell = Cell(model="m", benchmark="b", questions=questions)
    units = list(
        plan_units(
            cell,
            questions_per_unit=per_unit,
            trajectories_per_unit=of_each,
            trajectories=range(trajectories),
        )
    )
    held = [
        pair
        for unit in units
        for pair in itertools.product(
            range(unit.question_start, unit.question_stop),
            range(unit.trajectory_start, unit.trajectory_stop),
        )
    ]
    assert sorted(held) == list(itertools.product(range(questions), range(trajectories)))
    assert [unit.number for unit in units] == list(range(len(units)))
    assert sum(unit.trajectories for unit in units) == len(held)
    assert len({unit.shard("probes") for unit in units}) == len(units)


def test_names_that_are_no_file_names_are_quoted():
    folder = Cell(model="m", benchmark="a/../b", questions=1).folder
    assert folder.count("/") == 1


@pytest.mark.parametrize(
    ("prompt", "kind", "limit"), [(40, "whole", 30), (79, "shortened", 1), (80, "too_long", 0)]
)
def test_three_prompts_against_a_context_of_100(prompt, kind, limit):
    fit = fit_prompt(
        prompt, closing_tokens=0, thinking_limit=30, answer_tokens=20, context_limit=100
    )
    assert (fit.kind, fit.thinking_limit) == (kind, limit)


@given(
    st.integers(1, 200),
    st.integers(0, 5),
    st.integers(1, 99),
    st.integers(1, 50),
    st.integers(1, 200),
)
def test_every_prefix_of_a_fitting_question_can_be_probed(
    prompt, closing, thinking, answer, context
):
    fit = fit_prompt(
        prompt,
        closing_tokens=closing,
        thinking_limit=thinking,
        answer_tokens=answer,
        context_limit=context,
    )
    longest = prompt + fit.thinking_limit + closing
    room = answer_limit(longest, answer_tokens=answer, context_limit=context)
    if fit.kind == "whole":
        assert (fit.thinking_limit, room) == (thinking, answer)
    elif fit.kind == "shortened":
        assert room == answer
        assert 1 <= fit.thinking_limit < thinking
    else:
        assert prompt + closing + answer >= context


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(1, 20), st.integers(5, 50))
def test_a_fitted_tree_gives_each_branch_the_room_that_it_has(cuts, answer, context):
    branches = tuple(Branch(cut=cut, suffix_ids=(1,), seeds=(cut,)) for cut in sorted(cuts))
    tree = PromptTree(trunk_ids=(0,) * 30, branches=branches, max_tokens=answer)
    limits = {
        index: part.tree.max_tokens
        for part in fit_tree(tree, context_limit=context)
        for index, branch in zip(part.branches, part.tree.branches, strict=True)
        if branch == branches[index]
    }
    rooms = [min(answer, context - branch.cut - 1) for branch in branches]
    assert limits == {index: room for index, room in enumerate(rooms) if room > 0}


def test_a_tree_that_fits_whole_stays_one_tree():
    tree = PromptTree(
        trunk_ids=(1, 2, 3),
        branches=(
            Branch(cut=1, suffix_ids=(), seeds=(1,)),
            Branch(cut=3, suffix_ids=(), seeds=(2,)),
        ),
        max_tokens=5,
    )
    (part,) = fit_tree(tree, context_limit=8)
    assert part.tree == tree


SPELLED = ("", "a", "ab", "abc", "abcd", "abcdefgh")
"""Texts of boundary tokens: a vocabulary without words spells each in its letters."""
TOKENIZER = byte_level_tokenizer((*THINK_WORDS, *(f"{text}\n\n" for text in SPELLED)))
FORM = ThinkingFormat(get_family("demo"), with_template(TOKENIZER, CHATML_OPEN))
CONTENT = content_token_ids(TOKENIZER, boundary_token_ids(TOKENIZER))


def probed(text, *, prompt, thinking, generation, probing, context, words):
    """Return the room for answers at every position of a trajectory that fills its limit."""
    fit = fit_prompt(
        prompt,
        closing_tokens=len(FORM.close_ids) + _MENDED_BOUNDARY_TOKENS,
        thinking_limit=thinking,
        answer_tokens=max(generation, probing),
        context_limit=context,
    )
    if fit.kind == "too_long":
        return []
    (boundary,) = ids_of(TOKENIZER, f"{text}\n\n")
    (word,) = ids_of(TOKENIZER, "So")
    ids = [boundary if end else word for end in itertools.islice(itertools.cycle(words), 200)]
    # From the back, so that the trajectory ends as the words do.
    ids = (ids * (1 + fit.thinking_limit // len(ids)))[-fit.thinking_limit :]
    tree = probe_tree(
        (word,) * prompt,
        ids,
        segment(ids, CONTENT, 3).tolist(),
        format=FORM,
        content_ids=CONTENT,
        seeds=lambda position: (position,),
        max_tokens=probing,
    )
    rooms = [0] * len(tree.branches)
    for part in fit_tree(tree, context_limit=context):
        for index in part.branches:
            rooms[index] = part.tree.max_tokens
    return rooms


LIMITS = {
    "prompt": st.integers(1, 60),
    "thinking": st.integers(1, 60),
    "generation": st.integers(1, 20),
    "probing": st.integers(1, 20),
    "context": st.integers(1, 140),
    "words": st.lists(st.booleans(), min_size=1, max_size=6),
}


@settings(max_examples=tries(300, 100), deadline=None)
@given(text=st.sampled_from([text for text in SPELLED if len(text) <= 3]), **LIMITS)
def test_answers_are_never_cut_where_boundaries_are_spelled_in_few_tokens(text, **limits):
    assert len(CONTENT[ids_of(TOKENIZER, f"{text}\n\n")[0]]) == len(text)
    assert set(probed(text, **limits)) <= {limits["probing"]}


@settings(max_examples=tries(300, 100), deadline=None)
@given(text=st.sampled_from(["abcd", "abcdefgh"]), **LIMITS)
def test_answers_are_cut_by_what_a_longer_boundary_takes(text, **limits):
    """Room is kept for three tokens of a boundary's text, one of them in the boundary's place."""
    rooms = probed(text, **limits)
    over = len(text) - 1 - _MENDED_BOUNDARY_TOKENS
    assert all(room >= min(limits["probing"], max(0, limits["probing"] - over)) for room in rooms)


def test_a_boundary_spelled_in_many_tokens_takes_room_from_the_last_answer():
    limits = {"prompt": 10, "thinking": 60, "generation": 1, "context": 40, "words": [False, True]}
    assert probed("abc", probing=6, **limits)[-1] == 6
    assert probed("abcd", probing=6, **limits)[-1] == 5
    assert probed("abcdefgh", probing=6, **limits)[-1] == 1
    assert probed("abcdefgh", probing=5, **limits)[-1] == 0


class EndsOnABoundary(ScriptedEngine):
    """Thinks in one boundary token, again and again, and never ends."""

    def _thought(self, draws):
        return "abcdefgh\n\n" * 500


def test_a_probe_without_room_says_so_and_is_wrong(configure, tmp_path):
    folder = write_model_folder(tmp_path / "model")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["abcdefgh\n\n"])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = configure(model=folder, context_limit=200, thinking_limit=190)
    config = config.model_copy(
        update={
            name: getattr(config, name).model_copy(update={"answer_tokens": 5})
            for name in ("generation", "probing")
        }
    )
    opened = run_campaign(
        config, tmp_path / "c", open_model=lambda name, path: EndsOnABoundary(path, context=200)
    )
    assert opened.finished
    probes = table_rows(tmp_path / "c", "probes")
    last = {}
    for row in probes:
        key = (row["question"], row["trajectory"])
        last[key] = max(last.get(key, 0), row["position"])
    for row in probes:
        full = row["position"] == last[row["question"], row["trajectory"]]
        assert (row["finish"] == "too_long") == (row["answer_limit"] == 0) == full
    reasons = {
        row["reason"]
        for row in table_rows(tmp_path / "c", "verdicts")
        if row["position"] == last[row["question"], row["trajectory"]]
    }
    assert reasons == {"wrong: no answer: the prefix fills the context"}
