"""Stage three: verdicts. Answers of a unit to right or wrong, without a model.

Every probe gets a verdict, and so does every trajectory's own original answer (position -1). A
trajectory without one, cut at its limit for instance, is wrong and says why; an answer is never
made up, and trouble of the checker is an error, never a verdict.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from data import Question
from evaluator.answers import Checker, Verdict
from stp.campaign.row_counts import counted
from stp.campaign.tables import ORIGINAL, make_table, question_of
from stp.campaign.trajectories import OnProgress
from stp.campaign.units import Unit

_AT_A_TIME = 512

_NO_ORIGINAL = {
    "limit": "wrong: no answer: thinking was cut at the limit",
    "stop": "wrong: no answer: the output ended within the thinking",
    "end": "wrong: no answer: the context left no room for one",
}
_NO_PROBE = "wrong: no answer: the prefix fills the context"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What is judged: an answer's ids, or why there is none."""

    question: Question
    ids: Sequence[int] = ()
    missing: str = ""


class AnswerDecoder(Protocol):
    """What grading needs of a thinking format."""

    def answer_text(self, ids: Sequence[int]) -> str:
        """Return the text of an answer's ids."""


def grade_unit(
    unit: Unit,
    questions: pa.Table,
    trajectories: pa.Table,
    probes: pa.Table,
    *,
    decoder: AnswerDecoder,
    checker: Checker,
    on_progress: OnProgress | None = None,
) -> pa.Table:
    """Return the ``verdicts`` rows of a unit: first original answers, then probes.

    Parameters
    ----------
    unit
        Which questions and trajectories.
    questions
        The ``questions`` rows of its cell.
    trajectories, probes
        The unit's rows.
    decoder
        Turns answer ids into text.
    checker
        Judges; used from this thread.
    on_progress
        Told how far the unit is.

    Raises
    ------
    evaluator.answers.CheckerError
        If the checker itself fails.
    """
    asked = _questions(questions, unit)
    total = trajectories.num_rows + probes.num_rows
    verdicts: list[Verdict] = []
    for rows in (_originals(trajectories, asked), _probes(probes, asked)):
        while given := list(itertools.islice(rows, _AT_A_TIME)):
            verdicts += _judge(given, decoder, checker)
            if on_progress is not None:
                on_progress(len(verdicts) / total, len(given))
    return counted("verdicts", _rows(unit, trajectories, probes, verdicts))


def _questions(questions: pa.Table, unit: Unit) -> dict[int, Question]:
    rows = questions.slice(unit.question_start, unit.question_stop - unit.question_start)
    return {row["question"]: question_of(row) for row in rows.to_pylist()}


def _originals(trajectories: pa.Table, asked: dict[int, Question]) -> Iterator[_Given]:
    names = ("question", "thinking_finish", "answer_ids", "answer_finish")
    for row in trajectories.select(names).to_pylist():
        missing = _NO_ORIGINAL[row["thinking_finish"]] if row["answer_finish"] == "none" else ""
        yield _Given(question=asked[row["question"]], ids=row["answer_ids"], missing=missing)


def _probes(probes: pa.Table, asked: dict[int, Question]) -> Iterator[_Given]:
    # Slice by slice, so that the ids of a large unit are not all Python numbers at once.
    for start in range(0, probes.num_rows, _AT_A_TIME):
        rows = probes.select(("question", "answer_ids", "finish")).slice(start, _AT_A_TIME)
        for row in rows.to_pylist():
            missing = _NO_PROBE if row["finish"] == "too_long" else ""
            yield _Given(question=asked[row["question"]], ids=row["answer_ids"], missing=missing)


def _judge(given: list[_Given], decoder: AnswerDecoder, checker: Checker) -> list[Verdict]:
    checked = iter(
        checker.check_many(
            [(item.question, decoder.answer_text(item.ids)) for item in given if not item.missing]
        )
    )
    return [
        Verdict(right=False, answer=None, reason=item.missing) if item.missing else next(checked)
        for item in given
    ]


def _rows(
    unit: Unit, trajectories: pa.Table, probes: pa.Table, verdicts: list[Verdict]
) -> pa.Table:
    count = trajectories.num_rows
    columns: dict[str, list[Any]] = {
        "model": [unit.cell.model] * len(verdicts),
        "benchmark": [unit.cell.benchmark] * len(verdicts),
        "position": [ORIGINAL] * count + probes["position"].to_pylist(),
        "sample": [0] * count + probes["sample"].to_pylist(),
        "right": [verdict.right for verdict in verdicts],
        "answer": [verdict.answer for verdict in verdicts],
        "reason": [verdict.reason for verdict in verdicts],
    }
    for name in ("question", "trajectory"):
        columns[name] = trajectories[name].to_pylist() + probes[name].to_pylist()
    return make_table("verdicts", columns)
