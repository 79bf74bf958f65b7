"""What an engine can show of a model while it reads: next-token distributions and hidden states.

As for sampling, a trajectory is a trunk that is read once: everything asked about its prefixes
comes from one pass, and continuations (a close, an answer) fork from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from data.errors import MisuseError
from stp.ragged import Float32Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """Ids that are read after the first ``cut`` ids of a trunk; ``cut`` is at least 1."""

    cut: int
    suffix_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTree:
    """What is asked about one trunk.

    Attributes
    ----------
    trunk_ids
        Token ids, at least one.
    cuts
        Prefixes of the trunk, 1..len(trunk), rising strictly: after each the next token's
        distribution is asked for, and at its last token the hidden states.
    end_id
        The token whose log-probability is set apart from all others'.
    layers
        Hidden states asked for: 0 is the embedding, i the output of the i-th block, the last one
        after the final norm.
    continuations
        Ids whose log-probabilities are asked for, and the entropy after each of them.
    session
        See :class:`stp.engines.base.PromptTree`.
    """

    trunk_ids: tuple[int, ...]
    cuts: tuple[int, ...]
    end_id: int
    layers: tuple[int, ...] = ()
    continuations: tuple[Continuation, ...] = ()
    session: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSignals:
    """What one tree shows: P cuts, and continuations of S ids each.

    Log-probabilities are those of the model itself, before temperature, nucleus and penalties, in
    natural logarithms; entropies are in nats.

    Attributes
    ----------
    end_logprob, entropy
        After each cut; float32 ``(P,)``.
    other_logprob, other_id
        Of the best token other than ``end_id``; float32 and int32 ``(P,)``.
    hidden
        By layer; float16 ``(P, width)``. What is beyond float16 is its largest value.
    suffix_logprobs
        Of each id of a continuation, given all before it; float32 ``(S,)`` each.
    suffix_entropies
        Of the next token after each id of a continuation; float32 ``(S,)`` each.
    """

    end_logprob: Float32Array
    entropy: Float32Array
    other_logprob: Float32Array
    other_id: npt.NDArray[np.int32]
    hidden: dict[int, npt.NDArray[np.float16]] = field(default_factory=dict)
    suffix_logprobs: tuple[Float32Array, ...] = ()
    suffix_entropies: tuple[Float32Array, ...] = ()


def check_signal_trees(
    trees: Sequence[SignalTree], *, context_limit: int, vocabulary: int, layers: int
) -> None:
    """Refuse what cannot be read.

    Parameters
    ----------
    trees
        What is asked.
    context_limit, vocabulary
        Of the engine and its model.
    layers
        Number of the last layer whose hidden states can be had; -1 if there are none.

    Raises
    ------
    data.errors.MisuseError
        In one line: which tree, and what is wrong with it.
    """
    for number, tree in enumerate(trees):
        where = f"signal tree {number}"
        size = len(tree.trunk_ids)
        cuts = tree.cuts
        if any(not 1 <= cut <= size for cut in cuts):
            raise MisuseError(f"{where}: a cut is not one of 1..{size}")
        if any(later <= earlier for earlier, later in pairwise(cuts)):
            raise MisuseError(f"{where}: cuts must rise")
        longest = size
        for item in tree.continuations:
            if not 1 <= item.cut <= size or not item.suffix_ids:
                raise MisuseError(f"{where}: a continuation needs a cut of 1..{size}, and ids")
            longest = max(longest, item.cut + len(item.suffix_ids))
        if longest > context_limit:
            raise MisuseError(f"{where}: {longest} tokens do not fit the context {context_limit}")
        ids = [*tree.trunk_ids, tree.end_id]
        ids += [token for item in tree.continuations for token in item.suffix_ids]
        if any(not 0 <= token < vocabulary for token in ids):
            raise MisuseError(f"{where}: an id is not one of the vocabulary's 0..{vocabulary - 1}")
        wrong = [layer for layer in tree.layers if not 0 <= layer <= layers]
        if wrong:
            known = f"0..{layers}" if layers >= 0 else "none"
            raise MisuseError(f"{where}: layer {wrong[0]} is not one of the model's ({known})")
