"""Families of synthetic worlds for latent curves: one shape of thinking each.

Five are made here, by the authors of the estimator; those of
:mod:`evaluator.simulation.blind_families` are not, nor is ``as_the_paper``, which is older than it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evaluator.simulation.blind_families import BLIND_FAMILIES, DrawCell, Drawn
from evaluator.simulation.worlds import World, make_world, paper_population, sigmoid
from oracle.checks import whole_number
from stp.curves import Curves
from stp.ragged import FloatArray, IntArray

AS_THE_PAPER = "as_the_paper"


def _lengths(rng: np.random.Generator, trajectories: int) -> IntArray:
    """Return numbers of positions, 33 on average."""
    drawn = np.rint(np.exp(rng.normal(3.4, 0.4, trajectories)))
    return np.clip(drawn, 1, 127).astype(np.int64) + 1


def _tokens(rng: np.random.Generator, positions: int) -> IntArray:
    steps = np.maximum(1, np.rint(32 * rng.gamma(8.0, 1.0, positions - 1))).astype(np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(steps)])


def _questions(trajectories: int, questions: int) -> IntArray:
    return np.arange(trajectories) * questions // trajectories


def monotone_logistic(rng: np.random.Generator, trajectories: int, questions: int) -> Drawn:
    """Draw one rise, sudden or slow, that is never lost: AD is 0."""
    question = _questions(trajectories, questions)
    ease_q = rng.normal(0.0, 1.2, questions)
    tokens, truth = [], []
    for q, positions in zip(question, _lengths(rng, trajectories), strict=True):
        at = np.linspace(0.0, 1.0, positions)
        top = 1 / (1 + np.exp(-(1.5 + ease_q[q] + rng.normal())))
        bottom = top * rng.uniform(0.0, 0.5)
        width = rng.choice([0.02, 0.08, 0.2])
        rise = sigmoid((at - rng.uniform(0.1, 0.8)) / width)
        tokens.append(_tokens(rng, positions))
        truth.append(bottom + (top - bottom) * rise)
    return tokens, truth, question


def free_steps(rng: np.random.Generator, trajectories: int, questions: int) -> Drawn:
    """Draw flat stretches at any levels, up and down alike."""
    question = _questions(trajectories, questions)
    tokens, truth = [], []
    for positions in _lengths(rng, trajectories):
        cuts = np.sort(rng.integers(0, positions, rng.poisson(2.0)))
        levels = rng.uniform(0.0, 1.0, cuts.size + 1)
        tokens.append(_tokens(rng, positions))
        truth.append(levels[np.searchsorted(cuts, np.arange(positions), side="right")])
    return tokens, truth, question


def double_rise(rng: np.random.Generator, trajectories: int, questions: int) -> Drawn:
    """Draw a first insight, then a second; a third of the trajectories lose part of it again."""
    question = _questions(trajectories, questions)
    ease_q = rng.normal(0.0, 1.0, questions)
    tokens, truth = [], []
    for q, positions in zip(question, _lengths(rng, trajectories), strict=True):
        at = np.linspace(0.0, 1.0, positions)
        first, second = np.sort(rng.uniform(0.05, 0.95, 2))
        level = -3.0 + ease_q[q] + 2.5 * sigmoid((at - first) / 0.03)
        level += 3.5 * sigmoid((at - second) / 0.03)
        if rng.random() < 1 / 3:
            level -= 3.0 * sigmoid((at - rng.uniform(second, 1.0)) / 0.03)
        tokens.append(_tokens(rng, positions))
        truth.append(sigmoid(level))
    return tokens, truth, question


def zero_or_one(rng: np.random.Generator, trajectories: int, questions: int) -> Drawn:
    """Draw accuracies of 0 or 1 with rare changes: counts say all there is to know."""
    question = _questions(trajectories, questions)
    tokens, truth = [], []
    for positions in _lengths(rng, trajectories):
        right = bool(rng.random() < 0.3)
        accuracy = np.empty(positions)
        for k in range(positions):
            if k and rng.random() < (0.03 if right else 0.08):
                right = not right
            accuracy[k] = right
        tokens.append(_tokens(rng, positions))
        truth.append(accuracy)
    return tokens, truth, question


def wandering(rng: np.random.Generator, trajectories: int, questions: int) -> Drawn:
    """Draw a rise on the logit scale with an AR(1) series (0.8, deviation 0.6) added."""
    question = _questions(trajectories, questions)
    ease_q = rng.normal(0.0, 1.2, questions)
    tokens, truth = [], []
    for q, positions in zip(question, _lengths(rng, trajectories), strict=True):
        at = np.linspace(0.0, 1.0, positions)
        noise = rng.standard_normal(positions)
        wander = np.empty(positions)
        wander[0] = noise[0]
        for k in range(1, positions):
            wander[k] = 0.8 * wander[k - 1] + 0.6 * noise[k]
        rise = 4.0 * np.clip(8.0 * (at - rng.beta(1.5, 2.2)), 0.0, 1.0)
        tokens.append(_tokens(rng, positions))
        level = ease_q[q] - 2.0 + rise + 0.9 * rng.normal() + 0.6 * wander
        truth.append(sigmoid(level))
    return tokens, truth, question


OWN_FAMILIES: dict[str, DrawCell] = {
    family.__name__: family
    for family in (monotone_logistic, free_steps, double_rise, zero_or_one, wandering)
}

FAMILIES: tuple[str, ...] = (*OWN_FAMILIES, AS_THE_PAPER, *BLIND_FAMILIES)
"""Names of all families; from ``as_the_paper`` on, written without knowledge of the estimator."""


def family_world(
    family: str, seed: int, *, trajectories: int = 1_000, questions: int = 60, probes: int = 16
) -> World:
    """Draw a world of one cell from a family.

    Parameters
    ----------
    family
        One of :data:`FAMILIES`.
    seed
        Non-negative.
    trajectories, questions
        How many; nearly as many for ``as_the_paper``, whose questions have 16 trajectories.
    probes
        At every position.

    Raises
    ------
    ValueError
        If there is no such family, or a number is out of its range.
    """
    if family not in FAMILIES:
        raise ValueError(f"there is no family {family!r}; choose from {', '.join(FAMILIES)}")
    trajectories = whole_number("trajectories", trajectories, least=1)
    questions = whole_number("questions", questions, least=1, most=trajectories)
    if family == AS_THE_PAPER:
        return _paper_cell(seed, trajectories, probes)
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    draw = {**OWN_FAMILIES, **BLIND_FAMILIES}[family]
    tokens, truth, question = draw(rng, trajectories, questions)
    return _world(rng, tokens, truth, question, probes)


def _world(
    rng: np.random.Generator,
    tokens: Sequence[IntArray],
    truth: Sequence[FloatArray],
    question: IntArray,
    probes: int,
) -> World:
    accuracy = np.concatenate(truth)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([one.size for one in tokens])])
    curves = Curves(
        tokens=np.concatenate(tokens),
        correct=rng.binomial(probes, accuracy).astype(np.int32),
        trajectory_offsets=offsets,
        question=question.astype(np.int32),
        probes=probes,
        original_correct=(rng.random(question.size) < accuracy[offsets[1:] - 1]).astype(np.int8),
    )
    return World(curves=curves, accuracy=accuracy, cut=np.zeros(question.size, np.bool_))


def _paper_cell(seed: int, trajectories: int, probes: int) -> World:
    """Return GPQA-Diamond of the first synthetic model, cut to a number of trajectories."""
    population = paper_population()
    benchmark = population.benchmarks[2]
    scale = max(1, trajectories // population.trajectories) / benchmark.questions
    one = replace(population, benchmarks=(benchmark,), probes=probes)
    return make_world(one.sized(models=1, scale=scale), seed)


def thinned(curves: Curves, probes: int, seed: int) -> Curves:
    """Return the curves of some of the probes at every position, drawn without replacement."""
    probes = whole_number("probes", probes, least=1, most=curves.probes)
    rng = np.random.default_rng([seed, probes])
    kept = rng.hypergeometric(curves.correct, curves.probes - curves.correct, probes)
    return replace(curves, correct=kept.astype(np.int32), probes=probes)
