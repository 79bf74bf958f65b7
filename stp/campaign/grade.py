"""Stage three: verdicts. Answers of a unit to right or wrong, without a model.

Every probe gets a verdict, and so does every trajectory's own original answer (position -1). A
trajectory without one, cut at its limit for instance, is wrong and says why; an answer is never
made up, and trouble of the checker is an error, never a verdict.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from data import Question
from evaluator.answers import Checker, Verdict
from stp.campaign.generate import OnProgress
from stp.campaign.tables import ORIGINAL, make_table
from stp.campaign.units import Unit

_AT_A_TIME = 512

_NO_ANSWER = {
    "limit": "wrong: no answer: thinking was cut at the limit",
    "stop": "wrong: no answer: the output ended within the thinking",
    "end": "wrong: no answer: the context left no room for one",
}


class Decoder(Protocol):
    """What grading needs of a thinking format."""

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""


def grade_unit(
    unit: Unit,
    questions: pa.Table,
    trajectories: pa.Table,
    probes: pa.Table,
    *,
    decoder: Decoder,
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
    originals = _original_verdicts(trajectories, asked, decoder, checker)
    if on_progress is not None:
        on_progress(trajectories.num_rows / max(1, total), trajectories.num_rows)
    verdicts = list(originals)
    numbers = probes["question"].to_pylist()
    for start in range(0, probes.num_rows, _AT_A_TIME):
        ids = probes["answer_ids"].slice(start, _AT_A_TIME).to_pylist()
        pairs = [
            (asked[number], decoder.decode(answer))
            for number, answer in zip(numbers[start : start + _AT_A_TIME], ids, strict=True)
        ]
        verdicts += checker.check_many(pairs)
        if on_progress is not None:
            on_progress(len(verdicts) / max(1, total), len(pairs))
    return _rows(unit, trajectories, probes, verdicts)


def _questions(questions: pa.Table, unit: Unit) -> dict[int, Question]:
    rows = questions.slice(unit.question_start, unit.question_stop - unit.question_start)
    return {
        row["question"]: Question(
            id=row["question_id"],
            prompt=row["prompt"],
            reference=row["reference"],
            answer_kind=row["answer_kind"],
            choices=tuple(row["choices"]),
        )
        for row in rows.to_pylist()
    }


def _original_verdicts(
    trajectories: pa.Table, asked: dict[int, Question], decoder: Decoder, checker: Checker
) -> list[Verdict]:
    rows = trajectories.select(
        ["question", "thinking_finish", "answer_ids", "answer_finish"]
    ).to_pylist()
    answered = [row for row in rows if row["answer_finish"] != "none"]
    checked = iter(
        checker.check_many(
            [(asked[row["question"]], decoder.decode(row["answer_ids"])) for row in answered]
        )
    )
    return [
        Verdict(right=False, answer=None, reason=_NO_ANSWER[row["thinking_finish"]])
        if row["answer_finish"] == "none"
        else next(checked)
        for row in rows
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
