"""Time signals from one pass over a trajectory against one pass per position.

Ours: the transformers engine's signals of a trajectory of random ids: at every position the
log-probabilities, the entropy and the hidden states of one layer. The opponent is the obvious
script: for every position, the whole prefix goes through transformers' own model once more. Their
numbers are compared too. Example::

    python scripts/benchmarks/signals.py data/demo_model --tokens 640 --step 16
    python scripts/benchmarks/signals.py models/smollm2-135m-instruct --tokens 1024 --step 64
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from stp.engines.signals import SignalTree, TreeSignals
from stp.engines.transformers import TransformersEngine

SEED = 1
PROMPT_TOKENS = 16
END_ID = 5


@torch.inference_mode()
def per_position(model: Any, ids: list[int], cuts: list[int], layer: int) -> TreeSignals:
    """Return what the obvious script finds: a pass over every prefix."""
    found: dict[str, list[Any]] = {"end": [], "other": [], "id": [], "entropy": [], "hidden": []}
    for cut in cuts:
        output = model(
            input_ids=torch.tensor([ids[:cut]]),
            use_cache=False,
            output_hidden_states=True,
            logits_to_keep=1,
        )
        log = torch.log_softmax(output.logits[0, -1].float(), -1)
        others = log.clone()
        others[END_ID] = -torch.inf
        found["end"].append(float(log[END_ID]))
        found["other"].append(float(others.max()))
        found["id"].append(int(others.argmax()))
        found["entropy"].append(float(-(log.exp() * log).sum()))
        found["hidden"].append(output.hidden_states[layer][0, -1].numpy())
    return TreeSignals(
        end_logprob=np.array(found["end"], np.float32),
        entropy=np.array(found["entropy"], np.float32),
        other_logprob=np.array(found["other"], np.float32),
        other_id=np.array(found["id"], np.int32),
        hidden={layer: np.array(found["hidden"], np.float16)},
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=640, help="of the trajectory")
    parser.add_argument("--step", type=int, default=16, help="tokens between positions")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    engine = TransformersEngine(args.model, device="cpu", threads=args.threads)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    size = PROMPT_TOKENS + args.tokens
    ids = np.random.default_rng(SEED).integers(model.config.vocab_size, size=size).tolist()
    cuts = list(range(PROMPT_TOKENS, size + 1, args.step))
    layer = engine.layers // 2
    tree = SignalTree(trunk_ids=tuple(ids), cuts=tuple(cuts), end_id=END_ID, layers=(layer,))
    print(f"{args.model}: {args.tokens} tokens, {len(cuts)} positions, {args.threads} threads")

    def best(work: Any) -> tuple[float, TreeSignals]:
        seconds, found = [], None
        for _ in range(args.repeat):
            begin = time.process_time()
            found = work()
            seconds.append(time.process_time() - begin)
        assert found is not None
        return min(seconds), found

    ours, one = best(lambda: engine.signals([tree])[0])
    theirs, many = best(lambda: per_position(model, ids, cuts, layer))
    difference = max(
        float(np.abs(getattr(one, name) - getattr(many, name)).max())
        for name in ("end_logprob", "other_logprob", "entropy")
    )
    print(f"one pass            {ours:8.3f} s of processor")
    print(f"a pass per position {theirs:8.3f} s of processor")
    print(f"one pass takes {theirs / ours:.1f} times less; greatest difference {difference:.1e}")
    tokens = sum(cuts) / size
    print(f"(tokens read: {tokens:.1f} times less)")


if __name__ == "__main__":
    main()
