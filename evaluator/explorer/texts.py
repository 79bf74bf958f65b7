"""The texts of one unit of a campaign: steps and answers, decoded when they are looked at."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import StoreError
from evaluator.explorer.source import Piece
from evaluator.present.names import visible
from stp.campaign.store import Store, read_questions
from stp.campaign.tables import ORIGINAL
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import TableName, Unit

ANSWERS_SHOWN = 24
"""Distinct answers at a position; the rest are counted together, right and wrong apart."""
_COLUMNS: Final[Mapping[TableName, tuple[str, ...]]] = {
    "trajectories": ("thinking_ids", "thinking_finish", "answer_ids", "answer_finish"),
    "positions": ("tokens",),
    "probes": ("answer_ids",),
    "verdicts": ("position", "right", "answer", "reason"),
}
"""What is read of a unit, beside question and trajectory."""
_STEP, _ANSWER, _REPLY, _OWN, _THINKING = 20_000, 200, 2_000, 20_000, 1_000_000


def unit_texts(
    store: Store, unit: Unit, tokenizer: StoredTokenizer, keys: Sequence[tuple[int, int]]
) -> list[str]:
    """Return the thinking of a unit's trajectories, by (question, trajectory), to be searched."""
    rows = store.read_columns(
        "trajectories", unit.shard("trajectories"), ("question", "trajectory", "thinking_ids")
    )
    places, ids = _places(rows), rows["thinking_ids"]
    return [visible(tokenizer.show(ids[places[key][0]].as_py()), _THINKING) for key in keys]


class UnitTexts:
    """A unit's rows, read once.

    Parameters
    ----------
    store, unit
        What to read.
    tokenizer
        Its model's.
    probes
        Answers at a position.
    """

    def __init__(
        self, store: Store, unit: Unit, tokenizer: StoredTokenizer, *, probes: int
    ) -> None:
        self._tokenizer, self._probes = tokenizer, probes
        self._rows: dict[str, pa.Table] = {
            table: store.read_columns(table, unit.shard(table), ("question", "trajectory", *names))
            for table, names in _COLUMNS.items()
        }
        verdicts, own = self._rows["verdicts"], pc.field("position") == ORIGINAL
        self._rows |= {"own": verdicts.filter(own), "verdicts": verdicts.filter(~own)}
        self._places = {table: _places(rows) for table, rows in self._rows.items()}
        self._questions = read_questions(store, unit.cell)
        self._signals = _signals(store, unit)

    def trajectory(self, question: int, sample: int) -> Piece:
        """Return a trajectory: its curve, steps, answers at every position, and own answer.

        Raises
        ------
        data.errors.StoreError
            If the tables of the unit do not go together.
        """
        key, probes = (question, sample), self._probes
        own = self._of("trajectories", key).to_pylist()
        original = self._of("own", key).to_pylist()
        tokens = self._of("positions", key)["tokens"].to_pylist()
        verdicts = self._of("verdicts", key)
        right = verdicts["right"].to_pylist()
        if len(own) != 1 or len(original) != 1 or len(right) != len(tokens) * probes:
            raise StoreError(
                f"question {question}, trajectory {sample}: its rows do not go together; "
                "run `stp grade --again` on the campaign"
            )
        ids = own[0]["thinking_ids"]
        given = list(zip(verdicts["answer"].to_pylist(), right, strict=True))
        reasons, replies = verdicts["reason"], self._of("probes", key)["answer_ids"]
        asked = self._questions.slice(question, 1).to_pylist()[0]
        starts = range(0, len(given), probes)
        return {
            "id": visible(asked["question_id"], 160),
            "prompt": visible(asked["prompt"], 20_000),
            "reference": visible(asked["reference"], 2_000),
            "sample": sample,
            "question": question,
            "probes": probes,
            "tokens": tokens,
            "correct": [sum(right[start : start + probes]) for start in starts],
            "steps": [
                visible(self._tokenizer.show(ids[start:stop]), _STEP)
                for start, stop in itertools.pairwise(tokens)
            ],
            "answers": [
                self._answers(given[start : start + probes], start, reasons, replies)
                for start in starts
            ],
            "finish": own[0]["thinking_finish"],
            "own": {
                "text": visible(self._tokenizer.decode(own[0]["answer_ids"]).strip(), _OWN),
                "answer": _shown(original[0]["answer"]),
                "right": int(original[0]["right"]),
                "reason": visible(original[0]["reason"] or "", 400),
                "finish": own[0]["answer_finish"],
            },
            "signals": self._own_signals(key),
        }

    def _of(self, table: str, key: tuple[int, int]) -> pa.Table:
        start, stop = self._places[table].get(key, (0, 0))
        return self._rows[table].slice(start, stop - start)

    def _answers(
        self,
        given: list[tuple[str | None, bool]],
        start: int,
        reasons: pa.ChunkedArray,
        replies: pa.ChunkedArray,
    ) -> list[list[Any]]:
        """Return [answer, right, count, reply, reason] rows, most frequent first.

        ``given`` are answers and verdicts of a position, whose probes begin at ``start``.
        """
        ordered = Counter(given).most_common()
        shown = []
        for (answer, right), count in ordered[:ANSWERS_SHOWN]:
            first = start + given.index((answer, right))
            reply = self._tokenizer.decode(replies[first].as_py()).strip()
            reason = visible(reasons[first].as_py() or "", 400)
            shown.append([_shown(answer), int(right), count, visible(reply, _REPLY), reason])
        for right in (True, False):
            rest = [count for (_, verdict), count in ordered[ANSWERS_SHOWN:] if verdict is right]
            if rest:
                shown.append([f"{len(rest)} further answers", int(right), sum(rest), "", ""])
        return shown

    def _own_signals(self, key: tuple[int, int]) -> dict[str, list[float | None]]:
        if self._signals is None:
            return {}
        rows, places = self._signals
        start, stop = places.get(key, (0, 0))
        return {
            name: [
                round(value, 4) if np.isfinite(value) else None
                for value in rows[name].slice(start, stop - start).to_pylist()
            ]
            for name in SIGNALS
            if stop > start
        }


SIGNALS = ("end_logprob", "entropy", "end_entropy", "answer_entropy")


def _signals(
    store: Store, unit: Unit
) -> tuple[pa.Table, dict[tuple[int, int], tuple[int, int]]] | None:
    name = unit.shard("signals")
    if not store.exists(name):
        return None
    rows = store.read_columns("signals", name, ("question", "trajectory", *SIGNALS))
    return rows, _places(rows)


def _places(rows: pa.Table) -> dict[tuple[int, int], tuple[int, int]]:
    """Return where the rows of each (question, trajectory) begin and end; they are neighbours."""
    if not rows.num_rows:
        return {}
    question, trajectory = (rows[name].to_numpy() for name in ("question", "trajectory"))
    changes = (np.diff(question) != 0) | (np.diff(trajectory) != 0)
    starts = np.append(0, np.flatnonzero(changes) + 1)
    ends = np.append(starts[1:], rows.num_rows)
    return {
        (int(question[start]), int(trajectory[start])): (int(start), int(end))
        for start, end in zip(starts, ends, strict=True)
    }


def _shown(answer: str | None) -> str | None:
    return None if answer is None else visible(answer, _ANSWER)
