"""Prompt trees as single requests, for engines whose library caches prefixes by itself.

A sample is a request of its own with its own seed. A request for n samples would be less to send,
but vLLM makes its samples with neighbouring seeds (s, s + 1, ...), which would give probes of
different prefixes the same random streams; and a sample could not be repeated alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stp.engines.base import Completion, PromptTree, TreeCompletions


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """One sample to make.

    Attributes
    ----------
    tree, branch, sample
        Its place in the call.
    prompt_ids
        The whole prompt.
    seed
        Its own.
    shared_tokens
        How many ids of the prompt an earlier request of the tree had already.
    """

    tree: int
    branch: int
    sample: int
    prompt_ids: list[int]
    seed: int
    shared_tokens: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Tree, branch and sample."""
        return self.tree, self.branch, self.sample

    def block_least_tokens(self, block_tokens: int) -> int:
        """Return the least prefill with a cache of whole blocks.

        The block in which a prompt ends is computed again even if it is full and cached.
        """
        shared = min(self.shared_tokens, len(self.prompt_ids) - 1)
        return len(self.prompt_ids) - shared // block_tokens * block_tokens


def sample_requests(trees: Sequence[PromptTree]) -> Iterator[SampleRequest]:
    """Yield the samples of all trees in the order in which each finds the most blocks.

    Tree after tree, and in a tree by rising cut, so that each prefix finds the blocks of the one
    before it. One prompt is held at a time.
    """
    for i, tree in enumerate(trees):
        trunk_done = 0
        for k, branch in enumerate(tree.branches):
            prompt = [*tree.trunk_ids[: branch.cut], *branch.suffix_ids]
            for s, seed in enumerate(branch.seeds):
                yield SampleRequest(
                    tree=i,
                    branch=k,
                    sample=s,
                    prompt_ids=prompt,
                    seed=seed,
                    shared_tokens=len(prompt) if s else trunk_done,
                )
            if branch.seeds:
                trunk_done = branch.cut


def in_order(
    trees: Sequence[PromptTree], done: dict[tuple[int, int, int], Completion]
) -> list[TreeCompletions]:
    """Return the completions by place as :meth:`stp.engines.base.Engine.generate` gives them."""
    return [
        tuple(
            tuple(done[i, k, s] for s in range(len(branch.seeds)))
            for k, branch in enumerate(tree.branches)
        )
        for i, tree in enumerate(trees)
    ]
