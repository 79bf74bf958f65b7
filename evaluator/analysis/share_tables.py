"""Which of every cell's rows may mislead, as a table and as first sentences."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from evaluator.present.names import visible
from evaluator.present.table import Table
from stp.campaign.shares import KINDS, CellShares
from stp.campaign.status import campaign_shares

_LABELS = {
    "thinking_cut": "Thinking cut",
    "never_closed": "Never closed",
    "answers_cut": "Answers cut",
    "probes_cut": "Probes cut",
    "answers_unread": "Answers unread",
    "probes_unread": "Probes unread",
    "ran_on": "Ran on",
    "positions_unanswered": "Positions unanswered",
    "questions_shortened": "Questions shortened",
    "questions_too_long": "Questions too long",
    "unknown_ids": "Unknown ids",
    "troubled": "Troubled verdicts",
}


def shares_of_campaigns(urls: Sequence[str | Path]) -> tuple[CellShares, ...]:
    """Return the shares of every cell of several campaigns."""
    return tuple(cell for url in urls for cell in campaign_shares(url))


def share_sentences(cells: Sequence[CellShares]) -> tuple[str, ...]:
    """Return what must be said before any figure; empty if every share is small."""
    return tuple(visible(sentence, 400) for cell in cells for sentence in cell.sentences())


def share_notes(cells: Sequence[CellShares]) -> tuple[str, ...]:
    """Return a sentence for every cell with rows that may mislead."""
    return tuple(
        visible(f"{cell.model} on {cell.benchmark}: {'; '.join(found)}.", 2_000)
        for cell in cells
        if (found := [share.sentence() for share in cell.shares if share.count])
    )


def share_table(cells: Sequence[CellShares]) -> Table:
    """Return the shares of all kinds by cell, in per cent."""
    rows = {
        (visible(cell.model), visible(cell.benchmark)): {
            _LABELS[share.kind.name]: 100 * share.fraction for share in cell.shares
        }
        for cell in cells
    }
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(_LABELS.values()))
    frame.index = pd.MultiIndex.from_tuples(list(rows), names=["Model", "Benchmark"])
    meanings = "; ".join(f"{_LABELS[kind.name].lower()}, of {kind.noun}" for kind in KINDS)
    return Table(
        name="shares",
        title="Rows that may mislead, per cent",
        frame=frame,
        formats=dict.fromkeys(_LABELS.values(), ".1f"),
        note=f"{meanings[0].upper()}{meanings[1:]}. Missing: the campaign's rows do not tell.",
    )
