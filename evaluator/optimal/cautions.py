"""What must be said of runs before their scores, and rows under a wrong name."""

from dataclasses import dataclass

import pandas as pd

from data.errors import MisuseError
from evaluator.optimal.methods import NO_THINKING, ORACLE_ROUTER, ROUTER
from evaluator.present.names import visible
from evaluator.runs.shares import CUT, RAN_ON, THINKS_ANYWAY, TROUBLED, UNREAD, cautions
from stp.campaign.row_counts import trouble_of
from stp.campaign.shares import Share

_MOST_THINKING_ANYWAY = 0.05
"""If at least this share of its responses think, a row without thinking is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Rows that can be scored, and what is to be said first.

    Attributes
    ----------
    rows
        The graded rows without those of methods that are not what they are called.
    cautions
        Sentences.
    left_out
        Model and method of the rows that are not given.
    """

    rows: pd.DataFrame
    cautions: tuple[str, ...]
    left_out: frozenset[tuple[str, str]] = frozenset()


def without(rows: pd.DataFrame, left_out: frozenset[tuple[str, str]]) -> pd.DataFrame:
    """Return rows without those of some (model, method)."""
    if not left_out:
        return rows
    pairs = zip(rows["model"].astype(str), rows["method"].astype(str), strict=True)
    return rows[[pair not in left_out for pair in pairs]]


def check_rows(rows: pd.DataFrame) -> Checked:
    """Count rows that may mislead; leave out no-thinking methods that think.

    A server or a function without a switch answers with thinking whatever it is asked for, and a
    row of such answers under the name of no thinking would be a second row of thinking. Routers
    that choose between the two go with it.

    Raises
    ------
    data.errors.MisuseError
        If nothing is left.
    """
    said: list[str] = []
    gone: set[tuple[str, str]] = set()
    for (model, method), group in rows.groupby(["model", "method"], sort=False):
        name = f"{visible(str(model), 60)}, {method}"
        shares = [
            Share(kind=CUT, count=_cut(group), of=len(group)),
            Share(kind=UNREAD, count=_unread(group), of=len(group)),
            Share(kind=RAN_ON, count=_ran_on(group), of=len(group)),
            Share(kind=TROUBLED, count=_troubled(group), of=len(group)),
        ]
        if method == NO_THINKING:
            tokens = pd.to_numeric(group["thinking_tokens"], errors="coerce").fillna(0)
            thinking = int((tokens > 0).sum())
            anyway = Share(kind=THINKS_ANYWAY, count=thinking, of=len(group))
            shares.append(anyway)
            if anyway.fraction >= _MOST_THINKING_ANYWAY:
                gone |= {(str(model), name) for name in (NO_THINKING, ROUTER, ORACLE_ROUTER)}
        said += cautions(name, shares)
    left_out = gone & set(map(tuple, rows[["model", "method"]].astype(str).to_numpy().tolist()))
    rows = without(rows, frozenset(left_out))
    if left_out:
        listed = "; ".join(f"{visible(model, 60)}, {method}" for model, method in sorted(left_out))
        said.append(f"Not given, since answers without thinking think: {listed}.")
    if rows.empty:
        raise MisuseError(f"nothing is left to score. {' '.join(said)}")
    return Checked(rows=rows, cautions=tuple(said), left_out=frozenset(left_out))


def _cut(group: pd.DataFrame) -> int:
    return int((group["finish"] == "length").sum()) if "finish" in group else 0


def _unread(group: pd.DataFrame) -> int:
    """Count responses without an answer; what a judge decided as a whole has one."""
    return int(group["answer"].isna().sum()) if "answer" in group else 0


def _ran_on(group: pd.DataFrame) -> int:
    """Count answers that go on into the next turn; those of which nobody knows are none."""
    return int(group["ran_on"].eq(True).sum()) if "ran_on" in group else 0


def _troubled(group: pd.DataFrame) -> int:
    if "reason" not in group:
        return 0
    return sum(trouble_of(str(reason)) is not None for reason in group["reason"])


def same_questions(rows: pd.DataFrame) -> bool:
    """Return whether every method of every model was asked the same questions."""
    scored = rows[rows["side"].isin(["ovt", "ut"])]
    asked = {
        frozenset(zip(group["subset"].astype(str), group["question"].astype(str), strict=True))
        for _, group in scored.groupby(["model", "method"], sort=False)
    }
    return len(asked) <= 1
