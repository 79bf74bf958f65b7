"""A campaign's answers with their verdicts: to look at, and to compare with a new grading.

Reads the store and the campaign's own tokenizer; needs no model and writes nothing.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from data import Question
from evaluator.answers import CHECKER_VERSION, Checker, Verdict
from stp.campaign.grade import grade_unit
from stp.campaign.round_reader import graded_rounds
from stp.campaign.row_counts import trouble_of
from stp.campaign.status import unit_state
from stp.campaign.store import Store, read_questions
from stp.campaign.tables import ORIGINAL, SCHEMAS, question_of
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import Unit
from stp.seeds import PAPER_SEED


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedAnswer:
    """One distinct answer to a question, with the first response that gave it.

    Attributes
    ----------
    model, benchmark, question
        What was asked, and who answered.
    trajectory, position, sample
        Where the response stands; position -1 is a trajectory's own answer.
    response
        Text of the answer phase.
    verdict
        As stored.
    count
        Responses to this question with this answer and verdict.
    """

    model: str
    benchmark: str
    question: Question
    trajectory: int
    position: int
    sample: int
    response: str
    verdict: Verdict
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedSample:
    """Distinct answers, drawn from ``distinct`` ones, which ``responses`` responses gave."""

    answers: tuple[GradedAnswer, ...]
    distinct: int
    responses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedVerdict:
    """An answer that is judged differently today; `answer.verdict` is the stored verdict."""

    answer: GradedAnswer
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Regrading:
    """What a new grading would change.

    Attributes
    ----------
    changed
        Distinct answers whose verdict changes, in the order of the store.
    responses
        Responses compared.
    checker_version
        Version of the checker that judged again.
    """

    changed: tuple[ChangedVerdict, ...]
    responses: int
    checker_version: str


def graded_answers(
    url: str | Path,
    *,
    right: bool | None = None,
    trouble: bool = False,
    model: str | None = None,
    benchmark: str | None = None,
    limit: int | None = None,
    seed: int = PAPER_SEED,
) -> GradedSample:
    """Return distinct answers of a campaign with their verdicts, and how many there are.

    Parameters
    ----------
    url
        A campaign's folder.
    right
        True or False for right or wrong answers only.
    trouble
        Only verdicts that trouble decided, not the answer: a rule that failed, a time limit.
    model, benchmark
        Only this model or benchmark.
    limit
        The most answers to return, drawn evenly from all by `seed`, in the order of the store.

    Raises
    ------
    data.errors.StpError
        The folder is not a campaign, or cannot be read.
    """
    store = Store(url)
    distinct: dict[_Key, GradedAnswer] = {}
    places: dict[_Key, tuple[Unit, dict[str, Any]]] = {}
    for unit, questions in _graded_units(store, model, benchmark):
        verdicts = pa.concat_tables(part.verdicts for part in _graded_parts(store, unit))
        if right is not None:
            verdicts = verdicts.filter(pc.field("right") == right)
        for row in verdicts.to_pylist():
            if trouble and trouble_of(row["reason"]) is None:
                continue
            key = _key(unit, row)
            if key in distinct:
                distinct[key] = replace(distinct[key], count=distinct[key].count + 1)
            else:
                distinct[key] = _answer(unit, questions[row["question"]], row)
                places[key] = (unit, row)
    keys, responses = list(distinct), sum(answer.count for answer in distinct.values())
    if limit is not None and limit < len(keys):
        chosen = set(random.Random(seed).sample(range(len(keys)), limit))
        keys = [key for index, key in enumerate(keys) if index in chosen]
    texts = _Responses(store)
    return GradedSample(
        answers=tuple(replace(distinct[key], response=texts.text(*places[key])) for key in keys),
        distinct=len(distinct),
        responses=responses,
    )


def changed_verdicts(
    url: str | Path,
    *,
    model: str | None = None,
    benchmark: str | None = None,
    unsandboxed: bool = False,
) -> Regrading:
    """Grade a campaign again in memory and compare with its stored verdicts. Nothing is written.

    Parameters
    ----------
    url
        A campaign's folder.
    model, benchmark
        Only this model or benchmark.
    unsandboxed
        As for `stp.campaign.run.grade_campaign`.

    Raises
    ------
    data.errors.StpError
        The folder cannot be read, or the checker fails.
    """
    store = Store(url)
    responses = _Responses(store)
    changed: dict[tuple[_Key, Verdict], ChangedVerdict] = {}
    compared = 0
    with Checker(unsandboxed=unsandboxed) as checker:
        for unit, questions in _graded_units(store, model, benchmark):
            asked = read_questions(store, unit.cell)
            for part in _graded_parts(store, unit):
                fresh = grade_unit(
                    unit,
                    asked,
                    part.trajectories,
                    part.probes,
                    decoder=responses.tokenizer(unit.cell.model),
                    checker=checker,
                )
                compared += part.verdicts.num_rows
                for old, new in zip(part.verdicts.to_pylist(), fresh.to_pylist(), strict=True):
                    if old["right"] == new["right"]:
                        continue
                    verdict = Verdict(new["right"], new["answer"], new["reason"])
                    key = _key(unit, old), verdict
                    if key in changed:
                        answer = changed[key].answer
                        answer = replace(answer, count=answer.count + 1)
                    else:
                        answer = replace(
                            _answer(unit, questions[old["question"]], old),
                            response=responses.text(unit, old),
                        )
                    changed[key] = ChangedVerdict(answer=answer, verdict=verdict)
    return Regrading(
        changed=tuple(changed.values()), responses=compared, checker_version=CHECKER_VERSION
    )


def _graded_units(
    store: Store, model: str | None, benchmark: str | None
) -> Iterator[tuple[Unit, dict[int, Question]]]:
    """Yield units that have verdicts, with their cell's questions."""
    config, manifest = store.read_campaign()
    for record in manifest.cells_of(model, benchmark):
        rows = read_questions(store, record.cell).to_pylist()
        questions = {row["question"]: question_of(row) for row in rows}
        for unit in store.plan(config, record):
            if unit_state(store, unit).graded:
                yield unit, questions


@dataclass(frozen=True, slots=True, kw_only=True)
class _GradedPart:
    """Verdicts of a unit, and the rows that they are about."""

    verdicts: pa.Table
    trajectories: pa.Table
    probes: pa.Table


def _graded_parts(store: Store, unit: Unit) -> Iterator[_GradedPart]:
    """Yield a graded unit's first pass, and its graded rounds of more probes."""
    yield _GradedPart(
        verdicts=store.read_shard("verdicts", unit.shard("verdicts")),
        trajectories=store.read_shard("trajectories", unit.shard("trajectories")),
        probes=store.read_shard("probes", unit.shard("probes")),
    )
    for probes, verdicts in graded_rounds(store, unit):
        yield _GradedPart(
            verdicts=verdicts, trajectories=SCHEMAS["trajectories"].empty_table(), probes=probes
        )


_Key = tuple[str, str, int, str | None, str, bool]


def _key(unit: Unit, row: dict[str, Any]) -> _Key:
    """Return what makes two responses the same answer: question, answer and verdict."""
    return (
        unit.cell.model,
        unit.cell.benchmark,
        row["question"],
        row["answer"],
        row["reason"],
        row["right"],
    )


def _answer(unit: Unit, question: Question, row: dict[str, Any]) -> GradedAnswer:
    return GradedAnswer(
        model=unit.cell.model,
        benchmark=unit.cell.benchmark,
        question=question,
        trajectory=row["trajectory"],
        position=row["position"],
        sample=row["sample"],
        response="",
        verdict=Verdict(row["right"], row["answer"], row["reason"]),
    )


class _Responses:
    """Texts of responses; keeps the shards looked at last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tokenizers: dict[str, StoredTokenizer] = {}
        self._unit: Unit | None = None
        self._trajectories: pa.Table | None = None
        self._probes: pa.Table | None = None

    def tokenizer(self, model: str) -> StoredTokenizer:
        if model not in self._tokenizers:
            self._tokenizers[model] = StoredTokenizer(self._store, model)
        return self._tokenizers[model]

    def text(self, unit: Unit, row: dict[str, Any]) -> str:
        """Return the text of the response that a row of verdicts is about."""
        if self._unit != unit:
            self._unit = unit
            self._trajectories = self._store.read_shard("trajectories", unit.shard("trajectories"))
            self._probes = pa.concat_tables(
                part.probes for part in _graded_parts(self._store, unit)
            )
        condition = (pc.field("question") == row["question"]) & (
            pc.field("trajectory") == row["trajectory"]
        )
        table = self._trajectories
        if row["position"] != ORIGINAL:
            table = self._probes
            condition &= (pc.field("position") == row["position"]) & (
                pc.field("sample") == row["sample"]
            )
        assert table is not None
        found = table.filter(condition)["answer_ids"].to_pylist()
        return self.tokenizer(unit.cell.model).answer_text(found[0]) if found else ""
