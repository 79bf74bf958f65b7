"""Four families of synthetic worlds with known P(k), written without knowledge of the estimator.

They were written before, and independently of, what is measured on them, and are not tuned to it.
Each function takes ``(rng, trajectories, questions)`` and returns ``(tokens, truth, question)``:
``tokens``: list of int arrays, L(0..n) per trajectory, L(0) = 0, strictly increasing; ``truth``:
list of float arrays of the same lengths, P(k) in [0, 1]; ``question``: int array, a question per
trajectory.
"""

from collections.abc import Callable

import numpy as np

from stp.ragged import FloatArray, IntArray

Drawn = tuple[list[IntArray], list[FloatArray], IntArray]
DrawCell = Callable[[np.random.Generator, int, int], Drawn]


def _lengths(
    rng: np.random.Generator,
    count: int,
    *,
    mean: float,
    sigma: float,
    least: int = 1,
    most: int = 120,
) -> IntArray:
    drawn = rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, count)
    return np.clip(np.rint(drawn), least, most).astype(np.int64)


def _tokens(
    rng: np.random.Generator, n: int, *, step: float = 256, spread: float = 0.35
) -> IntArray:
    steps = np.maximum(1, np.rint(step * np.exp(rng.normal(0, spread, n)))).astype(np.int64)
    return np.concatenate([[0], np.cumsum(steps)])


def insight_and_relapse(
    rng: np.random.Generator, trajectories: int = 300, questions: int = 30
) -> Drawn:
    """Draw a sudden insight at a random moment; some lose it again later, some regain it.

    Piecewise constant; levels are the question's own: before, after insight, after relapse.
    """
    question = np.sort(rng.integers(0, questions, trajectories))
    before_q = rng.beta(0.7, 6, questions)
    after_q = rng.beta(8, 1.2, questions)
    tokens: list[IntArray] = []
    truth: list[FloatArray] = []
    for q in question:
        n = int(_lengths(rng, 1, mean=22, sigma=0.7)[0])
        p = np.full(n + 1, before_q[q])
        insight = int(rng.geometric(min(1.0, 2.5 / n)))
        p[insight:] = after_q[q]
        if rng.random() < 0.3 and insight + 2 < n:
            relapse = int(rng.integers(insight + 1, n))
            p[relapse:] = rng.uniform(0, after_q[q])
            if rng.random() < 0.4 and relapse + 2 < n:
                p[int(rng.integers(relapse + 1, n + 1)) :] = after_q[q]
        tokens.append(_tokens(rng, n))
        truth.append(np.clip(p, 0, 1))
    return tokens, truth, question


def slow_fatigue(rng: np.random.Generator, trajectories: int = 300, questions: int = 30) -> Drawn:
    """Draw a quick rise to a plateau, then a linear decay that starts anywhere; heavy tails."""
    question = np.sort(rng.integers(0, questions, trajectories))
    top_q = rng.uniform(0.4, 0.98, questions)
    tokens: list[IntArray] = []
    truth: list[FloatArray] = []
    for q in question:
        n = int(np.clip(np.rint(4 + 8 * rng.pareto(1.6)), 2, 150))
        length = _tokens(rng, n, spread=0.6)
        x = length / length[-1]
        rise = 1 - np.exp(-x / rng.uniform(0.02, 0.25))
        start = rng.uniform(0.3, 1.4)
        decay = np.clip((x - start) * rng.uniform(0.0, 1.2), 0, 1)
        tokens.append(length)
        truth.append(np.clip(top_q[q] * rise * (1 - decay), 0, 1))
    return tokens, truth, question


def doubt(rng: np.random.Generator, trajectories: int = 300, questions: int = 30) -> Drawn:
    """Oscillation: the model doubts in rounds, with a period of its own; no trend in the level."""
    question = np.sort(rng.integers(0, questions, trajectories))
    level_q = rng.uniform(0.15, 0.85, questions)
    tokens: list[IntArray] = []
    truth: list[FloatArray] = []
    for q in question:
        n = int(_lengths(rng, 1, mean=30, sigma=0.5, least=3)[0])
        length = _tokens(rng, n)
        period = rng.uniform(3, 14)
        amplitude = rng.uniform(0, 1) * min(level_q[q], 1 - level_q[q])
        phase = rng.uniform(0, 2 * np.pi)
        wave = amplitude * np.sin(2 * np.pi * np.arange(n + 1) / period + phase)
        settle = 1 - np.exp(-np.arange(n + 1) / 2.0)
        tokens.append(length)
        truth.append(np.clip((level_q[q] + wave) * settle, 0, 1))
    return tokens, truth, question


def mixed_minds(rng: np.random.Generator, trajectories: int = 300, questions: int = 30) -> Drawn:
    """Very different questions: impossible, trivial, any level, late, spoiled; exact 0 and 1."""
    kinds = ["impossible", "trivial", "level", "late", "spoiled"]
    kind_q = rng.choice(kinds, questions, p=[0.2, 0.2, 0.2, 0.2, 0.2])
    level_q = rng.random(questions)
    question = np.sort(rng.integers(0, questions, trajectories))
    tokens: list[IntArray] = []
    truth: list[FloatArray] = []
    for q in question:
        n = int(_lengths(rng, 1, mean=16, sigma=0.9)[0])
        at = np.arange(n + 1) / n
        if kind_q[q] == "impossible":
            p = np.zeros(n + 1)
        elif kind_q[q] == "trivial":
            p = np.ones(n + 1)
        elif kind_q[q] == "level":
            p = np.full(n + 1, level_q[q])
        elif kind_q[q] == "late":
            p = 1 / (1 + np.exp(-(at - rng.uniform(0.5, 1.1)) * 25)) * (0.5 + 0.5 * level_q[q])
        else:
            p = 1 / (1 + np.exp(-(at - rng.uniform(0.0, 0.4)) * 30))
            if rng.random() < 0.6:
                p = p * np.where(at > rng.uniform(0.4, 1.0), rng.uniform(0, 0.7), 1.0)
        tokens.append(_tokens(rng, n, step=128 + int(400 * level_q[q])))
        truth.append(np.clip(p, 0, 1))
    return tokens, truth, question


BLIND_FAMILIES: dict[str, DrawCell] = {
    family.__name__: family for family in (insight_and_relapse, slow_fatigue, doubt, mixed_minds)
}
