"""Drawing tokens: vectorised over rows, with one counter-based random stream per sample.

A row's uniform number is a pure function of (seed, step), and its token one of (logits, uniform,
parameters), so a sample does not depend on what it is batched with.

Shapes: R rows, V vocabulary entries.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from stp.engines.base import GREEDY_BELOW, SamplingParameters

_PHILOX_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_PHILOX_WEYL: Final = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_PHILOX_ROUNDS: Final = 10
_LOW_32: Final = np.uint64(0xFFFFFFFF)
_SHIFT_32: Final = np.uint64(32)
# Entries summed at once by the inverse distribution function over a whole vocabulary.
_VOCABULARY_BLOCK: Final = 256
# Candidates looked at first when only top_p limits the choice.
_FIRST_CANDIDATES: Final = 128


def philox_4x32(
    counter: npt.NDArray[np.uint64], key: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Return Philox-4x32-10 words.

    Parameters
    ----------
    counter
        uint64[4, R], each below 2**32.
    key
        uint64[2, R], each below 2**32.

    Returns
    -------
    numpy.ndarray
        uint64[4, R], each below 2**32.

    References
    ----------
    Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_PHILOX_ROUNDS):
        product_0 = _PHILOX_MULTIPLIERS[0] * c0
        product_1 = _PHILOX_MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product_1 >> _SHIFT_32) ^ c1 ^ k0,
            product_1 & _LOW_32,
            (product_0 >> _SHIFT_32) ^ c3 ^ k1,
            product_0 & _LOW_32,
        )
        k0 = (k0 + _PHILOX_WEYL[0]) & _LOW_32
        k1 = (k1 + _PHILOX_WEYL[1]) & _LOW_32
    return np.stack([c0, c1, c2, c3])


def uniforms(
    seeds: npt.NDArray[np.uint64], steps: npt.NDArray[np.uint64]
) -> npt.NDArray[np.float64]:
    """Return one uniform number in [0, 1) per row, of 53 random bits.

    Parameters
    ----------
    seeds
        uint64[R], the key of each row's stream.
    steps
        uint64[R], the index in the stream: tokens that the row has generated so far.
    """
    zeros = np.zeros_like(steps)
    counter = np.stack([steps & _LOW_32, steps >> _SHIFT_32, zeros, zeros])
    words = philox_4x32(counter, np.stack([seeds & _LOW_32, seeds >> _SHIFT_32]))
    bits = (words[0] << np.uint64(21)) ^ (words[1] >> np.uint64(11))
    result: npt.NDArray[np.float64] = bits.astype(np.float64) * 2.0**-53
    return result


def draw(logits: Tensor, uniform: Tensor, sampling: SamplingParameters) -> Tensor:
    """Draw one token per row.

    The order is that of vLLM and transformers: temperature, then ``top_k``, then ``top_p`` of what
    is left. Presence penalties are the caller's. The distribution is inverted in the order of the
    vocabulary, which floating-point noise cannot change.

    Parameters
    ----------
    logits
        float[R, V]; float32 or wider.
    uniform
        float64[R] in [0, 1).
    sampling
        The parameters of all rows.

    Returns
    -------
    torch.Tensor
        int64[R].
    """
    if sampling.temperature < GREEDY_BELOW:
        return logits.argmax(dim=-1)
    scaled = logits / sampling.temperature
    vocabulary = logits.shape[-1]
    if 0 < sampling.top_k < vocabulary:
        values, ids = scaled.topk(sampling.top_k, dim=-1)
        weights = (values - values[:, :1]).double().exp()
        return _draw_nucleus(weights, weights.sum(-1), ids, uniform, sampling.top_p)
    if sampling.top_p < 1.0:
        return _draw_top_p(scaled, uniform, sampling.top_p)
    return _invert_vocabulary(scaled, uniform)


def _draw_top_p(scaled: Tensor, uniform: Tensor, top_p: float) -> Tensor:
    """Draw from the nucleus, sorting only as many candidates as the rows need."""
    vocabulary = scaled.shape[-1]
    peak = scaled.amax(-1, keepdim=True)
    mass = (scaled - peak).exp_().sum(-1, dtype=torch.float64)
    tokens = torch.empty(scaled.shape[0], dtype=torch.int64, device=scaled.device)
    waiting = torch.arange(scaled.shape[0], device=scaled.device)
    some = scaled
    candidates = min(_FIRST_CANDIDATES, vocabulary)
    while True:
        values, ids = some.topk(candidates, dim=-1)
        weights = (values - peak[waiting]).double().exp_()
        enough = weights.sum(-1) >= top_p * mass[waiting]
        if candidates == vocabulary:
            enough = torch.ones_like(enough)
        done = waiting[enough]
        tokens[done] = _draw_nucleus(weights[enough], mass[done], ids[enough], uniform[done], top_p)
        waiting = waiting[~enough]
        if not waiting.numel():
            return tokens
        candidates = min(candidates * 16, vocabulary)
        some = scaled[waiting]


def _draw_nucleus(
    weights: Tensor, mass: Tensor, ids: Tensor, uniform: Tensor, top_p: float
) -> Tensor:
    """Draw among sorted candidates.

    Parameters
    ----------
    weights
        float64[R, K], falling.
    mass
        float64[R]: what the weights are fractions of.
    ids
        int64[R, K]: the tokens that the weights belong to.
    """
    if top_p < 1.0:
        before = weights.cumsum(-1) - weights
        weights = weights.masked_fill(before >= top_p * mass[:, None], 0.0)
    ids, order = ids.sort(dim=-1)
    edges = (weights := weights.gather(1, order)).cumsum(-1)
    place = _first_above(edges, uniform * edges[:, -1], weights)
    return ids.gather(1, place[:, None])[:, 0]


def _invert_vocabulary(scaled: Tensor, uniform: Tensor) -> Tensor:
    """Invert the distribution function of whole rows, first by block, then inside the block."""
    vocabulary = scaled.shape[-1]
    weights = (scaled - scaled.amax(-1, keepdim=True)).exp()
    padding = -vocabulary % _VOCABULARY_BLOCK
    weights = torch.nn.functional.pad(weights, (0, padding)).view(
        len(weights), -1, _VOCABULARY_BLOCK
    )
    block_weights = weights.sum(-1, dtype=torch.float64)
    edges = block_weights.cumsum(-1)
    target = uniform * edges[:, -1]
    block = _first_above(edges, target, block_weights)
    inside = weights[torch.arange(len(block), device=block.device), block].double()
    before = edges.gather(1, block[:, None])[:, 0] - block_weights.gather(1, block[:, None])[:, 0]
    rest = (target - before).clamp_min(0.0)
    return block * _VOCABULARY_BLOCK + _first_above(inside.cumsum(-1), rest, inside)


def _first_above(edges: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """Return per row the first place whose edge is above the target.

    Rounding can leave the target at or above the last edge, or on an entry of weight 0: then it is
    the last entry with weight.
    """
    place = torch.searchsorted(edges, target[:, None], right=True)[:, 0]
    positions = torch.arange(weights.shape[-1], device=weights.device)
    last = torch.where(weights > 0, positions, -1).amax(-1)
    return torch.minimum(place, last)
