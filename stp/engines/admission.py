"""How many requests to have in flight, so that a cache of keys and values is not thrashed.

vLLM lets requests in as long as their prompts fit, and throws the last ones out again when all have
grown: then their prompts and all that they had written are prefilled anew, again and again if the
cache is small. So requests are handed to it only while what is in flight is expected to fit.
"""

from dataclasses import dataclass, field
from typing import Final

from stp.engines.base import PromptTree
from stp.engines.requests import SampleRequest

_BUCKETS: Final = 64


@dataclass(slots=True)
class Lengths:
    """Lengths of the samples of one token limit that have ended, in buckets.

    ``counts`` and ``sums`` are over a bucket and all longer ones.
    """

    limit: int
    counts: list[int] = field(default_factory=lambda: [0] * _BUCKETS)
    sums: list[int] = field(default_factory=lambda: [0] * _BUCKETS)

    def add(self, tokens: int) -> None:
        """Take note of a sample that ended."""
        for bucket in range(self._bucket(tokens) + 1):
            self.counts[bucket] += 1
            self.sums[bucket] += tokens

    def expected(self, age: int) -> float:
        """Return the length that a sample of ``age`` tokens is expected to reach.

        The mean of the samples that became longer, and one more that reached the limit: while
        nothing is known, that is what must be expected.
        """
        bucket = self._bucket(age)
        mean = (self.sums[bucket] + self.limit) / (self.counts[bucket] + 1)
        return max(float(age), mean)

    def _bucket(self, tokens: int) -> int:
        return min(_BUCKETS - 1, tokens * _BUCKETS // self.limit)


@dataclass(frozen=True, slots=True)
class _InFlight:
    own_tokens: int
    limit: int
    began: int


class Admission:
    """Decides whether one more request may start.

    A sample in flight counts with the length that it is expected to reach, by those that have
    ended; a new one with the mean over all that were begun. A tree's trunk counts once, as long as
    one of its requests is in flight.

    Parameters
    ----------
    capacity_tokens
        Tokens of the cache that are planned with; lengths are only expected, so some should stay
        free.
    block_tokens
        Tokens of a block; a request fills whole ones.
    most
        Most requests in flight, whatever fits.
    """

    def __init__(self, *, capacity_tokens: int, block_tokens: int, most: int) -> None:
        self._capacity = capacity_tokens
        self._block = block_tokens
        self._most = most
        self._steps = 0
        self._flight: dict[tuple[int, int, int], _InFlight] = {}
        self._trunks: dict[int, int] = {}
        self._lengths: dict[int, Lengths] = {}

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
        own = self._own_tokens(request, tree) + sum(x.own_tokens for x in self._flight.values())
        return trunks + own + self._expected(tree.max_tokens) <= self._capacity

    def start(self, request: SampleRequest, tree: PromptTree) -> None:
        """Take note of a request that was handed over."""
        cut = tree.branches[request.branch].cut
        self._trunks[request.tree] = max(cut, self._trunks.get(request.tree, 0))
        self._lengths.setdefault(tree.max_tokens, Lengths(tree.max_tokens))
        own = self._own_tokens(request, tree)
        self._flight[request.place] = _InFlight(own, tree.max_tokens, self._steps)

    def end(self, request: SampleRequest, tokens: int) -> None:
        """Take note of a request that ended with so many tokens."""
        self._lengths[self._flight.pop(request.place).limit].add(tokens)
        if not any(place[0] == request.tree for place in self._flight):
            # Later requests of the tree, if any, bring it back.
            del self._trunks[request.tree]

    def _own_tokens(self, request: SampleRequest, tree: PromptTree) -> int:
        """Return what a request keeps besides the trunk: its suffix, and blocks not full."""
        return len(tree.branches[request.branch].suffix_ids) + self._block

    def _expected(self, limit: int) -> float:
        """Return the tokens that samples in flight and one more of a limit are to have.

        Lengths are only expected: there is room for one of those in flight to reach its limit.
        """
        total = mine = spare = 0.0
        begun = 0
        for item in self._flight.values():
            length = self._lengths[item.limit].expected(self._steps - item.began)
            total += length
            spare = max(spare, item.limit - length)
            if item.limit == limit:
                mine += length
                begun += 1
        known = self._lengths.get(limit)
        if known is not None:
            mine += known.sums[0]
            begun += known.counts[0]
        return total + spare + (mine / begun if begun else limit)
