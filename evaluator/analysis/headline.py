"""The findings, in words and a few numbers."""

from dataclasses import dataclass

import numpy as np

from evaluator.analysis.frontiers import CellFrontiers, average_savings, savings
from evaluator.analysis.overthinking import Summary
from evaluator.present.numbers import count, percent
from stp.curves import Curves
from stp.ragged import greatest

_SHORT = {
    "early_exit": "stopping each trajectory at its best moment",
    "fixed_budget": "giving each question its best token cap",
    "routing": "choosing for each question whether to think at all",
}
_NAMES = {
    "early_exit": "dynamic early exit",
    "fixed_budget": "fixed budgets",
    "routing": "dynamic routing",
}


MANY_FLAT = 0.2
"""From this share of flat curves on, the headline says how they count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyFinding:
    """What one strategy could do at best.

    Attributes
    ----------
    strategy
        One of :data:`oracle.STRATEGIES`.
    equal_tokens_fraction
        Least thinking tokens that keep the accuracy of full thinking, over full thinking.
    best_accuracy
        The highest accuracy within reach.
    best_tokens_fraction
        The fewest tokens that reach it, over full thinking.
    """

    strategy: str
    equal_tokens_fraction: float
    best_accuracy: float
    best_tokens_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The findings of a campaign.

    Attributes
    ----------
    sentence
        OR and AD in one sentence.
    potential
        What ideal termination could save and reach.
    scope
        What was measured: models, benchmarks, questions, trajectories, probes.
    strategies
        The same potential as numbers, most flexible strategy first.
    cautions
        Warnings to read before the figures.
    intervals
        How sure the averages are, in a sentence; empty if nothing was resampled.
    """

    sentence: str
    potential: str
    scope: str
    strategies: tuple[StrategyFinding, ...]
    cautions: tuple[str, ...] = ()
    intervals: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The sentences, for a terminal."""
        spoken = self.sentence, self.intervals, self.potential, self.scope
        return *self.cautions, *filter(None, spoken)


def _cost_clause(degradation: float) -> str:
    points = round(100 * degradation, 1)
    if points == 0:
        return "thinking to the end cost no accuracy"
    return f"thinking to the end cost {points:.1f} points of accuracy"


def _join(parts: list[str]) -> str:
    """Return ``"a, b and c"``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _flat_fraction(curves: Curves) -> float:
    """Return the share of trajectories that have thinking and the same P(k) at every position."""
    offsets = curves.trajectory_offsets
    flat = greatest(curves.correct, offsets) == -greatest(-curves.correct, offsets)
    return float(np.mean(flat & (curves.full_tokens_s > 0)))


def _potential(full_accuracy: float, findings: tuple[StrategyFinding, ...]) -> str:
    """Say what ideal choices of each kind could save and reach."""
    if full_accuracy == 0:
        best = _join([f"{percent(f.best_accuracy)} by {_NAMES[f.strategy]}" for f in findings])
        return (
            "Full thinking is never right here, so there is no accuracy to keep for fewer tokens. "
            f"The best accuracy within reach: {best}."
        )
    saving = [
        f"{percent(f.equal_tokens_fraction)} by {_SHORT[f.strategy]}"
        for f in findings
        if round(f.equal_tokens_fraction, 3) < 1
    ]
    idle = [_SHORT[f.strategy] for f in findings if round(f.equal_tokens_fraction, 3) >= 1]
    best = _join([f"{percent(f.best_accuracy)} by {_NAMES[f.strategy]}" for f in findings])
    keep = f"the accuracy of full thinking ({percent(full_accuracy)})"
    if not saving:
        first = f"Even with perfect choices, {keep} needs all of its tokens"
    else:
        first = f"With perfect choices, {keep} needs only a part of its tokens: {_join(saving)}"
        if idle:
            first += f"; {' and '.join(idle)} would save nothing"
    return f"{first}. The best accuracy within reach: {best}."


def make_headline(curves: Curves, summary: Summary, cells: tuple[CellFrontiers, ...]) -> Headline:
    """Put the findings into words.

    Parameters
    ----------
    curves
        Measured curves.
    summary
        Their averages.
    cells
        Their frontiers.
    """
    ratio = float(summary.overall["overthinking_ratio"])
    degradation = float(summary.overall["accuracy_degradation"])
    models, benchmarks = len(summary.models), len(summary.benchmarks)
    table = savings(cells) if len(cells) == 1 else average_savings(cells)
    columns = ["equal_tokens_fraction", "best_accuracy", "best_tokens_fraction"]
    findings = tuple(
        StrategyFinding(
            strategy=strategy,
            equal_tokens_fraction=equal,
            best_accuracy=best,
            best_tokens_fraction=at,
        )
        for strategy, (equal, best, at) in zip(
            table["strategy"].tolist()[::-1],
            table[columns].to_numpy(float).tolist()[::-1],
            strict=True,
        )
    )
    where = "On average, " if len(cells) > 1 else ""
    flat = _flat_fraction(curves)
    caution = (
        f" {percent(flat)} of the curves are flat, and a flat curve counts all of its thinking as "
        "coming after its best."
        if flat >= MANY_FLAT
        else ""
    )
    share = f"{percent(ratio)} of the thinking came after the best measured accuracy was reached"
    return Headline(
        sentence=f"{where}{share}, and {_cost_clause(degradation)}.{caution}",
        potential=_potential(float(summary.overall["full_accuracy"]), findings),
        scope=(
            f"{count(models, 'model')}, {count(benchmarks, 'benchmark')}, "
            f"{count(len(set(curves.question.tolist())), 'question')}, "
            f"{count(curves.trajectories, 'trajectory', 'trajectories')}, "
            f"{count(curves.positions, 'position')}, "
            f"{count(curves.probes, 'answer probe')} at each."
        ),
        strategies=findings,
    )
