"""What paper 004 shows in Figures 3, 4, 10 and 11, as views: drawn for print, and in the page.

Views without data are left out. Every method that thinks is shown, whatever its name.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from evaluator.optimal.analyses import by_group, by_size, options_fit, thinking_methods
from evaluator.optimal.scores import STATISTICS, Scores
from evaluator.present.views import Bars, Lines, Trace, View

_SIDES = (
    ("accuracy", "accuracy", ".0%"),
    ("thinking_tokens", "thinking tokens", ",.0f"),
    ("area", "AUC OAA", ".0%"),
)


def insights(rows: pd.DataFrame, scores: Scores) -> list[View]:
    """Return all views that graded rows and their scores give, in reading order."""
    methods = thinking_methods(rows)
    views = list(_by_subset(scores, methods))
    if "answer_type" in rows:
        own = rows[rows["side"] != "none"]
        views += [
            view
            for column, label in (("discipline", "discipline"), ("answer_type", "answer type"))
            if (view := _by_group(own, column, label, methods)) is not None
        ]
        by_options = [_options(rows, method, methods) for method in methods]
        views += [view for view in by_options if view is not None]
    if "size" in rows:
        views += _sizes(rows, methods)
    return views


def _way(model: str, method: str, methods: list[str]) -> str:
    """Return what a line or bar is called: the model, and the method where there are several."""
    return f"{model}, {method}" if len(methods) > 1 else model


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _by_subset(scores: Scores, methods: list[str]) -> Iterator[View]:
    """Yield accuracy, thinking and AUC OAA of the easy subsets (Figure 3)."""
    places = [j for j, (_, side) in enumerate(scores.subsets) if side == "ovt"]
    rows = [
        i
        for i, (_, method) in enumerate(scores.rows)
        if method in methods and any(scores.questions[i, j] for j in places)
    ]
    if len(places) < 2 or not rows:
        return
    for statistic, label, y_format in _SIDES:
        at = STATISTICS.index(statistic)
        series = [
            (
                scores.subsets[j][0],
                [
                    _number(scores.by_subset[i, j, at]) if scores.questions[i, j] else None
                    for i in rows
                ],
            )
            for j in places
        ]
        if all(value is None for _, values in series for value in values):
            continue
        yield Bars(
            stem=f"subsets-{statistic.replace('_', '-')}",
            title=f"Easy questions, by subset: {label}",
            x_label="model",
            y_label=label,
            y_format=y_format,
            note=f"t_max = {scores.t_max}; responses, then questions, equal weight.",
            groups=[_way(*scores.rows[i], methods) for i in rows],
            series=series,
        )


def _by_group(rows: pd.DataFrame, column: str, label: str, methods: list[str]) -> Bars | None:
    """Return thinking tokens by group and model, most thinking first (Figures 4a and 4b)."""
    found = by_group(rows, column)["thinking_tokens"].dropna()
    found = found[found.index.get_level_values("method").isin(methods)]
    if found.empty:
        return None
    groups = found.groupby(level=column).mean().sort_values(ascending=False).index.tolist()
    ways: dict[tuple[str, str], dict[str, float]] = {}
    for place, tokens in found.items():
        model, method, group = map(str, place) if isinstance(place, tuple) else ("", "", "")
        ways.setdefault((model, method), {})[group] = float(tokens)
    return Bars(
        stem=f"thinking-{column.replace('_', '-')}",
        title=f"Thinking tokens by {label}",
        x_label=label,
        y_label="thinking tokens",
        y_format=",.0f",
        note="Mean over questions; the groups with the most thinking first.",
        groups=[str(group) for group in groups],
        series=[
            (_way(model, method, methods), [values.get(str(group)) for group in groups])
            for (model, method), values in ways.items()
        ],
        flat=True,
    )


def _options(rows: pd.DataFrame, method: str, methods: list[str]) -> Lines | None:
    """Return thinking tokens by number of options, with the line through them (Figure 10)."""
    frame, fit = options_fit(rows, method)
    known = frame["thinking_tokens"].dropna()
    if len(known) < 2:
        return None
    x = [float(count) for count in known.index]
    lines = [Trace(name="mean of models", x=x, y=known.tolist())]
    note = "Mean over questions and models."
    if not np.isnan(fit.slope):
        y = [fit.intercept + fit.slope * count for count in x]
        lines.append(Trace(name="least squares", x=x, y=y))
        note += f" Line: {fit.slope:+.1f} tokens for each further option"
        note += "." if np.isnan(fit.r_squared) else f", R² = {fit.r_squared:.2f}."
    several = len(methods) > 1
    return Lines(
        stem="options" + f"-{method}" * several,
        title="Thinking tokens by number of options" + f", {method}" * several,
        x_label="options",
        y_label="thinking tokens",
        y_format=",.0f",
        note=note,
        lines=lines,
    )


def _sizes(rows: pd.DataFrame, methods: list[str]) -> list[View]:
    """Return thinking tokens and accuracy by model size (Figure 11)."""
    found = {method: by_size(rows, method)[0] for method in methods}
    found = {method: models for method, models in found.items() if len(models) > 1}
    views: list[View] = []
    for column, label, y_format in (
        ("thinking_tokens", "thinking tokens", ",.0f"),
        ("accuracy", "accuracy", ".0%"),
    ):
        lines = []
        for method, models in found.items():
            known = models.dropna(subset=[column])
            if len(known) > 1:
                lines.append(
                    Trace(
                        name=method,
                        x=known["size"].tolist(),
                        y=known[column].tolist(),
                        texts=[str(model) for model in known.index],
                    )
                )
        if lines:
            views.append(
                Lines(
                    stem=f"sizes-{column.replace('_', '-')}",
                    title=f"Easy questions, by model size: {label}",
                    x_label="parameters in billions",
                    y_label=label,
                    y_format=y_format,
                    note="Subsets of the overthinking side with equal weight.",
                    lines=lines,
                    log_x=True,
                    x_format="g",
                )
            )
    return views
