"""Reading prompt trees without sampling: one pass over a trunk, forked rows for continuations.

Shapes: R rows, S new tokens per row, P places, V vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stp.engines.decoding import BatchLimits, ForkableModel
from stp.engines.fork_attention import RowsStep, Tails, Trunk, TrunkStep, plan_blocks
from stp.engines.signals import SignalTree, TreeSignals

# A masked token has the logarithm minus infinity; times its probability 0 that would be NaN.
_FLOOR: Final = -1e4
_LARGEST: Final = float(torch.finfo(torch.float16).max)
_END_TOKENS: Final = 64
"""Most tokens at the end of a trunk that are read as a fork."""


class ReadableModel(ForkableModel, Protocol):
    """What reading needs of a model, beside what decoding needs."""

    vocabulary: int

    def forward_seen(
        self,
        step: TrunkStep | RowsStep,
        input_ids: Tensor,
        position_ids: Tensor,
        logits_at: Tensor,
        layers: Sequence[int],
    ) -> tuple[Tensor, list[Tensor]]:
        """Run one pass; return logits as ``forward``, and of each layer the states [R, S, W]."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What the distribution after a cut shows."""

    end_logprob: float
    other_logprob: float
    other_id: int
    entropy: float
    first_logprobs: dict[int, float]


@dataclass(slots=True, eq=False)
class _Reading:
    """A tree while it is read.

    ``first_ids`` has the cuts that something is asked after, with the first ids of the
    continuations there; ``after`` what was seen at them. Continuations fork from ``trunk``.
    ``number`` is the tree's place among those that are read.
    """

    number: int
    tree: SignalTree
    first_ids: dict[int, set[int]]
    trunk: Trunk
    after: dict[int, _Place] = field(default_factory=dict)
    states: dict[int, list[Tensor]] = field(default_factory=dict)
    logprobs: list[npt.NDArray[np.float32]] = field(default_factory=list)
    entropies: list[npt.NDArray[np.float32]] = field(default_factory=list)

    def see(self, cuts: Sequence[int], logits: Tensor, states: Sequence[Tensor]) -> None:
        """Take what was seen after cuts: logits [P, V], and of each layer the states [P, W]."""
        places = _places(_log_softmax(logits), self.tree.end_id, [self.first_ids[c] for c in cuts])
        self.after.update(zip(cuts, places, strict=True))
        own = set(self.tree.cuts)
        asked = [at for at, cut in enumerate(cuts) if cut in own]
        for layer, state in zip(self.tree.layers, states, strict=True):
            self.states.setdefault(layer, []).append(_narrowed(state[asked]))

    def signals(self) -> TreeSignals:
        """Return what the tree shows."""
        chosen = [self.after[cut] for cut in self.tree.cuts]
        return TreeSignals(
            end_logprob=np.array([place.end_logprob for place in chosen], np.float32),
            entropy=np.array([place.entropy for place in chosen], np.float32),
            other_logprob=np.array([place.other_logprob for place in chosen], np.float32),
            other_id=np.array([place.other_id for place in chosen], np.int32),
            hidden={layer: torch.cat(parts).cpu().numpy() for layer, parts in self.states.items()},
            suffix_logprobs=tuple(self.logprobs),
            suffix_entropies=tuple(self.entropies),
        )


@dataclass(frozen=True, slots=True)
class _Fork:
    """Ids to read after the first ``cut`` ids of a reading's trunk.

    The first ``lead`` of them are the trunk's next ids, which it does not hold.
    """

    reading: _Reading
    cut: int
    ids: tuple[int, ...]
    lead: int = 0


@dataclass(frozen=True, slots=True)
class _Pass:
    """Some columns of padded forks [R, S]: the first of them, their following ids, what they show.

    Forks are padded on the left: all end in the last column.
    """

    start: int
    following: Tensor
    logits: Tensor
    states: list[Tensor]


class TreeReader:
    """Reads signal trees.

    Parameters
    ----------
    model
        The model.
    limits
        How much is done at once.
    on_tokens
        Called with a tree's place among those that are read, and the number of its tokens that
        just went through the model.
    held_for
        Returns how many of a tree's first ids, of a number of them, its session holds.
    trunk_for
        Returns a trunk with room for a number of tokens for a tree, as full as possible if the
        logits after the given cuts are wanted.
    """

    def __init__(
        self,
        model: ReadableModel,
        *,
        limits: BatchLimits,
        on_tokens: Callable[[int, int], None],
        held_for: Callable[[SignalTree, int], int],
        trunk_for: Callable[[SignalTree, int, Sequence[int]], Trunk],
    ) -> None:
        self._model = model
        self._held_for = held_for
        self._trunk_for = trunk_for
        self._limits = limits
        self._on_tokens = on_tokens

    @torch.inference_mode()
    def read(self, trees: Sequence[SignalTree]) -> list[TreeSignals]:
        """Return what checked trees show.

        Where a session has all but the end of a trunk, that end is read as a fork. Forks of all
        trees go through the model together.
        """
        readings = [self._begin(number, tree) for number, tree in enumerate(trees)]
        ends = [end for reading in readings if (end := self._end_of(reading)) is not None]
        self._read_ends(ends)
        near = {id(end.reading) for end in ends}
        for reading in readings:
            if id(reading) not in near:
                self._read_trunk(reading)
        self._read_continuations(readings)
        return [reading.signals() for reading in readings]

    def _begin(self, number: int, tree: SignalTree) -> _Reading:
        first_ids: dict[int, set[int]] = {cut: set() for cut in tree.cuts}
        for item in tree.continuations:
            first_ids.setdefault(item.cut, set()).add(item.suffix_ids[0])
        return _Reading(number, tree, dict(sorted(first_ids.items())), Trunk(0))

    def _end_of(self, reading: _Reading) -> _Fork | None:
        """Return what of a trunk its session lacks, if that is little.

        From the token before the first cut: the logits after it are wanted. Continuations fork
        from what the session holds: what it lacks before one is read again with it.
        """
        tree, first_ids = reading.tree, reading.first_ids
        if tree.session is None or not first_ids:
            return None
        start, stop = min(first_ids) - 1, max(first_ids)
        cuts = [item.cut for item in tree.continuations]
        held = self._held_for(tree, max(cuts, default=start))
        again = sum(max(0, cut - held) for cut in cuts)
        if held < start or stop - start + again > _END_TOKENS:
            return None
        # The session's own: a longer one would be a copy.
        reading.trunk = self._trunk_for(tree, held, ())
        return _Fork(reading, start, tree.trunk_ids[start:stop])

    def _read_ends(self, ends: list[_Fork]) -> None:
        """Read the ends of trunks, many at once."""
        for batch in self._batches(ends):
            layers = sorted({layer for end in batch for layer in end.reading.tree.layers})
            width = max(len(end.ids) for end in batch)
            for seen in self._passes(batch, layers):
                stop = seen.start + seen.logits.shape[1]
                for row, end in enumerate(batch):
                    reading = end.reading
                    # The last id of a cut lies in this column.
                    columns = {c: width - len(end.ids) + c - 1 - end.cut for c in reading.first_ids}
                    cuts = [c for c, column in columns.items() if seen.start <= column < stop]
                    at = [columns[cut] - seen.start for cut in cuts]
                    states = [seen.states[layers.index(n)][row, at] for n in reading.tree.layers]
                    if cuts:
                        reading.see(cuts, seen.logits[row, at], states)

    def _read_trunk(self, reading: _Reading) -> None:
        """Read a trunk from where its session ends."""
        tree, cuts = reading.tree, list(reading.first_ids)
        length = max(cuts, default=0)
        reading.trunk = trunk = self._trunk_for(tree, length, cuts)
        device = self._model.device
        ids = torch.tensor(tree.trunk_ids[:length], dtype=torch.int64, device=device)
        for start, stop in self._chunks(trunk.length, length, cuts):
            here = [cut for cut in cuts if start < cut <= stop]
            at = [cut - 1 - start for cut in here]
            places = torch.tensor(at, dtype=torch.int64).to(device)
            step = TrunkStep(trunk, self._limits.most_scores)
            positions = torch.arange(start, stop, device=device)[None]
            logits, states = self._model.forward_seen(
                step, ids[None, start:stop], positions, places, tree.layers
            )
            trunk.length = stop
            self._on_tokens(reading.number, stop - start)
            reading.see(here, logits[0], [state[0, at] for state in states])

    def _chunks(self, start: int, length: int, cuts: Sequence[int]) -> list[tuple[int, int]]:
        """Return the passes over a trunk: few enough tokens each, and few enough logits."""
        most_places = max(1, self._most_logits() // self._model.vocabulary)
        chunks: list[tuple[int, int]] = []
        while start < length:
            stop = min(start + self._limits.trunk_chunk_tokens, length)
            here = [cut for cut in cuts if start < cut <= stop]
            if len(here) > most_places:
                stop = here[most_places - 1]
            chunks.append((start, stop))
            start = stop
        return chunks

    def _most_logits(self) -> int:
        return max(self._limits.most_logits, 1 << 24)

    def _read_continuations(self, readings: Sequence[_Reading]) -> None:
        """Read log-probabilities and entropies of every continuation of every tree."""
        forks = []
        for reading in readings:
            for item in reading.tree.continuations:
                start = min(item.cut, reading.trunk.length)
                ids = reading.tree.trunk_ids[start : item.cut] + item.suffix_ids
                forks.append(_Fork(reading, start, ids, item.cut - start))
        for batch in self._batches(forks):
            logprobs, entropies = [], []
            for seen in self._passes(batch):
                log = _log_softmax(seen.logits)
                following = log.gather(2, seen.following[:, :, None])[:, :, 0]
                logprobs.append(following.float().cpu().numpy())
                entropies.append(_entropy(log).float().cpu().numpy())
            told, spread = np.concatenate(logprobs, axis=1), np.concatenate(entropies, axis=1)
            width = told.shape[1]
            for row, fork in enumerate(batch):
                reading, size = fork.reading, len(fork.ids) - fork.lead
                after = reading.after[fork.cut + fork.lead]
                first = after.first_logprobs[fork.ids[fork.lead]]
                # Column j of a padded row tells of the id in column j + 1.
                rest = told[row, width - size : width - 1]
                reading.logprobs.append(np.concatenate([np.array([first], np.float32), rest]))
                reading.entropies.append(spread[row, width - size :])

    def _batches(self, forks: Sequence[_Fork]) -> Iterator[list[_Fork]]:
        """Yield forks, in their order, as many at a time as fit one batch."""
        most_rows = max(1, self._most_logits() // self._model.vocabulary)
        batch: list[_Fork] = []
        width = 0
        for fork in forks:
            width = max(width, len(fork.ids))
            tokens = width * (len(batch) + 1)
            if batch and (len(batch) == most_rows or tokens > self._limits.suffix_chunk_tokens):
                yield batch
                batch, width = [], len(fork.ids)
            batch.append(fork)
        if batch:
            yield batch

    def _passes(self, batch: list[_Fork], layers: Sequence[int] | None = None) -> Iterator[_Pass]:
        """Run left-padded forks through the model, some columns after the other.

        Parameters
        ----------
        batch
            The forks.
        layers
            Those whose hidden states are wanted; None if ids that stand for no token have no place
            in the distributions.
        """
        device, rows = self._model.device, len(batch)
        lengths = np.array([len(fork.ids) for fork in batch], dtype=np.int64)
        width = int(lengths.max())
        padded = np.zeros((rows, width + 1), dtype=np.int64)
        for row, fork in zip(padded, batch, strict=True):
            row[width - len(fork.ids) : width] = fork.ids
        cuts = np.array([fork.cut for fork in batch], dtype=np.int64)
        tails = Tails(lengths, width)
        ids, cuts_there = torch.from_numpy(padded).to(device), torch.from_numpy(cuts).to(device)
        shift = torch.from_numpy(width - lengths).to(device)
        tail_index = torch.arange(width, device=device) - shift[:, None]
        chunk = max(1, min(width, self._most_logits() // (rows * self._model.vocabulary)))
        for start in range(0, width, chunk):
            stop = min(start + chunk, width)
            here = tail_index[:, start:stop]
            step = RowsStep(
                tails=tails,
                blocks=plan_blocks(
                    [fork.reading.trunk for fork in batch],
                    cuts,
                    queries_per_row=self._model.query_heads * (stop - start),
                    most_waste=self._limits.most_waste,
                    most_scores=self._limits.most_scores,
                ),
                cuts=cuts_there,
                tail_index=here,
                longest=max(1, stop - int((width - lengths).min())),
                even=False,
            )
            places = torch.arange(stop - start, device=device)
            positions = cuts_there[:, None] + here.clamp_min(0)
            some = (step, ids[:, start:stop], positions, places)
            states: list[Tensor] = []
            if layers is None:
                logits = self._model.forward(*some)
            else:
                logits, states = self._model.forward_seen(*some, layers)
            yield _Pass(start, ids[:, start + 1 : stop + 1], logits, states)
        for fork in batch:
            self._on_tokens(fork.reading.number, len(fork.ids))


def _places(log: Tensor, end_id: int, first_ids: Sequence[set[int]]) -> list[_Place]:
    """Return what distributions [P, V] show, each with the ids that continuations begin with."""
    best = torch.topk(log, 2)
    values, tokens = best.values.tolist(), best.indices.tolist()
    ends, entropies = log[:, end_id].tolist(), _entropy(log).tolist()
    places = []
    for row, firsts in enumerate(first_ids):
        other = int(tokens[row][0] == end_id)
        places.append(
            _Place(
                end_logprob=ends[row],
                other_logprob=values[row][other],
                other_id=tokens[row][other],
                entropy=entropies[row],
                first_logprobs={token: float(log[row, token]) for token in firsts},
            )
        )
    return places


def _log_softmax(logits: Tensor) -> Tensor:
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return torch.log_softmax(wide, dim=-1)


def _entropy(log: Tensor) -> Tensor:
    """Return the entropy of log-probabilities [..., V], in nats; a masked token adds nothing."""
    return -(log.exp() * log.clamp_min(_FLOOR)).sum(-1)


def _narrowed(states: Tensor) -> Tensor:
    return states.float().clamp(-_LARGEST, _LARGEST).to(torch.float16)
