"""Which share of a cell's rows may mislead: cut, without an answer, run on, with trouble.

A run can succeed while its figures mean something else than they say: if every thinking was cut at
its limit, the accuracy "after full thinking" is no such thing. The counts are made where rows are
made (:mod:`stp.campaign.row_counts`), and :func:`stp.campaign.status.campaign_shares` sums them.
Status, report, analysis, release card and dry run all say what is here.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from stp.campaign.manifest import CellRecord
from stp.campaign.row_counts import TROUBLE
from stp.campaign.units import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of rows that may mislead.

    Attributes
    ----------
    name
        Of the count; ``of`` is the count of all rows that it is a share of.
    noun, words
        What the rows are, and what happened to them.
    advice
        What to change.
    noticed_from
        From this share on, it is said before anything else.
    """

    name: str
    of: str
    noun: str
    words: str
    advice: str
    noticed_from: float = 0.01


KINDS: Final = (
    Kind(
        name="thinking_cut",
        of="trajectories",
        noun="trajectories",
        words="had their thinking cut at its limit, so that full thinking is not measured",
        advice="raise generation.thinking_limit (and context_limit with it)",
    ),
    Kind(
        name="never_closed",
        of="trajectories",
        noun="trajectories",
        words="ended their output inside the thinking",
        advice="read some with `stp show`; if they do close it, the family's thinking_end is "
        "another",
        noticed_from=0.05,
    ),
    Kind(
        name="answers_cut",
        of="answers",
        noun="original answers",
        words="were cut at their limit",
        advice="raise generation.answer_tokens",
    ),
    Kind(
        name="probes_cut",
        of="probes",
        noun="probes' answers",
        words="were cut at their limit",
        advice="raise probing.answer_tokens",
    ),
    Kind(
        name="answers_unread",
        of="answers",
        noun="original answers",
        words="hold nothing that can be read as an answer",
        advice="read some with `stp grade --diff` or `stp show`; ask for a form that is read",
        noticed_from=0.05,
    ),
    Kind(
        name="probes_unread",
        of="probes",
        noun="probes' answers",
        words="hold nothing that can be read as an answer",
        advice="read some with `stp show -q ID -t 0 -k 0`; ask for a form that is read, or give "
        "answers more tokens",
        noticed_from=0.05,
    ),
    Kind(
        name="ran_on",
        of="all_answers",
        noun="answers",
        words="run on into the next turn or into new thinking, and that text is judged with them",
        advice="name the model's end of turn as answer_stops in a family TOML file",
    ),
    Kind(
        name="positions_unanswered",
        of="positions",
        noun="positions",
        words="have no answers, since the prefix fills the context",
        advice="raise generation.context_limit, or lower thinking_limit",
    ),
    Kind(
        name="questions_shortened",
        of="questions",
        noun="questions",
        words="leave less room in the context than was asked for",
        advice="raise generation.context_limit, or lower thinking_limit",
    ),
    Kind(
        name="questions_too_long",
        of="questions",
        noun="questions",
        words="do not fit the context and are left out",
        advice="raise generation.context_limit",
    ),
    Kind(
        name="unknown_ids",
        of="outputs",
        noun="outputs",
        words="hold token ids that the tokenizer does not have; they stand for no text",
        advice="see that model and tokenizer belong together",
    ),
    Kind(
        name="troubled",
        of="verdicts",
        noun="verdicts",
        words="were decided by trouble, not by the answer ({detail})",
        advice="look at them with `stp show verdicts FOLDER --trouble`; grade again where there is "
        "time, memory and a sandbox: `stp grade FOLDER --again`",
    ),
)
"""All kinds, the ones that change the meaning of figures most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of a cell's rows are of a kind."""

    kind: Kind
    count: int
    of: int
    detail: str = ""

    @property
    def fraction(self) -> float:
        """Their share; 0 if there are no rows."""
        return self.count / self.of if self.of else 0.0

    @property
    def noticed(self) -> bool:
        """Whether it is large enough to be said first."""
        return self.count > 0 and self.fraction >= self.kind.noticed_from

    def sentence(self) -> str:
        """Return it in words, without the advice."""
        words = self.kind.words.format(detail=self.detail)
        return (
            f"{self.count:,} of {self.of:,} {self.kind.noun} ({100 * self.fraction:.1f}%) {words}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CellShares:
    """The shares of one model on one benchmark.

    Attributes
    ----------
    model, benchmark
        The cell.
    counts
        By name, how many rows there are of each sort. A count that the rows do not tell is left
        out: those of old campaigns know nothing of ids.
    trouble
        By reason, how many verdicts trouble decided.
    """

    model: str
    benchmark: str
    counts: Mapping[str, int]
    trouble: Mapping[str, int] = field(default_factory=dict)

    def share(self, name: str) -> Share:
        """Return the share of a kind, by its name."""
        return next(share for share in self.shares if share.kind.name == name)

    @property
    def shares(self) -> tuple[Share, ...]:
        """The share of every kind that is known."""
        detail = ", ".join(f"{reason}: {count:,}" for reason, count in self.trouble.items())
        return tuple(
            Share(
                kind=kind,
                count=self.counts[kind.name],
                of=self.counts.get(kind.of, 0),
                detail=detail,
            )
            for kind in KINDS
            if kind.name in self.counts
        )

    def sentences(self) -> list[str]:
        """Return what is to be said first: every share that is large enough, and what to do."""
        return [
            f"{self.model} on {self.benchmark}: {share.sentence()}: {share.kind.advice}."
            for share in self.shares
            if share.noticed
        ]


def shares_of(record: CellRecord, counts: Mapping[str, int], *, thinks: bool) -> CellShares:
    """Return the shares of a cell from the sums of its shards' counts."""
    found = dict(counts)
    trouble = {
        name.removeprefix(TROUBLE): found.pop(name)
        for name in sorted(found)
        if name.startswith(TROUBLE)
    }
    if not thinks:
        # Its probes are its answers: once is enough.
        for name in ("probes_cut", "probes_unread", "positions_unanswered", "thinking_cut"):
            found.pop(name, None)
        found.pop("never_closed", None)
    found |= {
        "questions": record.questions,
        "questions_shortened": record.shortened,
        "questions_too_long": record.too_long,
    }
    return CellShares(model=record.model, benchmark=record.benchmark, counts=found, trouble=trouble)


_ENOUGH = 8
"""Trajectories of a cell from which on a share among them is said; a cell with fewer has all."""


class EarlyShares:
    """Says during a run what would be said at its end, while there is time to stop and correct it.

    Parameters
    ----------
    thinks
        Whether the campaign's models think.
    """

    def __init__(self, *, thinks: bool) -> None:
        self._thinks = thinks
        self._counts: dict[Cell, Counter[str]] = {}
        self._done: Counter[Cell] = Counter()
        self._said: set[tuple[Cell, str]] = set()

    def add(
        self, record: CellRecord, counts: Mapping[str, int], *, trajectories: int, total: int
    ) -> list[str]:
        """Take note of a unit's rows; return what is to be said now, each once.

        Parameters
        ----------
        record
            The unit's cell.
        counts
            Of its rows, as :mod:`stp.campaign.row_counts` makes them.
        trajectories, total
            How many trajectories the unit has, and how many the cell.
        """
        cell = record.cell
        self._counts.setdefault(cell, Counter()).update(counts)
        self._done[cell] += trajectories
        if self._done[cell] < min(_ENOUGH, total):
            return []
        found = shares_of(record, self._counts[cell], thinks=self._thinks)
        fresh = [
            share
            for share in found.shares
            # Of questions the start has told.
            if share.noticed
            and share.kind.of in self._counts[cell]
            and (cell, share.kind.name) not in self._said
        ]
        self._said |= {(cell, share.kind.name) for share in fresh}
        return [
            f"{record.model} on {record.benchmark}, so far: {share.sentence()}; {share.kind.advice}"
            for share in fresh
        ]
