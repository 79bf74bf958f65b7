"""Runs and comparisons as tables: percent and rounding are made here and nowhere before."""

from collections.abc import Sequence

import pandas as pd

from data.prompts import wording_note
from data.tasks import TASK_LABELS
from evaluator.present.names import visible
from evaluator.present.table import Table
from evaluator.runs.shares import CUT, RAN_ON, UNREAD, cautions
from evaluator.thinkbench.agreement import LabelAgreement
from evaluator.thinkbench.comparison import Comparison, run_results
from evaluator.thinkbench.error_kinds import ERROR_KINDS
from evaluator.thinkbench.measures import Estimate, Group
from evaluator.thinkbench.patterns import PATTERNS
from evaluator.thinkbench.stored import ThinkRun
from evaluator.thinkbench.study_tables import published_tables
from evaluator.thinkbench.theory_tables import theory_tables
from stp.campaign.shares import Share

_PATTERN_LABELS: dict[str, str] = {
    "redundant-verification": "verifying",
    "self-contradiction": "contradiction",
    "irrelevant-exploration": "exploring",
    "stopping-failure": "no stop",
    "helpful-decomposition": "helpful",
}


def task_label(name: str) -> str:
    """Return what a task is called in tables."""
    return TASK_LABELS.get(name, name).replace("_", " ")


def _name(text: str) -> str:
    return visible(text, limit=60)


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _mean(value: Estimate | None) -> float | None:
    return None if value is None else value.mean


def run_cautions(runs: Sequence[ThinkRun]) -> list[str]:
    """Return what must be said of runs before their figures."""
    found = []
    for run in runs:
        group = run.measures.overall
        shares = [
            Share(kind=CUT, count=group.cut, of=group.responses),
            Share(kind=UNREAD, count=group.responses - group.parsed, of=group.responses),
            Share(kind=RAN_ON, count=group.ran_on, of=group.responses),
        ]
        found += cautions(_name(run.name), shares)
    return found


def run_table(run: ThinkRun) -> Table:
    """Return a run's measures: a row per task, per category (of several), and overall."""
    measures = run.measures
    groups = list(measures.tasks.values())
    if len(measures.categories) > 1:
        groups += list(measures.categories.values())
    groups.append(measures.overall)
    labels = [task_label(name) for name in measures.tasks]
    labels += [f"all {name}" for name in measures.categories if len(measures.categories) > 1]
    frame = pd.DataFrame(
        [_row(group) for group in groups], index=pd.Index([*labels, "overall"], name="task")
    )
    return Table(
        name="tasks",
        title=f"{_name(run.name)}: rates in %, means per response",
        frame=frame,
        formats=dict.fromkeys(("tokens", "think", "answer", "words", "characters"), ",.1f")
        | {"n": ","},
        note=_run_note(run, spread=run.config.folds > 1),
    )


def _run_note(run: ThinkRun, *, spread: bool) -> str:
    """Return what to know of a run's table; ``spread``: it has the folds' standard deviations."""
    measures = run.measures
    notes = [
        f"{measures.overall.responses:,} responses",
        f"prompt style {run.config.style}",
        f"wording {run.config.prompts.label}",
        "low, high: 95 % interval of the accuracy",
        "parsed: accuracy among responses with an answer",
    ]
    if spread:
        notes.append(f"± over {run.config.folds} folds")
    if measures.overall.estimated:
        how = ", ".join(sorted({row.estimated_by for row in run.graded if row.estimated}))
        notes.append(f"tokens of {measures.overall.estimated:,} responses are estimated by {how}")
    if measures.overall.parted:
        notes.append(
            f"thinking of {measures.overall.parted:,} responses was written as text, between tags"
        )
    if measures.overall.cut:
        notes.append(f"{measures.overall.cut:,} responses reached a token limit")
    if run.failed:
        notes.append(f"{len(run.failed):,} questions have no response and are left out")
    return " ".join([*run_cautions([run]), "; ".join(notes) + "."])


def _row(group: Group) -> dict[str, float | int | None]:
    return {
        "n": group.responses,
        "accuracy": _percent(group.accuracy.mean),
        "±": _percent(group.accuracy.std),
        "low": _percent(group.accuracy.low),
        "high": _percent(group.accuracy.high),
        "boxed": _percent(group.following.mean),
        "± boxed": _percent(group.following.std),
        "parsed": _percent(group.parsed_accuracy),
        "tokens": group.tokens.mean,
        "think": _mean(group.thinking_tokens),
        "answer": _mean(group.answer_tokens),
        "words": group.words.mean,
        "characters": group.characters.mean,
    }


def summary_table(run: ThinkRun) -> Table:
    """Return the columns of :func:`run_table` that a terminal has room for."""
    table = run_table(run)
    rates: dict[str, str] = dict.fromkeys(("accuracy", "low", "high", "boxed", "parsed"), ".1f")
    columns = ["accuracy", "low", "high", "boxed", "parsed", "tokens", "think"]
    return Table(
        name=table.name,
        title=table.title,
        frame=table.frame[columns],
        formats=rates | dict(table.formats),
        note=_run_note(run, spread=False),
    )


def errors_table(runs: Sequence[ThinkRun]) -> Table:
    """Return what kinds of error the wrong answers are, in % of them."""
    rows = []
    for run in runs:
        overall = run.measures.overall
        wrong = overall.responses - overall.right
        row: dict[str, float | None] = {"wrong": wrong}
        for kind in ERROR_KINDS:
            row[kind] = 100 * overall.errors[kind] / wrong if wrong else None
        rows.append(row)
    return Table(
        name="errors",
        title="Wrong answers by kind of error, in %",
        frame=pd.DataFrame(rows, index=_index(runs)),
        formats={"wrong": ",", **dict.fromkeys(ERROR_KINDS, ".1f")},
        note="Sorted by rules.",
    )


def patterns_table(runs: Sequence[ThinkRun]) -> Table:
    """Return what long traces spend their tokens on, in % of them."""
    rows = []
    for run in runs:
        patterns = run.measures.overall.patterns
        long = sum(patterns.values())
        row: dict[str, float | None] = {"long": long}
        for name in PATTERNS:
            row[_PATTERN_LABELS[name]] = 100 * patterns[name] / long if long else None
        rows.append(row)
    return Table(
        name="patterns",
        title="Long traces by their dominant pattern, in %",
        frame=pd.DataFrame(rows, index=_index(runs)),
        formats={"long": ",", **dict.fromkeys(_PATTERN_LABELS.values(), ".1f")},
        note="Redundant verification, self-contradiction, irrelevant exploration, stopping "
        "failure, helpful decomposition. Sorted by rules; short traces have none, unless they "
        "repeat themselves.",
    )


def leaderboard_table(comparison: Comparison) -> Table:
    """Return the runs in falling order of their O-Score, with the pool in the note."""
    rows = []
    for rank, run in enumerate(comparison.runs, start=1):
        score, overall = comparison.scores[run.name], run.measures.overall
        low, high = comparison.intervals.get(run.name, (None, None))
        rows.append(
            {
                "rank": rank,
                "O-Score": score.mean_oscore,
                "low": low,
                "high": high,
                "accuracy": _percent(overall.accuracy.mean),
                "tokens": overall.tokens.mean,
                "efficiency": score.mean_efficiency,
                "thinking": _mean(overall.thinking_tokens),
                "boxed": _percent(overall.following.mean),
                "Pareto": "yes" if run.name in comparison.pareto else "no",
            }
        )
    return Table(
        name="leaderboard",
        title="O-Score, accuracy in %, tokens per response",
        frame=pd.DataFrame(rows, index=_index(comparison.runs)),
        formats={
            **dict.fromkeys(("O-Score", "low", "high", "efficiency"), ".3f"),
            "accuracy": ".2f",
            "boxed": ".2f",
            "tokens": ",.1f",
            "thinking": ",.1f",
            "rank": "d",
        },
        note=" ".join(
            [
                *run_cautions(comparison.runs),
                f"{comparison.pool.describe()}. O-Score: mean over tasks of the harmonic mean of "
                "accuracy and efficiency; low, high: 95 % over questions.",
                wording_note(run.config.prompts for run in comparison.runs),
            ]
        ),
    )


def means_table(comparison: Comparison) -> Table:
    """Return the other means of accuracy and efficiency."""
    rows = []
    for run in comparison.runs:
        score = comparison.scores[run.name]
        rows.append(
            {
                "O-Score": score.mean_oscore,
                "of averages": score.oscore_of_means,
                **{f"beta {beta}": value for beta, value in score.weighted.items()},
                "geometric": score.geometric,
                "arithmetic": score.arithmetic,
            }
        )
    frame = pd.DataFrame(rows, index=_index(comparison.runs))
    return Table(
        name="means",
        title="Ways to combine accuracy and efficiency",
        frame=frame,
        formats=dict.fromkeys(frame.columns, ".3f"),
        note=f"{comparison.pool.describe()}. of averages: harmonic mean of average accuracy and "
        "average efficiency; beta above 1 weighs efficiency more.",
    )


def task_scores_table(comparison: Comparison) -> Table:
    """Return every run's O-Score on every task."""
    frame = pd.DataFrame(
        {
            _name(run.name): {
                task_label(task): value
                for task, value in comparison.scores[run.name].oscore.items()
            }
            for run in comparison.runs
        }
    )
    frame.index.name = "task"
    return Table(
        name="task-scores",
        title="O-Score by task",
        frame=frame,
        formats=dict.fromkeys(frame.columns, ".3f"),
        note=f"{comparison.pool.describe()}.",
    )


def tests_table(comparison: Comparison) -> Table:
    """Return the paired tests of all pairs."""
    rows = [
        {
            "difference": test.difference,
            "t": test.statistic,
            "p": test.p_value,
            "p corrected": test.p_bonferroni,
            "low": test.low,
            "high": test.high,
            "p bootstrap": test.p_bootstrap,
        }
        for test in comparison.tests
    ]
    index = pd.Index(
        [f"{_name(test.first)} - {_name(test.second)}" for test in comparison.tests], name="pair"
    )
    how = "the same questions" if comparison.paired else "each run's own questions"
    return Table(
        name="tests",
        title="Differences of O-Scores",
        frame=pd.DataFrame(rows, index=index),
        formats={
            **dict.fromkeys(("difference", "low", "high"), "+.3f"),
            "t": ".2f",
            **dict.fromkeys(("p", "p corrected", "p bootstrap"), ".4f"),
        },
        note=f"Paired t-test over {len(comparison.pool.tasks)} tasks, Bonferroni over "
        f"{len(comparison.tests)} pairs; bootstrap over {how}.",
    )


def stability_table(comparison: Comparison) -> Table | None:
    """Return how the ranking changes without each run; None for fewer than three runs."""
    stability = comparison.stability
    if stability is None:
        return None
    rows = [
        {
            "Kendall": row.kendall,
            "Spearman": row.spearman,
            "rank change": row.mean_rank_change,
            "drift": row.largest_drift,
        }
        for row in stability.rows
    ]
    rows.append(
        {
            "Kendall": stability.kendall,
            "Spearman": stability.spearman,
            "rank change": stability.mean_rank_change,
            "drift": stability.largest_drift,
        }
    )
    names = [*(_name(row.removed) for row in stability.rows), "mean; largest drift"]
    return Table(
        name="stability",
        title="Ranking of the others when one run leaves the pool",
        frame=pd.DataFrame(rows, index=pd.Index(names, name="left out")),
        formats=dict.fromkeys(("Kendall", "Spearman", "rank change", "drift"), ".3f"),
        note="Rank change: mean over the others; drift: greatest change of a score.",
    )


def correlations_table(comparison: Comparison) -> Table:
    """Return the correlations over runs."""
    rows = [
        {
            "runs": found.count,
            "Pearson": found.pearson,
            "p": found.pearson_p,
            "Spearman": found.spearman,
            "p (rank)": found.spearman_p,
        }
        for found in comparison.correlations
    ]
    index = pd.Index(
        [f"{_name(found.first)}, {found.second}" for found in comparison.correlations],
        name="measures",
    )
    return Table(
        name="correlations",
        title="Correlations over runs",
        frame=pd.DataFrame(rows, index=index, dtype=object),
        formats={
            "Pearson": ".3f",
            "p": ".4f",
            "Spearman": ".3f",
            "p (rank)": ".4f",
            "runs": "d",
        },
        note="None for fewer than three runs.",
    )


def lengths_table(comparison: Comparison) -> Table:
    """Return the log-normal fits of the responses' lengths."""
    rows = []
    for run in comparison.runs:
        fit = comparison.lengths[run.name]
        rows.append(
            {
                "mu": fit.mu if fit else None,
                "sigma": fit.sigma if fit else None,
                "distance": fit.distance if fit else None,
                "at limit": 100 * fit.at_limit if fit else None,
            }
        )
    return Table(
        name="lengths",
        title="Log-normal fit of tokens per response",
        frame=pd.DataFrame(rows, index=_index(comparison.runs), dtype=object),
        formats={"mu": ".3f", "sigma": ".3f", "distance": ".3f", "at limit": ".1f"},
        note="distance: Kolmogorov-Smirnov; at limit: responses cut by a token limit, in %.",
    )


def agreement_table(agreement: LabelAgreement, title: str, *, name: str = "agreement") -> Table:
    """Return how often two labellers give which labels; rows are the first's."""
    frame = pd.DataFrame(
        [
            [agreement.counts.get((first, second), 0) for second in agreement.labels]
            for first in agreement.labels
        ],
        index=pd.Index(agreement.labels, name="rules"),
        columns=list(agreement.labels),
    )
    kappa = "undefined" if agreement.kappa is None else f"{agreement.kappa:.3f}"
    return Table(
        name=name,
        title=title,
        frame=frame,
        note=f"{agreement.total} labelled by both, {100 * agreement.observed:.1f} % alike, "
        f"Cohen's kappa {kappa}.",
    )


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return all tables of a comparison, in the order in which they are read."""
    tables: list[Table | None] = [
        leaderboard_table(comparison),
        task_scores_table(comparison),
        means_table(comparison),
        tests_table(comparison) if comparison.tests else None,
        stability_table(comparison),
        correlations_table(comparison) if len(comparison.runs) > 2 else None,
        lengths_table(comparison),
        *published_tables(comparison),
        errors_table(comparison.runs),
        patterns_table(comparison.runs),
        *theory_tables(comparison.runs, run_results(comparison.runs)),
    ]
    return [table for table in tables if table is not None]


def _index(runs: Sequence[ThinkRun]) -> pd.Index:
    return pd.Index([_name(run.name) for run in runs], name="model")
