"""How many requests to have in flight, so that a cache of keys and values is not thrashed.

vLLM lets requests in as long as their prompts fit, and throws the last ones out again when all have
grown: then their prompts and all that they had written are prefilled anew, again and again if the
cache is small. So requests are handed to it only while what is in flight is expected to fit.
"""

from dataclasses import dataclass
from typing import Final

from stp.engines.base import PromptTree
from stp.engines.requests import SampleRequest

_FULL_SHARE: Final = 0.95
"""Share of the cache that is planned with: lengths are only expected."""


@dataclass(slots=True)
class _Lengths:
    """What is known of the samples of one token limit."""

    limit: int
    ended: int = 0
    ended_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _InFlight:
    request: SampleRequest
    own_tokens: int
    limit: int
    began: int


class Admission:
    """Decides whether one more request may start.

    The expected length of a sample is what maximum likelihood gives for lengths of which some are
    known (samples that ended) and some only bounded from below (samples in flight), with half the
    limit as a first guess. A sample in flight counts with what it has or with that expectation,
    whichever is more; a tree's trunk counts once, as long as some of its requests are left.

    Parameters
    ----------
    capacity_tokens
        Tokens that the cache holds.
    block_tokens
        Tokens of a block; a request fills whole ones.
    most
        Most requests in flight, whatever fits.
    """

    def __init__(self, *, capacity_tokens: int, block_tokens: int, most: int) -> None:
        self._capacity = int(_FULL_SHARE * capacity_tokens)
        self._block = block_tokens
        self._most = most
        self._steps = 0
        self._flight: dict[tuple[int, int, int], _InFlight] = {}
        self._trunks: dict[int, int] = {}
        self._lengths: dict[int, _Lengths] = {}

    def __len__(self) -> int:
        return len(self._flight)

    def step(self) -> None:
        """Count a step, in which every sample in flight gets about one token."""
        self._steps += 1

    def admits(self, request: SampleRequest, tree: PromptTree) -> bool:
        """Return whether a request may start. One always may when nothing is in flight."""
        if not self._flight:
            return True
        if len(self._flight) >= self._most:
            return False
        cut = tree.branches[request.branch].cut
        trunks = sum(self._trunks.values()) + max(0, cut - self._trunks.get(request.tree, 0))
        own = self._own_tokens(request, tree)
        expected = {limit: self._expected(known) for limit, known in self._lengths.items()}
        limit = tree.max_tokens
        mine = own + expected.get(limit, limit / 2)
        others = sum(
            item.own_tokens + max(expected[item.limit], self._steps - item.began)
            for item in self._flight.values()
        )
        return trunks + others + mine <= self._capacity

    def start(self, request: SampleRequest, tree: PromptTree) -> None:
        """Take note of a request that was handed over."""
        cut = tree.branches[request.branch].cut
        self._trunks[request.tree] = max(cut, self._trunks.get(request.tree, 0))
        self._lengths.setdefault(tree.max_tokens, _Lengths(tree.max_tokens))
        self._flight[request.place] = _InFlight(
            request, self._own_tokens(request, tree), tree.max_tokens, self._steps
        )

    def end(self, request: SampleRequest, tokens: int) -> None:
        """Take note of a request that ended with so many tokens."""
        item = self._flight.pop(request.place)
        known = self._lengths[item.limit]
        known.ended += 1
        known.ended_tokens += tokens
        if not any(place[0] == request.tree for place in self._flight):
            # Later requests of the tree, if any, bring it back.
            del self._trunks[request.tree]

    def _own_tokens(self, request: SampleRequest, tree: PromptTree) -> int:
        """Return what a request keeps besides the trunk: its suffix, and blocks not full."""
        return len(tree.branches[request.branch].suffix_ids) + self._block

    def _expected(self, known: _Lengths) -> float:
        ages = sum(
            min(self._steps - item.began, item.limit)
            for item in self._flight.values()
            if item.limit == known.limit
        )
        mean = (known.limit / 2 + known.ended_tokens + ages) / (1 + known.ended)
        return min(mean, known.limit)
