"""Reading prompt trees without sampling: one pass over a trunk, forked rows for continuations.

Shapes: R rows, S new tokens per row, P places, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stp.engines.decoding import BatchLimits, ForkableModel
from stp.engines.fork_attention import RowsStep, Tails, Trunk, TrunkStep, plan_blocks
from stp.engines.signals import Continuation, SignalTree, TreeSignals

# A masked token has the logarithm minus infinity; times its probability 0 that would be NaN.
_FLOOR: Final = -1e4
_LARGEST: Final = float(torch.finfo(torch.float16).max)


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


class TreeReader:
    """Reads signal trees, one after the other.

    Parameters
    ----------
    model
        The model.
    limits
        How much is done at once.
    on_tokens
        Called with the number of tokens that just went through the model.
    trunk_for
        Returns a trunk with room for a number of tokens for a tree, as full as possible if the
        logits after the given cuts are wanted.
    """

    def __init__(
        self,
        model: ReadableModel,
        *,
        limits: BatchLimits,
        on_tokens: Callable[[int], None],
        trunk_for: Callable[[SignalTree, int, Sequence[int]], Trunk],
    ) -> None:
        self._model = model
        self._trunk_for = trunk_for
        self._limits = limits
        self._on_tokens = on_tokens

    @torch.inference_mode()
    def read(self, tree: SignalTree) -> TreeSignals:
        """Return what a checked tree shows."""
        trunk, after, hidden = self._read_trunk(tree)
        logprobs, entropies = self._read_continuations(tree, trunk, after)
        chosen = [after[cut] for cut in tree.cuts]
        return TreeSignals(
            end_logprob=np.array([place.end_logprob for place in chosen], np.float32),
            entropy=np.array([place.entropy for place in chosen], np.float32),
            other_logprob=np.array([place.other_logprob for place in chosen], np.float32),
            other_id=np.array([place.other_id for place in chosen], np.int32),
            hidden=hidden,
            suffix_logprobs=logprobs,
            suffix_entropies=entropies,
        )

    def _read_trunk(
        self, tree: SignalTree
    ) -> tuple[Trunk, dict[int, _Place], dict[int, npt.NDArray[np.float16]]]:
        """Read the trunk; return it, what was seen after each cut, and states at the tree's."""
        first_ids: dict[int, set[int]] = {cut: set() for cut in tree.cuts}
        for item in tree.continuations:
            first_ids.setdefault(item.cut, set()).add(item.suffix_ids[0])
        length = max(first_ids, default=0)
        trunk = self._trunk_for(tree, length, sorted(first_ids))
        device = self._model.device
        ids = torch.tensor(tree.trunk_ids[:length], dtype=torch.int64, device=device)
        after: dict[int, _Place] = {}
        hidden: dict[int, list[Tensor]] = {layer: [] for layer in tree.layers}
        asked = set(tree.cuts)
        for start, stop in self._chunks(trunk.length, length, sorted(first_ids)):
            here = [cut for cut in sorted(first_ids) if start < cut <= stop]
            places = torch.tensor([cut - 1 - start for cut in here], dtype=torch.int64)
            places = places.to(device)
            step = TrunkStep(trunk, self._limits.most_scores)
            positions = torch.arange(start, stop, device=device)[None]
            logits, states = self._model.forward_seen(
                step, ids[None, start:stop], positions, places, tree.layers
            )
            trunk.length = stop
            self._on_tokens(stop - start)
            for cut, row in zip(here, _log_softmax(logits[0]), strict=True):
                after[cut] = _place(row, tree.end_id, first_ids[cut])
            kept = [cut - 1 - start for cut in here if cut in asked]
            for layer, state in zip(tree.layers, states, strict=True):
                hidden[layer].append(_narrowed(state[0, kept]))
        joined = {layer: torch.cat(parts).cpu().numpy() for layer, parts in hidden.items() if parts}
        return trunk, after, joined

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

    def _read_continuations(
        self, tree: SignalTree, trunk: Trunk, after: dict[int, _Place]
    ) -> tuple[tuple[npt.NDArray[np.float32], ...], tuple[npt.NDArray[np.float32], ...]]:
        """Return log-probabilities and entropies of every continuation."""
        logprobs: list[npt.NDArray[np.float32]] = []
        entropies: list[npt.NDArray[np.float32]] = []
        items = list(tree.continuations)
        while items:
            batch = self._next_batch(items)
            del items[: len(batch)]
            seen, spread = self._read_batch(batch, trunk)
            width = seen.shape[1]
            for row, item in enumerate(batch):
                size = len(item.suffix_ids)
                first = after[item.cut].first_logprobs[item.suffix_ids[0]]
                # Column j of a padded row tells of the id in column j + 1.
                rest = seen[row, width - size : width - 1]
                logprobs.append(np.concatenate([np.array([first], np.float32), rest]))
                entropies.append(spread[row, width - size :])
        return tuple(logprobs), tuple(entropies)

    def _next_batch(self, items: list[Continuation]) -> list[Continuation]:
        """Return the first continuations that fit one batch."""
        width = rows = 0
        most_rows = max(1, self._most_logits() // self._model.vocabulary)
        for item in items:
            width = max(width, len(item.suffix_ids))
            if rows and (
                rows == most_rows or width * (rows + 1) > self._limits.suffix_chunk_tokens
            ):
                break
            rows += 1
        return items[:rows]

    def _read_batch(
        self, batch: list[Continuation], trunk: Trunk
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Read left-padded suffixes; return [R, S] log-probabilities of the next id, entropies."""
        device, rows = self._model.device, len(batch)
        lengths = np.array([len(item.suffix_ids) for item in batch], dtype=np.int64)
        width = int(lengths.max())
        padded = np.zeros((rows, width + 1), dtype=np.int64)
        for row, item in zip(padded, batch, strict=True):
            row[width - len(item.suffix_ids) : width] = item.suffix_ids
        cuts = np.array([item.cut for item in batch], dtype=np.int64)
        tails = Tails(lengths, width)
        ids, cuts_there = torch.from_numpy(padded).to(device), torch.from_numpy(cuts).to(device)
        shift = torch.from_numpy(width - lengths).to(device)
        tail_index = torch.arange(width, device=device) - shift[:, None]
        chunk = max(1, min(width, self._most_logits() // (rows * self._model.vocabulary)))
        logprobs, entropies = [], []
        for start in range(0, width, chunk):
            stop = min(start + chunk, width)
            here = tail_index[:, start:stop]
            step = RowsStep(
                tails=tails,
                blocks=plan_blocks(
                    [trunk] * rows,
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
            logits = self._model.forward(step, ids[:, start:stop], positions, places)
            log = _log_softmax(logits)
            following = ids[:, start + 1 : stop + 1, None]
            logprobs.append(log.gather(2, following)[:, :, 0].float().cpu().numpy())
            entropies.append(_entropy(log).float().cpu().numpy())
        self._on_tokens(int(lengths.sum()))
        return np.concatenate(logprobs, axis=1), np.concatenate(entropies, axis=1)


def _place(log: Tensor, end_id: int, first_ids: set[int]) -> _Place:
    best = torch.topk(log, 2)
    values, tokens = best.values.tolist(), best.indices.tolist()
    other = int(tokens[0] == end_id)
    return _Place(
        end_logprob=float(log[end_id]),
        other_logprob=values[other],
        other_id=tokens[other],
        entropy=float(_entropy(log)),
        first_logprobs={token: float(log[token]) for token in first_ids},
    )


def _log_softmax(logits: Tensor) -> Tensor:
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return torch.log_softmax(wide, dim=-1)


def _entropy(log: Tensor) -> Tensor:
    """Return the entropy of log-probabilities [..., V], in nats; a masked token adds nothing."""
    return -(log.exp() * log.clamp_min(_FLOOR)).sum(-1)


def _narrowed(states: Tensor) -> Tensor:
    return states.float().clamp(-_LARGEST, _LARGEST).to(torch.float16)
