"""Stage two: probes. Trajectory rows of a unit to positions and answers, through an engine.

Each trajectory becomes one prompt tree: its thinking is the trunk, and every position is a branch
that keeps L(k) of it. So the model reads each thinking token once, however many positions there
are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa

from data.errors import EngineError
from stp.campaign.asks import Ask, Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.fit import fit_tree
from stp.campaign.prepare import Subject
from stp.campaign.tables import make_table
from stp.campaign.trajectories import OnProgress, UnitProgress
from stp.campaign.units import Unit
from stp.engines.base import Completion, PromptTree, RequestError, TreeCompletions
from stp.prefixes import probe_tree
from stp.seeds import sample_seed
from stp.segmentation import segment_by


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probed:
    """A trajectory with its L(k), and the tree that asks at some or all of its positions.

    ``samples`` has, for every branch, its position and which samples it asks for.
    """

    question: int
    question_id: str
    trajectory: int
    tokens: tuple[int, ...]
    samples: tuple[tuple[int, range], ...]
    tree: PromptTree


ChosenProbes = Mapping[tuple[int, int], Mapping[int, range]]
"""By question and trajectory: positions to ask at, rising, and which samples there."""


def probe_unit(
    unit: Unit,
    questions: pa.Table,
    trajectories: pa.Table,
    *,
    subject: Subject,
    config: CampaignConfig,
    chosen: ChosenProbes | None = None,
    on_progress: OnProgress | None = None,
) -> Asking[tuple[pa.Table, pa.Table]]:
    """Ask for a unit's probes; return its ``positions`` and ``probes`` rows.

    Parameters
    ----------
    unit
        Which questions and trajectories.
    questions
        The ``questions`` rows of its cell.
    trajectories
        The unit's trajectories.
    subject, config
        How the model is prompted; step length, number of probes, answer limit.
    chosen
        Where to ask, and for which samples; left out: at every position, for the first ones.
    on_progress
        Told how far the unit is.

    Raises
    ------
    data.errors.EngineError
        If a tree fails; there are no rows then.
    """
    asked = questions.slice(unit.question_start, unit.question_stop - unit.question_start)
    prompts = {row["question"]: row for row in asked.to_pylist()}
    items = [
        _plant(unit, prompts[row["question"]], row, subject, config, chosen)
        for row in trajectories.select(["question", "trajectory", "thinking_ids"]).to_pylist()
        if chosen is None or chosen.get((row["question"], row["trajectory"]))
    ]
    answers = yield from _ask(items, subject, on_progress)
    return _position_rows(unit, items), _probe_rows(unit, items, answers, subject.opening_ids)


def _plant(
    unit: Unit,
    asked: dict[str, Any],
    row: dict[str, Any],
    subject: Subject,
    config: CampaignConfig,
    chosen: ChosenProbes | None,
) -> _Probed:
    """Segment a trajectory and make its tree."""
    lengths = segment_by(
        config.probing.steps,
        np.asarray(row["thinking_ids"], np.int32),
        subject.boundary_ids,
        config.probing.step_tokens,
    )
    tokens = tuple(int(length) for length in lengths)
    samples: Mapping[int, range] = (
        dict.fromkeys(range(len(tokens)), range(config.probing.everywhere))
        if chosen is None
        else chosen[row["question"], row["trajectory"]]
    )

    def seeds(position: int) -> list[int]:
        return [
            sample_seed(
                config.seed,
                model=unit.cell.model,
                benchmark=unit.cell.benchmark,
                question=asked["question_id"],
                trajectory=row["trajectory"],
                phase="probe",
                position=position,
                sample=sample,
            )
            for sample in samples[position]
        ]

    tree = probe_tree(
        tuple(asked["prompt_ids"]),
        tuple(row["thinking_ids"]),
        tokens,
        format=subject.format,
        content_ids=subject.content_ids,
        seeds=seeds,
        max_tokens=config.probing.answer_tokens,
        sampling=subject.sampling,
        opening_ids=subject.opening_ids,
        box_after=config.probing.answer_opening if config.probing.answer_end == "box" else None,
        positions=list(samples),
    )
    return _Probed(
        question=row["question"],
        question_id=asked["question_id"],
        trajectory=row["trajectory"],
        tokens=tokens,
        samples=tuple(samples.items()),
        tree=tree,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """The samples at a position, and the limit that they had."""

    limit: int
    completions: tuple[Completion, ...]


def _ask(
    items: list[_Probed], subject: Subject, on_progress: OnProgress | None
) -> Asking[list[list[_Answers]]]:
    """Ask at every position of every trajectory; return the answers."""
    fitted = [
        (index, part)
        for index, item in enumerate(items)
        for part in fit_tree(item.tree, context_limit=subject.context_limit)
    ]
    total = sum(len(branch.seeds) for _, part in fitted for branch in part.tree.branches)
    progress = UnitProgress(on_progress, total=total)
    outcomes: list[TreeCompletions] = []
    try:
        if fitted:
            ask = Ask([part.tree for _, part in fitted], progress)
            outcomes = cast("list[TreeCompletions]", (yield ask))
    except RequestError as error:
        index, part = fitted[error.tree]
        where = f"question {items[index].question_id}, trajectory {items[index].trajectory}"
        if error.branch is not None:
            where += f", position {items[index].samples[part.branches[error.branch]][0]}"
        raise EngineError(f"{where}: {error}") from error
    answers = [[_Answers(limit=0, completions=())] * len(item.tree.branches) for item in items]
    for (index, part), outcome in zip(fitted, outcomes, strict=True):
        for branch, completions in zip(part.branches, outcome, strict=True):
            answers[index][branch] = _Answers(limit=part.tree.max_tokens, completions=completions)
    return answers


def _position_rows(unit: Unit, items: list[_Probed]) -> pa.Table:
    columns: dict[str, list[Any]] = {"question": [], "trajectory": [], "position": [], "tokens": []}
    for item in items:
        count = len(item.tokens)
        columns["question"] += [item.question] * count
        columns["trajectory"] += [item.trajectory] * count
        columns["position"] += range(count)
        columns["tokens"] += item.tokens
    return make_table("positions", _with_cell(unit, columns))


def _probe_rows(
    unit: Unit,
    items: list[_Probed],
    answers: list[list[_Answers]],
    opening_ids: tuple[int, ...],
) -> pa.Table:
    """Return the rows; an answer that was opened for the model is stored with its opening."""
    names = ("question", "trajectory", "position", "sample", "seed", "answer_ids", "finish")
    columns: dict[str, list[Any]] = {name: [] for name in (*names, "answer_limit")}
    for item, answers_k in zip(items, answers, strict=True):
        for (position, samples), branch, given in zip(
            item.samples, item.tree.branches, answers_k, strict=True
        ):
            count = len(branch.seeds)
            columns["question"] += [item.question] * count
            columns["trajectory"] += [item.trajectory] * count
            columns["position"] += [position] * count
            columns["sample"] += samples
            columns["seed"] += branch.seeds
            columns["answer_limit"] += [given.limit] * count
            # A prefix that fills the context gets no answer and says so, instead of a shorter one.
            columns["answer_ids"] += (
                [[*opening_ids, *item.token_ids] for item in given.completions]
                if given.limit
                else [[] for _ in branch.seeds]
            )
            columns["finish"] += (
                [item.finish for item in given.completions] if given.limit else ["too_long"] * count
            )
    return make_table("probes", _with_cell(unit, columns))


def _with_cell(unit: Unit, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    count = len(columns["question"])
    names = {"model": [unit.cell.model] * count, "benchmark": [unit.cell.benchmark] * count}
    return {**names, **columns}
