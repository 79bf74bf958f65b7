"""Time the boundary audit and the step lengths on as many tokens as the paper's experiment has.

Trajectories are made up as in ``segmentation.py``: log-normal lengths, the size of Qwen3's
vocabulary, 565 boundary ids, one token in about 30 being one, and single newlines besides. They are
made in chunks, and making them is not timed. ``--decode`` with a real tokenizer's
folder (``make tokenizers`` gets two) times the check by full decoding too, on a sample.

    python scripts/benchmarks/audit.py            # a twentieth
    python scripts/benchmarks/audit.py --full     # 92,448 trajectories, 577 million tokens
    python scripts/benchmarks/audit.py --decode FOLDER_WITH_TOKENIZER_JSON
"""

import argparse
import time
from pathlib import Path

import numpy as np
from segmentation import (
    BOUNDARY_IDS,
    CHUNK,
    TOKENS,
    TRAJECTORIES,
    VOCABULARY,
    draw_lengths,
    draw_tokens,
)
from tokenizers import Tokenizer

from stp.audit import BoundaryAuditor, step_lengths, vocabulary_forms
from stp.seeds import PAPER_SEED
from stp.tokenizers import token_bytes

TARGETS = (128, 256, 512)
NEWLINE_IDS = 200


def made_up_forms(rng: np.random.Generator) -> list[bytes]:
    """Return forms of which 565 hold a double newline, and 200 begin or end with a single one."""
    forms = [b"word"] * VOCABULARY
    chosen = rng.choice(VOCABULARY, BOUNDARY_IDS + NEWLINE_IDS, replace=False).tolist()
    for token_id in chosen[:BOUNDARY_IDS]:
        forms[token_id] = b".\n\n"
    for place, token_id in enumerate(chosen[BOUNDARY_IDS:]):
        forms[token_id] = b"\n " if place % 2 else b",\n"
    return forms


def time_full_decoding(folder: Path, rng: np.random.Generator) -> None:
    """Print how fast whole trajectories are decoded and compared."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    forms = token_bytes(tokenizer)
    auditor = BoundaryAuditor(vocabulary_forms(forms))
    offsets = np.arange(0, 101 * 6_000, 6_000)
    ids = rng.integers(0, len(forms), int(offsets[-1]), dtype=np.int32)
    started = time.perf_counter()
    wrong = auditor.decoding_mismatches(ids, offsets, tokenizer)
    seconds = time.perf_counter() - started
    print(
        f"full decoding: {ids.size:,} tokens in {seconds:.2f} s "
        f"({ids.size / seconds / 1e6:.2f} M tokens/s), {wrong} mismatches"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the paper's whole size")
    parser.add_argument("--fraction", type=float, default=0.05, help="of the trajectories")
    parser.add_argument("--gap", type=float, default=30.0, help="mean tokens between boundaries")
    parser.add_argument("--threads", type=int, default=2, help="of the segmentation")
    parser.add_argument("--decode", type=Path, help="folder with a tokenizer.json")
    args = parser.parse_args()
    fraction = 1.0 if args.full else args.fraction
    trajectories = max(1, round(TRAJECTORIES * fraction))
    rng = np.random.default_rng(PAPER_SEED)
    lengths = draw_lengths(rng, trajectories, round(TOKENS * fraction))
    started = time.perf_counter()
    vocabulary = vocabulary_forms(made_up_forms(rng))
    auditor = BoundaryAuditor(vocabulary)
    counts = auditor.audit(np.zeros(0, np.int32), [0])
    auditor.audit(np.zeros(1, np.int32), [0, 1])
    boundary_ids = vocabulary.boundary_ids.tolist()
    totals = step_lengths(np.zeros(1, np.int32), [0, 1], boundary_ids, TARGETS)
    totals = step_lengths([], [0], boundary_ids, TARGETS)
    print(
        f"vocabulary, and compiling or loading the kernels: {time.perf_counter() - started:.1f} s"
    )

    audit_seconds = length_seconds = 0.0
    for first in range(0, trajectories, CHUNK):
        offsets = np.concatenate([[0], np.cumsum(lengths[first : first + CHUNK])])
        ids = draw_tokens(rng, int(offsets[-1]), vocabulary.boundary_ids, args.gap)
        started = time.perf_counter()
        counts += auditor.audit(ids, offsets)
        audit_seconds += time.perf_counter() - started
        started = time.perf_counter()
        part = step_lengths(ids, offsets, boundary_ids, TARGETS, threads=args.threads)
        totals = tuple(total + more for total, more in zip(totals, part, strict=True))
        length_seconds += time.perf_counter() - started
    print(
        f"{counts.trajectories:,} trajectories, {counts.tokens:,} tokens, "
        f"{counts.events:,} events, {counts.crossing:,} crossings"
    )
    for what, seconds in (("audit", audit_seconds), ("step lengths for 3 b", length_seconds)):
        print(
            f"{what}: {seconds:.2f} s ({counts.tokens / seconds / 1e6:.0f} M tokens/s); the whole "
            f"experiment at this rate: {seconds * TOKENS / counts.tokens:.1f} s"
        )
    for total in totals:
        print(f"b = {total.step_tokens}: {total.steps:,} steps, mean {total.mean:.2f} tokens")
    if args.decode is not None:
        time_full_decoding(args.decode, rng)


if __name__ == "__main__":
    main()
