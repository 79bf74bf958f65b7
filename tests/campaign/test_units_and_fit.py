"""How work is cut into units, and what fits a context."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stp.campaign.fit import answer_limit, fit_prompt, fit_tree
from stp.campaign.units import Cell, plan_units
from stp.engines.base import Branch, PromptTree


@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_units_hold_every_trajectory_once(questions, trajectories, per_unit, of_each):
    cell = Cell(model="m", benchmark="b", questions=questions)
    units = list(
        plan_units(
            cell,
            questions_per_unit=per_unit,
            trajectories_per_unit=of_each,
            trajectories=trajectories,
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
