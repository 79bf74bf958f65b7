"""Time the segmentation of as many tokens as the paper's experiment has.

Trajectories are made up: lengths are log-normal (capped at the thinking limit), tokens are drawn
from a vocabulary of the size of Qwen3's with 565 boundary ids, one token in about 30 being one.
They are made in chunks, so that memory stays small, and making them is not timed.

    python scripts/benchmarks/segmentation.py            # a twentieth
    python scripts/benchmarks/segmentation.py --full     # 92,448 trajectories, 577 million tokens
"""

import argparse
import time

import numpy as np

from stp.seeds import PAPER_SEED
from stp.segmentation import segment, segment_many

TRAJECTORIES = 92_448
TOKENS = 576_688_123
THINKING_LIMIT = 32_768
VOCABULARY = 151_669
BOUNDARY_IDS = 565
CHUNK = 1_000


def draw_lengths(rng: np.random.Generator, trajectories: int, tokens: int) -> np.ndarray:
    """Return log-normal lengths that sum to ``tokens`` exactly."""
    drawn = rng.lognormal(sigma=0.9, size=trajectories)
    scale = tokens / drawn.sum()
    for _ in range(50):
        scale *= tokens / np.minimum(drawn * scale, THINKING_LIMIT).sum()
    lengths = np.minimum(drawn * scale, THINKING_LIMIT).astype(np.int64)
    missing = tokens - int(lengths.sum())
    lengths[np.argsort(lengths)[:missing]] += 1
    return lengths


def draw_tokens(
    rng: np.random.Generator, count: int, boundary_ids: np.ndarray, gap: float
) -> np.ndarray:
    """Return ids of which one in ``gap`` is a boundary."""
    ids = rng.integers(0, VOCABULARY, count, dtype=np.int32)
    boundaries = np.flatnonzero(rng.random(count, dtype=np.float32) < 1 / gap)
    ids[boundaries] = rng.choice(boundary_ids, boundaries.size)
    return ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the paper's whole size")
    parser.add_argument("--fraction", type=float, default=0.05, help="of the trajectories")
    parser.add_argument("--gap", type=float, default=30.0, help="mean tokens between boundaries")
    parser.add_argument("--step-tokens", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    fraction = 1.0 if args.full else args.fraction
    trajectories = max(1, round(TRAJECTORIES * fraction))
    rng = np.random.default_rng(PAPER_SEED)
    lengths = draw_lengths(rng, trajectories, round(TOKENS * fraction))
    boundary_ids = np.sort(rng.choice(VOCABULARY, BOUNDARY_IDS, replace=False)).astype(np.int32)

    started = time.perf_counter()
    segment(np.array([1, 2], np.int32), {1})
    compile_seconds = time.perf_counter() - started
    seconds, positions = 0.0, 0
    for first in range(0, trajectories, CHUNK):
        offsets = np.concatenate([[0], np.cumsum(lengths[first : first + CHUNK])])
        ids = draw_tokens(rng, int(offsets[-1]), boundary_ids, args.gap)
        started = time.perf_counter()
        tokens, _ = segment_many(ids, offsets, boundary_ids, args.step_tokens, threads=args.threads)
        seconds += time.perf_counter() - started
        positions += tokens.size
    total = int(lengths.sum())
    print(
        f"{trajectories:,} trajectories, {total:,} tokens, {positions:,} positions: "
        f"{seconds:.2f} s on {args.threads} threads ({total / seconds / 1e6:.0f} M tokens/s); "
        f"compiling or loading the kernels {compile_seconds:.1f} s more"
    )
    print(f"the whole experiment at this rate: {seconds * TOKENS / total:.1f} s")


if __name__ == "__main__":
    main()
