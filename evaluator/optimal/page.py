"""The report as one HTML page that works from disk: no network, all text escaped."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup

from evaluator.optimal.bridging import BridgeCell
from evaluator.optimal.cautions import same_questions
from evaluator.optimal.insights import insights
from evaluator.optimal.metrics import oaa_curve
from evaluator.optimal.results import Results
from evaluator.optimal.scores import MEASURES
from evaluator.optimal.stored import Judging
from evaluator.present import page
from evaluator.present.names import visible
from evaluator.present.views import Lines, Trace, View

_ANALYSES: Final = (
    "thinking_answer_type",
    "thinking_discipline",
    "thinking_domain",
    "deltas_benchmark",
    "deltas_answer_type",
    "deltas_discipline",
    "deltas_domain",
    "correlations",
    "options",
    "sizes",
)
_POINTS: Final = 250
"""Points of a chart's line, about."""


def render_page(results: Results, *, title: str) -> str:
    """Return the page's HTML.

    Parameters
    ----------
    results
        What it shows.
    title
        Its heading.
    """
    tables = {table.name: table for table in results.tables}
    analyses = [tables[name] for name in _ANALYSES if name in tables]
    views = insights(results.rows, results.scores)
    oaa = _oaa_view(results.rows, results.scores.t_max)
    cells = [_bridge_views(cell, place) for place, cell in enumerate(results.cells)]
    shown = {
        "scores": "Scores",
        "oaa": "Accuracy by tokens" if oaa else "",
        "methods": "Methods",
        "subsets": "Subsets",
        "bridge": "Stopping" if results.cells else "",
        "analysis": "Where the thinking goes" if analyses or views else "",
        "examples": "Examples",
        "judging": "Judging",
        "reading": "How to read",
    }
    lead, scope = _lead(results)
    return page.render(
        "optimal/page.html",
        name=visible(title, 120),
        sections=[each for each in shown.items() if each[1]],
        lead=lead,
        cautions=results.cautions,
        scope=scope,
        tables=tables,
        oaa=oaa,
        cells=cells,
        analyses=analyses,
        insights=views,
        views=[*([oaa] if oaa else []), *(view for cell in cells for view in cell), *views],
        examples=results.shown,
        judgings=[_judging(model, judging) for model, judging in results.judgings.items()],
    )


def _lead(results: Results) -> tuple[Markup, str]:
    scores = results.scores
    f1 = scores.values[:, 0]
    if np.isnan(f1).all():
        return Markup(
            "One side only: F1 needs overthinking and underthinking questions, and known thinking "
            "tokens."
        ), ""
    if not same_questions(results.rows):
        return Markup(
            "The rows were asked different questions, so that none of them is the best: compare "
            "runs of the same subsets, sizes and limits."
        ), _scope(results)
    best = int(np.nanargmax(f1))
    model, method = scores.rows[best]
    values = dict(zip(MEASURES, scores.values[best], strict=True))
    sentence = Markup(
        "{} with the method {} has the best F1, <b>{:.1f}</b>: AUC<sub>OAA</sub> {:.1f} on easy "
        "questions, accuracy {:.1f} on hard ones."
    ).format(
        visible(model, 60),
        visible(method, 60),
        100 * values["f1"],
        100 * values["auc_oaa"],
        100 * values["ut_accuracy"],
    )
    if f1[best] == 0:
        sentence = Markup(
            "No model and method scores above <b>0</b>: F1 is 0 if one of its two sides is."
        )
    return sentence, _scope(results)


def _scope(results: Results) -> str:
    return (
        f"{len(results.scores.rows)} rows, {results.rows['question'].nunique():,} questions, "
        f"{int(results.scores.responses.sum()):,} graded responses."
    )


def _oaa_view(rows: pd.DataFrame, t_max: int) -> View | None:
    lines = oaa_lines(rows, t_max)
    return _oaa("oaa", "OAA", lines) if lines else None


def _oaa(stem: str, title: str, lines: list[Trace]) -> View:
    return Lines(stem=stem, title=title, x_label="t, thinking tokens", y_label="OAA", lines=lines)


def oaa_lines(rows: pd.DataFrame, t_max: int) -> list[Trace]:
    """Return OAA_t of every method on the overthinking side; subsets weigh the same."""
    kept = rows[(rows["side"] == "ovt") & rows["right"].notna()]
    lines = []
    for (model, method), group in kept.groupby(["model", "method"], sort=False):
        if group["thinking_tokens"].isna().any() or not group["right"].isin([0, 1]).all():
            continue
        curves: list[npt.NDArray[np.float64]] = [
            _subset_curve(part, t_max) for _, part in group.groupby("subset")
        ]
        mean = np.mean(curves, axis=0)
        step = max(1, t_max // _POINTS)
        x = np.append(np.arange(0, t_max, step), t_max)
        lines.append(Trace(name=f"{model}, {method}", x=x.tolist(), y=mean[x].tolist()))
    return lines


def _subset_curve(rows: pd.DataFrame, t_max: int) -> npt.NDArray[np.float64]:
    """Return OAA_t of one subset: responses, then questions."""
    sizes = rows.groupby("question")["right"].transform("size")
    if sizes.nunique() == 1:
        return oaa_curve(
            rows["right"].astype(bool).to_numpy(), rows["thinking_tokens"].astype(int), t_max
        )
    parts = [
        oaa_curve(part["right"].astype(bool).to_numpy(), part["thinking_tokens"].astype(int), t_max)
        for _, part in rows.groupby("question")
    ]
    return np.asarray(np.mean(parts, axis=0))


def _bridge_views(cell: BridgeCell, place: int) -> tuple[View, View]:
    """Return OAA_t of a cell with and without ideal stopping, and its frontier."""
    step = max(1, cell.thresholds.size // _POINTS)
    x = cell.thresholds[::step].tolist()
    name = f"{cell.model} on {cell.benchmark}"
    stopping = _oaa(
        f"stopping-{place}",
        name,
        [
            Trace(name="full thinking", x=x, y=cell.full_curve[::step].tolist()),
            Trace(name="ideal stopping", x=x, y=cell.ideal_curve[::step].tolist()),
        ],
    )
    frontier = Lines(
        stem=f"frontier-{place}",
        title=f"{name}: early-exit frontier",
        x_label="budget, part of full thinking's tokens",
        y_label="best accuracy",
        x_format=".0%",
        lines=[
            Trace(name="early-exit frontier", x=cell.budgets.tolist(), y=cell.frontier.tolist())
        ],
    )
    return stopping, frontier


def _judging(model: str, judging: Judging) -> str:
    """Say how a model's verdicts came about."""
    text = (
        f"{visible(model, 60)}: {judging.responses:,} responses, {judging.by_rule:,} decided by "
        f"rule, {judging.by_judge:,} by the judge"
    )
    if judging.judge:
        text += f" ({visible(judging.judge, 80)})"
    if judging.undecided:
        text += f", {judging.undecided:,} undecided and left out"
    agreed = judging.agreement
    if agreed.pairs:
        text += (
            f". Of {agreed.cases:,} answers judged repeatedly {agreed.unanimous:,} got one "
            f"verdict throughout; {100 * agreed.agreeing_pairs / agreed.pairs:.0f}% of pairs agree"
        )
    if judging.unrouted:
        text += f". The router sorted all questions but {judging.unrouted:,}"
    return f"{text}."
