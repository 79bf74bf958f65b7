"""The slow, obvious engine: every prompt by itself, every token by a full pass without a cache."""

import math

import torch
from transformers import AutoModelForCausalLM

from stp.engines.base import Completion, PromptTree, SamplingParameters

_MASK_32 = 2**32 - 1


def philox_uniform(seed: int, step: int) -> float:
    """Philox-4x32-10 in Python integers, and its first 53 bits as a fraction."""
    counter = [step & _MASK_32, step >> 32, 0, 0]
    key = [seed & _MASK_32, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (second >> 32) ^ counter[1] ^ key[0],
            second & _MASK_32,
            (first >> 32) ^ counter[3] ^ key[1],
            first & _MASK_32,
        ]
        key = [(key[0] + 0x9E3779B9) & _MASK_32, (key[1] + 0xBB67AE85) & _MASK_32]
    return ((counter[0] << 21) ^ (counter[1] >> 11)) / 2**53


def naive_draw(logits: list[float], uniform: float, sampling: SamplingParameters) -> int:
    """Draw one token, step by step as the definitions say."""
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    if sampling.temperature == 0:
        return order[0]
    peak = logits[order[0]]
    weights = [math.exp((logit - peak) / sampling.temperature) for logit in logits]
    if sampling.top_k:
        order = order[: sampling.top_k]
    total = sum(weights[token] for token in order)
    kept, mass = [], 0.0
    for token in order:
        if kept and sampling.top_p < 1 and mass >= sampling.top_p * total:
            break
        kept.append(token)
        mass += weights[token]
    below = 0.0
    for token in sorted(kept):
        below += weights[token]
        if uniform * mass < below:
            return token
    return max(kept)


class NaiveEngine:
    """A model, run without any cache."""

    def __init__(self, folder, dtype="float32") -> None:
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, attn_implementation="eager"
        ).eval()

    @torch.inference_mode()
    def logits(self, ids) -> torch.Tensor:
        """Return the logits after a prompt, float64[V]."""
        return self.model(torch.tensor([list(ids)]), use_cache=False).logits[0, -1].double()

    def generate(self, tree: PromptTree, context: int, text=None) -> tuple:
        """Return a tree's completions; ``text`` decodes ids for stop texts."""
        return tuple(
            tuple(
                self._sample(
                    tree, tree.trunk_ids[: branch.cut] + branch.suffix_ids, seed, context, text
                )
                for seed in branch.seeds
            )
            for branch in tree.branches
        )

    def _sample(self, tree, prompt, seed, context, text) -> Completion:
        generated: list[int] = []
        for step in range(min(tree.max_tokens, context - len(prompt))):
            logits = self.logits((*prompt, *generated)).tolist()
            for token in set(generated):
                logits[token] -= tree.sampling.presence_penalty
            token = naive_draw(logits, philox_uniform(seed, step), tree.sampling)
            generated.append(token)
            if token in tree.stop_ids or any(stop in text(generated) for stop in tree.stop_texts):
                return Completion(token_ids=tuple(generated), finish="stop")
        return Completion(token_ids=tuple(generated), finish="length")
