"""Synthetic curves whose truth is known, with the dimensions of the paper's experiment.

No language model is behind these numbers. They serve to time the analysis at full size and to
check statistics against a truth that measured campaigns do not have: the accuracy at every
position, before probe noise.

The generative model, for model m, benchmark g, question q, trajectory s, in order of drawing:

* question: difficulty d ~ N(g.difficulty, g.spread), shared by all models;
* pair: margin z = m.ability - d + N(0, 0.6);
* trajectory: strength u = z + N(0, 0.9); length ln L ~ N(ln(g.tokens m.verbosity) - 0.12 z, 0.4),
  L rounded and cut at the thinking limit;
* steps: max(1, (2 L + b) // (2 b)) of them, lengths in proportion to Gamma(8) draws;
* levels on the logit scale: before the insight a = logit of the direct accuracy
  g.guess + (1 - g.guess) sigmoid(1.2 z - 2.2), after it e = 6 u + 1; the insight comes at
  t ~ Beta(1.5, 2.2) L and takes ``width`` L;
* decline: with probability 0.15 the level falls by Exponential(2) at a second time, uniform
  between the insight and the end, again within ``width`` L;
* wander: an AR(1) series over positions, correlation 0.7 from one to the next, standard
  deviation ``wander``, is added;
* accuracy P(k): the sigmoid of the sum, 0 below 0.03 and 1 above 0.97, so that flat stretches
  exist;
* probes: C(k) ~ Binomial(probes, P(k)), independent; original answer ~ Bernoulli(P(n)), wrong
  if the thinking was cut.

Every cell has a generator of its own, ``default_rng([seed, 1, model, benchmark])``, and every
benchmark's difficulties one, ``default_rng([seed, 0, benchmark])``.
"""

# mypy: disallow-untyped-decorators=False
import math
from dataclasses import dataclass, replace

import numba as nb
import numpy as np

from oracle.checks import whole_number
from stp.curves import Curves
from stp.ragged import FloatArray, IntArray, offsets_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticModel:
    """A model: how able it is (logits), and how long it thinks (a factor)."""

    name: str
    ability: float
    verbosity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticBenchmark:
    """A benchmark: its questions' difficulty and spread (logits), chance level, tokens."""

    name: str
    questions: int
    difficulty: float
    spread: float
    guess: float
    tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """What worlds are drawn from.

    Attributes
    ----------
    models, benchmarks
        The fixed parts of the experiment.
    trajectories, probes, step_tokens, thinking_limit
        As in a campaign.
    wander
        Standard deviation of the AR(1) series on the logit scale.
    width
        How long insight and decline take, as a fraction of L. Nearly 0, and ``wander`` 0, makes
        curves of up to three flat pieces.

    Raises
    ------
    ValueError
        If there is no model or benchmark, a number of the campaign is not an integer of 1 or more,
        or ``wander`` or ``width`` is out of its range.
    """

    models: tuple[SyntheticModel, ...]
    benchmarks: tuple[SyntheticBenchmark, ...]
    trajectories: int = 16
    probes: int = 16
    step_tokens: int = 256
    thinking_limit: int = 32_768
    wander: float = 0.35
    width: float = 0.03

    def __post_init__(self) -> None:
        if not self.models or not self.benchmarks:
            raise ValueError("a population needs at least one model and one benchmark")
        for name in ("trajectories", "probes", "step_tokens", "thinking_limit"):
            whole_number(name, getattr(self, name), least=1)
        if not (math.isfinite(self.wander) and self.wander >= 0):
            raise ValueError(f"wander must be a finite number of at least 0, not {self.wander}")
        if not (math.isfinite(self.width) and self.width > 0):
            raise ValueError(f"width must be a finite number above 0, not {self.width}")

    def sized(self, *, models: int | None = None, scale: float = 1.0) -> "Population":
        """Return the first models, with every benchmark's questions scaled (at least one)."""
        return replace(
            self,
            models=self.models[:models],
            benchmarks=tuple(
                replace(benchmark, questions=max(1, round(benchmark.questions * scale)))
                for benchmark in self.benchmarks
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """One drawn experiment.

    Attributes
    ----------
    curves
        What probing measured.
    accuracy
        The true P(k) behind every position; float64 ``(positions,)``.
    cut
        Whether the thinking reached the limit; bool ``(trajectories,)``.
    """

    curves: Curves
    accuracy: FloatArray
    cut: "np.ndarray[tuple[int], np.dtype[np.bool_]]"


def paper_population() -> Population:
    """Return a population with the paper's dimensions.

    Six models, 963 questions in four groups, 16 trajectories, 16 probes. The parameters were set
    so that a world comes near the paper: seed 20260721 gives 8,152 thinking tokens per
    trajectory, 3,036,393 positions, 48,582,288 probes, and macro-averages of OR 66.7 %, AD 9.1
    points and original accuracy 72.0 % (the paper's are 64.3 %, 9.0 points and 71.8 %).
    """
    abilities = (1.3, 1.1, 1.5, 0.2, 0.7, 0.9)
    verbosities = (0.75, 1.5, 1.2, 0.8, 0.8, 0.8)
    return Population(
        models=tuple(
            SyntheticModel(name=f"synthetic-{i + 1}", ability=ability, verbosity=verbosity)
            for i, (ability, verbosity) in enumerate(zip(abilities, verbosities, strict=True))
        ),
        benchmarks=(
            SyntheticBenchmark(
                name="AIME", questions=90, difficulty=0.3, spread=1.2, guess=0.0, tokens=15_500
            ),
            SyntheticBenchmark(
                name="MATH-500",
                questions=500,
                difficulty=-1.5,
                spread=1.2,
                guess=0.05,
                tokens=8_300,
            ),
            SyntheticBenchmark(
                name="GPQA-Diamond",
                questions=198,
                difficulty=0.6,
                spread=1.0,
                guess=0.25,
                tokens=7_700,
            ),
            SyntheticBenchmark(
                name="LiveCodeBench",
                questions=175,
                difficulty=0.4,
                spread=1.4,
                guess=0.0,
                tokens=10_000,
            ),
        ),
    )


def make_world(population: Population, seed: int) -> World:
    """Draw one experiment.

    Parameters
    ----------
    population
        What to draw from.
    seed
        Non-negative. A cell depends on the seed, its model's and its benchmark's place and
        parameters, and nothing else.

    Returns
    -------
    World
        Trajectories in order of model, benchmark, question, sample. Question numbers run over
        the benchmarks in order.
    """
    cells = []
    first_question = 0
    questions = []
    for benchmark in population.benchmarks:
        questions.append(first_question + np.arange(benchmark.questions))
        first_question += benchmark.questions
    cells = [
        _draw_cell(population, seed, m, b)
        for m in range(len(population.models))
        for b in range(len(population.benchmarks))
    ]
    lengths = np.concatenate([cell.lengths for cell in cells])
    sizes = [benchmark.questions * population.trajectories for benchmark in population.benchmarks]
    models, benchmarks = len(population.models), len(population.benchmarks)
    curves = Curves(
        tokens=np.concatenate([cell.tokens for cell in cells]),
        correct=np.concatenate([cell.correct for cell in cells]),
        trajectory_offsets=offsets_of(lengths),
        question=np.tile(np.repeat(np.concatenate(questions), population.trajectories), models),
        probes=population.probes,
        benchmark=np.tile(np.repeat(np.arange(benchmarks), sizes), models),
        model=np.repeat(np.arange(models), sum(sizes)),
        sample=np.tile(np.arange(population.trajectories), first_question * models),
        original_correct=np.concatenate([cell.original for cell in cells]),
        question_names=tuple(
            f"{benchmark.name}-{i + 1}"
            for benchmark in population.benchmarks
            for i in range(benchmark.questions)
        ),
        benchmark_names=tuple(benchmark.name for benchmark in population.benchmarks),
        model_names=tuple(model.name for model in population.models),
    )
    return World(
        curves=curves,
        accuracy=np.concatenate([cell.accuracy for cell in cells]),
        cut=np.concatenate([cell.cut for cell in cells]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CellDraw:
    """A cell's arrays: per position, then per trajectory."""

    tokens: IntArray
    correct: IntArray
    accuracy: FloatArray
    lengths: IntArray
    original: IntArray
    cut: "np.ndarray[tuple[int], np.dtype[np.bool_]]"


def _draw_cell(population: Population, seed: int, m: int, b: int) -> _CellDraw:
    model, benchmark = population.models[m], population.benchmarks[b]
    shared = np.random.default_rng([seed, 0, b])
    difficulty = shared.normal(benchmark.difficulty, benchmark.spread, benchmark.questions)
    rng = np.random.default_rng([seed, 1, m, b])
    margin_q = model.ability - difficulty + rng.normal(0.0, 0.6, difficulty.size)
    margin = np.repeat(margin_q, population.trajectories)
    count = margin.size
    strength = margin + rng.normal(0.0, 0.9, count)
    centre = np.log(benchmark.tokens * model.verbosity) - 0.12 * margin
    wanted = np.rint(np.exp(rng.normal(centre, 0.4))).astype(np.int64)
    cut = wanted > population.thinking_limit
    full = np.clip(wanted, 1, population.thinking_limit)
    step = population.step_tokens
    steps = np.maximum(1, (2 * full + step) // (2 * step))
    lengths = steps + 1
    offsets = offsets_of(lengths)
    direct = benchmark.guess + (1 - benchmark.guess) * sigmoid(1.2 * margin - 2.2)
    direct = np.clip(direct, 1e-6, 1 - 1e-6)
    insight = rng.beta(1.5, 2.2, count)
    falls = np.where(rng.random(count) < 0.15, rng.exponential(2.0, count), 0.0)
    fall_at = insight + (1 - insight) * rng.random(count)
    tokens, accuracy = _curves(
        full,
        offsets,
        rng.gamma(8.0, 1.0, int(offsets[-1])),
        rng.standard_normal(int(offsets[-1])),
        np.log(direct / (1 - direct)),
        6.0 * strength + 1.0,
        insight,
        falls,
        fall_at,
        population.wander,
        population.width,
    )
    return _CellDraw(
        tokens=tokens,
        correct=rng.binomial(population.probes, accuracy),
        accuracy=accuracy,
        lengths=lengths,
        original=np.where(cut, 0, rng.random(count) < accuracy[offsets[1:] - 1]).astype(np.int64),
        cut=cut,
    )


def sigmoid(x: FloatArray) -> FloatArray:
    """Return the logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


@nb.njit(cache=True, nogil=True, inline="always")
def _step(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))


@nb.njit(cache=True, nogil=True)
def _curves(
    full: IntArray,
    offsets: IntArray,
    step_draws: FloatArray,
    wander_draws: FloatArray,
    level_before: FloatArray,
    level_after: FloatArray,
    insight: FloatArray,
    falls: FloatArray,
    fall_at: FloatArray,
    deviation: float,
    width: float,
) -> tuple[IntArray, FloatArray]:
    """Return L(k) and P(k) of all trajectories of a cell."""
    correlation = 0.7
    fresh = deviation * np.sqrt(1 - correlation**2)
    tokens = np.zeros(step_draws.size, np.int64)
    accuracy = np.empty(step_draws.size)
    for s in range(full.size):
        start, stop = offsets[s], offsets[s + 1]
        total = 0.0
        for row in range(start + 1, stop):
            total += step_draws[row]
        passed = 0.0
        wander = deviation * wander_draws[start]
        for row in range(start, stop):
            if row > start:
                passed += step_draws[row]
                tokens[row] = round(full[s] * passed / total)
                wander = correlation * wander + fresh * wander_draws[row]
            if row == stop - 1:
                tokens[row] = full[s]
            at = tokens[row] / full[s]
            # At k = 0 nothing was thought, so there is no insight yet.
            rise = 0.0 if row == start else _step((at - insight[s]) / width)
            fall = _step((at - fall_at[s]) / width)
            level = level_before[s] + (level_after[s] - level_before[s]) * rise - falls[s] * fall
            p = _step(level + wander)
            accuracy[row] = 0.0 if p < 0.03 else (1.0 if p > 0.97 else p)
    return tokens, accuracy
