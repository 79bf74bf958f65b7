"""What making trajectories has in common, whether the model thinks first or answers at once.

Question rows of a unit to trajectories that are to be made, these to prompt trees, an engine's
samples back to their trajectories, and trajectories to rows.
"""

from dataclasses import dataclass
from typing import Protocol, cast

import pyarrow as pa

from data.errors import EngineError
from stp.campaign.asks import Ask, Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.prepare import Subject
from stp.campaign.tables import make_table
from stp.campaign.units import Unit
from stp.engines.base import Branch, Completion, PromptTree, RequestError, TreeCompletions
from stp.seeds import sample_seed


class OnProgress(Protocol):
    """Receives the progress of a unit."""

    def __call__(self, fraction: float, samples: int, tokens: int = 0, /) -> None:
        """Take note of the fraction that is done, and what ended since the last call."""


@dataclass(slots=True, kw_only=True)
class Trajectory:
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


def asked_trajectories(
    unit: Unit, questions: pa.Table, config: CampaignConfig, *, phase: str
) -> list[Trajectory]:
    """Return the trajectories of a unit, not made yet, in order of question and number.

    Questions that are too long have none. ``phase`` is what their seeds are for.
    """
    rows = questions.slice(unit.question_start, unit.question_stop - unit.question_start)
    return [
        Trajectory(
            question=row["question"],
            question_id=row["question_id"],
            trajectory=trajectory,
            prompt_ids=tuple(row["prompt_ids"]),
            thinking_limit=row["thinking_limit"],
            seed=trajectory_seed(config, unit, row["question_id"], trajectory, phase),
        )
        for row in rows.to_pylist()
        if row["fit"] != "too_long"
        for trajectory in range(unit.trajectory_start, unit.trajectory_stop)
    ]


class UnitProgress:
    """Turns an engine's count of ended samples into the unit's progress.

    How many samples there will be may be known only later: the total is a bound then.
    """

    def __init__(self, on_progress: OnProgress | None, *, total: int) -> None:
        self._on_progress = on_progress
        self._total = total
        self._done = 0

    def __call__(self, samples: int, tokens: int) -> None:
        """Count samples that just ended, and their tokens."""
        self._done += samples
        if self._on_progress is not None:
            self._on_progress(min(1.0, self._done / max(1, self._total)), samples, tokens)


def trajectory_seed(
    config: CampaignConfig, unit: Unit, question_id: str, trajectory: int, phase: str
) -> int:
    """Return the seed of a trajectory's sample in a phase of its making."""
    return sample_seed(
        config.seed,
        model=unit.cell.model,
        benchmark=unit.cell.benchmark,
        question=question_id,
        trajectory=trajectory,
        phase=phase,
    )


def by_question(trajectories: list[Trajectory]) -> list[list[Trajectory]]:
    """Return trajectories in groups of one question, in order of appearance."""
    groups: dict[int, list[Trajectory]] = {}
    for item in trajectories:
        groups.setdefault(item.question, []).append(item)
    return list(groups.values())


def question_tree(
    group: list[Trajectory],
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


def sampled(
    groups: list[list[Trajectory]], trees: list[PromptTree], progress: UnitProgress
) -> Asking[list[tuple[Trajectory, Completion]]]:
    """Ask for trees; return every trajectory with what the tree of its group gave it.

    Raises
    ------
    data.errors.EngineError
        If a tree fails; it is named by its trajectories.
    """
    if not trees:
        return []
    try:
        outcomes = cast("list[TreeCompletions]", (yield Ask(trees, progress)))
    except RequestError as error:
        group = groups[error.tree]
        numbers = ", ".join(str(item.trajectory) for item in group)
        raise EngineError(
            f"question {group[0].question_id}, trajectory {numbers}: {error}"
        ) from error
    return [
        pair
        for group, (completions,) in zip(groups, outcomes, strict=True)
        for pair in zip(group, completions, strict=True)
    ]


def trajectory_rows(unit: Unit, trajectories: list[Trajectory]) -> pa.Table:
    """Return the ``trajectories`` rows of a unit whose trajectories are made."""
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
