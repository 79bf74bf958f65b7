"""Tables of paper 000's statements on overthinking, where runs have what they need."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from evaluator.present.names import visible
from evaluator.present.table import Table
from evaluator.runs.plain import to_plain
from evaluator.thinkbench.grading import FEWEST_COUNTED
from evaluator.thinkbench.pools import PoolResults
from evaluator.thinkbench.stored import ThinkRun, read_responses
from evaluator.thinkbench.theory import (
    FEWEST_BUDGETS,
    overthinking_by_task,
    saturation_fit,
    tokens_per_word,
)
from evaluator.thinkbench.tool_failures import TOOL_FAILURES, tool_failures
from stp.files import json_bytes


def theory_tables(runs: Sequence[ThinkRun], results: PoolResults) -> list[Table]:
    """Return the tables that these runs allow.

    Parameters
    ----------
    runs
        As they are compared.
    results
        Accuracy and mean tokens by run and task.
    """
    tables = [
        _definition_2(results) if len(runs) > 1 else None,
        _saturation(runs),
        _words(runs),
        _tools(runs),
    ]
    return [table for table in tables if table is not None]


def _definition_2(results: PoolResults) -> Table:
    found = overthinking_by_task(results)
    tasks = sorted({task for each in results.values() for task in each})
    frame = pd.DataFrame(
        [
            {
                "tasks": len(found[name]),
                **{
                    task.replace("_", " "): visible(found[name].get(task, ""), 40) for task in tasks
                },
            }
            for name in results
        ],
        index=pd.Index([visible(name, 60) for name in results], name="model"),
    )
    return Table(
        name="overthinks",
        title="On which tasks a model overthinks, and beside whom",
        frame=frame,
        note="Definition 2: a more concise model is at least as accurate on the task; the most "
        "concise such one is named. Point estimates: see the tests for what is chance.",
    )


def _saturation(runs: Sequence[ThinkRun]) -> Table | None:
    """Return fits over runs that differ in their thinking budget or effort alone."""
    groups: dict[bytes, list[tuple[float, ThinkRun]]] = {}
    for run in runs:
        settings = run.config.settings
        thinking = run.measures.overall.thinking_tokens
        budget: float | None = settings.thinking_tokens
        if budget is None and settings.reasoning_effort is not None and thinking is not None:
            budget = thinking.mean
        if not budget:
            continue
        rest = replace(settings, thinking_tokens=None, reasoning_effort=None)
        asked = to_plain(replace(run.config, settings=rest))
        models = {role: dict(model) for role, model in run.record.models.items()}
        groups.setdefault(json_bytes({"asked": asked, "models": models}), []).append((budget, run))
    rows, names = [], []
    for members in groups.values():
        if len({budget for budget, _ in members}) < FEWEST_BUDGETS:
            continue
        fit = saturation_fit(
            [budget for budget, _ in members],
            [run.measures.overall.accuracy.mean for _, run in members],
        )
        first = members[0][1]
        names.append(visible(str(first.record.models["model"].get("model") or first.name), 60))
        rows.append(
            {
                "budgets": fit.points,
                "limit": 100 * fit.limit,
                "tau": fit.scale,
                "distance": 100 * fit.residual,
                "fall": 100 * fit.fall,
            }
        )
    if not rows:
        return None
    return Table(
        name="saturation",
        title="Accuracy over the thinking budget, in %",
        frame=pd.DataFrame(rows, index=pd.Index(names, name="model")),
        formats={"budgets": "d", "limit": ".1f", "tau": ",.0f", "distance": ".2f", "fall": ".1f"},
        note="A(b) = limit × (1 − exp(−b/tau)), least squares; tau in tokens, 0 if the smallest "
        "budget has saturated already. distance: of the points (RMS); fall: best accuracy less "
        "that at the largest budget. An effort counts as the thinking tokens that it used.",
    )


def _words(runs: Sequence[ThinkRun]) -> Table | None:
    rows, names = [], []
    for run in runs:
        found = tokens_per_word(run.graded)
        if found is not None:
            names.append(visible(run.name, 60))
            rows.append(
                {
                    "counted": found.responses,
                    "mean ratio": found.mean_ratio,
                    "slope": found.slope,
                    "exponent": found.exponent,
                }
            )
    if not rows:
        return None
    return Table(
        name="words",
        title="Tokens per word, where tokens were counted",
        frame=pd.DataFrame(rows, index=pd.Index(names, name="model")),
        formats={"counted": ",", "mean ratio": ".3f", "slope": ".3f", "exponent": ".3f"},
        note="mean ratio: Equation 51, which paper 000 puts at 1.33 for all models. From "
        f"{FEWEST_COUNTED} counted responses on, a run's uncounted ones are estimated by it, where "
        "tiktoken has no encoding for the model. slope: a regression through the origin; exponent: "
        "of tokens over words, by logarithms.",
    )


def _tools(runs: Sequence[ThinkRun]) -> Table | None:
    rows, names = [], []
    for run in runs:
        if not run.config.settings.tools:
            continue
        counts = tool_failures(run.graded, read_responses(run.folder))
        names.append(visible(run.name, 60))
        total = counts.total()
        row: dict[str, float | None] = {"wrong": total}
        for kind in TOOL_FAILURES:
            row[kind] = 100 * counts[kind] / total if total else None
        rows.append(row)
    if not rows:
        return None
    return Table(
        name="tool-failures",
        title="Why responses with tools are wrong, in % of them",
        frame=pd.DataFrame(rows, index=pd.Index(names, name="model")),
        formats={"wrong": ",", **dict.fromkeys(TOOL_FAILURES, ".1f")},
        note="Sorted by rules, from the last call and what came of it.",
    )
