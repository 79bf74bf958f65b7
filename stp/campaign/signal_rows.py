"""One unit's signals: trajectory rows to signal rows, through an engine.

A trajectory is read once: the distribution of the next token and the hidden states at all of its
positions come from that pass, and its closed prefixes and trial answers fork from it
(:mod:`stp.engines.signals`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

from stp.campaign.asks import Ask, Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.prepare import Subject
from stp.campaign.signal_record import SignalSettings
from stp.campaign.tables import make_table, with_hidden
from stp.campaign.trajectories import OnProgress, UnitProgress
from stp.campaign.units import Unit
from stp.engines.base import (
    Branch,
    Engine,
    PromptTree,
    SamplingParameters,
    TreeCompletions,
)
from stp.engines.signals import Continuation, SignalTree, TreeSignals
from stp.prefixes import prefix_branch
from stp.segmentation import segment_by
from stp.tokenizers import exact_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalsJob:
    """Trajectories to signals."""

    unit: Unit
    questions: pa.Table
    trajectories: pa.Table
    settings: SignalSettings

    def ask(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> Asking[tuple[pa.Table, ...]]:
        """Ask for the unit's signals; return its ``prompt_signals`` and ``signals`` rows."""
        # An engine that shows none says so before anything is spent on trial answers.
        engine.check_signals([])
        layers = self.settings.layers_of(engine.layers)
        asked = {row["question"]: row for row in self.questions.to_pylist()}
        items = [
            _read_item(asked[row["question"]], row, subject, config)
            for row in self.trajectories.to_pylist()
        ]
        progress = UnitProgress(on_progress, total=len(items))
        found = yield from read_items(items, subject, self.settings, layers, progress)
        return _prompt_rows(self.unit, items, found), _rows(self.unit, items, found, subject)


def read_items(
    items: Sequence["ReadItem"],
    subject: Subject,
    settings: SignalSettings,
    layers: tuple[int, ...],
    on_ended: Callable[[int, int], None],
) -> Asking[list[TreeSignals]]:
    """Ask for the signals at positions of trajectories; return what each trajectory shows.

    Parameters
    ----------
    items
        Trajectories and the positions to read; their trial answers are put into them.
    subject
        How the model is prompted.
    settings, layers
        Trial answers, and hidden states as numbers of layers.
    on_ended
        Told of trajectories that were read.
    """
    if settings.trial_tokens:
        yield from _try_answers(items, subject, settings)
    trees = [_signal_tree(item, subject, layers) for item in items]
    return cast("list[TreeSignals]", (yield Ask(trees, on_ended))) if trees else []


@dataclass(slots=True, kw_only=True)
class ReadItem:
    """A trajectory with its closed prefixes, and the trial answers after them.

    Attributes
    ----------
    question, trajectory
        Which one it is.
    prompt_tokens
        Where the thinking begins in ``trunk_ids``.
    trunk_ids
        Prompt and thinking.
    tokens
        L(k) of the positions that are read.
    branches
        The prompts of their probes.
    trials
        The ids of the trial answer at each; None if no trial was made.
    closed
        Whether anything is asked after the closed prefixes.
    session
        See :class:`stp.engines.base.PromptTree`.
    """

    question: int
    trajectory: int
    prompt_tokens: int
    trunk_ids: tuple[int, ...]
    tokens: tuple[int, ...]
    branches: tuple[Branch, ...]
    trials: list[tuple[int, ...] | None]
    trial_prompt_ids: tuple[int, ...] = ()
    closed: bool = True
    session: int | None = None
    continuations: list[Continuation] = field(default_factory=list)


def _read_item(
    asked: Mapping[str, Any], row: Mapping[str, Any], subject: Subject, config: CampaignConfig
) -> ReadItem:
    prompt_ids, thinking_ids = tuple(asked["prompt_ids"]), tuple(row["thinking_ids"])
    lengths = segment_by(
        config.probing.steps,
        np.asarray(thinking_ids, np.int32),
        subject.boundary_ids,
        config.probing.step_tokens,
    )
    tokens = tuple(int(length) for length in lengths)
    branches = tuple(
        prefix_branch(
            prompt_ids,
            thinking_ids,
            tokens,
            position,
            format=subject.format,
            content_ids=subject.content_ids,
            seeds=(0,),
        )
        for position in range(len(tokens))
    )
    return ReadItem(
        question=row["question"],
        trajectory=row["trajectory"],
        prompt_tokens=len(prompt_ids),
        trunk_ids=prompt_ids + thinking_ids,
        tokens=tokens,
        branches=branches,
        trials=[None] * len(tokens),
    )


def _try_answers(
    items: Sequence[ReadItem], subject: Subject, settings: SignalSettings
) -> Asking[None]:
    """Let the model answer greedily at every position that leaves room for it."""
    lead = exact_ids(subject.format.tokenizer, settings.trial_prompt)
    trees, owners = [], []
    for item in items:
        item.trial_prompt_ids = lead
        branches = []
        for position, branch in enumerate(item.branches):
            suffix_ids = branch.suffix_ids + lead
            if branch.cut + len(suffix_ids) + settings.trial_tokens <= subject.context_limit:
                owners.append((item, position))
                branches.append(Branch(cut=branch.cut, suffix_ids=suffix_ids, seeds=(0,)))
        if branches:
            tree = PromptTree(
                trunk_ids=item.trunk_ids,
                branches=tuple(branches),
                max_tokens=settings.trial_tokens,
                stop_ids=subject.format.answer_stop_ids,
                sampling=SamplingParameters(temperature=0.0),
                session=item.session,
            )
            trees.append(tree)
    made = cast("list[TreeCompletions]", (yield Ask(trees, _untold))) if trees else []
    answers = (samples for tree in made for samples in tree)
    for (item, position), (sample,) in zip(owners, answers, strict=True):
        item.trials[position] = sample.token_ids


def _untold(samples: int, tokens: int) -> None:
    """Report nothing: a trial answer is not a signal yet."""


def _signal_tree(item: ReadItem, subject: Subject, layers: tuple[int, ...]) -> SignalTree:
    """Return what is asked about a trajectory; continuations are noted in the order of asking."""
    end_ids = subject.format.end_ids
    pairs = zip(item.branches, item.trials, strict=True) if item.closed else ()
    for branch, trial in pairs:
        suffix_ids = branch.suffix_ids
        if trial is not None:
            suffix_ids += item.trial_prompt_ids + trial
        item.continuations.append(Continuation(cut=branch.cut, suffix_ids=suffix_ids))
    if len(end_ids) > 1:
        item.continuations += [
            Continuation(cut=item.prompt_tokens + length, suffix_ids=end_ids)
            for length in item.tokens
        ]
    room = subject.context_limit
    return SignalTree(
        trunk_ids=item.trunk_ids,
        session=item.session,
        cuts=tuple(item.prompt_tokens + length for length in item.tokens),
        end_id=end_ids[0],
        layers=layers,
        continuations=tuple(
            entry for entry in item.continuations if entry.cut + len(entry.suffix_ids) <= room
        ),
    )


def _prompt_rows(unit: Unit, items: list[ReadItem], found: list[TreeSignals]) -> pa.Table:
    """Return a row per question; the unit with a question's first trajectory has it."""
    first: dict[int, int] = {}
    if unit.trajectory_start == 0:
        for index, item in enumerate(items):
            first.setdefault(item.question, index)
    rows = make_table(
        "prompt_signals",
        {
            "model": [unit.cell.model] * len(first),
            "benchmark": [unit.cell.benchmark] * len(first),
            "question": list(first),
        },
    )
    layers = found[0].hidden if found else {}
    # At k = 0 the prefix is the prompt.
    states = {
        layer: np.stack([found[index].hidden[layer][0] for index in first.values()])
        if first
        else np.empty((0, width.shape[1]), np.float16)
        for layer, width in layers.items()
    }
    return with_hidden(rows, states)


def _rows(
    unit: Unit, items: list[ReadItem], found: list[TreeSignals], subject: Subject
) -> pa.Table:
    columns = position_columns(items, found, subject)
    count = len(columns["question"])
    cell = {"model": [unit.cell.model] * count, "benchmark": [unit.cell.benchmark] * count}
    hidden = {
        layer: np.concatenate([seen.hidden[layer] for seen in found])
        for layer in (found[0].hidden if found else {})
    }
    return with_hidden(make_table("signals", {**cell, **columns}), hidden)


def position_columns(
    items: Sequence[ReadItem], found: Sequence[TreeSignals], subject: Subject
) -> dict[str, list[Any]]:
    """Return the columns of ``signals`` but for hidden states, a row for every position read."""
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "question",
            "trajectory",
            "position",
            "end_logprob",
            "other_logprob",
            "other_id",
            "entropy",
            "end_entropy",
            "answer_entropy",
            "trial_ids",
            "trial_logprobs",
        )
    }
    for item, seen in zip(items, found, strict=True):
        count = len(item.tokens)
        columns["question"] += [item.question] * count
        columns["trajectory"] += [item.trajectory] * count
        columns["position"] += range(count)
        columns["other_logprob"] += seen.other_logprob.tolist()
        columns["other_id"] += seen.other_id.tolist()
        columns["entropy"] += seen.entropy.tolist()
        _add_closed(columns, item, seen, subject)
    return columns


def _add_closed(
    columns: dict[str, list[Any]], item: ReadItem, seen: TreeSignals, subject: Subject
) -> None:
    """Add what the continuations show: the rest of the end, entropies after it, trial answers."""
    end_ids, close_ids = subject.format.end_ids, subject.format.close_ids
    shown = iter(zip(seen.suffix_logprobs, seen.suffix_entropies, strict=True))
    read = [
        next(shown) if entry.cut + len(entry.suffix_ids) <= subject.context_limit else None
        for entry in item.continuations
    ]
    count = len(item.tokens)
    closed_read = read[:count] if item.closed else [None] * count
    # An end in several tokens may be spelled otherwise where the answer's opening follows it.
    own_end = close_ids[: len(end_ids)] == end_ids
    for position, (branch, trial, entry) in enumerate(
        zip(item.branches, item.trials, closed_read, strict=True)
    ):
        end_logprob = float(seen.end_logprob[position])
        if len(end_ids) > 1:
            rest = read[position - count]
            end_logprob = float(rest[0].sum()) if rest is not None else float("-inf")
        columns["end_logprob"].append(end_logprob)
        closed = len(branch.suffix_ids)
        opened = closed - len(close_ids) + len(end_ids)
        columns["end_entropy"].append(
            float(entry[1][opened - 1]) if entry is not None and own_end else float("nan")
        )
        columns["answer_entropy"].append(
            float(entry[1][closed - 1]) if entry is not None else float("nan")
        )
        trial_logprobs: list[float] = []
        if trial is not None and entry is not None:
            trial_logprobs = entry[0][closed + len(item.trial_prompt_ids) :].tolist()
        columns["trial_ids"].append(list(trial or ()) if trial_logprobs else [])
        columns["trial_logprobs"].append(trial_logprobs)
