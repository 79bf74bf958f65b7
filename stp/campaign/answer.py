"""Stages one and two where a model answers without thinking (see :mod:`stp.campaign.direct`).

A trajectory has no thinking, and its original answer is what is measured. It has the one position
k = 0, whose one probe is that answer itself: its curve is a point, and nothing is sampled twice.
"""

from typing import Any

import pyarrow as pa

from stp.campaign.config import CampaignConfig
from stp.campaign.fit import answer_limit
from stp.campaign.generate import OnProgress
from stp.campaign.prepare import Subject
from stp.campaign.tables import make_table
from stp.campaign.units import Unit
from stp.engines.base import Branch, Engine, PromptTree
from stp.seeds import sample_seed


def answer_unit(
    unit: Unit,
    questions: pa.Table,
    *,
    subject: Subject,
    config: CampaignConfig,
    engine: Engine,
    on_progress: OnProgress | None = None,
) -> pa.Table:
    """Return the ``trajectories`` rows of a unit: answers, no thinking.

    Parameters
    ----------
    unit, questions, subject, config, engine, on_progress
        As :func:`stp.campaign.generate.generate_unit`.

    Raises
    ------
    data.errors.EngineError
        If the engine fails; there are no rows then.
    """
    rows = questions.slice(unit.question_start, unit.question_stop - unit.question_start)
    asked = [row for row in rows.to_pylist() if row["fit"] != "too_long"]
    numbers = range(unit.trajectory_start, unit.trajectory_stop)
    trees = []
    for row in asked:
        prompt_ids = tuple(row["prompt_ids"])
        seeds = tuple(
            sample_seed(
                config.seed,
                model=unit.cell.model,
                benchmark=unit.cell.benchmark,
                question=row["question_id"],
                trajectory=number,
                phase=config.generation.mode,
            )
            for number in numbers
        )
        trees.append(
            PromptTree(
                trunk_ids=prompt_ids,
                branches=(Branch(cut=len(prompt_ids), suffix_ids=(), seeds=seeds),),
                max_tokens=answer_limit(
                    len(prompt_ids),
                    answer_tokens=config.generation.answer_tokens,
                    context_limit=subject.context_limit,
                ),
                stop_ids=subject.format.answer_stop_ids,
                sampling=subject.sampling,
            )
        )
    total, done = len(asked) * len(numbers), 0

    def on_samples(ended: int) -> None:
        nonlocal done
        done += ended
        if on_progress is not None:
            on_progress(min(1.0, done / max(1, total)), ended)

    outcomes = engine.generate(trees, on_progress=on_samples) if trees else []
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "question",
            "trajectory",
            "seed",
            "answer_ids",
            "answer_finish",
            "answer_limit",
        )
    }
    for row, tree, (completions,) in zip(asked, trees, outcomes, strict=True):
        columns["question"] += [row["question"]] * len(numbers)
        columns["trajectory"] += numbers
        columns["seed"] += tree.branches[0].seeds
        columns["answer_ids"] += [list(sample.token_ids) for sample in completions]
        columns["answer_finish"] += [sample.finish for sample in completions]
        columns["answer_limit"] += [tree.max_tokens] * len(numbers)
    count = len(columns["question"])
    columns["thinking_ids"] = [[] for _ in range(count)]
    columns["thinking_finish"] = ["off"] * count
    return make_table("trajectories", {**_cell(unit, count), **columns})


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
