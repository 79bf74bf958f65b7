"""What papers 000 and 003 show in figures, as views: drawn for print, and in the page.

Views without data are left out: no scaling without two sizes of a family, no
budgets without runs that differ only in their budget.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from evaluator.present.views import Bars, Lines, Point, Scatter, Trace, View
from evaluator.thinkbench.comparison import Comparison
from evaluator.thinkbench.oscore import token_efficiency
from evaluator.thinkbench.stored import ThinkRun
from evaluator.thinkbench.variants import Study, families, studies, variant_of

LEVELS: Final = (0.2, 0.4, 0.6, 0.8)
"""O-Scores that have a line."""
Beside = Mapping[str, Mapping[str, float]]
"""Accuracies on other benchmarks, by model and benchmark; fractions."""


def insights(comparison: Comparison, beside: Beside | None = None) -> list[View]:
    """Return all views that a comparison gives, in reading order.

    Parameters
    ----------
    comparison
        Runs in one pool.
    beside
        Accuracies of the same models on other benchmarks (paper 000, Figure 2).
    """
    views: list[View | None] = [
        accuracy_tokens(comparison),
        *accuracy_planes(comparison),
        sizes(comparison),
        scaling(comparison),
        *(study_view(study, comparison) for study in studies(comparison.runs)),
        benchmarks(comparison, beside or {}),
    ]
    return [view for view in views if view is not None]


def _accuracy(run: ThinkRun) -> float:
    return run.measures.overall.accuracy.mean


def _note(comparison: Comparison) -> str:
    rows = sum(run.measures.overall.responses for run in comparison.runs)
    return f"{len(comparison.pool.tasks)} tasks, {rows:,} responses; {comparison.pool.describe()}."


def _scatter(
    comparison: Comparison, values: Mapping[str, tuple[float, float]], after: str = "", **view: Any
) -> Scatter:
    """Return a point for each run that has values; the Pareto set of the comparison is marked."""
    return Scatter(
        note=f"{_note(comparison)} Marked: no other run is better in both accuracy and "
        f"efficiency.{after}",
        points=[
            Point(
                name=run.name,
                x=values[run.name][0],
                y=values[run.name][1],
                marked=run.name in comparison.pareto,
            )
            for run in comparison.runs
            if run.name in values
        ],
        **view,
    )


def accuracy_tokens(comparison: Comparison) -> Scatter | None:
    """Return accuracy against tokens over lines of equal O-Score; None without tokens."""
    tokens = {run.name: run.measures.overall.tokens.mean for run in comparison.runs}
    if min(tokens.values()) <= 0:
        return None
    contours = score_contours(comparison, min(tokens.values()), max(tokens.values()))
    dashed = " Dashed: equal O-Score of average accuracy and average efficiency in this pool."
    return _scatter(
        comparison,
        {run.name: (tokens[run.name], _accuracy(run)) for run in comparison.runs},
        dashed if contours else "",
        stem="accuracy-tokens",
        title="Accuracy against tokens",
        x_label="tokens per response",
        y_label="accuracy",
        contours=contours,
        log_x=True,
    )


def score_contours(comparison: Comparison, least: float, most: float) -> list[Trace]:
    """Return where the O-Score is the same, between some numbers of tokens.

    Efficiency is a straight line in mean tokens only if one range is for all tasks: a per-task
    pool has no contours, nor has one with a single value.
    """
    pool = comparison.pool
    low, high = pool.ranges[pool.tasks[0]]
    if pool.kind != "global" or low == high:
        return []
    tokens = np.geomspace(least / 1.2, most * 1.2, 200)
    efficiency = np.asarray(token_efficiency(tokens, low, high))
    traces = []
    for level in LEVELS:
        # From O = 2AE / (A + E): A = OE / (2E - O), where it is an accuracy at all.
        with np.errstate(divide="ignore", invalid="ignore"):
            accuracy = level * efficiency / (2 * efficiency - level)
        inside = (2 * efficiency > level) & (accuracy <= 1)
        if inside.sum() > 1:
            traces.append(
                Trace(
                    name=f"O = {level:g}",
                    x=tokens[inside].tolist(),
                    y=accuracy[inside].tolist(),
                )
            )
    return traces


def accuracy_planes(comparison: Comparison) -> list[Scatter]:
    """Return accuracy beside efficiency, O-Score and following (paper 003, Figures 6 and 7)."""
    scores, runs = comparison.scores, comparison.runs
    return [
        _scatter(
            comparison,
            {run.name: (scores[run.name].mean_efficiency, _accuracy(run)) for run in runs},
            " To the right: shorter.",
            stem="accuracy-efficiency",
            title="Accuracy against token efficiency",
            x_label="token efficiency",
            y_label="accuracy",
            x_format=".2f",
        ),
        _scatter(
            comparison,
            {run.name: (_accuracy(run), scores[run.name].mean_oscore) for run in runs},
            stem="oscore-accuracy",
            title="O-Score against accuracy",
            x_label="accuracy",
            y_label="O-Score",
            y_format=".2f",
            x_format=".0%",
        ),
        _scatter(
            comparison,
            {run.name: (_accuracy(run), run.measures.overall.following.mean) for run in runs},
            stem="following-accuracy",
            title="Instruction following against accuracy",
            x_label="accuracy",
            y_label="answers in a box",
            x_format=".0%",
        ),
    ]


def sizes(comparison: Comparison) -> Scatter | None:
    """Return accuracy against parameters (paper 003, Figure 6); None without two known sizes."""
    known = {run.name: variant_of(run).billions for run in comparison.runs}
    values = {
        run.name: (known[run.name] or 0.0, _accuracy(run))
        for run in comparison.runs
        if known[run.name]
    }
    if len({x for x, _ in values.values()}) < 2:
        return None
    missing = len(comparison.runs) - len(values)
    without = f" {missing} without a known size." if missing else ""
    return _scatter(
        comparison,
        values,
        without,
        stem="accuracy-size",
        title="Accuracy against size",
        x_label="parameters in billions",
        y_label="accuracy",
        log_x=True,
        x_format="g",
    )


def scaling(comparison: Comparison) -> Lines | None:
    """Return accuracy by size, a line a family (paper 000, Figure 1a; paper 003, Figure 2a)."""
    found = families(comparison.runs)
    if not found:
        return None
    return Lines(
        stem="scaling",
        title="Accuracy by size, family by family",
        x_label="parameters in billions",
        y_label="accuracy",
        note=f"{_note(comparison)} Of each size the run without cap, budget or quantisation.",
        lines=[
            Trace(
                name=family,
                x=[billions for billions, _ in members],
                y=[_accuracy(run) for _, run in members],
                texts=[f"{billions:g}B" for billions, _ in members],
            )
            for family, members in found.items()
        ],
        log_x=True,
        x_format="g",
    )


def study_view(study: Study, comparison: Comparison) -> View:
    """Return accuracy by what runs differ in: a line over budgets, bars for all else.

    Budgets and efforts are paper 000's Figure 4, caps and precisions its Figures 1b and 1c.
    """
    settings = {setting.label: setting for group in study.groups.values() for setting, _ in group}
    labels = sorted(settings, key=lambda label: settings[label].place)
    values = {
        group: {setting.label: _accuracy(run) for setting, run in pairs}
        for group, pairs in study.groups.items()
    }
    title = f"Accuracy by {study.title}"
    note = f"{_note(comparison)} Runs of a model differ in nothing else."
    if study.kind == "budget":
        return Lines(
            stem=f"study-{study.kind}",
            title=title,
            x_label=study.title,
            y_label="accuracy",
            note=note,
            lines=[
                Trace(
                    name=group,
                    x=[float(labels.index(label)) for label in labels if label in found],
                    y=[found[label] for label in labels if label in found],
                    texts=[label for label in labels if label in found],
                )
                for group, found in values.items()
            ],
            ticks=labels,
        )
    return Bars(
        stem=f"study-{study.kind}",
        title=title,
        x_label="model",
        y_label="accuracy",
        note=note,
        groups=list(values),
        series=[(label, [found.get(label) for found in values.values()]) for label in labels],
    )


def benchmarks(comparison: Comparison, beside: Beside) -> Bars | None:
    """Return accuracy here beside that on other benchmarks (paper 000, Figure 2)."""
    runs = [run for run in comparison.runs if beside.get(run.name)]
    if not runs:
        return None
    runs.sort(key=lambda run: (variant_of(run).family, variant_of(run).billions or math.inf))
    names = sorted({name for run in runs for name in beside[run.name]})
    return Bars(
        stem="benchmarks",
        title="Basic arithmetic beside other benchmarks",
        x_label="model",
        y_label="accuracy",
        note=f"{_note(comparison)} Others: from runs of stp optimal of the same name.",
        groups=[run.name for run in runs],
        series=[
            *((name, [beside[run.name].get(name) for run in runs]) for name in names),
            ("basic arithmetic", [_accuracy(run) for run in runs]),
        ],
    )


def accuracies_beside(folders: Sequence[str]) -> Beside:
    """Return what graded runs of ``stp optimal`` got right, by model and benchmark.

    Parameters
    ----------
    folders
        Runs that ``stp optimal score`` has graded. Of several methods each is a benchmark's own
        entry, ``"gsm8k, thinking"``.

    Raises
    ------
    data.errors.MisuseError
        If one is not a graded run, or two have the same model, benchmark and method.
    """
    from data.errors import MisuseError
    from evaluator.optimal.stored import load_run

    found: dict[str, dict[str, float]] = {}
    for folder in folders:
        rows = load_run(folder).rows
        rows = rows[rows["right"].notna()].astype({"right": float})
        several = rows["method"].nunique() > 1
        questions = rows.groupby(["model", "benchmark", "method", "question"])["right"].mean()
        means = questions.groupby(level=["model", "benchmark", "method"]).mean()
        for place, mean in means.items():
            model, benchmark, method = map(str, place) if isinstance(place, tuple) else ("", "", "")
            name = f"{benchmark}, {method}" if several else benchmark
            if name in found.setdefault(model, {}):
                raise MisuseError(f"{folder}: {model} has {name} from another run already")
            found[model][name] = float(mean)
    return found
