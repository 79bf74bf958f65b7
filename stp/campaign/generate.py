"""Stage one: trajectories. Question rows of a unit to trajectory rows, through an engine.

Each trajectory is sampled in two phases: the model thinks until it closes its thinking or reaches
the limit, and then, if it closed, it goes on to its own original answer under a limit of its own.
Where only the answer's header tells that thinking is over (``end_needs_answer_open``), both come
from one phase and are cut at their limits afterwards, which gives the same tokens.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from data.errors import EngineError
from stp.campaign.config import CampaignConfig
from stp.campaign.fit import answer_limit
from stp.campaign.prepare import Subject
from stp.campaign.tables import make_table
from stp.campaign.units import Unit
from stp.engines.base import (
    Branch,
    Completion,
    Engine,
    PromptTree,
    RequestError,
    TreeCompletions,
)
from stp.formats import SplitOutput
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
    thinking_limit: int
    seed: int
    output_ids: tuple[int, ...] = ()
    thinking_ids: tuple[int, ...] = ()
    thinking_finish: str = "limit"
    answer_ids: tuple[int, ...] = ()
    answer_finish: str = "none"
    answer_limit: int = 0


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
            thinking_limit=row["thinking_limit"],
            seed=_seed(config, unit, row["question_id"], trajectory, "think"),
        )
        for row in rows.to_pylist()
        if row["fit"] != "too_long"
        for trajectory in range(unit.trajectory_start, unit.trajectory_stop)
    ]
    progress = _Progress(on_progress, total=2 * len(trajectories))
    if subject.format.family.end_needs_answer_open:
        _think_and_answer(trajectories, subject, config, engine, progress)
    else:
        _think(trajectories, subject, engine, progress)
        _answer(trajectories, unit, subject, config, engine, progress)
    return _rows(unit, trajectories)


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
    trajectories: list[_Trajectory], subject: Subject, engine: Engine, progress: _Progress
) -> None:
    """Sample the thinking of every trajectory, one tree per question."""
    groups = _by_question([item for item in trajectories if item.thinking_limit > 0])
    trees = [
        _question_tree(
            group,
            subject,
            max_tokens=group[0].thinking_limit,
            stop_ids=subject.format.thinking_stop_ids,
            stop_texts=subject.format.thinking_stop_texts,
        )
        for group in groups
    ]
    for item, completion in _sampled(groups, trees, engine, progress):
        item.output_ids = completion.token_ids
        _take_thinking(item, subject.format.split(item.output_ids))


def _think_and_answer(
    trajectories: list[_Trajectory],
    subject: Subject,
    config: CampaignConfig,
    engine: Engine,
    progress: _Progress,
) -> None:
    """Sample thinking and original answer in one go, then cut both at their limits."""
    groups = _by_question(trajectories)
    answer_tokens = config.generation.answer_tokens
    trees = [
        _question_tree(
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
    for item, completion in _sampled(groups, trees, engine, progress):
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


def _take_thinking(item: _Trajectory, parts: SplitOutput) -> None:
    """Set what the output so far says of the thinking."""
    item.thinking_ids, item.thinking_finish = parts.thinking_ids, parts.thinking_finish


def _question_tree(
    group: list[_Trajectory],
    subject: Subject,
    *,
    max_tokens: int,
    stop_ids: frozenset[int],
    stop_texts: tuple[str, ...] = (),
) -> PromptTree:
    """Return the tree that samples all trajectories of a question after its prompt."""
    prompt_ids = group[0].prompt_ids
    seeds = tuple(item.seed for item in group)
    return PromptTree(
        trunk_ids=prompt_ids,
        branches=(Branch(cut=len(prompt_ids), suffix_ids=(), seeds=seeds),),
        max_tokens=max_tokens,
        stop_ids=stop_ids,
        stop_texts=stop_texts,
        sampling=subject.sampling,
    )


def _sampled(
    groups: list[list[_Trajectory]],
    trees: list[PromptTree],
    engine: Engine,
    progress: _Progress,
) -> Iterator[tuple[_Trajectory, Completion]]:
    """Yield every trajectory with what its question's tree gave it."""
    outcomes = _outcomes(groups, trees, engine, progress)
    for group, (completions,) in zip(groups, outcomes, strict=True):
        yield from zip(group, completions, strict=True)


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
        seed = _seed(config, unit, item.question_id, item.trajectory, "answer")
        owners.append(item)
        trees.append(
            PromptTree(
                trunk_ids=trunk_ids,
                branches=(Branch(cut=len(trunk_ids), suffix_ids=(), seeds=(seed,)),),
                max_tokens=item.answer_limit,
                stop_ids=subject.format.answer_stop_ids,
                sampling=subject.sampling,
            )
        )
    outcomes = _outcomes([[item] for item in owners], trees, engine, progress)
    for item, ((completion,),) in zip(owners, outcomes, strict=True):
        parts = subject.format.split(item.output_ids + completion.token_ids)
        _take_thinking(item, parts)
        item.answer_ids, item.answer_finish = parts.answer_ids, completion.finish


def _outcomes(
    groups: list[list[_Trajectory]],
    trees: list[PromptTree],
    engine: Engine,
    progress: _Progress,
) -> list[TreeCompletions]:
    """Return what the engine makes of trees; a tree that fails is named by its trajectories."""
    if not trees:
        return []
    try:
        return engine.generate(trees, on_progress=progress)
    except RequestError as error:
        group = groups[error.tree]
        numbers = ", ".join(str(item.trajectory) for item in group)
        raise EngineError(
            f"question {group[0].question_id}, trajectory {numbers}: {error}"
        ) from error


def _by_question(trajectories: list[_Trajectory]) -> list[list[_Trajectory]]:
    groups: dict[int, list[_Trajectory]] = {}
    for item in trajectories:
        groups.setdefault(item.question, []).append(item)
    return list(groups.values())


def _rows(unit: Unit, trajectories: list[_Trajectory]) -> pa.Table:
    return make_table(
        "trajectories",
        {
            "model": [unit.cell.model] * len(trajectories),
            "benchmark": [unit.cell.benchmark] * len(trajectories),
            **{
                name: [getattr(item, name) for item in trajectories]
                for name in (
                    "question",
                    "trajectory",
                    "seed",
                    "thinking_ids",
                    "thinking_finish",
                    "answer_ids",
                    "answer_finish",
                    "answer_limit",
                )
            },
        },
    )
