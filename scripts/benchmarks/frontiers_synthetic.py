"""Synthetic curves of the paper's size, for the frontier benchmarks.

Six models on AIME (90 questions), MATH-500 (500), GPQA (198) and LiveCodeBench (175), 16
trajectories each, steps of 256 tokens, 16 probes per position. Accuracy starts at a guess, jumps
when the trajectory finds its answer, wavers afterwards and is sometimes lost again; every position
is a binomial draw. Average thinking is scaled to the paper's 8,281 tokens.
"""

import numpy as np

from stp.curves import Curves

BENCHMARKS = {"AIME": 90, "MATH-500": 500, "GPQA": 198, "LiveCodeBench": 175}
DIFFICULTY = {"AIME": 0.75, "MATH-500": 0.35, "GPQA": 0.55, "LiveCodeBench": 0.6}
MODELS = 6
TRAJECTORIES = 16
PROBES = 16
STEP_TOKENS = 256
MEAN_TOKENS = 8281


def paper_scale(seed: int = 0, *, models: int = MODELS, scale: int = 1) -> Curves:
    """Return curves of ``models`` x 4 cells; ``scale`` multiplies the questions of each."""
    rng = np.random.default_rng(seed)
    questions = np.array([count * scale for count in BENCHMARKS.values()])
    benchmark_q = np.repeat(np.arange(4), questions)
    base = np.array(list(DIFFICULTY.values()))[benchmark_q]
    hardness_q = np.clip(base + rng.normal(0, 0.25, base.size), 0.02, 0.98)
    question = np.tile(np.repeat(np.arange(base.size), TRAJECTORIES), models)
    model = np.repeat(np.arange(models), base.size * TRAJECTORIES)
    hardness = np.clip(hardness_q[question] - 0.05 * model + rng.normal(0, 0.05, model.size), 0, 1)
    tokens_s = np.exp(rng.normal(0, 0.5, model.size) + 1.6 * hardness)
    tokens_s = np.maximum(1, tokens_s * MEAN_TOKENS / tokens_s.mean()).astype(np.int64)
    steps = np.maximum(1, (2 * tokens_s + STEP_TOKENS) // (2 * STEP_TOKENS))
    offsets = np.concatenate([[0], np.cumsum(steps + 1)])
    first = np.repeat(offsets[:-1], steps + 1)
    k = np.arange(offsets[-1]) - first
    n = np.repeat(steps, steps + 1)

    share = rng.gamma(3.0, size=k.size)
    share[offsets[:-1]] = 0
    total = np.cumsum(share)
    total -= np.repeat(total[offsets[:-1]], steps + 1)
    last = np.repeat(total[offsets[1:] - 1], steps + 1)
    tokens = np.round(total / last * np.repeat(tokens_s, steps + 1)).astype(np.int64)

    solved = rng.random(model.size) > hardness**2
    at = rng.beta(1.3, 2.0, model.size)
    lost = solved & (rng.random(model.size) < 0.12)
    lost_at = at + (1 - at) * rng.random(model.size)
    guess = np.clip(0.6 * (1 - hardness) + rng.normal(0, 0.15, model.size), 0, 1)
    where = k / n

    def spread(values: np.ndarray) -> np.ndarray:
        return np.repeat(values, steps + 1)

    rate = spread(guess) * (1 + 0.5 * where)
    found = spread(solved) & (where >= spread(at))
    rate = np.where(found, 0.93 + 0.07 * spread(rng.random(model.size)), rate)
    rate = np.where(spread(lost) & (where >= spread(lost_at)), 0.2, rate)
    correct = rng.binomial(PROBES, np.clip(rate + rng.normal(0, 0.03, rate.size), 0, 1))
    return Curves(
        tokens=tokens,
        correct=correct,
        trajectory_offsets=offsets,
        question=question,
        model=model,
        benchmark=benchmark_q[question],
        probes=PROBES,
        benchmark_names=tuple(BENCHMARKS),
        model_names=tuple(f"model {m}" for m in range(models)),
    )
