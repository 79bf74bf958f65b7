"""Time forked probes against the obvious script.

One trajectory of random ids, probed at evenly spaced positions, with the same number of samples and
of tokens each.
Ours: the transformers engine. The obvious script: for every position, prefill the whole prefix
again and sample with ``model.generate``. Two forms of it are timed:

``literal``
    ``generate(prefix, num_return_sequences=samples)``; transformers prefills every copy.
``careful``
    the prefix is prefilled once, its cache is copied to the samples, then ``generate`` continues.

No stop ids: every sample has the same length in all of them, so they do the same work. Example::

    python scripts/benchmarks/kv_fork.py data/demo_model --tokens 200 --answer-tokens 12
    python scripts/benchmarks/kv_fork.py models/smollm2-135m-instruct --baselines careful
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, DynamicCache

from stp.engines import Branch, PromptTree, SamplingParameters
from stp.engines.transformers import TransformersEngine

TRAJECTORY_SEED = 1
PROMPT_TOKENS = 16
SUFFIX_TOKENS = 4


def trajectory_of(vocabulary: int, tokens: int) -> list[int]:
    """Return ids drawn evenly: lengths are fixed, so the time depends little on which they are."""
    return np.random.default_rng(TRAJECTORY_SEED).integers(vocabulary, size=tokens).tolist()


def probe_forked(engine: TransformersEngine, prefixes: list[list[int]], args: Any) -> int:
    """Probe all positions with the engine; return the tokens generated."""
    branches = tuple(
        Branch(
            cut=len(prefix) - SUFFIX_TOKENS,
            suffix_ids=tuple(prefix[-SUFFIX_TOKENS:]),
            seeds=tuple(1000 * k + sample for sample in range(args.samples)),
        )
        for k, prefix in enumerate(prefixes)
    )
    longest = prefixes[-1][:-SUFFIX_TOKENS]
    tree = PromptTree(
        trunk_ids=tuple(longest),
        branches=branches,
        max_tokens=args.answer_tokens,
        sampling=SamplingParameters(temperature=args.temperature, top_p=args.top_p),
    )
    (completions,) = engine.generate([tree])
    return sum(len(sample.token_ids) for branch in completions for sample in branch)


def generate_literally(model: Any, ids: torch.Tensor, options: dict[str, Any], samples: int) -> Any:
    return model.generate(
        ids, attention_mask=torch.ones_like(ids), num_return_sequences=samples, **options
    )


def generate_carefully(model: Any, ids: torch.Tensor, options: dict[str, Any], samples: int) -> Any:
    cache = DynamicCache(config=model.config)
    model(input_ids=ids[:, :-1], past_key_values=cache, use_cache=True, logits_to_keep=1)
    cache.batch_repeat_interleave(samples)
    copies = ids.repeat(samples, 1)
    return model.generate(
        copies, attention_mask=torch.ones_like(copies), past_key_values=cache, **options
    )


BASELINES: dict[str, Callable[..., Any]] = {
    "literal": generate_literally,
    "careful": generate_carefully,
}


@torch.inference_mode()
def probe_obviously(model: Any, prefixes: list[list[int]], name: str, args: Any) -> int:
    """Probe all positions one after the other; return the tokens generated."""
    options = {
        "do_sample": True,
        "temperature": args.temperature,
        "top_p": args.top_p,
        "top_k": 0,
        "max_new_tokens": args.answer_tokens,
        "eos_token_id": None,
        "pad_token_id": 0,
    }
    generated = 0
    for prefix in prefixes:
        ids = torch.tensor([prefix])
        output = BASELINES[name](model, ids, options, args.samples)
        generated += output.shape[0] * (output.shape[1] - len(prefix))
    return generated


@dataclass(frozen=True, slots=True)
class Timing:
    """What some work took; processor seconds tell more on a machine that others use too."""

    wall_seconds: float
    cpu_seconds: float
    tokens: int

    def __str__(self) -> str:
        return (
            f"{self.wall_seconds:7.1f} s ({self.cpu_seconds:7.1f} s of processor)  "
            f"{self.tokens / self.wall_seconds:6.0f} tokens/s"
        )


def timed(work: Callable[[], int]) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    tokens = work()
    return Timing(time.perf_counter() - wall, time.process_time() - cpu, tokens)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=1500, help="of the trajectory")
    parser.add_argument("--positions", type=int, default=20)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--answer-tokens", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--baselines", nargs="+", choices=BASELINES, default=list(BASELINES))
    return parser.parse_args()


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    engine = TransformersEngine(args.model, device="cpu")
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    ids = trajectory_of(model.config.vocab_size, PROMPT_TOKENS + args.tokens)
    cuts = [PROMPT_TOKENS + args.tokens * k // args.positions for k in range(args.positions + 1)]
    prefixes = [ids[:cut] + ids[:SUFFIX_TOKENS] for cut in cuts]
    print(
        f"{args.model}: {args.tokens} thinking tokens, {len(cuts)} positions, {args.samples} "
        f"samples of {args.answer_tokens} tokens, {args.threads} threads"
    )

    before = (engine.usage.prefill_tokens, engine.usage.prefill_least_tokens)
    ours = timed(lambda: probe_forked(engine, prefixes, args))
    prefilled = engine.usage.prefill_tokens - before[0]
    amplification = prefilled / (engine.usage.prefill_least_tokens - before[1])
    print(f"forked   {ours}")
    print(f"         {prefilled} tokens prefilled, amplification {amplification:.3f}")
    for name in args.baselines:
        theirs = timed(lambda name=name: probe_obviously(model, prefixes, name, args))
        if theirs.tokens != ours.tokens:
            raise RuntimeError(f"{name} generated {theirs.tokens} tokens, not {ours.tokens}")
        print(f"{name:8} {theirs}")
        print(
            f"         forked is {theirs.wall_seconds / ours.wall_seconds:.1f} times faster "
            f"({theirs.cpu_seconds / ours.cpu_seconds:.1f} times less processor time)"
        )


if __name__ == "__main__":
    main()
