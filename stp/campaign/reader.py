"""Read a campaign item by item: a question, its trajectories, their steps, prefixes, probes.

Text is made from the stored ids with the campaign's own tokenizer files; no model is needed.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from data import Question
from data.errors import MisuseError, StoreError
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import CellRecord
from stp.campaign.status import UnitState, unit_state
from stp.campaign.store import Store, read_questions
from stp.campaign.summaries import CountsByQuestion, read_summary, summary_mark
from stp.campaign.tables import ORIGINAL, numbers, question_of
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import Cell, TableName, Unit
from stp.formats import ModelFamily


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSummary:
    """One question of a cell, with what is known of it so far.

    Attributes
    ----------
    model, benchmark, question_id, prompt, fit
        As stored.
    trajectories
        Those generated.
    probes
        Per position.
    zero_correct, full_correct
        Right probes at k = 0 and k = n over all trajectories; None before all are graded.
    original_correct
        Right original answers; None before all are graded.
    best_correct
        Right probes at each trajectory's best position; None before all are graded.
    """

    model: str
    benchmark: str
    question_id: str
    prompt: str
    fit: str
    trajectories: int
    probes: int
    zero_correct: int | None
    full_correct: int | None
    original_correct: int | None
    best_correct: int | None = None

    @property
    def gain(self) -> float | None:
        """What thinking gains, P(n) - P(0); None before all are graded."""
        if self.full_correct is None or self.zero_correct is None:
            return None
        return (self.full_correct - self.zero_correct) / (self.trajectories * self.probes)

    @property
    def degradation(self) -> float | None:
        """AD, what thinking to the end costs: P(k*) - P(n); None before all are graded."""
        if self.full_correct is None or self.best_correct is None:
            return None
        return (self.best_correct - self.full_correct) / (self.trajectories * self.probes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeView:
    """One answer after a prefix; ``right``, ``answer`` and ``reason`` are None before grading."""

    sample: int
    text: str
    finish: str
    right: bool | None
    answer: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixView:
    """What the model was given at a position: ids as they were sent, and their text."""

    ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryView:
    """A trajectory with its steps.

    Attributes
    ----------
    model, benchmark, question, trajectory
        Which one it is.
    prompt_ids, thinking_ids
        As stored.
    thinking_finish, answer_finish
        Why each phase ended.
    tokens
        L(k) for k = 0..n; empty before probing.
    correct
        C(k), or None before grading.
    probes
        Answers at every position.
    steps
        Text of step 1..n.
    original
        The trajectory's own answer.
    """

    model: str
    benchmark: str
    question: Question
    trajectory: int
    prompt_ids: tuple[int, ...]
    thinking_ids: tuple[int, ...]
    thinking_finish: str
    answer_finish: str
    tokens: tuple[int, ...]
    correct: tuple[int, ...] | None
    probes: int
    steps: tuple[str, ...]
    original: ProbeView


class CampaignReader:
    """Reads one campaign.

    Parameters
    ----------
    url
        The campaign's folder.

    Raises
    ------
    data.errors.MisuseError
        If the folder is not a campaign.
    """

    def __init__(self, url: str | Path) -> None:
        self.store = Store(url)
        self.config, self.manifest = self.store.read_campaign()
        self._tokenizers: dict[str, StoredTokenizer] = {}
        self._questions: dict[Cell, pa.Table] = {}
        self._rows = _UnitRows(self.store)

    def summaries(
        self, *, model: str | None = None, benchmark: str | None = None
    ) -> Iterator[QuestionSummary]:
        """Yield every question of every cell, in order; of a model or a benchmark if one is named.

        Raises
        ------
        data.errors.MisuseError
            If the campaign has no such model or benchmark.
        """
        for record in self.manifest.cells_of(model, benchmark):
            asked = read_questions(self.store, record.cell)
            mark = summary_mark(self.store, self.config, record)
            summary = read_summary(self.store, record, mark)
            if summary is None:
                counts = question_counts(self.store, self.config, record)
            else:
                counts = summary.counts
            yield from _summaries(asked, counts, self.config)

    def trajectory(
        self,
        question_id: str,
        trajectory: int = 0,
        *,
        model: str | None = None,
        benchmark: str | None = None,
    ) -> TrajectoryView:
        """Return one trajectory.

        Parameters
        ----------
        question_id, trajectory
            Which one.
        model, benchmark
            Needed where the question is in more than one cell.

        Raises
        ------
        data.errors.MisuseError
            If there is none, it is not made yet, or more than one cell has the question.
        """
        unit, row = self._find(question_id, trajectory, model, benchmark)
        if not self._rows.of(unit).generated:
            raise MisuseError(
                f"{self.store.url}: trajectory {trajectory} of {question_id} is not generated yet"
            )
        found = _where(self._rows.read("trajectories"), row["question"], trajectory).to_pylist()
        if not found:
            raise MisuseError(
                f"{self.store.url}: {question_id} has no trajectories: its prompt is too long"
            )
        return self._view(unit, row, found[0])

    def probes_at(self, view: TrajectoryView, position: int) -> list[ProbeView]:
        """Return the answers at a position, in order of their samples."""
        self._check_position(view, position)
        unit, row = self._find(view.question.id, view.trajectory, view.model, view.benchmark)
        self._rows.of(unit)
        rows = _where(self._rows.read("probes"), row["question"], view.trajectory)
        probes = rows.filter(pc.field("position") == position).to_pylist()
        verdicts = self._verdicts(unit, row["question"], view.trajectory, position)
        return [
            self._probe(view.model, probe, verdicts.get(probe["sample"], {})) for probe in probes
        ]

    def prefix(self, view: TrajectoryView, position: int) -> PrefixView:
        """Return what the model was given at a position."""
        self._check_position(view, position)
        tokenizer = self.tokenizer(view.model)
        if self.config.generation.mode != "thinking":
            return PrefixView(ids=view.prompt_ids, text=tokenizer.show(view.prompt_ids))
        # They compile code, and whoever lists questions needs none of it.
        from stp.formats import ThinkingFormat
        from stp.prefixes import branch_ids, prefix_branch
        from stp.segmentation import boundary_token_ids, content_token_ids

        family = ModelFamily.model_validate(self.manifest.model_record(view.model).family)
        boundary_ids = boundary_token_ids(tokenizer.fast)
        thinking_format = ThinkingFormat(family, tokenizer.fast)
        branch = prefix_branch(
            view.prompt_ids,
            view.thinking_ids,
            view.tokens,
            position,
            format=thinking_format,
            content_ids=content_token_ids(tokenizer.fast, boundary_ids),
            opening_ids=thinking_format.opening_ids(self.config.probing.answer_opening),
        )
        ids = branch_ids(view.prompt_ids + view.thinking_ids, branch)
        return PrefixView(ids=ids, text=tokenizer.show(ids))

    def tokenizer(self, model: str) -> StoredTokenizer:
        """Return a model's tokenizer as the campaign keeps it."""
        if model not in self._tokenizers:
            self._tokenizers[model] = StoredTokenizer(self.store, model)
        return self._tokenizers[model]

    def _check_position(self, view: TrajectoryView, position: int) -> None:
        if not view.tokens:
            raise MisuseError(f"{self.store.url}: {view.question.id} is not probed yet")
        if not 0 <= position < len(view.tokens):
            raise MisuseError(
                f"position {position} is not one of this trajectory's 0..{len(view.tokens) - 1}"
            )

    def _find(
        self, question_id: str, trajectory: int, model: str | None, benchmark: str | None
    ) -> tuple[Unit, dict[str, Any]]:
        """Return the unit that has a trajectory, and its question's row."""
        found = []
        for record in self.manifest.cells_of(model, benchmark):
            rows = self._questions_of(record.cell)
            match = rows.filter(pc.field("question_id") == question_id).to_pylist()
            found += [(record, row) for row in match]
        if not found:
            raise MisuseError(
                f"{self.store.url}: no question {question_id!r}; `stp show "
                f"{self.store.argument}` lists them"
            )
        if len(found) > 1:
            cells = ", ".join(f"{record.model} on {record.benchmark}" for record, _ in found)
            raise MisuseError(
                f"{question_id!r} is in {len(found)} cells ({cells}); name one with --model and "
                "--benchmark"
            )
        record, row = found[0]
        for unit in self.store.plan(self.config, record):
            if (
                unit.question_start <= row["question"] < unit.question_stop
                and unit.trajectory_start <= trajectory < unit.trajectory_stop
            ):
                return unit, row
        raise MisuseError(
            f"trajectory {trajectory} is not one of 0..{self.config.generation.trajectories - 1}"
        )

    def _view(self, unit: Unit, row: dict[str, Any], found: dict[str, Any]) -> TrajectoryView:
        state = self._rows.of(unit)
        tokens: tuple[int, ...] = ()
        correct: tuple[int, ...] | None = None
        key = (row["question"], found["trajectory"])
        if state.probed:
            tokens = tuple(_where(self._rows.read("positions"), *key)["tokens"].to_pylist())
        if state.graded:
            verdicts = _where(self._rows.read("verdicts"), *key)
            counts = [0] * len(tokens)
            for verdict in verdicts.filter(pc.field("position") != ORIGINAL).to_pylist():
                counts[verdict["position"]] += verdict["right"]
            correct = tuple(counts)
        own = self._verdicts(unit, *key, ORIGINAL).get(0, {})
        thinking = tuple(found["thinking_ids"])
        tokenizer = self.tokenizer(unit.cell.model)
        answer = {
            "sample": 0,
            "answer_ids": found["answer_ids"],
            "finish": found["answer_finish"],
        }
        return TrajectoryView(
            model=unit.cell.model,
            benchmark=unit.cell.benchmark,
            question=question_of(row),
            trajectory=found["trajectory"],
            prompt_ids=tuple(row["prompt_ids"]),
            thinking_ids=thinking,
            thinking_finish=found["thinking_finish"],
            answer_finish=found["answer_finish"],
            tokens=tokens,
            correct=correct,
            probes=self.config.probing.everywhere,
            steps=tuple(
                tokenizer.show(thinking[start:stop]) for start, stop in itertools.pairwise(tokens)
            ),
            original=self._probe(unit.cell.model, answer, own),
        )

    def _verdicts(
        self, unit: Unit, question: int, trajectory: int, position: int
    ) -> dict[int, dict[str, Any]]:
        if not self._rows.of(unit).graded:
            return {}
        rows = _where(self._rows.read("verdicts"), question, trajectory)
        picked = rows.filter(pc.field("position") == position).to_pylist()
        return {verdict["sample"]: verdict for verdict in picked}

    def _questions_of(self, cell: Cell) -> pa.Table:
        if cell not in self._questions:
            self._questions[cell] = read_questions(self.store, cell)
        return self._questions[cell]

    def _probe(self, model: str, row: dict[str, Any], verdict: dict[str, Any]) -> ProbeView:
        return ProbeView(
            sample=row["sample"],
            text=self.tokenizer(model).decode(row["answer_ids"]),
            finish=row["finish"],
            right=verdict.get("right"),
            answer=verdict.get("answer"),
            reason=verdict.get("reason"),
        )


def question_counts(store: Store, config: CampaignConfig, record: CellRecord) -> CountsByQuestion:
    """Return the counts of a cell's questions, from the columns of its shards.

    Raises
    ------
    data.errors.StoreError
        If a shard cannot be read, or verdicts are not those of the positions.
    """
    counts = CountsByQuestion.none(record.questions)
    probes = config.probing.everywhere

    def columns(unit: Unit, table: TableName, *names: str) -> list[npt.NDArray[Any]]:
        rows = store.read_columns(table, unit.shard(table), names)
        return [numbers(rows[name]) for name in names]

    for unit in store.plan(config, record):
        state = unit_state(store, unit)
        if not state.generated:
            continue
        (asked,) = columns(unit, "trajectories", "question")
        np.add.at(counts.trajectories, asked, 1)
        if not state.graded or not len(asked):
            continue
        question_k, position_k = columns(unit, "positions", "question", "position")
        names = ("question", "position", "right")
        question_p, position_p, right_p = columns(unit, "verdicts", *names)
        own = position_p == ORIGINAL
        np.add.at(counts.graded, question_p[own], 1)
        np.add.at(counts.original, question_p[own], right_p[own])
        if int((~own).sum()) != len(position_k) * probes:
            raise StoreError(
                f"{store.url}/{unit.shard('verdicts')}: its rows are not those of the "
                f"positions; run `stp grade {store.argument} --again`"
            )
        correct_k = right_p[~own].astype(np.int64).reshape(-1, probes).sum(axis=1)
        starts = np.flatnonzero(position_k == 0)
        ends = np.append(starts[1:], len(position_k)) - 1
        question_s = question_k[starts]
        np.add.at(counts.zero, question_s, correct_k[starts])
        np.add.at(counts.full, question_s, correct_k[ends])
        np.add.at(counts.best, question_s, np.maximum.reduceat(correct_k, starts))
    return counts


class _UnitRows:
    """The shards of the unit looked at last, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unit: Unit | None = None
        self._state = UnitState(works={})
        self._tables: dict[TableName, pa.Table] = {}

    def of(self, unit: Unit) -> UnitState:
        """Turn to a unit and return how far it is."""
        if unit != self._unit:
            self._state, self._tables = unit_state(self._store, unit), {}
            self._unit = unit
        return self._state

    def read(self, table: TableName) -> pa.Table:
        """Return the rows of the unit turned to."""
        if self._unit is None:
            raise ValueError("turn to a unit first")
        if table not in self._tables:
            self._tables[table] = self._store.read_shard(table, self._unit.shard(table))
        return self._tables[table]


def _summaries(
    asked: pa.Table, counts: CountsByQuestion, config: CampaignConfig
) -> Iterator[QuestionSummary]:
    names = ("model", "benchmark", "question_id", "prompt", "fit")
    texts = zip(*(asked[name].to_pylist() for name in names), strict=True)
    numbers = zip(
        counts.trajectories.tolist(),
        (counts.graded == counts.trajectories).tolist(),
        counts.zero.tolist(),
        counts.full.tolist(),
        counts.best.tolist(),
        counts.original.tolist(),
        strict=True,
    )
    for text, (trajectories, all_graded, zero, full, best, original) in zip(
        texts, numbers, strict=True
    ):
        known = all_graded and trajectories > 0
        yield QuestionSummary(
            **dict(zip(names, text, strict=True)),
            trajectories=trajectories,
            probes=config.probing.everywhere,
            zero_correct=zero if known else None,
            full_correct=full if known else None,
            best_correct=best if known else None,
            original_correct=original if known else None,
        )


def _where(rows: pa.Table, question: int, trajectory: int) -> pa.Table:
    return rows.filter((pc.field("question") == question) & (pc.field("trajectory") == trajectory))
