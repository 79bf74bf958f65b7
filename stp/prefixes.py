"""Prefixes of a trajectory, as an engine takes them: one trunk, one branch per position.

Token ids in, token ids out: what is kept of a trajectory is copied (paper 002, A.2).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from stp.engines.base import Branch, PromptTree, SamplingParameters
from stp.formats import ThinkingFormat

PrefixSeeds = Sequence[Sequence[int]] | Callable[[int], Sequence[int]]
"""PrefixSeeds of the samples at each position: by position, or made from it."""


def prefix_branch(
    prompt_ids: Sequence[int],
    thinking_ids: Sequence[int],
    lengths: Sequence[int],
    position: int,
    *,
    format: ThinkingFormat,
    content_ids: Mapping[int, tuple[int, ...]],
    seeds: Sequence[int] = (),
    opening_ids: Sequence[int] = (),
) -> Branch:
    """Return the prompt of the probes at a position, as a branch of prompt and trajectory.

    The first L(k) thinking ids are kept and thinking is closed. A boundary token that would stand
    right before the close is replaced by the ids of its text before the double newline; so at
    k = n a trajectory stays whole unless it ends on a boundary token.

    Parameters
    ----------
    prompt_ids, thinking_ids
        The trunk.
    lengths
        L(0..n).
    position
        k, 0..n.
    format
        How thinking is closed.
    content_ids
        For each boundary id what stands for it
        (:func:`stp.segmentation.content_token_ids`).
    seeds
        One per sample.
    opening_ids
        What of the answer is written for the model, after the close.

    Raises
    ------
    ValueError
        If the position is not one of the trajectory's, or ``lengths`` does not fit it.
    """
    if not 0 <= position < len(lengths):
        raise ValueError(f"position {position} is not one of 0..{len(lengths) - 1}")
    length = int(lengths[position])
    if not 0 <= length <= len(thinking_ids):
        raise ValueError(
            f"L({position}) = {length} does not fit a trajectory of {len(thinking_ids)} tokens"
        )
    replacement: tuple[int, ...] | None = None
    if length > 0:
        replacement = content_ids.get(int(thinking_ids[length - 1]))
    kept = length if replacement is None else length - 1
    return Branch(
        cut=len(prompt_ids) + kept,
        suffix_ids=(replacement or ()) + format.close_ids + tuple(opening_ids),
        seeds=tuple(int(seed) for seed in seeds),
    )


def probe_tree(
    prompt_ids: Sequence[int],
    thinking_ids: Sequence[int],
    lengths: Sequence[int],
    *,
    format: ThinkingFormat,
    content_ids: Mapping[int, tuple[int, ...]],
    seeds: PrefixSeeds,
    max_tokens: int,
    sampling: SamplingParameters | None = None,
    positions: Sequence[int] | None = None,
    opening_ids: Sequence[int] = (),
    box_after: str | None = None,
) -> PromptTree:
    """Return the probes of a trajectory: a branch per position, all from one trunk.

    Parameters
    ----------
    prompt_ids, thinking_ids, lengths, format, content_ids
        As for :func:`prefix_branch`.
    seeds
        PrefixSeeds of the samples at each position.
    max_tokens
        Most tokens of an answer.
    sampling
        How answers are sampled; the family's parameters when left out.
    positions
        Those to probe, rising; all when left out.
    opening_ids
        As for :func:`prefix_branch`.
    box_after
        Whether, and after which text, the first box ends an answer: see
        :class:`stp.engines.base.PromptTree`.

    Raises
    ------
    ValueError
        If positions do not rise, or ``lengths`` does not end at the trajectory's length.
    """
    if len(lengths) == 0 or lengths[0] != 0 or lengths[-1] != len(thinking_ids):
        raise ValueError(
            f"lengths must go from 0 to the trajectory's {len(thinking_ids)} tokens, "
            f"not {list(lengths[:1])} to {list(lengths[-1:])}"
        )
    asked = range(len(lengths)) if positions is None else positions
    if len(asked) == 0 or any(later <= earlier for earlier, later in pairwise(asked)):
        raise ValueError("positions must be at least one, and rise")
    seeds_at = seeds if callable(seeds) else seeds.__getitem__
    return PromptTree(
        trunk_ids=(*map(int, prompt_ids), *map(int, thinking_ids)),
        branches=tuple(
            prefix_branch(
                prompt_ids,
                thinking_ids,
                lengths,
                position,
                format=format,
                content_ids=content_ids,
                seeds=seeds_at(position),
                opening_ids=opening_ids,
            )
            for position in asked
        ),
        max_tokens=max_tokens,
        stop_ids=format.answer_stop_ids,
        box_after=box_after,
        sampling=format.family.sampling if sampling is None else sampling,
    )


def branch_ids(trunk_ids: Sequence[int], branch: Branch) -> tuple[int, ...]:
    """Return the ids that an engine is given for a branch."""
    return tuple(map(int, trunk_ids[: branch.cut])) + branch.suffix_ids
