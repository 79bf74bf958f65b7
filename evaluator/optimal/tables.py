"""The tables of OptimalThinkingBench, each a function from measurements to a Table.

Percent and points are made here; everything before is fractions.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evaluator.optimal.analyses import (
    LinearFit,
    RankCorrelation,
    by_group,
    by_size,
    options_fit,
    rank_correlations,
    thinking_deltas,
    thinking_methods,
)
from evaluator.optimal.bridging import BridgeCell
from evaluator.optimal.examples import Example
from evaluator.optimal.scores import MEASURES, STATISTICS, Scores, over_models
from evaluator.present.names import visible
from evaluator.present.table import Table

_PERCENT = {"f1", "ovt_accuracy", "auc_oaa", "ut_accuracy"}
_LABELS = {
    "f1": "F1",
    "ovt_accuracy": "OvT accuracy",
    "ovt_thinking_tokens": "thinking tokens",
    "auc_oaa": "AUC OAA",
    "ut_accuracy": "UT accuracy",
    "ut_tokens": "UT tokens",
}
_FORMATS = {
    **{label: ".1f" for name, label in _LABELS.items() if name in _PERCENT},
    "thinking tokens": ",.0f",
    "UT tokens": ",.0f",
    "low": ".1f",
    "high": ".1f",
    "tokens": ",.0f",
    "output tokens": ",.0f",
    "accuracy": ".1f",
    "partial credit": ".1f",
    "lost area": ".1f",
    "won back": ".1f",
    "of the loss": ".0f",
    "delta": "+.1f",
    "p": ".4f",
    "p (Holm)": ".4f",
    "q": ".4f",
    "rho": ".2f",
    "size": "g",
    "gap": "+.1f",
    "small, thinking (%)": ".1f",
    "large, not (%)": ".1f",
    "full": ".1f",
    "no thinking": ".1f",
    "no loss": ".1f",
    "ideal": ".1f",
}
GROUP_LABELS = {
    "answer_type": "answer type",
    "discipline": "discipline",
    "domain": "domain",
    "benchmark": "benchmark",
}


def _table(name: str, title: str, frame: pd.DataFrame, note: str = "") -> Table:
    shown = {str(column): _FORMATS[str(column)] for column in frame if str(column) in _FORMATS}
    return Table(name=name, title=title, frame=frame, formats=shown, note=note)


def _scaled(values: np.ndarray[Any, Any], names: Sequence[str]) -> list[float]:
    return [
        100 * float(value) if name in _PERCENT else float(value)
        for name, value in zip(names, values, strict=True)
    ]


def score_table(scores: Scores, wording: str = "") -> Table:
    """Return the main table: a row for each method of each model (paper 004, Table 6)."""
    records = []
    for place, (model, method) in enumerate(scores.rows):
        found = scores.interval(place, "f1")
        values = _scaled(scores.values[place], MEASURES)
        records.append(
            {
                "model": visible(model, 60),
                "method": method,
                "F1": values[0],
                "low": 100 * found.low,
                "high": 100 * found.high,
                **{_LABELS[name]: v for name, v in zip(MEASURES[1:], values[1:], strict=True)},
            }
        )
    left_out = int(scores.undecided.sum())
    note = (
        f"Percent and mean tokens; t_max = {scores.t_max}. low and high: 95% interval of F1 over "
        "questions and seeds. F1 needs both sides."
    )
    if not scores.same_subsets():
        note += " Not all rows were asked the same subsets: compare these in the table by subset."
    if left_out:
        note += f" {left_out:,} responses without a verdict are left out."
    if np.isnan(scores.values[:, MEASURES.index("auc_oaa")]).any():
        note += " Where thinking tokens are unknown there is no AUC OAA."
    # The best first; what has no F1 last.
    frame = pd.DataFrame(records).set_index(["model", "method"])
    frame = frame.sort_values("F1", ascending=False, na_position="last", kind="stable")
    return _table("scores", "OptimalThinkingBench", frame, f"{note} {wording}".strip())


def methods_table(scores: Scores) -> Table:
    """Return the methods, averaged over the models that have them (Tables 2 to 4)."""
    means = over_models(scores)
    records = [
        {
            "method": method,
            "models": int(row["models"]),
            "F1": 100 * row["f1"],
            "low": 100 * row["f1_low"],
            "high": 100 * row["f1_high"],
            **{
                _LABELS[name]: 100 * row[name] if name in _PERCENT else row[name]
                for name in MEASURES[1:]
            },
        }
        for method, row in means.iterrows()
    ]
    note = "Means over models, equal weight; compare rows that have the same models."
    if not scores.same_subsets():
        note += " Models were asked different subsets."
    return _table(
        "methods", "Methods, over models", pd.DataFrame(records).set_index("method"), note
    )


def subsets_table(scores: Scores) -> Table:
    """Return each subset apart, with partial credit where Reasoning Gym gives some."""
    records = []
    for i, (model, method) in enumerate(scores.rows):
        for j, (subset, _) in enumerate(scores.subsets):
            if not scores.questions[i, j]:
                continue
            cell = dict(zip(STATISTICS, scores.by_subset[i, j].tolist(), strict=True))
            records.append(
                {
                    "model": visible(model, 60),
                    "method": method,
                    "subset": subset,
                    "questions": int(scores.questions[i, j]),
                    "responses": int(scores.responses[i, j]),
                    "accuracy": 100 * cell["accuracy"],
                    "AUC OAA": 100 * cell["area"],
                    "thinking tokens": cell["thinking_tokens"],
                    "output tokens": cell["output_tokens"],
                    "partial credit": 100 * cell["credit"],
                }
            )
    frame = pd.DataFrame(records).set_index(["model", "method", "subset"])
    note = "Partial credit is Reasoning Gym's own score; only full credit counts as accuracy."
    return _table("subsets", "By subset", frame, note)


def _by_method(
    rows: pd.DataFrame, make: Callable[[str], tuple[pd.DataFrame, str] | None]
) -> tuple[pd.DataFrame, str] | None:
    """Return what is made for each method that thinks, one below the other; None if nothing.

    ``make`` returns a frame and a note, or None. With several methods a frame's first label is the
    method, and notes that differ name it.
    """
    parts = {
        method: made for method in thinking_methods(rows) if (made := make(method)) is not None
    }
    if len(parts) < 2:
        return next(iter(parts.values()), None)
    frame = pd.concat({method: frame for method, (frame, _) in parts.items()}, names=["method"])
    notes = {note for _, note in parts.values()}
    if len(notes) == 1:
        return frame, notes.pop()
    return frame, " ".join(f"{method}: {note}" for method, (_, note) in parts.items())


def deltas_table(rows: pd.DataFrame, column: str) -> Table | None:
    """Return what thinking changes by group, with significance (Table 10); None if nothing."""
    label = GROUP_LABELS[column]

    def make(method: str) -> tuple[pd.DataFrame, str] | None:
        found = thinking_deltas(rows, column, thinking=method)
        if found.empty:
            return None
        frame = pd.DataFrame(
            {
                "questions": found["questions"].astype(int),
                "delta": 100 * found["delta"].astype(float),
                "tokens": found["tokens"].astype(float),
                "p": found["p_value"].astype(float),
                "p (Holm)": found["p_holm"].astype(float),
                "significant": found["significant"].map({True: "yes", False: "no"}),
            }
        )
        frame.index = frame.index.set_names(["model", label])
        return frame, (
            "Accuracy with thinking minus without, in points, paired by question; p by flipping "
            "the signs of question differences, adjusted over the groups of a model (Holm)."
        )

    made = _by_method(rows, make)
    title = f"What thinking changes, by {label}"
    return None if made is None else _table(f"deltas_{column}", title, *made)


def groups_table(rows: pd.DataFrame, column: str, t_max: int) -> Table | None:
    """Return accuracy and thinking by group, for each way of thinking; most thinking first."""
    label, found = GROUP_LABELS[column], by_group(rows, column, t_max=t_max)

    def make(method: str) -> tuple[pd.DataFrame, str] | None:
        if method not in found.index.get_level_values("method"):
            return None
        means = found.xs(method, level="method").groupby(level=column)
        frame = pd.DataFrame(
            {
                "questions": means["questions"].max().astype(int),
                "thinking tokens": means["thinking_tokens"].mean(),
                "accuracy": 100 * means["accuracy"].mean(),
                "AUC OAA": 100 * means["auc_oaa"].mean(),
            }
        ).sort_values("thinking tokens", ascending=False)
        frame.index.name = label
        return frame, "With thinking, averaged over models, equal weight."

    made = _by_method(rows, make)
    return None if made is None else _table(f"thinking_{column}", f"Thinking by {label}", *made)


def correlations_table(rows: pd.DataFrame, columns: Sequence[str]) -> Table | None:
    """Return rank correlations over groups; None if there are none."""

    def make(method: str) -> tuple[pd.DataFrame, str] | None:
        records = [
            {
                "over": GROUP_LABELS[column],
                "of": found.name,
                "groups": found.groups,
                "rho": found.rho,
                "p": found.p_value,
            }
            for column in columns
            for found in _known(rank_correlations(rows, column, method))
        ]
        if not records:
            return None
        return pd.DataFrame(records).set_index(["over", "of"]), "Spearman's rank correlation."

    made = _by_method(rows, make)
    title = "Does more thinking go with more?"
    return None if made is None else _table("correlations", title, *made)


def _known(found: Sequence[RankCorrelation]) -> list[RankCorrelation]:
    return [each for each in found if not np.isnan(each.rho)]


def options_table(rows: pd.DataFrame) -> Table | None:
    """Return thinking by number of options, with the line through it; None if no choices."""

    def make(method: str) -> tuple[pd.DataFrame, str] | None:
        frame, fit = options_fit(rows, method)
        if len(frame) < 2:
            return None
        shown = pd.DataFrame(
            {
                "questions": frame["questions"].astype(int),
                "thinking tokens": frame["thinking_tokens"],
                "accuracy": 100 * frame["accuracy"],
            }
        )
        return shown, fit_note(fit, "further option")

    made = _by_method(rows, make)
    return None if made is None else _table("options", "Thinking by number of options", *made)


def size_table(rows: pd.DataFrame, t_max: int) -> Table | None:
    """Return overthinking by model size; None without two models of known size."""

    def make(method: str) -> tuple[pd.DataFrame, str] | None:
        models, fit = by_size(rows, method, t_max=t_max)
        if len(models) < 2:
            return None
        shown = pd.DataFrame(
            {
                "size": models["size"].astype(float),
                "accuracy": 100 * models["accuracy"],
                "thinking tokens": models["thinking_tokens"],
                "AUC OAA": 100 * models["auc_oaa"],
            }
        )
        return shown, (f"Size in billions of parameters. {fit_note(fit, 'tenfold of parameters')}")

    made = _by_method(rows, make)
    return None if made is None else _table("sizes", "Overthinking by model size", *made)


def fit_note(fit: LinearFit, step: str) -> str:
    """Return a line in words."""
    if np.isnan(fit.slope):
        return "Too few points for a line."
    text = f"Least squares: {fit.slope:+.1f} thinking tokens for each {step}"
    if not np.isnan(fit.r_squared):
        text += f", R² = {fit.r_squared:.2f}"
    if not np.isnan(fit.p_value):
        text += f", p = {fit.p_value:.3f}"
    return f"{text} ({fit.points} points)."


def bridge_table(cells: Sequence[BridgeCell]) -> Table:
    """Return AUC_OAA of each rule of stopping, and how much of the loss is won back."""
    records = []
    for cell in cells:
        full, none, safe, ideal = cell.rules
        records.append(
            {
                "model": visible(cell.model, 60),
                "benchmark": cell.benchmark,
                "accuracy": 100 * full.accuracy,
                "full": 100 * full.auc_oaa,
                "no thinking": 100 * none.auc_oaa,
                "no loss": 100 * safe.auc_oaa,
                "ideal": 100 * ideal.auc_oaa,
                "lost area": 100 * cell.lost_area,
                "won back": 100 * cell.won_back,
                "low": 100 * cell.won_back_low,
                "high": 100 * cell.won_back_high,
                "of the loss": 100 * cell.won_back_fraction,
            }
        )
    note = (
        "Percent. full, no thinking, no loss, ideal: AUC OAA of full thinking, of none, of the "
        "earliest stop that is as right as the end, and of the best stop. Lost area: accuracy "
        "minus AUC OAA of full thinking. Won back: ideal minus full, with its 95% interval; above "
        "100% of the loss where stopping also makes answers right. The best stop is chosen on the "
        "probes it is scored on: a bound."
    )
    return _table(
        "bridge",
        "What stopping could win back",
        pd.DataFrame(records).set_index(["model", "benchmark"]),
        note,
    )


def examples_table(examples: Sequence[Example]) -> Table | None:
    """Return the questions with a significant difference; None if there are none."""
    if not examples:
        return None
    frame = pd.DataFrame(
        [
            {
                "question": visible(each.question, 70),
                "model": visible(each.model, 40),
                "kind": each.kind,
                each.better: f"{each.better_right}/{each.better_responses}",
                each.worse: f"{each.worse_right}/{each.worse_responses}",
                "q": each.q_value,
            }
            for each in examples
        ]
    ).set_index(["question", "model", "kind"])
    note = (
        "Right responses out of all. Fisher's exact test on each question, adjusted for their "
        "number (false discovery rate, q at most 0.05)."
    )
    return _table("examples", "Questions with a significant difference", frame, note)


def selection_table(frame: pd.DataFrame, threshold: float) -> Table:
    """Return which tasks are kept; see :func:`evaluator.optimal.selection.selection_frame`."""
    note = (
        "Accuracy in percent; gap in points, with its 95% interval. A task is kept if its gap is "
        f"above {100 * threshold:g} points (lambda = {threshold:g})."
    )
    return _table("selection", "Tasks that need thinking", frame, note)


def all_tables(
    rows: pd.DataFrame,
    scores: Scores,
    *,
    examples: Sequence[Example] = (),
    cells: Sequence[BridgeCell] = (),
    wording: str = "",
) -> list[Table]:
    """Return every table that the rows give, the main one first, which says the wording."""
    main = score_table(scores, wording)
    tables: list[Table | None] = [main, methods_table(scores), subsets_table(scores)]
    if cells:
        tables.append(bridge_table(cells))
    if "answer_type" in rows:
        groups = ("answer_type", "discipline", "domain")
        own = rows[rows["side"] != "none"]
        tables += [deltas_table(own, "benchmark")]
        tables += [deltas_table(own, column) for column in groups]
        tables += [groups_table(own, column, scores.t_max) for column in groups]
        tables.append(correlations_table(own, ("domain", "discipline", "benchmark")))
        tables += [options_table(rows), size_table(rows, scores.t_max)]
    tables.append(examples_table(examples))
    return [table for table in tables if table is not None]
