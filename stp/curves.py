"""Curves: what probing measured, as plain integer arrays.

Everything after probing (oracle, baselines, evaluator) sees this value and nothing else: no model,
no engine, no store. Only numpy is imported here.

Axes: ``_s`` trajectory, ``_k`` position (all trajectories' positions, concatenated).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stp.ragged import IntArray as IntArray
from stp.ragged import first_greatest, gather, index_within, spread

Int32Array = npt.NDArray[np.int32]


def integer_array(
    name: str, values: npt.ArrayLike, dtype: type[np.signedinteger] = np.int64
) -> np.ndarray:
    """Return values as a one-dimensional array of integers, refusing what would change.

    Parameters
    ----------
    name
        What errors call them.
    values
        Integers of any width. Nothing, such as ``[]``, may have any type.
    dtype
        Of the result. An array that has it already is returned as it is, not copied.

    Raises
    ------
    ValueError
        If there is not one dimension, a value is not an integer (a mask is not allowed), or one
        lies outside of what ``dtype`` holds.

    Examples
    --------
    >>> integer_array("rows", [3, 1]).tolist(), integer_array("rows", []).dtype.name
    ([3, 1], 'int64')
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {array.ndim}")
    # What has the type already needs no look at its values: small problems take microseconds.
    if array.size and array.dtype != dtype:
        if not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"{name} must hold integers, not {array.dtype}")
        bounds = np.iinfo(dtype)
        if array.min() < bounds.min or array.max() > bounds.max:
            raise ValueError(f"{name} holds values outside the range of {np.dtype(dtype).name}")
    return np.ascontiguousarray(array, dtype=dtype)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """Token-accuracy curves (L(k), C(k)) of many trajectories.

    Parameters
    ----------
    tokens
        L(k), retained thinking tokens at every position, all trajectories concatenated; int64
        ``(positions,)``. Starts at 0 and never falls within a trajectory.
    correct
        C(k), right probes at every position, 0..``probes``; int32 ``(positions,)``.
    trajectory_offsets
        Where each trajectory's positions start, and the end of the last; int64
        ``(trajectories + 1,)``. Every trajectory has at least the position k = 0.
    question
        The question of each trajectory; int32 ``(trajectories,)``. The same number is the same
        question in every model; numbers need not be adjacent nor start at 0.
    probes
        Answers sampled at every position.
    benchmark, model
        Indices of each trajectory's benchmark and model; int32 ``(trajectories,)``, zeros when
        left out. A question number belongs to one benchmark.
    sample
        Which trajectory of its (model, question) it is; int32 ``(trajectories,)``, counted in
        order of appearance when left out.
    original_correct
        Whether the trajectory's own final answer was right: 1, 0, or -1 if unknown; int8
        ``(trajectories,)``, all -1 when left out. P(n) is not it: that is measured by
        probes after the full thinking.
    extra_probes, extra_correct
        Answers sampled at a position beyond its first ``probes``, and the right ones among these;
        int32 ``(positions,)``, or empty when every position has ``probes`` and no more. Where more
        was sampled depends on what the first answers were, so raw measures read ``correct`` out of
        ``probes`` alone; :mod:`evaluator.analysis.latent` reads all.
    question_names, benchmark_names, model_names
        Names behind the indices, or empty.

    Raises
    ------
    ValueError
        If an array has the wrong shape or kind, or a curve breaks a rule above.

    Examples
    --------
    >>> curves = Curves(tokens=[0, 9, 20], correct=[1, 4, 3], trajectory_offsets=[0, 3],
    ...                 question=[0], probes=4)
    >>> curves.trajectories, curves.full_tokens_s.tolist(), curves.full_correct_s.tolist()
    (1, [20], [3])
    """

    tokens: IntArray
    correct: Int32Array
    trajectory_offsets: IntArray
    question: Int32Array
    probes: int
    benchmark: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    model: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    sample: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    original_correct: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    extra_probes: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    extra_correct: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    question_names: tuple[str, ...] = ()
    benchmark_names: tuple[str, ...] = ()
    model_names: tuple[str, ...] = ()

    @classmethod
    def of_lists(
        cls,
        tokens: Sequence[npt.ArrayLike],
        accuracies: Sequence[npt.ArrayLike],
        *,
        probes: int,
        question: npt.ArrayLike | None = None,
        **others: Any,
    ) -> "Curves":
        """Return curves from one array of tokens and one of accuracies for each trajectory.

        Parameters
        ----------
        tokens
            For each trajectory L(0), L(1), ..., L(n).
        accuracies
            For each trajectory the share of right answers at the same positions, from 0 to 1.
        probes
            Answers that each share is of.
        question
            The question of each trajectory; each its own when left out.
        **others
            Further attributes, such as ``model`` and ``model_names``.

        Raises
        ------
        ValueError
            If the lists do not fit together, or a share is not a multiple of 1 / ``probes``.

        Examples
        --------
        >>> curves = Curves.of_lists([[0, 9, 20], [0, 7]], [[0.25, 1, 0.75], [0, 0.5]], probes=4)
        >>> curves.correct.tolist(), curves.question.tolist()
        ([1, 4, 3, 0, 2], [0, 1])
        """
        if len(tokens) != len(accuracies):
            raise ValueError(f"{len(tokens)} arrays of tokens and {len(accuracies)} of accuracies")
        rows = [np.asarray(each, np.float64) for each in accuracies]
        lengths = [np.asarray(each) for each in tokens]
        for place, (length, row) in enumerate(zip(lengths, rows, strict=True)):
            if length.shape != row.shape or length.ndim != 1 or not length.size:
                raise ValueError(
                    f"trajectory {place}: {length.size} positions of tokens and {row.size} of "
                    "accuracies; each needs the same, and at least k = 0"
                )
        shares = np.concatenate(rows) if rows else np.empty(0)
        if np.isnan(shares).any():
            raise ValueError("an accuracy is not a number")
        if shares.size and not (shares.min() >= 0 and shares.max() <= 1):
            raise ValueError("accuracies are fractions from 0 to 1; divide per cent by 100")
        counts = shares * probes
        correct = np.rint(counts)
        # A share that was rounded to two digits is still one of the few that there are.
        if not np.all(np.abs(counts - correct) <= 0.01 * probes + 1e-9):
            raise ValueError(f"an accuracy is not a share of {probes} answers")
        return cls(
            tokens=np.concatenate(lengths) if lengths else np.empty(0, np.int64),
            correct=correct.astype(np.int32),
            trajectory_offsets=np.cumsum([0, *(length.size for length in lengths)]),
            question=np.asarray(range(len(rows)) if question is None else question, np.int32),
            probes=probes,
            **others,
        )

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("tokens", integer_array("tokens", self.tokens))
        put("correct", integer_array("correct", self.correct, np.int32))
        put("trajectory_offsets", integer_array("trajectory_offsets", self.trajectory_offsets))
        put("question", integer_array("question", self.question, np.int32))
        trajectories = self.question.size
        if self.trajectory_offsets.size != trajectories + 1:
            raise ValueError(
                f"trajectory_offsets has {self.trajectory_offsets.size} entries for "
                f"{trajectories} trajectories; it needs one more than there are trajectories"
            )
        for name in ("benchmark", "model"):
            values = np.asarray(getattr(self, name))
            if values.size == 0:
                values = np.zeros(trajectories, np.int32)
            put(name, integer_array(name, values, np.int32))
        if self.model.size != trajectories:
            raise ValueError(f"model has {self.model.size} entries for {trajectories} trajectories")
        if np.asarray(self.sample).size == 0 and trajectories:
            put("sample", _count_within(self.model, self.question))
        put("sample", integer_array("sample", self.sample, np.int32))
        original = np.asarray(self.original_correct)
        if original.size == 0:
            original = np.full(trajectories, -1, np.int8)
        put("original_correct", integer_array("original_correct", original, np.int8))
        for name in ("extra_probes", "extra_correct"):
            put(name, integer_array(name, getattr(self, name), np.int32))
        self._check()
        self._check_extra()

    def _check(self) -> None:
        trajectories = self.question.size
        for name in ("benchmark", "sample", "original_correct"):
            if getattr(self, name).size != trajectories:
                raise ValueError(
                    f"{name} has {getattr(self, name).size} entries for {trajectories} trajectories"
                )
        for name in ("question", "benchmark", "model"):
            names, indices = getattr(self, f"{name}_names"), getattr(self, name)
            if names and indices.size and not 0 <= indices.min() <= indices.max() < len(names):
                raise ValueError(
                    f"{name} has indices from {indices.min()} to {indices.max()}, but {name}_names "
                    f"has {len(names)} entries"
                )
        order = np.argsort(self.question, kind="stable")
        question, benchmark = self.question[order], self.benchmark[order]
        mixed = (question[1:] == question[:-1]) & (benchmark[1:] != benchmark[:-1])
        if np.any(mixed):
            raise ValueError(
                f"question {question[1:][mixed][0]} belongs to two benchmarks; number questions "
                "over all benchmarks"
            )
        if self.tokens.size != self.correct.size:
            raise ValueError(
                f"tokens has {self.tokens.size} positions and correct has {self.correct.size}"
            )
        probes: object = self.probes
        if isinstance(probes, bool) or not isinstance(probes, int | np.integer) or probes < 1:
            raise ValueError(f"probes must be a positive integer, not {self.probes!r}")
        offsets = self.trajectory_offsets
        if offsets[0] != 0 or offsets[-1] != self.tokens.size:
            raise ValueError(
                "trajectory_offsets must start at 0 and end at the number of positions"
            )
        if np.any(np.diff(offsets) < 1):
            raise ValueError("every trajectory needs at least one position, k = 0")
        if self.correct.size and (self.correct.min() < 0 or self.correct.max() > self.probes):
            raise ValueError(f"correct must lie between 0 and probes = {self.probes}")
        if np.any(self.tokens[offsets[:-1]] != 0):
            raise ValueError("L(0) must be 0: position k = 0 retains no thinking tokens")
        falls = np.diff(self.tokens) < 0
        falls[offsets[1:-1] - 1] = False
        if np.any(falls):
            raise ValueError(
                f"tokens falls within a trajectory at position {int(np.argmax(falls)) + 1}"
            )

    def _check_extra(self) -> None:
        probes, correct = self.extra_probes, self.extra_correct
        if probes.size == 0 and correct.size == 0:
            return
        if not probes.size == correct.size == self.positions:
            raise ValueError(
                f"extra_probes has {probes.size} entries and extra_correct {correct.size} for "
                f"{self.positions} positions; give one of each for every position, or none"
            )
        wrong = (correct < 0) | (correct > probes)
        if np.any(wrong):
            at = int(np.argmax(wrong))
            raise ValueError(
                f"extra_correct is {correct[at]} at position {at} of all; it must lie between 0 "
                f"and extra_probes, {probes[at]}"
            )

    def __repr__(self) -> str:
        """Return a summary in one line, whatever the size.

        Examples
        --------
        >>> Curves(tokens=[0, 9], correct=[1, 4], trajectory_offsets=[0, 2], question=[0], probes=4)
        Curves(1 trajectory, 1 question, 1 model, 1 benchmark, 2 positions, 4 probes each)
        """
        counts = (
            (self.trajectories, "trajectory", "trajectories"),
            (np.unique(self.question).size, "question", "questions"),
            (np.unique(self.model).size, "model", "models"),
            (np.unique(self.benchmark).size, "benchmark", "benchmarks"),
            (self.positions, "position", "positions"),
        )
        said = ", ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in counts)
        return f"Curves({said}, {self.probes} probes each)"

    @property
    def all_probes_k(self) -> Int32Array:
        """Answers at every position, extra ones included; int32 ``(positions,)``."""
        if self.extra_probes.size:
            return (self.probes + self.extra_probes).astype(np.int32)
        return np.full(self.positions, self.probes, np.int32)

    @property
    def all_correct_k(self) -> Int32Array:
        """Right answers at every position, extra ones included; int32 ``(positions,)``."""
        if self.extra_correct.size:
            return (self.correct + self.extra_correct).astype(np.int32)
        return self.correct

    @property
    def trajectories(self) -> int:
        """Number of trajectories."""
        return int(self.question.size)

    @property
    def positions(self) -> int:
        """Number of positions over all trajectories."""
        return int(self.tokens.size)

    @property
    def full_tokens_s(self) -> IntArray:
        """L(n) of every trajectory; int64 ``(trajectories,)``."""
        return self.tokens[self.trajectory_offsets[1:] - 1]

    @property
    def full_correct_s(self) -> Int32Array:
        """C(n) of every trajectory; int32 ``(trajectories,)``."""
        return self.correct[self.trajectory_offsets[1:] - 1]

    @property
    def zero_correct_s(self) -> Int32Array:
        """C(0) of every trajectory; int32 ``(trajectories,)``."""
        return self.correct[self.trajectory_offsets[:-1]]

    @property
    def k_star_s(self) -> IntArray:
        """k*, the earliest maximiser of C(k), of every trajectory; int64 ``(trajectories,)``.

        Examples
        --------
        >>> curves = Curves(tokens=[0, 5, 9, 0, 7], correct=[1, 4, 4, 2, 2],
        ...                 trajectory_offsets=[0, 3, 5], question=[0, 1], probes=4)
        >>> curves.k_star_s.tolist()
        [1, 0]
        """
        return first_greatest(self.correct, self.trajectory_offsets)

    @property
    def position_k(self) -> IntArray:
        """K of every position: 0..n in each trajectory; int64 ``(positions,)``."""
        return index_within(self.trajectory_offsets)

    def spread(self, values_s: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return every trajectory's value at each of its positions; ``(positions,)``."""
        return spread(values_s, self.trajectory_offsets)

    def rows_at(self, stop_s: IntArray) -> IntArray:
        """Return the row in ``tokens`` and ``correct`` of position ``stop_s[s]`` of trajectory s.

        Positions are not checked: :func:`oracle.measured_point` refuses those that do not exist.
        """
        return self.trajectory_offsets[:-1] + stop_s

    def select(self, trajectory_s: npt.ArrayLike) -> "Curves":
        """Return the trajectories at the given indices (or where a mask holds), in that order.

        Indices may repeat; a repeated trajectory stays in its question.

        Parameters
        ----------
        trajectory_s
            Integers in ``0..trajectories - 1``, or a mask ``(trajectories,)``.

        Raises
        ------
        ValueError
            If an index is not an integer or not one of a trajectory, or the mask has another
            length.
        """
        rows = np.asarray(trajectory_s)
        if rows.dtype == np.bool_:
            if rows.shape != (self.trajectories,):
                raise ValueError(
                    f"the mask has shape {rows.shape}; it needs one entry for each of "
                    f"{self.trajectories} trajectories"
                )
            rows = np.flatnonzero(rows)
        rows = integer_array("trajectory_s", rows)
        if rows.size and not 0 <= rows.min() <= rows.max() < self.trajectories:
            wrong = rows[(rows < 0) | (rows >= self.trajectories)][0]
            raise ValueError(
                f"there is no trajectory {wrong}; the curves have {self.trajectories}, counted "
                "from 0"
            )
        elements, offsets = gather(self.trajectory_offsets, rows)
        return replace(
            self,
            tokens=self.tokens[elements],
            correct=self.correct[elements],
            trajectory_offsets=offsets,
            question=self.question[rows],
            benchmark=self.benchmark[rows],
            model=self.model[rows],
            sample=self.sample[rows],
            original_correct=self.original_correct[rows],
            extra_probes=(
                self.extra_probes[elements] if self.extra_probes.size else self.extra_probes
            ),
            extra_correct=(
                self.extra_correct[elements] if self.extra_correct.size else self.extra_correct
            ),
        )

    def cell(self, *, model: int, benchmark: int) -> "Curves":
        """Return the curves of one model on one benchmark."""
        return self.select((self.model == model) & (self.benchmark == benchmark))

    def cells(self) -> Iterator[tuple[int, int, "Curves"]]:
        """Yield ``(model, benchmark, curves)`` for every cell, in order of the two indices."""
        pairs = np.unique(np.stack([self.model, self.benchmark], axis=1), axis=0)
        for model, benchmark in pairs.tolist():
            yield model, benchmark, self.cell(model=model, benchmark=benchmark)


def _count_within(model_s: Int32Array, question_s: Int32Array) -> Int32Array:
    """Return, for each trajectory, how many earlier ones share its model and question."""
    order = np.lexsort((question_s, model_s))
    model, question = model_s[order], question_s[order]
    fresh = np.ones(order.size, np.bool_)
    fresh[1:] = (model[1:] != model[:-1]) | (question[1:] != question[:-1])
    sample = np.empty(order.size, np.int32)
    sample[order] = index_within(np.append(np.flatnonzero(fresh), order.size))
    return sample
