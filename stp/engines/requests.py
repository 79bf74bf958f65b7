"""Prompt trees as single requests, for engines whose library caches prefixes by itself.

A sample is a request of its own with its own seed. A request for n samples would be less to send,
but vLLM makes its samples with neighbouring seeds (s, s + 1, ...), which would give probes of
different prefixes the same random streams; and a sample could not be repeated alone.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from stp.engines.base import PromptTree


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """One sample to make.

    Attributes
    ----------
    tree, branch, sample
        Its tree's ticket, and its place in the tree.
    prompt_ids
        The whole prompt.
    seed
        Its own.
    shared_tokens
        How many ids of the prompt an earlier request of the tree had already.
    box_after
        As its tree's.
    """

    tree: int
    branch: int
    sample: int
    prompt_ids: list[int]
    seed: int
    shared_tokens: int
    box_after: str | None = None

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


def sample_requests(tree: PromptTree, *, ticket: int = 0) -> Iterator[SampleRequest]:
    """Yield the samples of a tree in the order in which each finds the most blocks.

    By rising cut, so that each prefix finds the blocks of the one before it. One prompt is held at
    a time.
    """
    trunk_done = 0
    for k, branch in enumerate(tree.branches):
        prompt = [*tree.trunk_ids[: branch.cut], *branch.suffix_ids]
        for s, seed in enumerate(branch.seeds):
            yield SampleRequest(
                tree=ticket,
                branch=k,
                sample=s,
                prompt_ids=prompt,
                seed=branch.stream_seed(seed),
                shared_tokens=len(prompt) if s else trunk_done,
                box_after=tree.box_after,
            )
        if branch.seeds:
            trunk_done = branch.cut


class RequestQueue:
    """The samples of trees that wait, tree after tree; ``len`` says how many."""

    def __init__(self) -> None:
        self._left: dict[int, int] = {}
        self._total = 0
        self._trees: deque[tuple[int, PromptTree, Iterator[SampleRequest]]] = deque()
        self._first: tuple[SampleRequest, PromptTree] | None = None

    def __len__(self) -> int:
        """Return the number of samples that wait."""
        return self._total

    def add(self, ticket: int, tree: PromptTree) -> None:
        """Put a tree last."""
        if samples := sum(len(branch.seeds) for branch in tree.branches):
            self._left[ticket] = samples
            self._total += samples
            self._trees.append((ticket, tree, sample_requests(tree, ticket=ticket)))

    @property
    def first(self) -> tuple[SampleRequest, PromptTree] | None:
        """The sample whose turn it is, with its tree; None if none waits."""
        while self._first is None and self._trees:
            _, tree, requests = self._trees[0]
            request = next(requests, None)
            if request is None:
                self._trees.popleft()
            else:
                self._first = request, tree
        return self._first

    def pop(self) -> tuple[SampleRequest, PromptTree]:
        """Take the first sample from the queue."""
        first = self.first
        if first is None:
            raise IndexError("no sample waits")
        self._first = None
        ticket = first[0].tree
        self._total -= 1
        self._left[ticket] -= 1
        if not self._left[ticket]:
            del self._left[ticket]
        return first

    def drop(self, tickets: frozenset[int]) -> None:
        """Forget the samples of trees."""
        for ticket in tickets & self._left.keys():
            self._total -= self._left.pop(ticket)
        self._trees = deque(entry for entry in self._trees if entry[0] not in tickets)
        if self._first is not None and self._first[0].tree in tickets:
            self._first = None
