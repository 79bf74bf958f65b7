"""Runs beside each other: one pool, scores, significance, stability and correlations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.thinkbench.correlations import Correlation, correlate
from evaluator.thinkbench.lengths import LogNormalFit, fit_log_normal
from evaluator.thinkbench.pools import (
    Pool,
    PoolKind,
    PoolResults,
    Score,
    TaskResult,
    make_pool,
    pareto_set,
    score_all,
)
from evaluator.thinkbench.significance import (
    DEFAULT_REPLICATES,
    PairedTest,
    bootstrap_scores,
    paired_tests,
)
from evaluator.thinkbench.stability import Stability, leave_one_out
from evaluator.thinkbench.stored import ThinkRun
from stp.ragged import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Several runs scored in one pool.

    Attributes
    ----------
    runs
        In falling order of their mean O-Score.
    pool
        What tokens were measured against.
    scores
        By run name.
    intervals
        95 % interval of the mean O-Score by run name; empty without a bootstrap.
    tests
        All pairs of runs.
    stability
        Leave-one-out; None for fewer than three runs.
    correlations
        Measures and the runs' numeric attributes with the O-Score, over runs.
    lengths
        Log-normal fit of tokens by run name.
    pareto
        Names of the runs that no other beats in accuracy and efficiency.
    paired
        Whether all runs answered the same questions.
    """

    runs: tuple[ThinkRun, ...]
    pool: Pool
    scores: Mapping[str, Score]
    intervals: Mapping[str, tuple[float, float]]
    tests: tuple[PairedTest, ...]
    stability: Stability | None
    correlations: tuple[Correlation, ...]
    lengths: Mapping[str, LogNormalFit | None]
    pareto: tuple[str, ...]
    paired: bool


def run_results(runs: Sequence[ThinkRun]) -> PoolResults:
    """Return the accuracies and mean tokens of runs, by name and task.

    Raises
    ------
    data.errors.MisuseError
        If two runs have one name.
    """
    results: dict[str, Mapping[str, TaskResult]] = {}
    for run in runs:
        if run.name in results:
            raise MisuseError(
                f"two runs are called {run.name!r} ({run.folder} is one); give one another --name"
            )
        results[run.name] = {
            task: TaskResult(accuracy=group.accuracy.mean, tokens=group.tokens.mean)
            for task, group in run.measures.tasks.items()
        }
    return results


def compare_runs(
    runs: Sequence[ThinkRun],
    *,
    kind: PoolKind = "global",
    replicates: int = DEFAULT_REPLICATES,
    allow_incomplete: bool = False,
    progress: Progress = NOBODY,
) -> Comparison:
    """Score runs in the pool that they make up, and compare them.

    Parameters
    ----------
    runs
        One or more, on the same tasks.
    kind
        The pool's kind.
    replicates
        Of the bootstrap; 0 leaves it out.
    allow_incomplete
        Compare runs that lack responses; each is judged by those that it has.
    progress
        Told of the bootstrap.

    Raises
    ------
    data.errors.MisuseError
        If a run lacks responses, two have one name, or their tasks differ.
    """
    if not runs:
        raise MisuseError("there is no run to compare; name the folder of at least one")
    for run in runs:
        if not run.complete and not allow_incomplete:
            raise MisuseError(
                f"{run.folder}: {len(run.failed)} questions have no response; run it again to ask "
                "them, or give --allow-incomplete"
            )
    results = run_results(runs)
    pool = make_pool(results, kind)
    scores = score_all(results, pool)
    ordered = tuple(sorted(runs, key=lambda run: -scores[run.name].mean_oscore))
    tests = paired_tests({run.name: list(scores[run.name].oscore.values()) for run in ordered})
    paired = _same_questions(runs)
    intervals: dict[str, tuple[float, float]] = {}
    if replicates:
        drawn = bootstrap_scores(
            {run.name: _outcomes(run) for run in ordered},
            paired=paired,
            kind=kind,
            replicates=replicates,
            progress=progress,
        )
        intervals = {run.name: drawn.interval(run.name) for run in ordered}
        tests = [_with_bootstrap(test, drawn.compare(test.first, test.second)) for test in tests]
    return Comparison(
        runs=ordered,
        pool=pool,
        scores=scores,
        intervals=intervals,
        tests=tuple(tests),
        stability=leave_one_out(results, kind) if len(runs) > 2 else None,
        correlations=tuple(_correlations(ordered, scores)),
        lengths={
            run.name: fit_log_normal([row.tokens for row in run.graded], run.measures.overall.cut)
            for run in ordered
        },
        pareto=pareto_set(
            {
                run.name: (run.measures.overall.accuracy.mean, scores[run.name].mean_efficiency)
                for run in ordered
            }
        ),
        paired=paired,
    )


def _with_bootstrap(test: PairedTest, found: tuple[float, float, float]) -> PairedTest:
    low, high, p_value = found
    return replace(test, low=low, high=high, p_bootstrap=p_value)


def _same_questions(runs: Sequence[ThinkRun]) -> bool:
    """Whether all runs were asked, and answered, the very same questions."""
    first = runs[0]
    ids = [row.id for row in first.graded]
    return all(
        run.config.questions_hash() == first.config.questions_hash()
        and [row.id for row in run.graded] == ids
        for run in runs[1:]
    )


def _outcomes(run: ThinkRun) -> dict[str, tuple[FloatArray, FloatArray]]:
    by_task: dict[str, list[tuple[float, float]]] = {}
    for row in run.graded:
        by_task.setdefault(row.task, []).append((float(row.right), float(row.tokens)))
    outcomes = {}
    for task, rows in by_task.items():
        right, tokens = np.array(rows, dtype=np.float64).T
        outcomes[task] = (right, tokens)
    return outcomes


def _correlations(runs: Sequence[ThinkRun], scores: Mapping[str, Score]) -> list[Correlation]:
    """Return the correlations of accuracy, tokens and the runs' attributes with the score."""
    oscores: list[float | None] = [scores[run.name].mean_oscore for run in runs]
    accuracy: list[float | None] = [run.measures.overall.accuracy.mean for run in runs]
    tokens: list[float | None] = [run.measures.overall.tokens.mean for run in runs]
    following: list[float | None] = [run.measures.overall.following.mean for run in runs]
    found = [
        correlate("tokens", "accuracy", tokens, accuracy),
        correlate("tokens", "O-Score", tokens, oscores),
        correlate("accuracy", "O-Score", accuracy, oscores),
        correlate("instruction following", "O-Score", following, oscores),
    ]
    numeric = {
        name: [_number(run.record.attributes.get(name)) for run in runs]
        for name in sorted({name for run in runs for name in run.record.attributes})
    }
    for name, values in numeric.items():
        if all(value is None for value in values):
            continue
        found.append(correlate(name, "O-Score", values, oscores))
    return found


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None
