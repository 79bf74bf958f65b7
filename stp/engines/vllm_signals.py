"""Signals from vLLM: the whole next-token distribution after each prefix that is asked about.

vLLM shows distributions where it generates, so each prefix is a request for one token with the
log-probabilities of the whole vocabulary; the prefix cache keeps a trajectory from being read again
for each. Hidden states it does not show.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from data.errors import ConfigError
from stp.engines.base import Usage
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
    """A tree while it is read: what each prefix showed."""

    tree: SignalTree
    left: int
    seen: dict[_Place, _Shown] = field(default_factory=dict)


class VllmReader:
    """Reads signal trees with vLLM.

    Parameters
    ----------
    vllm, engine
        The library, and its own engine.
    usage
        Counted up as the work is done.

    Raises
    ------
    data.errors.ConfigError
        If the engine was not opened to show whole distributions.
    """

    def __init__(self, vllm: Any, engine: Any, usage: Usage) -> None:
        if engine.model_config.max_logprobs != -1:
            raise ConfigError(
                "vLLM shows signals only if it was opened with the engine option max_logprobs = -1"
            )
        self._vllm = vllm
        self._engine = engine
        self._usage = usage
        self._limit = int(engine.model_config.max_model_len)

    def read(
        self, trees: Sequence[SignalTree], on_progress: Callable[[int], None] | None
    ) -> list[TreeSignals]:
        """Return what checked trees show."""
        readings = [_Reading(tree, 0) for tree in trees]
        waiting: deque[tuple[int, _Place, list[int]]] = deque()
        for number, reading in enumerate(readings):
            places = _places(reading.tree, self._limit)
            reading.left = len(places)
            waiting += ((number, place, prefix) for place, prefix in places)
        running: dict[str, tuple[int, _Place, list[int]]] = {}
        most = 2 * int(self._engine.vllm_config.scheduler_config.max_num_seqs)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    number, place, prefix = waiting.popleft()
                    name = f"signals-{number}-{place[0]}-{place[1]}"
                    running[name] = (number, place, prefix)
                    self._submit(name, prefix)
                for output in self._engine.step():
                    if not output.finished:
                        continue
                    number, place, prefix = running.pop(output.request_id)
                    reading = readings[number]
                    reading.seen[place] = self._shown(output, reading.tree, place)
                    self._usage.prefill_tokens += len(prefix) - (output.num_cached_tokens or 0)
                    reading.left -= 1
                    if reading.left == 0 and on_progress is not None:
                        on_progress(1)
        finally:
            if running:
                self._engine.abort_request(list(running))
        return [_signals(reading) for reading in readings]

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
