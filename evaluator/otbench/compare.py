"""Rows side by side, with paired differences where they can be had."""

import difflib
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from data.errors import MisuseError
from evaluator.analysis.frontiers import STRATEGY_LABELS
from evaluator.analysis.intervals import central_range
from evaluator.otbench.leaderboard import Row, replicates_of
from evaluator.present.names import visible
from evaluator.present.table import Table

COLUMNS = {
    "curve_area": ("area", 100),
    "hypervolume_share": ("area of frontier, %", 100),
    "tokens_saved_fraction": ("saved at P(n), %", 100),
    "selected_tokens_fraction": ("tokens, %", 100),
    "selected_accuracy": ("accuracy, %", 100),
    "selected_gap": ("gap, points", 100),
    "selected_share": ("gain realised, %", 100),
    "selected_signal_fraction": ("signals, %", 100),
}
"""Summaries that tables show: heading, factor."""


def order_rows(rows: Sequence[Row]) -> list[Row]:
    """Return rows by strategy, within it the trivial ones last, the others by their area."""
    strategies = list(STRATEGY_LABELS)
    return sorted(
        rows,
        key=lambda row: (
            row["release"]["name"],
            strategies.index(row["method"]["strategy"]),
            row["method"]["trivial"],
            -(row["summary"]["curve_area"]["value"] or 0.0),
            row["label"],
        ),
    )


def leaderboard_table(rows: Sequence[Row], *, intervals: bool = True) -> Table:
    """Return rows as a table: one line a method, grouped by strategy.

    Parameters
    ----------
    rows
        In the order to show.
    intervals
        Write the 95 % interval behind each value where the row has one.
    """
    several = len({row["release"]["checksum"] for row in rows}) > 1
    index, lines = [], []
    for row in rows:
        release = f" · {row['release']['name']}" if several else ""
        index.append(
            (
                STRATEGY_LABELS[row["method"]["strategy"]],
                visible(row["label"], 60)
                + ("" if not row["method"]["trivial"] else " *")
                + release,
            )
        )
        lines.append(
            {
                heading: _entry(row["summary"][key], factor, intervals)
                for key, (heading, factor) in COLUMNS.items()
            }
            | {"setting": visible(_setting(row["selected"]["setting"]), 24)}
        )
    frame = pd.DataFrame(lines, pd.MultiIndex.from_tuples(index, names=["strategy", "method"]))
    return Table(
        name="leaderboard",
        title="Methods beside the frontier of their strategy",
        frame=frame,
        note=_note(rows),
    )


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
    base = next(row for row in rows if row["label"] == against)
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
            heading, factor = COLUMNS[key]
            low, high = central_range(factor * (values[key] - base_values[key]))
            estimate = _difference(row, base, key, factor)
            line[heading] = f"{estimate:+.1f} [{low:+.1f}, {high:+.1f}]"
        index.append((STRATEGY_LABELS[row["method"]["strategy"]], visible(row["label"], 60)))
        lines.append(line)
    return Table(
        name="differences",
        title=f"Differences from {visible(against, 60)}, paired, with 95 % intervals",
        frame=pd.DataFrame(lines, pd.MultiIndex.from_tuples(index, names=["strategy", "method"])),
        note=f"{base['resampling']['replicates']:,} replicates of test questions and trajectories.",
    )


def check_labels(rows: Sequence[Row], labels: Sequence[str]) -> None:
    """Refuse labels that no row has.

    Raises
    ------
    data.errors.MisuseError
        Names the first of them, the labels that there are, and those that are much like it.
    """
    there = list(dict.fromkeys(row["label"] for row in rows))
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
    trivial = [row for row in rows if row["method"]["trivial"]]
    if not trivial:
        raise MisuseError("none of the rows is a trivial method; name one to compare with")
    return str(max(trivial, key=lambda row: row["summary"]["curve_area"]["value"])["label"])


def check_pairable(rows: Sequence[Row]) -> None:
    """Refuse rows whose replicates are not the same draws.

    Raises
    ------
    data.errors.MisuseError
        Names the first row that does not fit.
    """
    first = rows[0]
    for row in rows:
        if row["release"]["checksum"] != first["release"]["checksum"]:
            raise MisuseError(
                f"{row['label']} was measured on another release than {first['label']}; "
                "differences need the same questions"
            )
        if row["resampling"] != first["resampling"]:
            raise MisuseError(
                f"{row['label']} and {first['label']} have other replicates or another seed; run "
                "both with the same --replicates"
            )
        if not row["resampling"]["replicates"] or replicates_of(row) is None:
            raise MisuseError(
                f"{row['label']}: its replicates are not beside {row['run']['file']}; run it with "
                "--replicates"
            )


def _replicates(row: Row) -> dict[str, Any]:
    found = replicates_of(row)
    if found is None:
        raise MisuseError(f"{row['label']}: its replicates are not beside its file")
    return found


def _difference(row: Row, base: Row, key: str, factor: float) -> float:
    values = [r["summary"][key]["value"] for r in (row, base)]
    return math.nan if None in values else factor * (values[0] - values[1])


def _entry(summary: dict[str, float | None], factor: float, intervals: bool) -> str:
    value = summary["value"]
    if value is None:
        return ""
    text = f"{factor * value:.1f}"
    low, high = summary.get("low"), summary.get("high")
    if intervals and low is not None and high is not None:
        text += f" [{factor * low:.1f}, {factor * high:.1f}]"
    return text


def _setting(setting: Any) -> str:
    if isinstance(setting, list):
        return "(" + ", ".join(_setting(item) for item in setting) + ")"
    if isinstance(setting, float):
        return f"{setting:g}"
    return str(setting)


def _note(rows: Sequence[Row]) -> str:
    first = rows[0]
    full, zero = 100 * first["full_accuracy"], 100 * first["zero_accuracy"]
    return (
        f"Test questions of {visible(first['release']['name'], 60)}; P(0) {zero:.1f} %, P(n) "
        f"{full:.1f} %. Area: the method curve above P(0), in points averaged over budgets up to "
        "full thinking. From tokens on: the setting that validation questions selected, with its "
        "retained thinking tokens, its accuracy, the frontier less it at the same tokens, the "
        "share of the frontier's gain over P(n) there (empty where there is none), and the tokens "
        "of its signals, which the retained tokens leave out. * trivial."
    )
