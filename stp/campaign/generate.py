"""Stage one: trajectories. Question rows of a unit to trajectory rows, through an engine.

Each trajectory is sampled in two phases: the model thinks until it closes its thinking or reaches
the limit, and then, if it closed, it goes on to its own original answer under a limit of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from stp.campaign.config import CampaignConfig
from stp.campaign.fit import answer_limit
from stp.campaign.prepare import Subject
from stp.campaign.tables import make_table
from stp.campaign.units import Unit
from stp.engines.base import Branch, Engine, PromptTree
from stp.seeds import sample_seed

OnProgress = Callable[[float, int], None]
"""Called with the fraction of the unit that is done and the number of samples that just ended."""


@dataclass(slots=True, kw_only=True)
class _Trajectory:
    """A trajectory while it is made. ``output_ids`` is all that the model wrote so far."""

    question: int
    question_id: str
    trajectory: int
    prompt_ids: tuple[int, ...]
    seed: int
    output_ids: tuple[int, ...] = ()
    closed: bool = False
    thinking_finish: str = "limit"
    answer_finish: str = "none"
    answer_limit: int = field(default=0)


def generate_unit(
    unit: Unit,
    questions: pa.Table,
    *,
    subject: Subject,
    config: CampaignConfig,
    engine: Engine,
    on_progress: OnProgress | None = None,
) -> pa.Table:
    """Return the ``trajectories`` rows of a unit.

    Parameters
    ----------
    unit
        Which questions and trajectories.
    questions
        The ``questions`` rows of its cell. Those that are too long have no trajectories.
    subject, config
        How the model is spoken to, and how much it may write.
    engine
        Runs the model.
    on_progress
        Told how far the unit is.

    Raises
    ------
    data.errors.EngineError
        If the engine fails; there are no rows then.
    """
    rows = questions.slice(unit.question_start, unit.question_stop - unit.question_start)
    trajectories = [
        _Trajectory(
            question=row["question"],
            question_id=row["question_id"],
            trajectory=trajectory,
            prompt_ids=tuple(row["prompt_ids"]),
            seed=_seed(config, unit, row["question_id"], trajectory, "think"),
        )
        for row in rows.to_pylist()
        if row["fit"] != "too_long"
        for trajectory in range(unit.trajectory_start, unit.trajectory_stop)
    ]
    limits = dict(
        zip(rows["question"].to_pylist(), rows["thinking_limit"].to_pylist(), strict=True)
    )
    progress = _Progress(on_progress, total=2 * len(trajectories))
    _think(trajectories, limits, subject, engine, progress)
    _answer(trajectories, unit, subject, config, engine, progress)
    return _rows(unit, trajectories, subject)


class _Progress:
    """Turns an engine's count of ended samples into the unit's progress.

    Whether a trajectory will have an answer phase is known only later, so the total is a bound
    and the last call says 1.
    """

    def __init__(self, on_progress: OnProgress | None, *, total: int) -> None:
        self._on_progress = on_progress
        self._total = total
        self._done = 0

    def __call__(self, samples: int) -> None:
        self._done += samples
        if self._on_progress is not None:
            self._on_progress(min(1.0, self._done / max(1, self._total)), samples)


def _seed(config: CampaignConfig, unit: Unit, question_id: str, trajectory: int, phase: str) -> int:
    return sample_seed(
        config.seed,
        model=unit.cell.model,
        benchmark=unit.cell.benchmark,
        question=question_id,
        trajectory=trajectory,
        phase=phase,
    )


def _think(
    trajectories: list[_Trajectory],
    limits: dict[int, int],
    subject: Subject,
    engine: Engine,
    progress: _Progress,
) -> None:
    """Sample the thinking of every trajectory, one tree per question."""
    groups = _by_question([item for item in trajectories if limits[item.question] > 0])
    trees = [
        PromptTree(
            trunk_ids=group[0].prompt_ids,
            branches=(
                Branch(
                    cut=len(group[0].prompt_ids),
                    suffix_ids=(),
                    seeds=tuple(item.seed for item in group),
                ),
            ),
            max_tokens=limits[group[0].question],
            stop_ids=frozenset(subject.format.thinking_stop_ids),
            stop_texts=tuple(subject.format.thinking_stop_texts),
            sampling=subject.sampling,
        )
        for group in groups
    ]
    for group, (completions,) in zip(
        groups, engine.generate(trees, on_progress=progress) if trees else [], strict=True
    ):
        for item, completion in zip(group, completions, strict=True):
            item.output_ids = completion.token_ids
            item.thinking_finish = subject.format.split(completion.token_ids).thinking_finish
            item.closed = item.thinking_finish == "end"


def _answer(
    trajectories: list[_Trajectory],
    unit: Unit,
    subject: Subject,
    config: CampaignConfig,
    engine: Engine,
    progress: _Progress,
) -> None:
    """Let every trajectory that closed its thinking go on to its original answer."""
    trees: list[PromptTree] = []
    owners: list[_Trajectory] = []
    for item in trajectories:
        if not item.closed:
            continue
        trunk_ids = item.prompt_ids + item.output_ids
        item.answer_limit = answer_limit(
            len(trunk_ids),
            answer_tokens=config.generation.answer_tokens,
            context_limit=subject.context_limit,
        )
        if item.answer_limit == 0:
            continue
        seed = _seed(config, unit, item.question_id, item.trajectory, "answer")
        owners.append(item)
        trees.append(
            PromptTree(
                trunk_ids=trunk_ids,
                branches=(Branch(cut=len(trunk_ids), suffix_ids=(), seeds=(seed,)),),
                max_tokens=item.answer_limit,
                stop_ids=frozenset(subject.format.answer_stop_ids),
                sampling=subject.sampling,
            )
        )
    outcomes = engine.generate(trees, on_progress=progress) if trees else []
    for item, ((completion,),) in zip(owners, outcomes, strict=True):
        item.output_ids += completion.token_ids
        item.answer_finish = completion.finish


def _by_question(trajectories: list[_Trajectory]) -> list[list[_Trajectory]]:
    groups: dict[int, list[_Trajectory]] = {}
    for item in trajectories:
        groups.setdefault(item.question, []).append(item)
    return list(groups.values())


def _rows(unit: Unit, trajectories: list[_Trajectory], subject: Subject) -> pa.Table:
    columns: dict[str, list[Any]] = {
        "model": [unit.cell.model] * len(trajectories),
        "benchmark": [unit.cell.benchmark] * len(trajectories),
        "question": [item.question for item in trajectories],
        "trajectory": [item.trajectory for item in trajectories],
        "seed": [item.seed for item in trajectories],
        "thinking_ids": [],
        "thinking_finish": [item.thinking_finish for item in trajectories],
        "answer_ids": [],
        "answer_finish": [item.answer_finish for item in trajectories],
        "answer_limit": [item.answer_limit for item in trajectories],
    }
    for item in trajectories:
        parts = subject.format.split(item.output_ids)
        columns["thinking_ids"].append(list(parts.thinking_ids))
        columns["answer_ids"].append(list(parts.answer_ids) if item.closed else [])
    return make_table("trajectories", columns)
