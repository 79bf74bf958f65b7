"""Steps of a trajectory, in token space.

A block ends right after a boundary token (an id whose own decoded form holds a double newline);
blocks are merged into steps until there are about as many as the trajectory's length asks for.
Only ids and lengths are seen here, never decoded text of a trajectory (paper 002, A.2 and D.1).
"""

import heapq
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from os import cpu_count
from typing import Any, Literal

import numba
import numpy as np
import numpy.typing as npt

from stp.ragged import BoolArray, IntArray, offsets_of
from stp.tokenizers import Tokenizer, exact_ids, token_bytes

StepRule = Literal["merged", "causal"]
"""How blocks become steps: see :func:`segment` and :func:`segment_causal`."""

_DOUBLE_NEWLINE = b"\n\n"
_LEFT_BITS = 31
_LEFT_MASK = (1 << _LEFT_BITS) - 1


def boundary_token_ids(tokenizer: Tokenizer) -> frozenset[int]:
    r"""Return every id whose own decoded form contains two consecutive newlines.

    Added tokens count; ``"\r\n\r\n"`` and ``"\n \n"`` hold no double newline.

    Parameters
    ----------
    tokenizer
        A fast tokenizer of transformers, or a ``tokenizers.Tokenizer``.
    """
    return frozenset(
        token_id for token_id, form in enumerate(token_bytes(tokenizer)) if _DOUBLE_NEWLINE in form
    )


def content_token_ids(
    tokenizer: Tokenizer, boundary_ids: Iterable[int]
) -> dict[int, tuple[int, ...]]:
    r"""Return, for each boundary id, the ids of its text before the first double newline.

    They stand for the boundary token where a prefix is cut: ``".\n\n"`` becomes ``"."``, and
    ``"\n\n"`` becomes nothing (paper 002, A.2).

    Raises
    ------
    ValueError
        If an id is not a boundary id of this tokenizer.
    data.errors.ConfigError
        If the vocabulary cannot spell a text.
    """
    forms = token_bytes(tokenizer)
    encoded: dict[bytes, tuple[int, ...]] = {b"": ()}
    content: dict[int, tuple[int, ...]] = {}
    for token_id in sorted(boundary_ids):
        if not 0 <= token_id < len(forms) or _DOUBLE_NEWLINE not in forms[token_id]:
            raise ValueError(f"token id {token_id} holds no double newline in this vocabulary")
        text = forms[token_id].partition(_DOUBLE_NEWLINE)[0]
        if text not in encoded:
            encoded[text] = exact_ids(tokenizer, text, forms)
        content[token_id] = encoded[text]
    return content


def segment(
    token_ids: npt.ArrayLike, boundary_ids: Iterable[int], step_tokens: int = 256
) -> IntArray:
    """Return L(0..n), the tokens retained at every position of a trajectory.

    While there are more steps than ``max(1, (2 L + b) // (2 b))``, the adjacent pair with the
    smallest token sum is merged, leftmost on ties (paper 002, A.2); O(n log n).

    Parameters
    ----------
    token_ids
        The trajectory's thinking tokens; integers ``(L,)``.
    boundary_ids
        Ids that end a block.
    step_tokens
        b, the average length of a step that is aimed at, in tokens.

    Returns
    -------
    int64 array ``(n + 1,)``
        Starts at 0, rises strictly, ends at L. An empty trajectory has one position.

    Raises
    ------
    ValueError
        If ids are not non-negative integers, or ``step_tokens`` is not a positive integer.

    Examples
    --------
    >>> segment([5, 5, 9, 5, 9, 5, 5, 5], boundary_ids={9}, step_tokens=3).tolist()
    [0, 3, 5, 8]
    """
    ids = _checked_ids(token_ids)
    lengths, _ = segment_many(
        ids, np.array([0, ids.size]), boundary_ids, step_tokens=step_tokens, threads=1
    )
    return lengths


def segment_causal(
    token_ids: npt.ArrayLike, boundary_ids: Iterable[int], step_tokens: int = 256
) -> IntArray:
    """Return L(0..n) of steps that are known as soon as their last token is.

    A step ends at the first boundary token that brings it to ``step_tokens`` tokens or more; what
    is left at the end is the last step. Unlike in :func:`segment`, where a step ends depends on
    nothing that comes after it, so a trajectory can be cut while it is written.

    Parameters
    ----------
    token_ids, boundary_ids
        As for :func:`segment`.
    step_tokens
        b, the least length of every step but the last, in tokens.

    Returns
    -------
    int64 array ``(n + 1,)``
        Starts at 0, rises strictly, ends at L. An empty trajectory has one position.

    Raises
    ------
    ValueError
        As for :func:`segment`.

    Examples
    --------
    >>> segment_causal([5, 5, 9, 5, 9, 5, 5, 5], boundary_ids={9}, step_tokens=3).tolist()
    [0, 3, 8]
    """
    ids = _checked_ids(token_ids)
    return _causal(ids, _boundary_mask(boundary_ids), _checked_step_tokens(step_tokens))


def _causal(ids: npt.NDArray[Any], is_boundary: BoolArray, step_tokens: int) -> IntArray:
    ends = np.flatnonzero(np.isin(ids, np.flatnonzero(is_boundary))) + 1
    lengths = [0]
    while (place := int(np.searchsorted(ends, lengths[-1] + step_tokens))) < ends.size:
        lengths.append(int(ends[place]))
    if lengths[-1] < ids.size:
        lengths.append(int(ids.size))
    return np.array(lengths, np.int64)


def segment_by(
    rule: StepRule, token_ids: npt.ArrayLike, boundary_ids: Iterable[int], step_tokens: int
) -> IntArray:
    """Return L(0..n) of a trajectory by :func:`segment` or :func:`segment_causal`."""
    cut = segment if rule == "merged" else segment_causal
    return cut(token_ids, boundary_ids, step_tokens)


def segment_many(
    token_ids: npt.ArrayLike,
    trajectory_offsets: npt.ArrayLike,
    boundary_ids: Iterable[int],
    step_tokens: int = 256,
    *,
    steps: StepRule = "merged",
    threads: int | None = None,
) -> tuple[IntArray, IntArray]:
    """Segment many trajectories at once.

    Parameters
    ----------
    token_ids
        Thinking tokens of all trajectories, concatenated; integers ``(tokens,)``. An int32 or
        int64 array is read where it lies.
    trajectory_offsets
        Where each trajectory starts, and the end of the last; integers ``(trajectories + 1,)``.
    boundary_ids, step_tokens
        As for :func:`segment`.
    steps
        By which rule blocks become steps: :func:`segment`'s or :func:`segment_causal`'s.
    threads
        Threads that share the work; all cores when left out. The result does not depend on it.

    Returns
    -------
    tokens : int64 array ``(positions,)``
        L(0..n) of every trajectory, concatenated: ``Curves.tokens``.
    position_offsets : int64 array ``(trajectories + 1,)``
        Where each trajectory's positions start, and the end: ``Curves.trajectory_offsets``.

    Raises
    ------
    ValueError
        As for :func:`segment`, and if the offsets do not cover the tokens.
    """
    ids = _checked_ids(token_ids)
    offsets = _checked_offsets(trajectory_offsets, ids.size)
    is_boundary = _boundary_mask(boundary_ids)
    step = _checked_step_tokens(step_tokens)
    if steps == "causal":
        parts = [_causal(ids[a:b], is_boundary, step) for a, b in pairwise(offsets.tolist())]
        joined = np.concatenate(parts) if parts else np.empty(0, np.int64)
        return joined, offsets_of(np.array([part.size for part in parts], np.int64))
    trajectories = offsets.size - 1
    spans = _even_spans(offsets, threads or cpu_count() or 1)
    steps_s = np.zeros(trajectories, np.int64)

    def count(first: int, last: int) -> None:
        _count_steps(ids, offsets, is_boundary, step, first, last, steps_s)

    _run(count, spans)
    position_offsets = offsets_of(steps_s + 1)
    tokens = np.zeros(int(position_offsets[-1]), np.int64)

    def fill(first: int, last: int) -> None:
        _fill_lengths(ids, offsets, is_boundary, steps_s, position_offsets, first, last, tokens)

    _run(fill, spans)
    return tokens, position_offsets


def _even_spans(offsets: IntArray, workers: int) -> list[tuple[int, int]]:
    """Return runs of trajectories with about equally many tokens: lengths differ a hundredfold."""
    trajectories = offsets.size - 1
    shares = np.linspace(0, offsets[-1], min(workers, max(1, trajectories)) + 1)[1:-1]
    cuts = [0, *np.searchsorted(offsets, shares).tolist(), trajectories]
    return list(pairwise(cuts))


def _run(work: Callable[[int, int], None], spans: list[tuple[int, int]]) -> None:
    """Call ``work`` on every span; the kernels release the interpreter's lock."""
    if len(spans) == 1:
        work(*spans[0])
        return
    with ThreadPoolExecutor(len(spans)) as pool:
        for done in [pool.submit(work, *span) for span in spans]:
            done.result()


def _checked_ids(token_ids: npt.ArrayLike, what: str = "token ids") -> npt.NDArray[Any]:
    ids = np.asarray(token_ids)
    if ids.ndim != 1:
        raise ValueError(f"{what} must have one dimension, not {ids.ndim}")
    if ids.size == 0:
        return np.empty(0, np.int64)
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"{what} must be integers, not {ids.dtype}")
    if ids.min() < 0 or ids.max() > _LEFT_MASK:
        raise ValueError(f"{what} must be non-negative and below 2**31")
    if ids.dtype not in (np.int32, np.int64):
        ids = ids.astype(np.int64)
    return np.ascontiguousarray(ids)


def _checked_offsets(trajectory_offsets: npt.ArrayLike, size: int) -> IntArray:
    offsets = np.asarray(trajectory_offsets)
    if offsets.ndim != 1 or offsets.size == 0 or not np.issubdtype(offsets.dtype, np.integer):
        raise ValueError("trajectory offsets must be integers in one dimension, at least one")
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if offsets[0] != 0 or offsets[-1] != size or np.any(np.diff(offsets) < 0):
        raise ValueError(f"trajectory offsets must rise from 0 to the number of tokens, {size}")
    if offsets.size > 1 and int(np.diff(offsets).max()) > _LEFT_MASK:
        raise ValueError("a trajectory must have fewer than 2**31 tokens")
    return offsets


def _checked_step_tokens(step_tokens: int) -> int:
    if isinstance(step_tokens, bool) or not isinstance(step_tokens, int | np.integer):
        raise ValueError(f"step_tokens must be an integer, not {step_tokens!r}")
    if not 1 <= step_tokens <= _LEFT_MASK:
        raise ValueError(f"step_tokens must be at least 1 and below 2**31, not {step_tokens}")
    return int(step_tokens)


def _boundary_mask(boundary_ids: Iterable[int]) -> BoolArray:
    """Return a table that holds, by id, whether it ends a block."""
    ids = _checked_ids(list(boundary_ids), "boundary ids")
    mask = np.zeros(int(ids.max(initial=-1)) + 1, np.bool_)
    mask[ids] = True
    return mask


@numba.njit(cache=True, nogil=True)
def _count_steps(
    ids: IntArray,
    offsets: IntArray,
    is_boundary: BoolArray,
    step_tokens: int,
    first: int,
    last: int,
    steps_s: IntArray,
) -> None:
    """Write n of the trajectories ``first`` to ``last``: the target, capped by the blocks."""
    for s in range(first, last):
        length = offsets[s + 1] - offsets[s]
        blocks = 0
        ended = True
        for index in range(offsets[s], offsets[s + 1]):
            token = ids[index]
            ended = token < is_boundary.size and is_boundary[token]
            if ended:
                blocks += 1
        if not ended:
            blocks += 1
        steps_s[s] = min(blocks, max(1, (2 * length + step_tokens) // (2 * step_tokens)))


@numba.njit(cache=True, nogil=True)
def _fill_lengths(
    ids: IntArray,
    offsets: IntArray,
    is_boundary: BoolArray,
    steps_s: IntArray,
    position_offsets: IntArray,
    first: int,
    last: int,
    tokens: IntArray,
) -> None:
    """Write L(1..n) of the trajectories ``first`` to ``last``; L(0) is there already, as 0."""
    for s in range(first, last):
        length = offsets[s + 1] - offsets[s]
        sizes = np.empty(length, np.int64)
        blocks = 0
        start = offsets[s]
        for index in range(offsets[s], offsets[s + 1]):
            token = ids[index]
            if token < is_boundary.size and is_boundary[token]:
                sizes[blocks] = index + 1 - start
                blocks += 1
                start = index + 1
        if start < offsets[s + 1]:
            sizes[blocks] = offsets[s + 1] - start
            blocks += 1
        if blocks > steps_s[s]:
            _merge_blocks(sizes, blocks, steps_s[s])
        retained = 0
        position = position_offsets[s]
        for block in range(blocks):
            if sizes[block] > 0:
                retained += sizes[block]
                position += 1
                tokens[position] = retained


@numba.njit(cache=True, nogil=True)
def _merge_blocks(sizes: IntArray, blocks: int, steps: int) -> None:
    """Merge until ``steps`` are left: a merged block's size moves to its left one, leaving 0.

    The heap's keys are (sum of a pair, index of its left block) in one integer, so the least key is
    the smallest pair, leftmost on ties. A key whose sum is no longer that of the pair is old and is
    passed over.
    """
    after = np.arange(1, blocks + 1)
    before = np.arange(-1, blocks - 1)
    heap = [((sizes[left] + sizes[left + 1]) << _LEFT_BITS) | left for left in range(blocks - 1)]
    heapq.heapify(heap)
    left_over = blocks
    while left_over > steps:
        key = heapq.heappop(heap)
        left = key & _LEFT_MASK
        right = after[left]
        if sizes[left] == 0 or right == blocks or sizes[left] + sizes[right] != key >> _LEFT_BITS:
            continue
        sizes[left] += sizes[right]
        sizes[right] = 0
        after[left] = after[right]
        left_over -= 1
        if after[left] < blocks:
            before[after[left]] = left
            heapq.heappush(heap, ((sizes[left] + sizes[after[left]]) << _LEFT_BITS) | left)
        if before[left] >= 0:
            earlier = before[left]
            heapq.heappush(heap, ((sizes[earlier] + sizes[left]) << _LEFT_BITS) | earlier)
