"""Which trajectories a page shows when it cannot show them all.

The choice depends on the curves alone, so the same campaign always gives the same page.
"""

from dataclasses import dataclass

import pandas as pd

from evaluator.analysis.overthinking import per_trajectory
from stp.curves import Curves


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionLimits:
    """How much a page may hold.

    Attributes
    ----------
    trajectories
        Most trajectories shown with their text.
    text_bytes
        Most bytes of text, estimated as 4 for a thinking token and 500 for a position (its
        answers). Keeps a page under about 6 MB.
    """

    trajectories: int = 320
    text_bytes: int = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The chosen trajectories.

    Attributes
    ----------
    trajectories
        Indices into the curves, rising.
    note
        What was chosen, in a sentence for the reader.
    """

    trajectories: tuple[int, ...]
    note: str


def _spread_order(size: int) -> list[int]:
    """Return 0..size-1 in an order whose every beginning is spread over the range.

    First both ends, then the middles of the gaps, breadth first.
    """
    order, gaps = list(dict.fromkeys([0, size - 1])) if size else [], [(0, size - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if low < middle < high:
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return order


def select_trajectories(curves: Curves, limits: SelectionLimits | None = None) -> Selection:
    """Choose whole (model, question) groups until a limit is met.

    The rule: in each cell the questions are sorted by their mean AD, greatest first (ties by
    question number), and taken from both ends and then from the middles of the gaps, so that any
    number of them shows much and little overthinking. Cells take turns. A group that does not fit
    is skipped; the first group of all is shown whatever its size.
    """
    limits = limits or SelectionLimits()
    if curves.trajectories == 0:
        return Selection(trajectories=(), note="There is no trajectory to show.")
    frame = per_trajectory(curves)
    frame["row"] = range(len(frame))
    frame["bytes"] = 4 * frame["full_tokens"] + 500 * frame["positions"]
    turns = []
    for cell, rows in frame.groupby(["model", "benchmark"], sort=True):
        means = rows.groupby("question")["accuracy_degradation"].mean()
        ranked = sorted(means.index.tolist(), key=lambda q, m=means: (-m[q], q))  # type: ignore[misc]
        for turn, rank in enumerate(_spread_order(len(ranked))):
            turns.append((turn, cell, ranked[rank]))
    turns.sort(key=lambda item: item[:2])
    chosen: list[int] = []
    room = limits.text_bytes
    groups = frame.groupby(["model", "question"], sort=False)
    for _, (model, _), question in turns:
        group: pd.DataFrame = groups.get_group((model, question))
        need = int(group["bytes"].sum())
        fits = len(chosen) + len(group) <= limits.trajectories and need <= room
        if fits or not chosen:
            chosen += group["row"].tolist()
            room -= need
    return Selection(trajectories=tuple(sorted(chosen)), note=_note(frame, sorted(chosen)))


def _note(frame: pd.DataFrame, chosen: list[int]) -> str:
    """Say what is shown, and by which rule where something is not."""
    if len(chosen) == len(frame):
        return f"All {len(frame):,} trajectories are shown."
    questions = frame.groupby(["model", "question"]).ngroups
    shown = frame.iloc[chosen].groupby(["model", "question"]).ngroups
    return (
        f"{len(chosen):,} of {len(frame):,} trajectories are shown ({shown:,} of {questions:,} "
        "pairs of model and question), to keep the page small. In every cell, questions are "
        "sorted by accuracy degradation and taken from both ends, then from the middles; all "
        "other numbers on this page use all trajectories."
    )
