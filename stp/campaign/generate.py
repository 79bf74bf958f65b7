"""Stage one: trajectories. Question rows of a unit to trajectory rows, through an engine.

Each trajectory is sampled in two phases: the model thinks until it closes its thinking or reaches
the limit, and then, if it closed, it continues to its own original answer under a limit of its own.
Where only the answer's header tells that thinking is over (``end_needs_answer_open``), both come
from one phase and are cut at their limits afterwards, which gives the same tokens.
"""

import pyarrow as pa

from stp.campaign.asks import Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.fit import answer_limit
from stp.campaign.prepare import Subject
from stp.campaign.trajectories import (
    OnProgress,
    Trajectory,
    UnitProgress,
    asked_trajectories,
    by_question,
    question_tree,
    sampled,
    trajectory_rows,
    trajectory_seed,
)
from stp.campaign.units import Unit
from stp.engines.base import Branch, PromptTree
from stp.formats import SplitOutput


def generate_unit(
    unit: Unit,
    questions: pa.Table,
    *,
    subject: Subject,
    config: CampaignConfig,
    on_progress: OnProgress | None = None,
) -> Asking[pa.Table]:
    """Ask for a unit's trajectories; return their rows.

    Parameters
    ----------
    unit
        Which questions and trajectories.
    questions
        The ``questions`` rows of its cell. Those that are too long have no trajectories.
    subject, config
        How the model is prompted, and how much it may write.
    on_progress
        Told how far the unit is.

    Raises
    ------
    data.errors.EngineError
        If a tree fails; there are no rows then.
    """
    trajectories = asked_trajectories(unit, questions, config, phase="think")
    progress = UnitProgress(on_progress, total=2 * len(trajectories))
    if subject.format.family.end_needs_answer_open:
        yield from _think_and_answer(trajectories, subject, config, progress)
    else:
        yield from _think(trajectories, subject, progress)
        yield from _answer(trajectories, unit, subject, config, progress)
    return trajectory_rows(unit, trajectories)


def _think(
    trajectories: list[Trajectory], subject: Subject, progress: UnitProgress
) -> Asking[None]:
    """Sample the thinking of every trajectory, one tree per question."""
    groups = by_question([item for item in trajectories if item.thinking_limit > 0])
    trees = [
        question_tree(
            group,
            subject,
            max_tokens=group[0].thinking_limit,
            stop_ids=subject.format.thinking_stop_ids,
            stop_texts=subject.format.thinking_stop_texts,
        )
        for group in groups
    ]
    for item, completion in (yield from sampled(groups, trees, progress)):
        item.output_ids = completion.token_ids
        _take_thinking(item, subject.format.split(item.output_ids))


def _think_and_answer(
    trajectories: list[Trajectory],
    subject: Subject,
    config: CampaignConfig,
    progress: UnitProgress,
) -> Asking[None]:
    """Sample thinking and original answer in one go, then cut both at their limits."""
    groups = by_question(trajectories)
    answer_tokens = config.generation.answer_tokens
    trees = [
        question_tree(
            group,
            subject,
            max_tokens=answer_limit(
                len(group[0].prompt_ids),
                answer_tokens=(
                    group[0].thinking_limit + len(subject.format.close_ids) + answer_tokens
                ),
                context_limit=subject.context_limit,
            ),
            stop_ids=subject.format.answer_stop_ids,
        )
        for group in groups
    ]
    for item, completion in (yield from sampled(groups, trees, progress)):
        parts = subject.format.split(completion.token_ids)
        # As in two phases, thinking that fills its limit is cut: its end was not sampled yet.
        if len(parts.thinking_ids) >= item.thinking_limit:
            item.thinking_ids = parts.thinking_ids[: item.thinking_limit]
            continue
        _take_thinking(item, parts)
        if not parts.closed:
            continue
        before = len(item.prompt_ids) + len(completion.token_ids) - len(parts.answer_ids)
        item.answer_limit = answer_limit(
            before, answer_tokens=answer_tokens, context_limit=subject.context_limit
        )
        if item.answer_limit > 0:
            item.answer_ids = parts.answer_ids[: item.answer_limit]
            whole = completion.finish == "stop" and item.answer_ids == parts.answer_ids
            item.answer_finish = "stop" if whole else "length"


def _take_thinking(item: Trajectory, parts: SplitOutput) -> None:
    """Set what the output so far says of the thinking."""
    item.thinking_ids, item.thinking_finish = parts.thinking_ids, parts.thinking_finish


def _answer(
    trajectories: list[Trajectory],
    unit: Unit,
    subject: Subject,
    config: CampaignConfig,
    progress: UnitProgress,
) -> Asking[None]:
    """Let every trajectory that closed its thinking continue to its original answer."""
    trees: list[PromptTree] = []
    owners: list[list[Trajectory]] = []
    for item in trajectories:
        if item.thinking_finish != "end":
            continue
        trunk_ids = item.prompt_ids + item.output_ids
        item.answer_limit = answer_limit(
            len(trunk_ids),
            answer_tokens=config.generation.answer_tokens,
            context_limit=subject.context_limit,
        )
        if item.answer_limit == 0:
            continue
        seed = trajectory_seed(config, unit, item.question_id, item.trajectory, "answer")
        owners.append([item])
        trees.append(
            PromptTree(
                trunk_ids=trunk_ids,
                branches=(Branch(cut=len(trunk_ids), suffix_ids=(), seeds=(seed,)),),
                max_tokens=item.answer_limit,
                stop_ids=subject.format.answer_stop_ids,
                sampling=subject.sampling,
            )
        )
    for item, completion in (yield from sampled(owners, trees, progress)):
        parts = subject.format.split(item.output_ids + completion.token_ids)
        _take_thinking(item, parts)
        item.answer_ids, item.answer_finish = parts.answer_ids, completion.finish
