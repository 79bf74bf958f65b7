"""Stages one and two where a model answers without thinking (see :mod:`stp.campaign.direct`).

A trajectory has no thinking, and its original answer is what is measured. It has the one position
k = 0, whose one probe is that answer itself: its curve is a point, and nothing is sampled twice.
"""

from typing import Any

import pyarrow as pa

from stp.campaign.asks import Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.fit import answer_limit
from stp.campaign.prepare import Subject
from stp.campaign.tables import make_table
from stp.campaign.trajectories import (
    OnProgress,
    UnitProgress,
    asked_trajectories,
    by_question,
    question_tree,
    sampled,
    trajectory_rows,
)
from stp.campaign.units import Unit


def answer_unit(
    unit: Unit,
    questions: pa.Table,
    *,
    subject: Subject,
    config: CampaignConfig,
    on_progress: OnProgress | None = None,
) -> Asking[pa.Table]:
    """Ask for a unit's answers, without thinking; return their ``trajectories`` rows.

    Parameters
    ----------
    unit, questions, subject, config, on_progress
        As :func:`stp.campaign.generate.generate_unit`.

    Raises
    ------
    data.errors.EngineError
        If a tree fails; there are no rows then.
    """
    trajectories = asked_trajectories(unit, questions, config, phase=config.generation.mode)
    groups = by_question(trajectories)
    trees = [
        question_tree(
            group,
            subject,
            max_tokens=answer_limit(
                len(group[0].prompt_ids),
                answer_tokens=config.generation.answer_tokens,
                context_limit=subject.context_limit,
            ),
            stop_ids=subject.format.answer_stop_ids,
        )
        for group in groups
    ]
    for group, tree in zip(groups, trees, strict=True):
        for item in group:
            item.thinking_finish, item.answer_limit = "off", tree.max_tokens
    progress = UnitProgress(on_progress, total=len(trajectories))
    for item, completion in (yield from sampled(groups, trees, progress)):
        item.answer_ids, item.answer_finish = completion.token_ids, completion.finish
    return trajectory_rows(unit, trajectories)


def answer_positions(unit: Unit, trajectories: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the ``positions`` and ``probes`` rows of a unit's answers; no model is asked."""
    count = trajectories.num_rows
    keys = {name: trajectories[name].to_pylist() for name in ("question", "trajectory")}
    zeros = [0] * count
    positions = {**keys, "position": zeros, "tokens": zeros}
    probes = {
        **keys,
        "position": zeros,
        "sample": zeros,
        "finish": trajectories["answer_finish"].to_pylist(),
        **{name: trajectories[name].to_pylist() for name in ("seed", "answer_ids", "answer_limit")},
    }
    cell = _cell(unit, count)
    return (
        make_table("positions", {**cell, **positions}),
        make_table("probes", {**cell, **probes}),
    )


def _cell(unit: Unit, count: int) -> dict[str, list[Any]]:
    return {"model": [unit.cell.model] * count, "benchmark": [unit.cell.benchmark] * count}
