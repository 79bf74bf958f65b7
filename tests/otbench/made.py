"""Made-up measurements whose structure is known, and methods that are told what they must not be.

A trajectory's own number stands in its ``answer`` signal, so a method that is told the truth can
look up what the oracle would do.
"""

import copy

import numpy as np

from baselines.interface import EarlyExit, FixedBudget, Router
from baselines.measurements import Measurements
from baselines.player import Player
from baselines.registry import MethodSource
from evaluator.otbench.decide import decide
from evaluator.otbench.row import Row
from evaluator.otbench.splits import lot
from evaluator.otbench.summary import SUMMARIES
from oracle import exact_frontier
from oracle.actions import question_groups
from stp.curves import Curves

PROBES = 4


def curves(*, questions=12, trajectories=3, models=1, benchmarks=1, seed=0, first=0):
    """Return noisy curves: insight at a random moment, sometimes lost again."""
    rng = np.random.default_rng(seed)
    tokens, correct, offsets, rows = [], [], [0], []
    for model in range(models):
        for q in range(questions * benchmarks):
            for s in range(trajectories):
                steps = int(rng.integers(1, 8))
                insight = rng.random() * 1.4
                at = np.arange(steps + 1) / steps
                level = np.where(at >= insight, 0.9, 0.15) - 0.5 * (at > insight + 0.5)
                tokens += [0, *np.cumsum(rng.integers(3, 30, steps)).tolist()]
                correct += rng.binomial(PROBES, np.clip(level, 0, 1)).tolist()
                offsets.append(len(tokens))
                rows.append((model, q // questions, first + q, s))
    model_s, benchmark_s, question_s, sample_s = np.array(rows).T
    return Curves(
        tokens=np.array(tokens),
        correct=np.array(correct),
        trajectory_offsets=np.array(offsets),
        question=question_s,
        benchmark=benchmark_s,
        model=model_s,
        sample=sample_s,
        probes=PROBES,
        question_names=tuple(f"q{i}" for i in range(first + questions * benchmarks)),
        benchmark_names=tuple(f"b{i}" for i in range(benchmarks)),
        model_names=tuple(f"m{i}" for i in range(models)),
    )


def measured(curves_, **signals):
    """Return measurements of the curves; every trajectory's number is its answer."""
    lengths = np.diff(curves_.trajectory_offsets)
    numbers = np.repeat(np.arange(curves_.trajectories), lengths).astype(np.int32)
    tokens = np.full(curves_.positions, 5, np.int32)
    return Measurements(
        curves=curves_,
        position_signals={"answer": numbers, "answer_tokens": tokens, **signals},
    )


def lots(curves_):
    """Return the lot of every question number."""
    return np.array([lot(1, "b", name) for name in curves_.question_names])


def source_of(kind):
    """Return the source of a class that is made up in a test."""
    return MethodSource(spec=kind.name, method=kind, origin="test")


def decided(method, made, lots_q, **options):
    """Return the decisions of a method in this process: of this very one, then of its copy."""
    waiting = [copy.deepcopy(method), method]
    description = source_of(type(method)).description
    return decide(lambda: Player(waiting.pop()), description, made, lots_q, **options)


def told_the_truth(curves_, strategy):
    """Return a method of a strategy that plays every state of the frontier, one a setting."""
    frontier = exact_frontier(curves_, strategy)
    states = range(frontier.cost.size)
    actions = frontier.actions
    # By state, what every unit does; units are questions, or trajectories for early exit.
    plan = [actions.choice[frontier.actions_at(state)].tolist() for state in states]
    questions = question_groups(curves_).question.tolist()
    unit = {lots(curves_)[q]: place for place, q in enumerate(questions)}

    class ToldRouter(Router):
        name, grid = "told_router", tuple(states)

        def score(self, question):
            return unit[question.lot]

        def thinks(self, score, setting):
            return bool(plan[setting][score])

    class ToldBudget(FixedBudget):
        name, grid = "told_budget", tuple(states)

        def score(self, question):
            return unit[question.lot]

        def cap(self, score, setting):
            return int(plan[setting][score])

    class ToldExit(EarlyExit):
        name, grid, needs = "told_exit", tuple(states), ("answer",)

        def score(self, prefix):
            return int(prefix["answer"][-1]), prefix.k

        def stops(self, score, setting):
            return score[1] == plan[setting][score[0]]

    kinds = {"routing": ToldRouter, "fixed_budget": ToldBudget, "early_exit": ToldExit}
    return kinds[strategy](), frontier


def made_row(label, *, strategy="early_exit", trivial=False, area=0.5, points=None):
    """A row of a method with invented numbers."""
    summary = {key: {"value": 0.5, "low": 0.0, "high": 1.0} for key in SUMMARIES}
    summary["curve_area"] = {"value": area, "low": area - 0.1, "high": area + 0.1}
    point = {"tokens_fraction": 0.5, "accuracy": 0.5, "on_curve": True}
    points = [{"setting": i, **each} for i, each in enumerate(points or [point])]
    method = {"name": label, "spec": label, "origin": "here", "given": {}}
    return Row.model_validate(
        {
            "schema_version": 1,
            "label": label,
            "method": {**method, "strategy": strategy, "trivial": trivial},
            "release": {"name": "mine", "checksum": "0"},
            "resampling": {"replicates": 0, "seed": 0},
            "full_accuracy": 0.854,
            "zero_accuracy": 0.208,
            "selected": {"index": len(points) // 2, "setting": 0},
            "summary": summary,
            "points": points,
            "versions": {},
            "digest": "",
            "run": {},
        }
    )
