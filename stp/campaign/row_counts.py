"""How many rows of a table may mislead, counted where the rows are made.

The counts stay with the rows in the shard's footer, so that whoever asks later reads no row.
:mod:`stp.campaign.shares` says what they mean.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evaluator.answers.verdict import NO_ANSWER, TROUBLES
from stp.campaign.tables import ORIGINAL, with_counts
from stp.campaign.units import TableName

if TYPE_CHECKING:
    from stp.formats import ThinkingFormat

RowCounts = dict[str, int]

TROUBLE: Final = "trouble: "
"""How the names of counts begin that say what trouble decided verdicts."""

COUNTED_COLUMNS: Final[dict[TableName, tuple[str, ...]]] = {
    "trajectories": ("thinking_finish", "answer_finish"),
    "probes": ("sample", "finish"),
    "verdicts": ("position", "reason"),
}
"""What must be read of a table to count it without its ids."""


def counted(table: TableName, rows: pa.Table, form: "ThinkingFormat | None" = None) -> pa.Table:
    """Return rows with the counts of their kinds, which stay with them in a shard.

    Parameters
    ----------
    table
        ``"trajectories"``, ``"probes"`` or ``"verdicts"``; others have no counts.
    rows
        Its rows.
    form
        How the model is prompted; without it, nothing is said about ids.
    """
    return with_counts(rows, count_rows(table, rows, form))


def count_rows(table: TableName, rows: pa.Table, form: "ThinkingFormat | None" = None) -> RowCounts:
    """Return how many rows are of each kind; see :func:`counted`."""
    if table == "trajectories":
        return _of_trajectories(rows, form)
    if table == "probes":
        return _of_probes(rows, form)
    return _of_verdicts(rows) if table == "verdicts" else {}


def _of_trajectories(rows: pa.Table, form: "ThinkingFormat | None") -> RowCounts:
    thinking, answer = _tally(rows["thinking_finish"]), _tally(rows["answer_finish"])
    # Without thinking there is no position to probe: an answer is a probe by itself.
    found = {
        "trajectories": rows.num_rows - thinking["off"],
        "thinking_cut": thinking["limit"],
        "never_closed": thinking["stop"],
        "answers": rows.num_rows - answer["none"],
        "answers_cut": answer["length"],
    }
    if form is not None:
        found |= _of_ids(rows, ("thinking_ids", "answer_ids"), form)
        found["all_answers"] = found["answers"]
    return found


def _of_probes(rows: pa.Table, form: "ThinkingFormat | None") -> RowCounts:
    finish = _tally(rows["finish"])
    first = pc.equal(rows["sample"], 0)
    found = {
        "probes": rows.num_rows - finish["too_long"],
        "probes_cut": finish["length"],
        "positions": int(pc.sum(first).as_py() or 0),
        "positions_unanswered": int(
            pc.sum(pc.and_(first, pc.equal(rows["finish"], "too_long"))).as_py() or 0
        ),
    }
    if form is not None:
        found |= _of_ids(rows, ("answer_ids",), form)
        found["all_answers"] = found["probes"]
    return found


def _of_verdicts(rows: pa.Table) -> RowCounts:
    own = pc.equal(rows["position"], ORIGINAL)
    unread = pc.equal(rows["reason"], NO_ANSWER.reason)
    found = {
        "verdicts": rows.num_rows,
        "answers_unread": int(pc.sum(pc.and_(own, unread)).as_py() or 0),
        "probes_unread": int(pc.sum(pc.and_(pc.invert(own), unread)).as_py() or 0),
        "troubled": 0,
    }
    for reason, count in _tally(rows["reason"]).items():
        if (trouble := trouble_of(reason)) is not None:
            found["troubled"] += count
            found[f"{TROUBLE}{trouble}"] = found.get(f"{TROUBLE}{trouble}", 0) + count
    return found


def trouble_of(reason: str) -> str | None:
    """Return what trouble decided a verdict, from its reason; None if the answer did.

    Examples
    --------
    >>> trouble_of("wrong: test 3 of 10: killed: time limit"), trouble_of("wrong: option B")
    ('time limit', None)
    """
    if reason.startswith("right"):
        return None
    # Only what a reason ends in is the checker's own: what a program prints may stand before it.
    last = reason.rpartition(": ")[2]
    return next((trouble for trouble in TROUBLES if last.startswith(trouble)), None)


def _of_ids(rows: pa.Table, columns: Iterable[str], form: "ThinkingFormat") -> RowCounts:
    """Count rows with ids that stand for no text, and answers that run on into the next turn."""
    unknown = np.zeros(rows.num_rows, np.bool_)
    for column in columns:
        row, ids = _flat(rows[column])
        unknown[row[~form.knows(ids)]] = True
    return {
        "outputs": rows.num_rows,
        "unknown_ids": int(unknown.sum()),
        "ran_on": _running_on(rows["answer_ids"], form),
    }


def _running_on(answers: pa.ChunkedArray, form: "ThinkingFormat") -> int:
    """Count answers that run on, as :meth:`stp.formats.turn_end.TurnEnd.runs_on` tells of one.

    A unit may hold ten million ids: texts are searched only where the next turn is one, and of one
    answer at a time.
    """
    row, ids = _flat(answers)
    run_on = np.zeros(len(answers), np.bool_)
    run_on[row[np.isin(ids, list(form.turn_end.stray_ids))]] = True
    if form.turn_end.next_turn is not None:
        bounds = np.searchsorted(row, np.arange(len(answers) + 1))
        for place in np.flatnonzero(~run_on):
            own = ids[bounds[place] : bounds[place + 1]].tolist()
            run_on[place] = form.turn_end.begins_next(own, form.forms)
    return int(run_on.sum())


def _flat(
    lists: pa.ChunkedArray,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return for each id of a column of lists its row, and the id."""
    lengths = pc.list_value_length(lists).to_numpy()
    ids = pc.list_flatten(lists).to_numpy().astype(np.int64)
    return np.repeat(np.arange(len(lengths)), lengths), ids


def _tally(column: pa.ChunkedArray) -> Counter[str]:
    return Counter(
        {entry["values"]: entry["counts"] for entry in column.value_counts().to_pylist()}
    )
