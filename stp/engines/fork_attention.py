"""Attention of many rows that share trunks: the KV fork.

A trunk's keys and values are kept once. Rows that fork from it attend to its first ``cut`` tokens,
all rows of a block in one matrix product, and to their own tail; both parts are joined by their
softmax sums, so nothing of a trunk is ever copied to a row.

transformers calls :func:`fork_attention` for every layer; what it does is decided by the step that
is in force (:func:`running`): :class:`TrunkStep` fills a trunk, :class:`RowsStep` advances rows.

Shapes: R rows, S new tokens per row, H query heads, J key heads, G = H / J, D head size, T trunk
tokens, L tail tokens.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

FORK_ATTENTION: Final = "stp_fork"
"""Name under which transformers knows :func:`fork_attention`."""

# Lower than any score of a real model, and finite: a row that sees nothing of a part gives that
# part weight 0 instead of NaN.
_FLOOR: Final = -1e30


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerAttention:
    """What one layer asks of attention.

    Attributes
    ----------
    layer
        Index of the layer.
    scaling
        Factor of the scores.
    window
        Tokens that a query sees, itself included; None for all before it.
    softcap
        Scores are squashed to ± this; None for not at all.
    sinks
        float[H] logits that take part in the softmax without a value; None for none.
    """

    layer: int
    scaling: float
    window: int | None
    softcap: float | None
    sinks: Tensor | None


class AttentionStep(Protocol):
    """One forward pass, seen by its attention layers."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, how: LayerAttention) -> Tensor:
        """Store the new keys and values and attend.

        Parameters
        ----------
        query
            [R, H, S, D].
        key, value
            [R, J, S, D].
        how
            What the layer asks for.

        Returns
        -------
        torch.Tensor
            [R, H, S, D of the values].
        """


_STEP: ContextVar[AttentionStep | None] = ContextVar("stp_attention_step", default=None)


@contextmanager
def running(step: AttentionStep) -> Iterator[None]:
    """Put a step in force for the forward passes inside the block."""
    token = _STEP.set(step)
    try:
        yield
    finally:
        _STEP.reset(token)


def fork_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend as the step in force says; the signature is transformers' attention interface."""
    step = _STEP.get()
    if step is None:
        raise RuntimeError("stp_fork attention was called outside a step")
    layer = getattr(module, "layer_idx", None)
    if layer is None or attention_mask is not None:
        raise RuntimeError("this model's attention layers cannot be forked")
    how = LayerAttention(
        layer=layer,
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        window=sliding_window,
        softcap=softcap,
        sinks=s_aux,
    )
    return step.attend(query, key, value, how).transpose(1, 2), None


class Trunk:
    """Keys and values of one trunk, [J, T, D] per layer."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Append the new tokens' [J, S, D]."""
        if layer not in self.keys:
            self.keys[layer] = key.new_empty(key.shape[0], self.capacity, key.shape[2])
            self.values[layer] = value.new_empty(value.shape[0], self.capacity, value.shape[2])
        end = self.length + key.shape[1]
        self.keys[layer][:, self.length : end] = key
        self.values[layer][:, self.length : end] = value

    def copy(self, length: int, capacity: int) -> "Trunk":
        """Return a trunk with the first ``length`` tokens of this one, and room for more."""
        made = Trunk(capacity)
        for layer, keys in self.keys.items():
            made.write(layer, keys[:, :length], self.values[layer][:, :length])
        made.length = length
        return made


class Tails:
    """Keys and values of the rows' own tokens, [R, J, capacity, D] per layer.

    A row's tokens begin at index 0. ``lengths`` (int64[R], on the host) says how many there are.
    """

    def __init__(self, lengths: npt.NDArray[np.int64], capacity: int) -> None:
        self.lengths = lengths
        self.capacity = capacity
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def layer(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return a layer's buffers, made like the given [R, J, S, D] at the first call."""
        if layer not in self.keys:
            rows, heads = key.shape[:2]
            # Zeros: what is masked is still multiplied, and must not be NaN.
            self.keys[layer] = key.new_zeros(rows, heads, self.capacity, key.shape[3])
            self.values[layer] = value.new_zeros(rows, heads, self.capacity, value.shape[3])
        return self.keys[layer], self.values[layer]

    def recomposed(self, kept: Tensor, added: "Tails", copies: Tensor, capacity: int) -> "Tails":
        """Return tails of the kept rows of these, then the given rows of others.

        Takes over, layer by layer, and leaves both empty: there is never more than one layer twice.

        Parameters
        ----------
        kept
            int64 rows of these.
        added
            Other tails.
        copies
            int64 rows of ``added``, with repetitions.
        capacity
            Of the new tails.
        """
        lengths = np.concatenate(
            [self.lengths[kept.cpu().numpy()], added.lengths[copies.cpu().numpy()]]
        )
        result = Tails(lengths, capacity)
        for layer in sorted(self.keys.keys() | added.keys.keys()):
            for name in ("keys", "values"):
                parts = [
                    (getattr(tails, name).pop(layer)[:, :, : _longest(tails.lengths)], rows)
                    for tails, rows in ((self, kept), (added, copies))
                    if layer in getattr(tails, name)
                ]
                like = parts[0][0]
                buffer = like.new_zeros(len(lengths), like.shape[1], capacity, like.shape[3])
                start = 0
                for part, rows in parts:
                    used = min(part.shape[2], capacity)
                    buffer[start : start + len(rows), :, :used] = part[rows, :, :used]
                    start += len(rows)
                getattr(result, name)[layer] = buffer
        return result


def _longest(lengths: npt.NDArray[np.int64]) -> int:
    return int(lengths.max(initial=0))


@dataclass(slots=True)
class TrunkBlock:
    """Consecutive rows that fork from one trunk and are computed together.

    Attributes
    ----------
    trunk
        Their trunk.
    start, stop
        The rows.
    cut
        The greatest of their cuts.
    uneven
        Whether some of them keep less than ``cut``.
    """

    trunk: Trunk
    start: int
    stop: int
    cut: int
    uneven: bool
    _bias: Tensor | None = None

    def bias(self, cuts: Tensor, like: Tensor) -> Tensor | None:
        """Return the bias [1, R, 1, 1, cut] that hides what rows do not keep; None if even."""
        if self.uneven and self._bias is None:
            keys = torch.arange(self.cut, device=cuts.device)
            seen = keys < cuts[self.start : self.stop, None]
            self._bias = _bias(seen[None, :, None, None], like)
        return self._bias


def plan_blocks(
    trunks: Sequence[Trunk],
    cuts: npt.NDArray[np.int64],
    *,
    queries_per_row: int,
    most_waste: int,
    most_scores: int,
) -> list[TrunkBlock]:
    """Divide rows into blocks.

    Rows with one cut make a block without a mask. Neighbours are joined where the wasted
    scores cost less than another block's calls.

    Parameters
    ----------
    trunks, cuts
        Of each row. Rows without trunk tokens get no block.
    queries_per_row
        Query heads times new tokens.
    most_waste
        Masked scores that a block may have for each join.
    most_scores
        Scores that a block may have, to bound memory.
    """
    blocks: list[TrunkBlock] = []
    for row, (trunk, cut) in enumerate(zip(trunks, cuts.tolist(), strict=True)):
        if cut == 0:
            continue
        last = blocks[-1] if blocks else None
        if last is not None and last.trunk is trunk and last.stop == row and last.cut <= cut:
            rows = last.stop - last.start
            waste = (cut - last.cut) * rows * queries_per_row
            if waste <= most_waste and (rows + 1) * cut * queries_per_row <= most_scores:
                uneven = last.uneven or last.cut < cut
                blocks[-1] = TrunkBlock(trunk, last.start, row + 1, cut, uneven)
                continue
        blocks.append(TrunkBlock(trunk, row, row + 1, cut, False))
    return blocks


@dataclass(slots=True)
class _Part:
    """Attention over some of the keys, before it is divided by the sum of its weights.

    ``weighted`` [B, N, D], ``total`` and ``peak`` [B, N, 1], for B batches of N queries; all in
    float32 or wider.
    """

    weighted: Tensor
    total: Tensor
    peak: Tensor


def _attend_part(
    query: Tensor, key: Tensor, value: Tensor, softcap: float | None, bias: Tensor | None
) -> _Part:
    """Attend to one part.

    Parameters
    ----------
    query
        [B, N, D], scaled.
    key, value
        [B, C, D].
    softcap
        See :class:`LayerAttention`.
    bias
        Added to the scores: 0, or minus infinity where a key is not seen; [1, R, 1, S, C] for
        trunk blocks (batch J, queries R·G·S), [R, 1, 1, S, C] for tails (batch R·J, queries G·S).
    """
    scores = torch.bmm(query, key.transpose(1, 2))
    if scores.dtype in (torch.bfloat16, torch.float16):
        scores = scores.float()
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        # An addition: on a CPU, filling by a broadcast mask takes ten times as long.
        scores.view(_split_shape(scores, bias)).add_(bias)
    peak = scores.amax(-1, keepdim=True).clamp_min_(_FLOOR)
    scores.sub_(peak).exp_()
    total = scores.sum(-1, keepdim=True)
    return _Part(torch.bmm(scores.to(value.dtype), value).to(scores.dtype), total, peak)


def _split_shape(scores: Tensor, bias: Tensor) -> tuple[int, ...]:
    """Return the 5-axis shape of the scores that a bias broadcasts to."""
    batch, queries, keys = scores.shape
    tokens = bias.shape[3]
    if bias.shape[0] == 1:
        rows = bias.shape[1]
        return batch, rows, queries // (rows * tokens), tokens, keys
    rows = bias.shape[0]
    return rows, batch // rows, queries // tokens, tokens, keys


def _bias(seen: Tensor, like: Tensor) -> Tensor:
    """Return 0 if a key is seen and minus infinity elsewhere, in the dtype of the scores."""
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(
        ~seen, float("-inf")
    )


@dataclass(slots=True)
class TrunkStep:
    """Prefills a trunk by one chunk, whose first token is the trunk's next.

    Attributes
    ----------
    trunk
        The trunk; the caller raises ``length`` afterwards.
    most_scores
        Scores that may be in memory at once.
    """

    trunk: Trunk
    most_scores: int

    def attend(self, query: Tensor, key: Tensor, value: Tensor, how: LayerAttention) -> Tensor:
        """See :class:`AttentionStep`; R is 1."""
        start = self.trunk.length
        end = start + key.shape[2]
        self.trunk.write(how.layer, key[0], value[0])
        keys = self.trunk.keys[how.layer][:, :end]
        values = self.trunk.values[how.layer][:, :end]
        heads = query.shape[1]
        plain = how.softcap is None and how.sinks is None
        if plain and start == 0 and (how.window is None or how.window >= end):
            return nn.functional.scaled_dot_product_attention(
                query,
                keys[None].repeat_interleave(heads // len(keys), dim=1),
                values[None].repeat_interleave(heads // len(keys), dim=1),
                is_causal=True,
                scale=how.scaling,
            )
        first = 0 if how.window is None else max(0, start - how.window + 1)
        seen = _seen(
            torch.arange(start, end, device=query.device),
            torch.arange(first, end, device=query.device),
            how.window,
        )
        keys, values = keys[:, first:], values[:, first:]
        if plain:
            return nn.functional.scaled_dot_product_attention(
                query,
                keys[None].repeat_interleave(heads // len(keys), dim=1),
                values[None].repeat_interleave(heads // len(keys), dim=1),
                attn_mask=seen,
                scale=how.scaling,
            )
        return self._attend_slowly(query, keys, values, seen, how)

    def _attend_slowly(
        self, query: Tensor, keys: Tensor, values: Tensor, seen: Tensor, how: LayerAttention
    ) -> Tensor:
        """Attend with what torch's own attention lacks (sinks, soft caps), in slices of queries."""
        heads, tokens, size = query.shape[1:]
        outputs = []
        width = max(1, self.most_scores // (heads * keys.shape[1]))
        for first in range(0, tokens, width):
            some = query[:, :, first : first + width]
            part = _attend_part(
                (some * how.scaling).reshape(len(keys), -1, size),
                keys,
                values,
                how.softcap,
                _bias(seen[None, None, None, first : first + width], query),
            )
            shape = (1, heads, some.shape[2], -1)
            outputs.append(
                _divided(
                    part.weighted.view(shape),
                    part.total.view(shape),
                    part.peak.view(shape),
                    how.sinks,
                )
            )
        return torch.cat(outputs, dim=2).to(query.dtype)


def _seen(query_positions: Tensor, key_positions: Tensor, window: int | None) -> Tensor:
    """Return which keys a query sees; shapes broadcast to [..., queries, keys]."""
    distance = query_positions[..., :, None] - key_positions[..., None, :]
    seen = distance >= 0
    if window is not None:
        seen &= distance < window
    return seen


def _divided(weighted: Tensor, total: Tensor, peak: Tensor, sinks: Tensor | None) -> Tensor:
    """Return attention output [R, H, S, D] from its sums, [R, H, S, D] and twice [R, H, S, 1]."""
    if sinks is not None:
        logits = sinks.to(peak.dtype).view(1, -1, 1, 1)
        # A sink above the peak would overflow the exponential: move the peak.
        higher = torch.maximum(peak, logits)
        shrink = (peak - higher).exp()
        total = total * shrink + (logits - higher).exp()
        weighted = weighted * shrink
    return weighted / total


@dataclass(slots=True, kw_only=True)
class RowsStep:
    """Advances rows by S tokens each, left-padded where a row has fewer.

    Attributes
    ----------
    tails
        The rows' tails; the caller raises ``lengths`` afterwards.
    blocks
        The rows' trunk blocks.
    cuts
        int64[R] on the device.
    tail_index
        int64[R, S] on the device: where in its tail each token goes; negative for padding.
    longest
        Tail tokens of the longest row, the new ones included.
    even
        Whether every row has S new tokens and ``longest`` tail tokens, and S is 1.
    """

    tails: Tails
    blocks: list[TrunkBlock]
    cuts: Tensor
    tail_index: Tensor
    longest: int
    even: bool
    _block_biases: dict[tuple[int, int | None], tuple[int, Tensor | None]] = field(
        default_factory=dict
    )
    _tail_biases: dict[int | None, Tensor | None] = field(default_factory=dict)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, how: LayerAttention) -> Tensor:
        """See :class:`AttentionStep`."""
        keys, values = self.tails.layer(how.layer, key, value)
        self._write(keys, key)
        self._write(values, value)
        rows, heads, tokens, size = query.shape
        key_heads = key.shape[1]
        # [R, J, G·S, D]: the queries of the heads that share a key head, side by side.
        grouped = (query * how.scaling).reshape(rows, key_heads, -1, size)
        part = _attend_part(
            # Some classes give queries whose rows and heads do not lie one after the other.
            grouped.reshape(rows * key_heads, -1, size),
            keys[:, :, : self.longest].flatten(0, 1),
            values[:, :, : self.longest].flatten(0, 1),
            how.softcap,
            self._tail_bias(how.window, query),
        )
        shape = (rows, key_heads, grouped.shape[2], -1)
        weighted, total, peak = (x.view(shape) for x in (part.weighted, part.total, part.peak))
        for index, block in enumerate(self.blocks):
            first, bias = self._block_bias(index, how.window, query)
            if first >= block.cut:
                continue
            here = slice(block.start, block.stop)
            trunk_part = _attend_part(
                grouped[here].transpose(0, 1).reshape(key_heads, -1, size),
                block.trunk.keys[how.layer][:, first : block.cut],
                block.trunk.values[how.layer][:, first : block.cut],
                how.softcap,
                bias,
            )
            _join(weighted[here], total[here], peak[here], trunk_part)
        shape = (rows, heads, tokens, -1)
        output = _divided(weighted.view(shape), total.view(shape), peak.view(shape), how.sinks)
        return output.to(query.dtype)

    def _write(self, buffer: Tensor, new: Tensor) -> None:
        """Put new keys or values [R, J, S, D] where they belong in the tails."""
        if new.shape[2] == 1:
            rows = torch.arange(new.shape[0], device=new.device)
            buffer[rows, :, self.tail_index[:, 0]] = new[:, :, 0]
            return
        real = self.tail_index >= 0
        row, token = real.nonzero(as_tuple=True)
        buffer[row, :, self.tail_index[row, token]] = new[row, :, token]

    def _tail_bias(self, window: int | None, like: Tensor) -> Tensor | None:
        """Return the bias of the tail keys, [R, 1, 1, S, L], or None if all are seen."""
        if window not in self._tail_biases:
            if self.even and (window is None or window >= self.longest):
                self._tail_biases[window] = None
            else:
                keys = torch.arange(self.longest, device=self.cuts.device)
                # Padding sees the first token, so that its output is finite.
                seen = _seen(self.tail_index.clamp_min(0), keys, window)
                self._tail_biases[window] = _bias(seen[:, None, None], like)
        return self._tail_biases[window]

    def _block_bias(
        self, index: int, window: int | None, like: Tensor
    ) -> tuple[int, Tensor | None]:
        """Return a block's first seen trunk key, and the bias of its keys, [1, R, 1, S, C]."""
        block = self.blocks[index]
        if window is None:
            return 0, block.bias(self.cuts, like)
        if (index, window) not in self._block_biases:
            cuts = self.cuts[block.start : block.stop, None]
            positions = cuts + self.tail_index[block.start : block.stop].clamp_min(0)
            first = min(block.cut, max(0, int(positions.min()) - window + 1))
            keys = torch.arange(first, block.cut, device=cuts.device)
            seen = _seen(positions, keys, window) & (keys < cuts[:, :, None])
            self._block_biases[index, window] = first, _bias(seen[None, :, None], like)
        return self._block_biases[index, window]


def _join(weighted: Tensor, total: Tensor, peak: Tensor, other: _Part) -> None:
    """Add a block's attention to its rows' sums in place.

    ``weighted`` [R, J, N, D], ``total`` and ``peak`` [R, J, N, 1] are views of the rows; the other
    part has batch J and queries R·N.
    """
    rows, key_heads, queries, _ = weighted.shape
    their_weighted, their_total, their_peak = (
        x.view(key_heads, rows, queries, -1).transpose(0, 1)
        for x in (other.weighted, other.total, other.peak)
    )
    higher = torch.maximum(peak, their_peak)
    ours, theirs = (peak - higher).exp_(), (their_peak - higher).exp_()
    total.mul_(ours).add_(their_total * theirs)
    weighted.mul_(ours).add_(their_weighted * theirs)
    peak.copy_(higher)
