"""Slow, obvious twins: every combination of stopping positions, straight from the definitions.

Nothing here imports the oracle's actions or programs.
"""

import itertools
from collections import defaultdict

import numpy as np

from stp.curves import Curves


def rows_of(curves, s):
    return range(int(curves.trajectory_offsets[s]), int(curves.trajectory_offsets[s + 1]))


def questions_of(curves):
    """Trajectories of every (model, question) pair."""
    groups = defaultdict(list)
    for s in range(curves.trajectories):
        groups[int(curves.model[s]), int(curves.question[s])].append(s)
    return [groups[key] for key in sorted(groups)]


def point(curves, rows):
    return int(sum(curves.tokens[row] for row in rows)), int(sum(curves.correct[r] for r in rows))


def routing_options(curves, members):
    zero = [rows_of(curves, s)[0] for s in members]
    full = [rows_of(curves, s)[-1] for s in members]
    return [point(curves, zero), point(curves, full)]


def budget_options(curves, members):
    caps = {int(curves.tokens[row]) for s in members for row in rows_of(curves, s)}
    return [
        point(
            curves, [max(r for r in rows_of(curves, s) if curves.tokens[r] <= cap) for s in members]
        )
        for cap in sorted(caps)
    ]


def exit_options(curves, s):
    return [point(curves, [row]) for row in rows_of(curves, s)]


def combined_options(curves, members):
    """All at k = 0, or each trajectory at a position k >= 1 of its own (k = 0 if n = 0)."""
    zero = [rows_of(curves, s)[0] for s in members]
    later = [list(rows_of(curves, s))[1:] or [rows_of(curves, s)[0]] for s in members]
    return [point(curves, zero)] + [point(curves, rows) for rows in itertools.product(*later)]


def units_of(curves, strategy):
    if strategy == "routing":
        return [routing_options(curves, members) for members in questions_of(curves)]
    if strategy == "fixed_budget":
        return [budget_options(curves, members) for members in questions_of(curves)]
    if strategy == "combined":
        return [combined_options(curves, members) for members in questions_of(curves)]
    return [exit_options(curves, s) for s in range(curves.trajectories)]


def all_points(units):
    """(cost, reward) of every combination of one option per unit."""
    return {
        (sum(c for c, _ in picks), sum(r for _, r in picks)) for picks in itertools.product(*units)
    }


def undominated(points):
    """Non-dominated points by rising cost."""
    kept = []
    for cost, reward in sorted(points, key=lambda p: (p[0], -p[1])):
        if not kept or reward > kept[-1][1]:
            kept.append((cost, reward))
    return kept


def naive_frontier(curves, strategy):
    return undominated(all_points(units_of(curves, strategy)))


def best_within(points, budget):
    return max((reward for cost, reward in points if cost <= budget), default=-1)


def random_curves(rng, *, questions=3, trajectories=2, steps=3, probes=4, step=50, shape="any"):
    """Curves of one cell; ``shape`` names a generator that hurts."""
    tokens, correct, offsets, question = [], [], [0], []
    for q in range(questions):
        for _ in range(trajectories):
            n = int(rng.integers(0, steps + 1))
            rises = rng.integers(1, step + 1, n)
            if shape == "equal":
                rises[:] = step
            right = rng.integers(0, probes + 1, n + 1)
            if shape == "zeros":
                right[:] = 0
            elif shape == "flat":
                right[:] = right[0]
            elif shape == "falling":
                right = np.sort(right)[::-1]
            elif shape == "late":
                right = np.where(np.arange(n + 1) == n, probes, 0)
            tokens += [0, *np.cumsum(rises).tolist()]
            correct += right.tolist()
            offsets.append(len(tokens))
            question.append(q)
    return Curves(
        tokens=np.array(tokens, np.int64),
        correct=np.array(correct, np.int64),
        trajectory_offsets=offsets,
        question=np.array(question, np.int64),
        probes=probes,
    )
