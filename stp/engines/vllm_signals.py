"""Signals from vLLM: the whole next-token distribution after each prefix that is asked about.

vLLM shows distributions where it generates, so each prefix is a request for one token with the
log-probabilities of the whole vocabulary; the prefix cache keeps a trajectory from being read again
for each. Hidden states it does not show.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from stp.engines.signals import SignalTree, TreeSignals

_Place = tuple[int, int]
"""Which continuation (-1: the trunk's cuts), and how many of its ids are read (or the cut)."""


class _Shown(NamedTuple):
    """What the distribution after one prefix shows; ``following`` is the next suffix id's."""

    end_logprob: float = math.nan
    other_logprob: float = math.nan
    entropy: float = math.nan
    other_id: int = 0
    following: float = math.nan


@dataclass(slots=True)
class _Reading:
    """A tree while it is read: how many prefixes are left, and what each showed."""

    tree: SignalTree
    left: int
    seen: dict[_Place, _Shown] = field(default_factory=dict)


class _Prefix(NamedTuple):
    """A prefix to read."""

    ticket: int
    place: _Place
    ids: list[int]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a finished request of the reader gave: ``signals`` if it was its tree's last."""

    ticket: int
    prefill_tokens: int
    signals: TreeSignals | None


class VllmReader:
    """Reads signal trees with vLLM, beside whatever else runs there.

    Parameters
    ----------
    vllm, engine
        The library, and its own engine.
    """

    def __init__(self, vllm: Any, engine: Any) -> None:
        self._vllm = vllm
        self._engine = engine
        self._limit = int(engine.model_config.max_model_len)
        self._readings: dict[int, _Reading] = {}
        self._queue: deque[_Prefix] = deque()
        self._running: dict[str, _Prefix] = {}

    @property
    def waiting(self) -> int:
        """Prefixes that wait to be read."""
        return len(self._queue)

    def add(self, ticket: int, tree: SignalTree) -> TreeSignals | None:
        """Put a checked tree last in the queue; one with nothing to read is returned at once."""
        places = _places(tree, self._limit)
        if not places:
            return _signals(_Reading(tree, 0))
        self._readings[ticket] = _Reading(tree, len(places))
        self._queue += (_Prefix(ticket, place, ids) for place, ids in places)
        return None

    def supply(self, most: int) -> None:
        """Hand prefixes over to vLLM, up to a number under way."""
        while self._queue and len(self._running) < most:
            prefix = self._queue.popleft()
            name = f"signals-{prefix.ticket}-{prefix.place[0]}-{prefix.place[1]}"
            self._running[name] = prefix
            self._submit(name, prefix.ids)

    def take(self, output: Any) -> Seen | None:
        """Take note of a finished request; None if its tree was dropped."""
        prefix = self._running.pop(output.request_id, None)
        if prefix is None:
            return None
        reading = self._readings[prefix.ticket]
        reading.seen[prefix.place] = self._shown(output, reading.tree, prefix.place)
        reading.left -= 1
        prefill = len(prefix.ids) - (output.num_cached_tokens or 0)
        if reading.left:
            return Seen(prefix.ticket, prefill, None)
        del self._readings[prefix.ticket]
        return Seen(prefix.ticket, prefill, _signals(reading))

    def drop(self, tickets: frozenset[int]) -> list[str]:
        """Forget trees; return the names of their requests, which vLLM must abort."""
        self._queue = deque(prefix for prefix in self._queue if prefix.ticket not in tickets)
        gone = [name for name, prefix in self._running.items() if prefix.ticket in tickets]
        for name in gone:
            del self._running[name]
        for ticket in tickets & self._readings.keys():
            del self._readings[ticket]
        return gone

    def _submit(self, name: str, prefix: list[int]) -> None:
        parameters = self._vllm.SamplingParams(
            temperature=0.0,
            max_tokens=1,
            logprobs=-1,
            seed=0,
            detokenize=False,
            ignore_eos=True,
            output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
        )
        self._engine.add_request(name, {"prompt_token_ids": prefix}, parameters)

    def _shown(self, output: Any, tree: SignalTree, place: _Place) -> _Shown:
        """Return what a finished request shows after the prefix at a place."""
        shown = output.outputs[0].logprobs[0]
        ids = np.fromiter(shown, np.int64, len(shown))
        values = np.fromiter((entry.logprob for entry in shown.values()), np.float64, len(shown))
        log = np.full(int(ids.max()) + 1, -np.inf)
        log[ids] = values
        end = float(log[tree.end_id])
        others = log.copy()
        others[tree.end_id] = -np.inf
        best = int(others.argmax())
        entropy = float(-(np.exp(log) * np.maximum(log, -1e4)).sum())
        following = math.nan
        index, read = place
        if index >= 0 and read < len(tree.continuations[index].suffix_ids):
            following = float(log[tree.continuations[index].suffix_ids[read]])
        return _Shown(end, float(others[best]), entropy, best, following)


def _places(tree: SignalTree, limit: int) -> list[tuple[_Place, list[int]]]:
    """Return every prefix that is asked about, in the order in which each finds the most blocks.

    One that fills the context has no next token, and is left out.
    """
    trunk = list(tree.trunk_ids)
    found = [((-1, cut), trunk[:cut]) for cut in tree.cuts]
    for index, item in enumerate(tree.continuations):
        found += [
            ((index, read), trunk[: item.cut] + list(item.suffix_ids[:read]))
            for read in range(len(item.suffix_ids) + 1)
        ]
    found.sort(key=lambda entry: len(entry[1]))
    return [entry for entry in found if len(entry[1]) < limit]


def _signals(reading: _Reading) -> TreeSignals:
    tree, nothing = reading.tree, _Shown()
    cuts = [reading.seen.get((-1, cut), nothing) for cut in tree.cuts]
    logprobs, entropies = [], []
    for index, item in enumerate(tree.continuations):
        shown = [reading.seen.get((index, j), nothing) for j in range(len(item.suffix_ids) + 1)]
        logprobs.append(np.array([entry.following for entry in shown[:-1]], np.float32))
        entropies.append(np.array([entry.entropy for entry in shown[1:]], np.float32))
    return TreeSignals(
        end_logprob=np.array([shown.end_logprob for shown in cuts], np.float32),
        other_logprob=np.array([shown.other_logprob for shown in cuts], np.float32),
        entropy=np.array([shown.entropy for shown in cuts], np.float32),
        other_id=np.array([shown.other_id for shown in cuts], np.int32),
        suffix_logprobs=tuple(logprobs),
        suffix_entropies=tuple(entropies),
    )
