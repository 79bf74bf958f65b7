r"""The boundary audit: what boundary tokens are, how often they occur, and what they miss.

Everything is decided on the bytes of single tokens and on concatenated thinking ids; no decoded
text is searched, except to check the audit itself. Results of parts (shards) add up, so a campaign
of any size is audited one part at a time. Paper 002, D.1, Table 8 and Figure 9.
"""

# mypy: disallow-untyped-decorators=False
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numba
import numpy as np
import numpy.typing as npt

from stp.ragged import IntArray, spread
from stp.segmentation import StepRule, segment_many
from stp.tokenizers import Tokenizer, backend

BoundaryKind = Literal["pure", "white_space", "suffix", "infix"]
BOUNDARY_KINDS: tuple[BoundaryKind, ...] = get_args(BoundaryKind)
"""The double newline alone; other white space only; text that ends in a double newline, white
space after it or not; text that continues after it. Table 8's P, W, S and I."""

_PAIR = b"\n\n"
_BEGINS, _ENDS, _BOUNDARY, _EMPTY = 1, 2, 4, 8


def boundary_kind(form: bytes) -> BoundaryKind:
    r"""Return which kind of boundary token has this decoded form.

    White space is Unicode's: the ideographic space counts.

    Raises
    ------
    ValueError
        If the form holds no double newline.

    Examples
    --------
    >>> [boundary_kind(form) for form in (b"\n\n", b" \n\n\n", b".\n\n", b");\n\n//")]
    ['pure', 'white_space', 'suffix', 'infix']
    """
    if form == _PAIR:
        return "pure"
    before, pair, after = form.rpartition(_PAIR)
    if not pair:
        raise ValueError(f"{form!r} holds no double newline")
    if after.decode(errors="replace").strip():
        return "infix"
    return "suffix" if before.decode(errors="replace").strip() else "white_space"


def escape_form(form: bytes) -> str:
    r"""Return a token's bytes in printable characters, each form in its own way.

    ``\n``, ``\r``, ``\t`` and ``\\`` are themselves, ``\xNN`` is a byte that is not text or an
    ASCII control character, ``\uNNNN`` (``\UNNNNNNNN``) another character that is not printable.

    Examples
    --------
    >>> print(escape_form(b"};\n\n"), escape_form(b"\xe3\x80\x80\n\n"), escape_form(b"\xff"))
    };\n\n \u3000\n\n \xff
    """
    return "".join(map(_escape, form.decode("utf-8", errors="surrogateescape")))


_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\"}


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return rf"\x{code - 0xDC00:02x}"
    if code < 0x80:
        return rf"\x{code:02x}"
    return rf"\u{code:04x}" if code <= 0xFFFF else rf"\U{code:08x}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VocabularyForms:
    """A vocabulary as the audit needs it.

    Attributes
    ----------
    forms
        Decoded form of every id by itself.
    boundary_ids
        Ids whose form holds a double newline, ascending; int64 ``(boundaries,)``.
    kinds
        The kind of each of them.
    """

    forms: tuple[bytes, ...]
    boundary_ids: IntArray
    kinds: tuple[BoundaryKind, ...]

    def count(self, kind: BoundaryKind) -> int:
        """Return how many boundary ids are of a kind."""
        return self.kinds.count(kind)


def vocabulary_forms(token_forms: Sequence[bytes]) -> VocabularyForms:
    """Find the boundary tokens of a vocabulary, and their kinds.

    Parameters
    ----------
    token_forms
        What :func:`stp.tokenizers.token_bytes` returns.
    """
    found = [token_id for token_id, form in enumerate(token_forms) if _PAIR in form]
    return VocabularyForms(
        forms=tuple(token_forms),
        boundary_ids=np.array(found, np.int64),
        kinds=tuple(boundary_kind(token_forms[token_id]) for token_id in found),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundaryCounts:
    """What the boundary tokens of one vocabulary did in some trajectories. Adds up over parts.

    Attributes
    ----------
    trajectories, tokens
        How many were read; thinking tokens.
    occurrences
        Of each boundary id, in the order of ``VocabularyForms.boundary_ids``.
    crossing
        Literal newline pairs whose two newlines belong to different tokens. Pairs overlap: three
        newlines hold two. They end no block.
    unmarked
        Those of them whose right token is not a boundary token.
    pairs
        All literal newline pairs, inside tokens and crossing, overlapping.
    """

    trajectories: int
    tokens: int
    occurrences: IntArray
    crossing: int
    unmarked: int
    pairs: int

    @property
    def seen(self) -> int:
        """Boundary ids that occurred."""
        return int(np.count_nonzero(self.occurrences))

    @property
    def events(self) -> int:
        """Occurrences of boundary tokens."""
        return int(self.occurrences.sum())

    def __add__(self, other: "BoundaryCounts") -> "BoundaryCounts":
        """Return the counts of both parts together."""
        return BoundaryCounts(
            trajectories=self.trajectories + other.trajectories,
            tokens=self.tokens + other.tokens,
            occurrences=self.occurrences + other.occurrences,
            crossing=self.crossing + other.crossing,
            unmarked=self.unmarked + other.unmarked,
            pairs=self.pairs + other.pairs,
        )


class BoundaryAuditor:
    """Audits trajectories of one vocabulary; the tables it looks ids up in are made once.

    Parameters
    ----------
    vocabulary
        What :func:`vocabulary_forms` returns.
    """

    def __init__(self, vocabulary: VocabularyForms) -> None:
        self.vocabulary = vocabulary
        size = len(vocabulary.forms)
        self._flags = np.zeros(size + 1, np.uint8)
        self._inside = np.zeros(size + 1, np.int32)
        for token_id, form in enumerate(vocabulary.forms):
            self._flags[token_id] = (
                _BEGINS * form.startswith(b"\n")
                | _ENDS * form.endswith(b"\n")
                | _EMPTY * (not form)
            )
        self._flags[vocabulary.boundary_ids] |= _BOUNDARY
        for token_id in vocabulary.boundary_ids.tolist():
            self._inside[token_id] = _newline_pairs(vocabulary.forms[token_id])
        # A model may write ids of padding that its tokenizer does not have; they decode to nothing.
        self._flags[size] = _EMPTY

    def audit(self, token_ids: npt.ArrayLike, trajectory_offsets: npt.ArrayLike) -> BoundaryCounts:
        r"""Count boundary tokens, and newline pairs that cross tokens.

        Parameters
        ----------
        token_ids
            Thinking tokens of all trajectories, concatenated; integers ``(tokens,)``.
        trajectory_offsets
            Where each trajectory starts, and the end of the last; integers
            ``(trajectories + 1,)``. No pair crosses from one trajectory to the next.

        Raises
        ------
        ValueError
            If ids are not non-negative integers, or the offsets do not cover them.

        Examples
        --------
        >>> auditor = BoundaryAuditor(vocabulary_forms([b"a", b"\n", b".\n\n"]))
        >>> counts = auditor.audit([0, 2, 1, 1], [0, 4]) + auditor.audit([1], [0, 1])
        >>> counts.events, counts.crossing, counts.unmarked, counts.pairs
        (1, 2, 2, 3)
        """
        ids, offsets = _checked(token_ids, trajectory_offsets)
        counts, pairs_s, crossing, unmarked = self._count(ids, offsets)
        return BoundaryCounts(
            trajectories=offsets.size - 1,
            tokens=ids.size,
            occurrences=counts[self.vocabulary.boundary_ids],
            crossing=crossing,
            unmarked=unmarked,
            pairs=int(pairs_s.sum()),
        )

    def decoding_mismatches(
        self, token_ids: npt.ArrayLike, trajectory_offsets: npt.ArrayLike, tokenizer: Tokenizer
    ) -> int:
        """Check the audit: decode every trajectory as a whole, and count newline pairs there.

        Parameters
        ----------
        token_ids, trajectory_offsets
            As for :meth:`audit`.
        tokenizer
            The tokenizer that the vocabulary is of.

        Returns
        -------
        int
            Trajectories in whose decoded text the newline pairs are not as many as the audit finds
            by bytes.
        """
        ids, offsets = _checked(token_ids, trajectory_offsets)
        pairs_s = self._count(ids, offsets)[1]
        parts = np.split(ids, offsets[1:-1]) if offsets.size > 1 else []
        texts = backend(tokenizer).decode_batch(
            [part.tolist() for part in parts], skip_special_tokens=False
        )
        found = [_newline_pairs(text.encode()) for text in texts]
        return int(np.count_nonzero(np.array(found, np.int64) != pairs_s))

    def _count(
        self, ids: npt.NDArray[Any], offsets: IntArray
    ) -> tuple[IntArray, IntArray, int, int]:
        counts = np.zeros(self._flags.size, np.int64)
        pairs_s = np.zeros(offsets.size - 1, np.int64)
        crossing, unmarked = _count_pairs(ids, offsets, self._flags, self._inside, counts, pairs_s)
        return counts, pairs_s, int(crossing), int(unmarked)


@numba.njit(cache=True, nogil=True)
def _count_pairs(
    ids: npt.NDArray[Any],
    offsets: IntArray,
    flags: npt.NDArray[np.uint8],
    inside: npt.NDArray[np.int32],
    counts: IntArray,
    pairs_s: IntArray,
) -> tuple[int, int]:
    """Fill the occurrences of boundary ids and the pairs of every trajectory; count crossings.

    The last entry of ``flags``, ``inside`` and ``counts`` stands for all unknown ids.
    """
    unknown = flags.size - 1
    crossing = 0
    unmarked = 0
    for s in range(offsets.size - 1):
        pairs = 0
        newline_before = False
        for index in range(offsets[s], offsets[s + 1]):
            token = min(ids[index], unknown)
            flag = flags[token]
            # Both newlines are on either side of a token without bytes.
            if flag & _EMPTY:
                continue
            if newline_before and flag & _BEGINS:
                crossing += 1
                pairs += 1
                if not flag & _BOUNDARY:
                    unmarked += 1
            if flag & _BOUNDARY:
                counts[token] += 1
                pairs += inside[token]
            newline_before = (flag & _ENDS) != 0
        pairs_s[s] = pairs
    return crossing, unmarked


def reconstruction_mismatches(
    token_ids: npt.ArrayLike,
    trajectory_offsets: npt.ArrayLike,
    boundary_ids: Iterable[int],
    step_tokens: int,
    stored_tokens: npt.ArrayLike,
    stored_offsets: npt.ArrayLike,
    *,
    steps: StepRule = "merged",
) -> int:
    """Segment stored thinking again and count trajectories with other positions than stored.

    Parameters
    ----------
    token_ids, trajectory_offsets, boundary_ids, step_tokens
        As for :func:`stp.segmentation.segment_many`.
    stored_tokens
        The recorded L(0..n) of every trajectory, concatenated; integers ``(positions,)``.
    stored_offsets
        Where each trajectory's positions start, and the end; integers ``(trajectories + 1,)``.
    steps
        By which rule blocks became steps.

    Raises
    ------
    ValueError
        If ids or offsets are unfit, or the two kinds of offsets differ in their trajectories.
    """
    stored, starts = _checked(stored_tokens, stored_offsets)
    tokens, offsets = segment_many(
        token_ids, trajectory_offsets, boundary_ids, step_tokens, steps=steps
    )
    if offsets.size != starts.size:
        raise ValueError(
            f"{offsets.size - 1} trajectories have {starts.size - 1} rows of positions"
        )
    sizes = np.diff(starts)
    differs = sizes != np.diff(offsets)
    # Compare the positions of the trajectories that have equally many of them, all at once.
    mine = tokens[spread(~differs, offsets)]
    theirs = stored[spread(~differs, starts)]
    owner = np.repeat(np.flatnonzero(~differs), sizes[~differs])
    differs[owner[mine != theirs]] = True
    return int(np.count_nonzero(differs))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepLengths:
    """The distribution of step lengths under one target b; every step counts the same.

    Attributes
    ----------
    step_tokens
        b, in tokens.
    counts
        ``counts[l]`` steps have l tokens; int64.
    """

    step_tokens: int
    counts: IntArray

    @property
    def steps(self) -> int:
        """All steps."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean length in tokens; NaN without a step."""
        if not self.steps:
            return float("nan")
        return int(self.counts @ np.arange(self.counts.size)) / self.steps

    def quantile(self, fraction: float) -> float:
        """Return the least length that at least this fraction of the steps does not exceed.

        NaN without a step.

        Raises
        ------
        ValueError
            If the fraction is not from 0 to 1.
        """
        if not 0 <= fraction <= 1:
            raise ValueError(f"a quantile's fraction is from 0 to 1, not {fraction}")
        if not self.steps:
            return float("nan")
        # A product such as 0.07 * 100 must not round up past its whole number.
        rank = max(1, math.ceil(fraction * self.steps - 1e-9))
        return float(np.searchsorted(np.cumsum(self.counts), rank))

    @property
    def longest(self) -> int:
        """The longest step; 0 without a step."""
        return self.counts.size - 1 if self.counts.size else 0

    def lengths(self) -> IntArray:
        """Return every step's length, ascending; int64 ``(steps,)``."""
        return np.repeat(np.arange(self.counts.size), self.counts)

    def __add__(self, other: "StepLengths") -> "StepLengths":
        """Return the distribution over the steps of both.

        Raises
        ------
        ValueError
            If their targets differ.
        """
        if self.step_tokens != other.step_tokens:
            raise ValueError(
                f"lengths for b = {self.step_tokens} and {other.step_tokens} are mixed"
            )
        counts = np.zeros(max(self.counts.size, other.counts.size), np.int64)
        counts[: self.counts.size] += self.counts
        counts[: other.counts.size] += other.counts
        return StepLengths(step_tokens=self.step_tokens, counts=counts)


def step_lengths(
    token_ids: npt.ArrayLike,
    trajectory_offsets: npt.ArrayLike,
    boundary_ids: Iterable[int],
    step_tokens: Sequence[int] = (128, 256, 512),
    *,
    threads: int | None = None,
) -> tuple[StepLengths, ...]:
    """Cut stored thinking into steps under several targets b; nothing is probed.

    Parameters
    ----------
    token_ids, trajectory_offsets, boundary_ids, threads
        As for :func:`stp.segmentation.segment_many`.
    step_tokens
        The targets b.

    Returns
    -------
    tuple of StepLengths
        One for each target, in their order.

    Examples
    --------
    >>> one, three = step_lengths([5, 5, 9, 5, 9, 5, 5, 5], [0, 8], {9}, (1, 3))
    >>> one.lengths().tolist(), three.lengths().tolist(), three.mean
    ([2, 3, 3], [2, 3, 3], 2.6666666666666665)
    """
    boundary_ids = tuple(boundary_ids)
    return tuple(
        StepLengths(
            step_tokens=target,
            counts=_length_counts(
                *segment_many(token_ids, trajectory_offsets, boundary_ids, target, threads=threads)
            ),
        )
        for target in step_tokens
    )


def _length_counts(tokens: IntArray, offsets: IntArray) -> IntArray:
    """Return how many steps L(k) - L(k-1) there are of every length."""
    is_step = np.ones(tokens.size, np.bool_)
    is_step[offsets[:-1]] = False
    lengths = np.diff(tokens, prepend=0)[is_step]
    return np.bincount(lengths) if lengths.size else np.zeros(0, np.int64)


def _newline_pairs(content: bytes) -> int:
    """Return how many newlines are followed by a newline."""
    return sum(len(run) - 1 for run in _NEWLINES(content))


_NEWLINES: Callable[[bytes], list[bytes]] = re.compile(rb"\n+").findall


def _checked(values: npt.ArrayLike, offsets: npt.ArrayLike) -> tuple[npt.NDArray[Any], IntArray]:
    """Return concatenated integers and where the parts start, both fit for the kernels."""
    checked = np.asarray(values)
    if checked.size == 0:
        checked = np.empty(0, np.int64)
    if checked.ndim != 1 or not np.issubdtype(checked.dtype, np.integer):
        raise ValueError(f"integers in one dimension are needed, not {checked.dtype}")
    if checked.min(initial=0) < 0:
        raise ValueError("ids and positions must be non-negative")
    if checked.dtype not in (np.int32, np.int64):
        checked = checked.astype(np.int64)
    starts = np.asarray(offsets)
    if (
        starts.ndim != 1
        or starts.size == 0
        or not np.issubdtype(starts.dtype, np.integer)
        or starts[0] != 0
        or starts[-1] != checked.size
        or np.any(np.diff(starts) < 0)
    ):
        raise ValueError(f"offsets must be integers that rise from 0 to {checked.size}")
    return np.ascontiguousarray(checked), np.ascontiguousarray(starts, dtype=np.int64)
