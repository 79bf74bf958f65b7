"""How many requests to have in flight, so that a cache of keys and values is not thrashed.

vLLM lets requests in as long as their prompts fit, and throws the last ones out again when all have
grown: then their prompts and all that they had written are prefilled again, many times if the
cache is small. So requests are handed to it only while what is in flight is expected to fit.

What a request costs to decide on does not grow with the requests in flight: those of one token
limit are kept as counts by age, and their sums are brought up to date where they changed.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from stp.engines.base import PromptTree
from stp.engines.requests import SampleRequest

_BUCKETS: Final = 64
_MOST_PASSES: Final = 16


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
        for bucket in range(bucket_of(tokens, self.limit) + 1):
            self.counts[bucket] += 1
            self.sums[bucket] += tokens

    def expected(self, age: int) -> float:
        """Return the length that a sample of ``age`` tokens is expected to reach.

        The mean of the samples that became longer, and one more that reached the limit: while
        nothing is known, that is what must be expected.
        """
        bucket = bucket_of(age, self.limit)
        mean = (self.sums[bucket] + self.limit) / (self.counts[bucket] + 1)
        return max(float(age), mean)


@dataclass(slots=True)
class Gathering:
    """When those that wait beside a running batch are worth a pass of their own.

    Such a pass costs about as much as one of the batch, for few or for many, and who waits loses a
    token with each pass of the batch. They are let in once as many tokens are lost as half the
    batch makes in a pass. So, of two that wait, the second halves the price of the first. Nobody
    waits for more than 16 passes, however large the batch.
    """

    lost: int = 0
    passes: int = 0

    def enough(self, waiting: int, running: int) -> bool:
        """Return whether to let them in now; called once before each pass of the batch."""
        self.lost += waiting
        self.passes += 1
        if 2 * self.lost < running and self.passes < _MOST_PASSES:
            return False
        self.lost = self.passes = 0
        return True


def bucket_of(tokens: int, limit: int) -> int:
    """Return the bucket of a number of tokens, 0 to 63, under a limit."""
    return min(_BUCKETS - 1, tokens * _BUCKETS // limit)


class _Limit:
    """The samples of one token limit: how many run, and how long those were that have ended.

    A bucket is a 64th of the limit, and time is counted in buckets too: a sample's age is the
    number of bucket ends since it began. ``by_age[a]`` is how many have the age ``a``.
    """

    def __init__(self, limit: int, now: int) -> None:
        self._limit = limit
        # Over a bucket and all longer ones, as in :class:`Lengths`.
        self._counts = np.zeros(_BUCKETS)
        self._sums = np.zeros(_BUCKETS)
        self._ended = self._ended_tokens = 0
        self._begins = np.ceil(np.arange(_BUCKETS) * limit / _BUCKETS)
        self._by_age = np.zeros(_BUCKETS)
        self._now = self._quantum(now)
        self._stale = True
        self.running = 0
        self.expected = self.spare = 0.0

    def _quantum(self, step: int) -> int:
        return step * _BUCKETS // self._limit

    def start(self, now: int) -> int:
        """Take note of a sample that begins; return when, as :meth:`end` wants it."""
        self.look(now)
        self._by_age[0] += 1
        self.running += 1
        self._stale = True
        return self._now

    def end(self, began: int, tokens: int | None, now: int) -> None:
        """Take note of a sample that ended, or (None) was dropped."""
        self.look(now)
        self._by_age[min(_BUCKETS - 1, self._now - began)] -= 1
        self.running -= 1
        if tokens is not None:
            bucket = bucket_of(tokens, self._limit) + 1
            self._counts[:bucket] += 1
            self._sums[:bucket] += tokens
            self._ended += 1
            self._ended_tokens += tokens
        self._stale = True

    def look(self, now: int) -> None:
        """Let samples grow older."""
        passed = self._quantum(now) - self._now
        if not passed:
            return
        self._now += passed
        self._stale = True
        for _ in range(min(passed, _BUCKETS)):
            last = self._by_age[-2:].sum()
            self._by_age[1:] = self._by_age[:-1].copy()
            self._by_age[0], self._by_age[-1] = 0, last

    def bring_up_to_date(self) -> None:
        """Set what those that run are expected to become, and the most that one may have more."""
        if not self._stale:
            return
        self._stale = False
        means = (self._sums + self._limit) / (self._counts + 1)
        lengths = np.maximum(self._begins, means)
        self.expected = float(lengths @ self._by_age)
        # The older a sample is, the longer it is expected to be.
        youngest = int((self._by_age > 0).argmax()) if self.running else -1
        self.spare = float(self._limit - lengths[youngest]) if self.running else 0.0

    @property
    def mean(self) -> float:
        """The mean length that is expected of all that were begun."""
        self.bring_up_to_date()
        begun = self.running + self._ended
        return (self.expected + self._ended_tokens) / begun if begun else float(self._limit)


@dataclass(slots=True)
class _Trunk:
    """What of a tree's trunk is in the cache, and how many of its requests are in flight."""

    tokens: int = 0
    requests: int = 0


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
        self._flight: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        self._trunks: dict[int, _Trunk] = {}
        self._trunk_tokens = 0
        self._own_tokens = 0
        self._limits: dict[int, _Limit] = {}
        self._running: dict[int, _Limit] = {}
        """Those of which samples run."""

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
        trunk = self._trunks.get(request.tree)
        trunks = self._trunk_tokens + max(0, cut - (trunk.tokens if trunk is not None else 0))
        own = self._own_tokens + self._own(request, tree)
        return trunks + own + self._expected(tree.max_tokens) <= self._capacity

    def start(self, request: SampleRequest, tree: PromptTree) -> None:
        """Take note of a request that was handed over."""
        trunk = self._trunks.setdefault(request.tree, _Trunk())
        more = max(0, tree.branches[request.branch].cut - trunk.tokens)
        trunk.tokens += more
        trunk.requests += 1
        self._trunk_tokens += more
        known = self._limits.get(tree.max_tokens)
        if known is None:
            known = self._limits[tree.max_tokens] = _Limit(tree.max_tokens, self._steps)
        self._running[tree.max_tokens] = known
        own = self._own(request, tree)
        self._own_tokens += own
        self._flight[request.place] = (own, tree.max_tokens, known.start(self._steps))

    def end(self, request: SampleRequest, tokens: int | None) -> None:
        """Take note of a request that ended with a number of tokens, or (None) was dropped."""
        own, limit, began = self._flight.pop(request.place)
        self._own_tokens -= own
        known = self._limits[limit]
        known.end(began, tokens, self._steps)
        if not known.running:
            del self._running[limit]
        trunk = self._trunks[request.tree]
        trunk.requests -= 1
        if not trunk.requests:
            # Later requests of the tree, if any, bring it back.
            self._trunk_tokens -= trunk.tokens
            del self._trunks[request.tree]

    def _own(self, request: SampleRequest, tree: PromptTree) -> int:
        """Return what a request keeps besides the trunk: its suffix, and blocks not full."""
        return len(tree.branches[request.branch].suffix_ids) + self._block

    def _expected(self, limit: int) -> float:
        """Return the tokens that samples in flight and one more of a limit are to have.

        Lengths are only expected: there is room for one of those in flight to reach its limit.
        """
        total = spare = 0.0
        for known in self._running.values():
            known.look(self._steps)
            known.bring_up_to_date()
            total += known.expected
            spare = max(spare, known.spare)
        mine = self._limits.get(limit)
        return total + spare + (limit if mine is None else mine.mean)
