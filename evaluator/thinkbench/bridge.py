"""The bridge: a model's O-Score beside its OR, AD and frontiers, on the same generated tasks.

A generated task is a benchmark of step-wise truncation probing too (``think-sum`` and so on). A
campaign on such benchmarks says how much of the thinking came too late and what ideal stopping
could save; a run says how accurate and how long the model's own responses are. Both are matched by
model name and task.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from data.errors import MisuseError
from evaluator.analysis.frontiers import CellFrontiers, cell_frontiers, savings
from evaluator.analysis.overthinking import Summary, per_trajectory, summarise
from evaluator.present.names import visible
from evaluator.present.table import Table
from evaluator.thinkbench.comparison import Comparison
from evaluator.thinkbench.tables import task_label
from stp.curves import Curves

PREFIX = "think-"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bridge:
    """A comparison of runs beside a campaign.

    Attributes
    ----------
    comparison
        The runs and their pool.
    curves, summary, cells
        The campaign's curves, OR and AD, and exact frontiers.
    matched
        Names of the models that are in both.
    frame
        A row per model and task that is in both: ``model``, ``task``, fractions and token counts.
    """

    comparison: Comparison
    curves: Curves
    summary: Summary
    cells: tuple[CellFrontiers, ...]
    matched: tuple[str, ...]
    frame: pd.DataFrame


def bridge_campaign(
    comparison: Comparison, campaigns: Sequence[str], *, allow_incomplete: bool = False
) -> Bridge:
    """Put campaigns beside a comparison of runs.

    Parameters
    ----------
    comparison
        The runs.
    campaigns
        Folders or URLs of campaigns with benchmarks ``think-TASK``.
    allow_incomplete
        Take what is graded of a campaign that is not finished.

    Raises
    ------
    data.errors.MisuseError
        If no model and task is in both.
    """
    from stp.campaign import load_curves

    curves = load_curves(list(campaigns), allow_incomplete=allow_incomplete)
    summary = summarise(per_trajectory(curves))
    cells = cell_frontiers(curves)
    rows = _rows(comparison, curves, summary, cells)
    if not rows:
        runs = ", ".join(visible(run.name, 60) for run in comparison.runs)
        models = ", ".join(visible(name, 60) for name in curves.model_names)
        raise MisuseError(
            f"no model and task is both in the runs ({runs}) and in the campaign ({models} on "
            f"{', '.join(curves.benchmark_names)}); benchmarks are called think-TASK, and a run's "
            "name is set by --name"
        )
    frame = pd.DataFrame(rows)
    return Bridge(
        comparison=comparison,
        curves=curves,
        summary=summary,
        cells=cells,
        matched=tuple(dict.fromkeys(frame["model"])),
        frame=frame,
    )


def _rows(
    comparison: Comparison,
    curves: Curves,
    summary: Summary,
    cells: tuple[CellFrontiers, ...],
) -> list[dict[str, str | float]]:
    saved = savings(cells)
    averages = summary.cells.to_dict("index")
    rows: list[dict[str, str | float]] = []
    for run in comparison.runs:
        score = comparison.scores[run.name]
        for cell in cells:
            model, benchmark = (
                curves.model_names[cell.model],
                curves.benchmark_names[cell.benchmark],
            )
            task = benchmark.removeprefix(PREFIX)
            group = run.measures.tasks.get(task)
            if model != run.name or not benchmark.startswith(PREFIX) or group is None:
                continue
            measured = averages[(cell.model, cell.benchmark)]
            own = saved[(saved["model"] == cell.model) & (saved["benchmark"] == cell.benchmark)]
            reached = own.set_index("strategy")
            rows.append(
                {
                    "model": run.name,
                    "task": task,
                    "oscore": score.oscore[task],
                    "efficiency": score.efficiency[task],
                    "accuracy": group.accuracy.mean,
                    "tokens": group.tokens.mean,
                    "overthinking_ratio": float(measured["overthinking_ratio"]),
                    "accuracy_degradation": float(measured["accuracy_degradation"]),
                    "full_tokens": float(measured["full_tokens"]),
                    "full_accuracy": float(reached["full_accuracy"].iloc[0]),
                    **{
                        f"{strategy}_{kind}": float(reached.loc[strategy, column])
                        for strategy in reached.index
                        for kind, column in (
                            ("tokens", "equal_tokens_fraction"),
                            ("best", "best_accuracy"),
                        )
                    },
                }
            )
    return rows


_COLUMNS = {
    "O-Score": ("oscore", 1.0),
    "accuracy": ("accuracy", 100.0),
    "tokens": ("tokens", 1.0),
    "OR": ("overthinking_ratio", 100.0),
    "AD": ("accuracy_degradation", 100.0),
    "routing": ("routing_tokens", 100.0),
    "budgets": ("fixed_budget_tokens", 100.0),
    "early exit": ("early_exit_tokens", 100.0),
    "best": ("early_exit_best", 100.0),
}


def bridge_table(bridge: Bridge) -> Table:
    """Return O-Score, OR, AD and frontiers in one table, a row per model and task and averages."""
    rows, labels = [], []
    for model in bridge.matched:
        own = bridge.frame[bridge.frame["model"] == model]
        labels += [(visible(model, 60), task_label(task)) for task in own["task"]]
        parts = [own]
        if len(own) > 1:
            labels.append((visible(model, 60), "average"))
            numbers = own.drop(columns=["model", "task"])
            parts.append(numbers.mean().to_frame().T)
        for part in parts:
            rows += [
                {name: scale * float(row[column]) for name, (column, scale) in _COLUMNS.items()}
                for _, row in part.iterrows()
            ]
    frame = pd.DataFrame(rows, index=pd.MultiIndex.from_tuples(labels, names=["model", "task"]))
    return Table(
        name="bridge",
        title="O-Score beside overthinking ratio, accuracy degradation and frontiers",
        frame=frame,
        formats={
            "O-Score": ".3f",
            "tokens": ",.1f",
            **dict.fromkeys(
                ("accuracy", "OR", "AD", "routing", "budgets", "early exit", "best"), ".1f"
            ),
        },
        note="O-Score, accuracy (%) and tokens: the model's own responses, "
        f"{bridge.comparison.pool.describe()}. OR (% of thinking tokens), AD (points): step-wise "
        "truncation probing. routing, budgets, early exit: least thinking tokens that keep the "
        "accuracy of full thinking, in % of them; best: what early exit could reach, in %.",
    )
