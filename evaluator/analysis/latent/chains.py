"""Learning how accuracies move: one chain for every cell, by expectation-maximisation.

Baum-Welch with a Dirichlet prior on every row. A cell's prior is centred on the chain of its
model over all of its cells, so a cell with few trajectories relies on the others. The
model's own is centred on a mixture of few parts (no change; a small or a wider step, up or down;
a jump, up or down), whose shares are learned too.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from data.progress import Progress
from evaluator.analysis.latent.kernels import expected_moves
from evaluator.analysis.latent.levels import Readings
from stp.ragged import FloatArray, IntArray

CHUNK = 128
"""Trajectories that a thread takes at a time. Sums are over chunks, in their order: with another
number here the last digits of results change, with another number of threads nothing does. The
products of matrices are so small that the library for them starts no threads of its own."""

PRIOR_MOVES = 1.0
"""Pseudo-moves from every level by which a model's chain is held to the mixture."""

SHARED_MOVES = 20.0
"""Pseudo-moves from every level by which a cell's chain is held to its model's."""

GAIN = 1e-5
"""Learning ends when an iteration gains less log-posterior than this per position, or than"""

LEAST_GAIN = 0.4
"""this in all: a small cell's last gains are learned from noise, and fit other questions worse."""

_SMALLEST = 1e-12
# Shares before anything is learned: no change, then up and down by a step, by a few, by any number.
_FIRST_SHARES = np.array([0.5, 0.1, 0.1, 0.08, 0.08, 0.07, 0.07])
_STEPS = (1.0, 3.0)
# Moves that every part of the mixture is given at least: none is ruled out by few data.
_LEAST_MOVES = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chain:
    """Where accuracies start and how they move.

    Attributes
    ----------
    start
        Probability of every level at k = 0; float64 ``(levels,)``.
    move
        Probability of every level at the next position, a row for every level; float64
        ``(levels, levels)``.
    """

    start: FloatArray
    move: FloatArray

    @property
    def back(self) -> FloatArray:
        """``move`` transposed, its rows contiguous."""
        return np.ascontiguousarray(self.move.T)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellMembers:
    """One cell: its model, its benchmark and its trajectories' indices, the longest first."""

    model: int
    benchmark: int
    member: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """A cell's chain, and how the learning of it went.

    Attributes
    ----------
    chain
        What was learned.
    starts, moves
        Starts and moves that the chain expects behind the counts, and the pseudo-ones of the
        prior: float64 ``(levels,)`` and ``(levels, levels)``. Given such numbers, a chain is
        Dirichlet distributed.
    log_likelihood
        Of the cell's counts under the chain.
    iterations
        Of the model's learning.
    converged
        Whether the last one gained less than :data:`GAIN` and :data:`LEAST_GAIN` ask for.
    """

    chain: Chain
    starts: FloatArray
    moves: FloatArray
    log_likelihood: float
    iterations: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expected:
    """Expected starts and moves of a cell, and the log-likelihood of its counts."""

    starts: FloatArray
    moves: FloatArray
    log_likelihood: float


def parts_of_moves(levels: int) -> FloatArray:
    """Return the parts of the mixture, each a matrix of moves; float64 ``(7, levels, levels)``.

    From a level without anything above it, a part that goes up stays.
    """
    step = np.subtract.outer(np.arange(levels), np.arange(levels)).T
    stay = np.eye(levels)
    weights = [np.exp(-0.5 * (step / width) ** 2) for width in _STEPS] + [np.ones_like(stay)]
    parts = [stay]
    for weight in weights:
        for side in (step > 0, step < 0):
            part = weight * side
            total = part.sum(axis=1, keepdims=True)
            parts.append(np.where(total > 0, part / np.where(total > 0, total, 1.0), stay))
    return np.array(parts)


def general_chain(levels: int) -> Chain:
    """Return the chain that learning starts from."""
    move = np.tensordot(_FIRST_SHARES, parts_of_moves(levels), 1)
    return Chain(start=np.full(levels, 1 / levels), move=move)


def fitted_mixture(moves: FloatArray, parts: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the parts' shares after a few steps of learning from expected moves."""
    for _ in range(3):
        mixture = np.maximum(np.tensordot(shares, parts, 1), _SMALLEST)
        credit = shares * np.tensordot(parts, moves / mixture, ((1, 2), (0, 1))) + _LEAST_MOVES
        shares = credit / credit.sum()
    return shares


def chunks(member: IntArray) -> list[IntArray]:
    """Return the parts in which a cell's trajectories are worked on."""
    return [member[first : first + CHUNK] for first in range(0, member.size, CHUNK)]


def expect(
    readings: Readings, offsets: IntArray, member: IntArray, chain: Chain, pool: Executor
) -> Expected:
    """Return what a chain expects to have happened behind a cell's counts (the E-step)."""
    back = chain.back

    def piece(part: IntArray) -> tuple[FloatArray, FloatArray, float]:
        found: tuple[FloatArray, FloatArray, float] = expected_moves(
            readings.code,
            offsets,
            part,
            readings.likelihood,
            readings.log_scale,
            chain.start,
            chain.move,
            back,
        )
        return found

    parts = list(pool.map(piece, chunks(member)))
    return Expected(
        moves=np.sum([part[0] for part in parts], axis=0) * chain.move,
        starts=np.sum([part[1] for part in parts], axis=0),
        log_likelihood=float(np.sum([part[2] for part in parts])),
    )


def combined(starts: FloatArray, moves: FloatArray, centre: Chain, weight: float) -> Chain:
    """Return the chain of the highest posterior for counts and a prior (the M-step)."""
    return normalised(starts + weight * centre.start, moves + weight * centre.move)


def normalised(start: FloatArray, move: FloatArray) -> Chain:
    """Return the chain in proportion to the weights; no probability is 0."""
    start = np.maximum(start / start.sum(), _SMALLEST)
    move = np.maximum(move / move.sum(axis=1, keepdims=True), _SMALLEST)
    return Chain(start=start / start.sum(), move=move / move.sum(axis=1, keepdims=True))


def learn(
    readings: Readings,
    offsets: IntArray,
    cells: Sequence[CellMembers],
    *,
    iterations: int,
    pool: Executor,
    progress: Progress,
) -> list[Learned]:
    """Learn the chains of one model's cells together.

    Parameters
    ----------
    readings, offsets
        All curves' counts, and where trajectories start.
    cells
        The model's cells.
    iterations
        The most iterations.
    pool
        Threads.
    progress
        Called with the iterations done, and the most that there may be.
    """
    levels = readings.likelihood.shape[1]
    parts, shares = parts_of_moves(levels), _FIRST_SHARES
    general = general_chain(levels)
    alone = len(cells) == 1
    weight = PRIOR_MOVES if alone else SHARED_MOVES
    centre, own = general, [general] * len(cells)
    positions = sum(_positions(offsets, cell.member) for cell in cells)
    before, converged, done = -np.inf, False, 0
    expected = [expect(readings, offsets, c.member, general, pool) for c in cells]
    while done < iterations and not converged:
        moves = _total(e.moves for e in expected)
        shares = fitted_mixture(moves, parts, shares)
        centre = Chain(start=general.start, move=np.tensordot(shares, parts, 1))
        if not alone:
            centre = combined(_total(e.starts for e in expected), moves, centre, PRIOR_MOVES)
        own = [combined(e.starts, e.moves, centre, weight) for e in expected]
        expected = [
            expect(readings, offsets, cell.member, chain, pool)
            for cell, chain in zip(cells, own, strict=True)
        ]
        now = sum(e.log_likelihood for e in expected)
        done += 1
        progress(done, iterations)
        converged = abs(now - before) < max(GAIN * positions, LEAST_GAIN)
        before = now
    return [
        Learned(
            chain=chain,
            starts=e.starts + weight * centre.start,
            moves=e.moves + weight * centre.move,
            log_likelihood=e.log_likelihood,
            iterations=done,
            converged=converged and bool(np.isfinite(e.log_likelihood)),
        )
        for chain, e in zip(own, expected, strict=True)
    ]


def _total(arrays: Iterable[FloatArray]) -> FloatArray:
    return np.asarray(np.sum(list(arrays), axis=0))


def _positions(offsets: IntArray, member: IntArray) -> int:
    return int((offsets[member + 1] - offsets[member]).sum())
