"""Rows side by side, with paired differences where possible."""

import difflib
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from baselines.registry import BUILT_IN
from data.errors import MisuseError
from evaluator.analysis.frontiers import STRATEGY_LABELS
from evaluator.analysis.intervals import central_range
from evaluator.otbench.leaderboard import replicates_of
from evaluator.otbench.row import Row, ValuePart
from evaluator.present.names import visible
from evaluator.present.numbers import Span
from evaluator.present.table import Table

COLUMNS = {
    "curve_area": "area",
    "hypervolume_share": "area of frontier, %",
    "tokens_saved_fraction": "saved at P(n), %",
    "selected_tokens_fraction": "tokens, %",
    "selected_accuracy": "accuracy, %",
    "selected_gap": "gap, points",
    "selected_share": "gain realised, %",
    "selected_signal_fraction": "signals, %",
}
"""Headings of the summaries that tables show, in percent or points."""
SHORT = {
    "hypervolume_share": "of frontier",
    "tokens_saved_fraction": "saved at P(n)",
    "selected_tokens_fraction": "tokens",
    "selected_accuracy": "accuracy",
    "selected_gap": "gap",
    "selected_share": "gain share",
    "selected_signal_fraction": "signals",
}
"""Shorter headings, for a terminal."""
PAPER_METHODS = ("think_switcher", "predictive_scheduling", "think_brake")
"""Those of paper 002."""
FEWER = ("hypervolume_share", "tokens_saved_fraction", "selected_accuracy", "selected_gap")
"""What a terminal has room for with intervals."""


def order_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows by strategy, within it the trivial ones last, the others by their area."""
    strategies = list(STRATEGY_LABELS)
    return sorted(
        rows,
        key=lambda row: (
            row.release.name,
            strategies.index(row.method.strategy),
            row.method.trivial,
            -row.area,
            row.label,
        ),
    )


def leaderboard_table(rows: Sequence[Row]) -> Table:
    """Return rows as a table: one line a method, with its intervals, grouped by strategy.

    Parameters
    ----------
    rows
        In the order to show.
    """
    several = len({row.release.checksum for row in rows}) > 1
    index, lines = [], []
    for row in rows:
        release = f" · {row.release.name}" if several else ""
        index.append(_labels(row, release))
        lines.append(
            {heading: _span(row.summary[key]) for key, heading in COLUMNS.items()}
            | {"setting": visible(_setting(row.selected.setting), 24)}
        )
    return Table(
        name="leaderboard",
        title="Methods beside the frontier of their strategy",
        frame=pd.DataFrame(lines, _index(index), dtype=object),
        formats=dict.fromkeys(COLUMNS.values(), ".1f"),
        note=_note(rows),
        grouped=True,
    )


def terminal_tables(rows: Sequence[Row], *, intervals: bool) -> list[Table]:
    """Return rows as tables that a terminal has room for, one a release.

    Parameters
    ----------
    rows
        In the order to show.
    intervals
        Show fewer numbers, each with its interval.
    """
    tables = []
    for checksum in dict.fromkeys(row.release.checksum for row in rows):
        mine = [row for row in rows if row.release.checksum == checksum]
        keys = FEWER if intervals else tuple(COLUMNS)
        lines = [
            {SHORT.get(key, COLUMNS[key]): _span(row.summary[key], intervals) for key in keys}
            for row in mine
        ]
        frame = pd.DataFrame(lines, _index([_labels(row) for row in mine]), dtype=object)
        tables.append(
            Table(
                name="methods",
                title=f"{visible(mine[0].release.name, 40)}, test questions: {_ends(mine[0])}",
                frame=frame,
                formats=dict.fromkeys(frame.columns, ".1f"),
                note=_terminal_note(intervals) if checksum == rows[-1].release.checksum else "",
                grouped=True,
            )
        )
    return tables


def _labels(row: Row, release: str = "") -> tuple[str, str]:
    star = " *" if row.method.trivial else ""
    return STRATEGY_LABELS[row.method.strategy], f"{visible(row.label, 60)}{star}{release}"


def _index(labels: list[tuple[str, str]]) -> pd.MultiIndex:
    return pd.MultiIndex.from_tuples(labels, names=["strategy", "method"])


def differences_table(rows: Sequence[Row], against: str) -> Table:
    """Return every row less another one, from paired replicates.

    Parameters
    ----------
    rows
        Of one release, with the same resampling, their replicates beside their files.
    against
        The label of the row that is subtracted.

    Raises
    ------
    data.errors.MisuseError
        If there is no such row, or rows cannot be paired.
    """
    check_labels(rows, [against])
    base = next(row for row in rows if row.label == against)
    if len(rows) == 1:
        raise MisuseError(f"{visible(against, 60)} is the only row; there is none to compare it to")
    check_pairable(rows)
    base_values = _replicates(base)
    index, lines = [], []
    for row in rows:
        if row is base:
            continue
        values = _replicates(row)
        line = {}
        for key in ("curve_area", "tokens_saved_fraction", "selected_accuracy", "selected_gap"):
            low, high = central_range(100 * (values[key] - base_values[key]))
            line[COLUMNS[key]] = Span(_difference(row, base, key), low, high)
        index.append((STRATEGY_LABELS[row.method.strategy], visible(row.label, 60)))
        lines.append(line)
    return Table(
        name="differences",
        title=f"Differences from {visible(against, 60)}, paired, with 95 % intervals",
        frame=pd.DataFrame(lines, _index(index), dtype=object),
        formats=dict.fromkeys(COLUMNS.values(), "+.1f"),
        grouped=True,
        note=f"{base.resampling.replicates:,} replicates of test questions and trajectories.",
    )


def check_labels(rows: Sequence[Row], labels: Sequence[str]) -> None:
    """Refuse labels that no row has.

    Raises
    ------
    data.errors.MisuseError
        Names the first of them, the existing labels, and similar ones.
    """
    there = list(dict.fromkeys(row.label for row in rows))
    for label in labels:
        if label in there:
            continue
        near = difflib.get_close_matches(label, there)
        # A name without its hyperparameters is not near their full length.
        near += [known for known in there if known not in near and known.startswith(f"{label}(")]
        raise MisuseError(
            f"no row is called {visible(label, 60)!r}; "
            f"there are {visible(', '.join(there))}"
            + (f"; did you mean {visible(' or '.join(near))}?" if near else "")
        )


def best_trivial(rows: Sequence[Row]) -> str:
    """Return the label of the trivial row with the largest area.

    Raises
    ------
    data.errors.MisuseError
        If no row is a trivial method's.
    """
    trivial = [row for row in rows if row.method.trivial]
    if not trivial:
        raise MisuseError("none of the rows is a trivial method; name one to compare with")
    return max(trivial, key=lambda row: row.area).label


def check_pairable(rows: Sequence[Row]) -> None:
    """Refuse rows whose replicates are not the same draws.

    Raises
    ------
    data.errors.MisuseError
        Names the first row that does not fit.
    """
    first = rows[0]
    for row in rows:
        if row.release.checksum != first.release.checksum:
            raise MisuseError(
                f"{row.label} was measured on another release than {first.label}; "
                "differences need the same questions"
            )
        if row.resampling != first.resampling:
            raise MisuseError(
                f"{row.label} and {first.label} have other replicates or another seed; run "
                "both with the same --replicates"
            )
        if not row.resampling.replicates or replicates_of(row) is None:
            raise MisuseError(
                f"{row.label}: its replicates are not beside {row.file}; run it with --replicates"
            )


def _replicates(row: Row) -> dict[str, Any]:
    found = replicates_of(row)
    if found is None:
        raise MisuseError(f"{row.label}: its replicates are not beside its file")
    return found


def _difference(row: Row, base: Row, key: str) -> float:
    value, other = (r.summary[key].value for r in (row, base))
    return math.nan if value is None or other is None else 100 * (value - other)


def _span(summary: ValuePart, intervals: bool = True) -> Span | str:
    """Return a summary in percent or points; an empty text where it has no meaning."""
    value, low, high = summary.value, summary.low, summary.high
    if value is None:
        return ""
    if not intervals or low is None or high is None:
        return Span(100 * value)
    return Span(100 * value, 100 * low, 100 * high)


def _setting(setting: Any) -> str:
    if isinstance(setting, list):
        return "(" + ", ".join(_setting(item) for item in setting) + ")"
    if isinstance(setting, float):
        return f"{setting:g}"
    return str(setting)


def _ends(row: Row) -> str:
    return f"P(0) {100 * row.zero_accuracy:.1f} %, P(n) {100 * row.full_accuracy:.1f} %"


def _note(rows: Sequence[Row]) -> str:
    return (
        f"Test questions of {visible(rows[0].release.name, 60)}; {_ends(rows[0])}. Area: the "
        "method curve above P(0), in points averaged over budgets up to "
        "full thinking. From tokens on: the setting that validation questions selected, with its "
        "retained thinking tokens, its accuracy, the frontier less it at the same tokens, the "
        "share of the frontier's gain over P(n) there (empty if there is none), and the tokens "
        "of its signals, which the retained tokens leave out. * trivial."
    )


def _terminal_note(intervals: bool) -> str:
    if intervals:
        return (
            "All in per cent or points. Of frontier: the method curve's area above P(0), of its "
            "frontier's. Saved: tokens, at P(n), the best setting. Accuracy, gap: of the setting "
            "that validation selected; the gap is the frontier at the same tokens less it. In "
            "brackets: 95 % intervals. * trivial."
        )
    return (
        "All in per cent or points. Area: the method curve's above P(0), averaged over budgets. Of "
        "frontier: that, of its frontier's area. Saved: tokens, at P(n), the best setting. Then "
        "the setting that validation selected: its tokens, accuracy, gap to the frontier at the "
        "same tokens, share of the frontier's gain over P(n), its signals' tokens. * trivial."
    )


def is_own(row: Row) -> bool:
    """Return whether a row's method is not one of this project's."""
    return row.method.spec not in BUILT_IN


def standings(rows: Sequence[Row]) -> list[str]:
    """Return how each method from elsewhere stands among those of its strategy, in a sentence.

    Methods are ordered by the area of their curve, as in the table.
    """
    found = []
    for row in rows:
        if not is_own(row):
            continue
        peers = [
            each
            for each in rows
            if each.method.strategy == row.method.strategy and not each.method.trivial
        ]
        peers.sort(key=lambda each: (-each.area, each.label))
        strategy = STRATEGY_LABELS[row.method.strategy].lower().removeprefix("dynamic ")
        place, best = peers.index(row) + 1, peers[0]
        sentence = f"Yours, {row.label}: {ordinal(place)} of {len(peers)} {strategy} methods"
        if len(peers) > 1:
            other = peers[1] if best is row else best
            apart = 100 * abs(row.area - other.area)
            side = "above" if best is row else "below"
            sentence += f", {apart:.1f} points of area {side} {other.label}"
        found.append(f"{sentence}.")
    return found


def ordinal(number: int) -> str:
    """Return a place as people say it.

    Examples
    --------
    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '112th']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
