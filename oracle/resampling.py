"""The bootstrap's random stream, and what one replicate of one cell looks like.

The stream (fixed: results for a seed must not depend on who computes which replicate)

- Numbers are raw 64-bit outputs of numpy's ``Philox`` bit generator, keyed by
  ``(seed, replicate)``, its 256-bit counter started at ``(0, 0, group, lane)``, lowest word first.
  A group is a benchmark index of the curves. A number x picks item ``x mod n`` of n.
- Lane 0 of a group draws its questions, as many as it has, from their sorted numbers: one draw
  shared by all models.
- Lane m + 1 draws the trajectories of model m: for each drawn question in turn, as many as that
  question has, from its trajectories in the order of the curves. Two occurrences of one question
  draw apart (paper 002, A.5).

Every compiled function calls functions of this file only.
"""

from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt

from oracle.actions import cap_events, question_groups
from stp.curves import Curves
from stp.ragged import IntArray, group_offsets

RawArray = npt.NDArray[np.uint64]
# Tokens of one drawn question stay below 2^COST_BITS, its right probes below 2^(62 - COST_BITS).
COST_BITS = 44
MOST_TRAJECTORIES = 1 << 14


def raw_numbers(seed: int, replicate: int, group: int, lane: int, count: int) -> RawArray:
    """Return the first numbers of one lane of the stream; uint64 ``(count,)``."""
    key = np.array([seed, replicate], np.uint64)
    counter = np.array([0, 0, group, lane], np.uint64)
    return np.random.Philox(key=key, counter=counter).random_raw(count)


def draw_questions(seed: int, replicate: int, group: int, questions: int) -> IntArray:
    """Return the drawn questions of a group, as indices into its sorted question numbers."""
    raw = raw_numbers(seed, replicate, group, 0, questions)
    return (raw % np.uint64(max(questions, 1))).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellTable:
    """One cell, laid out for resampling; trajectories sorted by question.

    Attributes
    ----------
    group, model
        Indices of its benchmark and model.
    trajectory
        Row of each sorted trajectory in the cell's curves, int64 ``(trajectories,)``.
    question_offsets
        Where each question's trajectories start; int64 ``(questions + 1,)``.
    zero, full, tokens
        C(0), C(n) and L(n) of the sorted trajectories, int64.
    event_step
        Cap events of every question (see :class:`oracle.actions.CapEvents`): what the move adds,
        ``(gain << COST_BITS) + spend``, so that one sum carries reward and cost; int64.
    event_member
        Which of the question's trajectories moves, doubled, plus 1 if the next event has another
        cap; int16. Replicates stream through these two, so they are small.
    event_offsets
        Where each question's events start; int64 ``(questions + 1,)``.
    """

    group: int
    model: int
    trajectory: IntArray
    question_offsets: IntArray
    zero: IntArray
    full: IntArray
    tokens: IntArray
    event_step: IntArray
    event_member: npt.NDArray[np.int16]
    event_offsets: IntArray

    @property
    def questions(self) -> int:
        """Number of questions."""
        return int(self.question_offsets.size - 1)

    @property
    def most_trajectories(self) -> int:
        """Most trajectories of a question."""
        return int(np.diff(self.question_offsets).max(initial=0))


def cell_table(curves: Curves, *, model: int, group: int) -> CellTable:
    """Return the table of one cell's curves.

    Raises
    ------
    ValueError
        If a question has more tokens, probes or trajectories than the packed tables hold.
    """
    groups = question_groups(curves)
    order = np.argsort(groups.group, kind="stable")
    question_offsets = group_offsets(groups.group, groups.count)
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    events = cap_events(curves, groups)
    closes = np.ones(events.tokens.size, np.bool_)
    closes[:-1] = events.tokens[:-1] != events.tokens[1:]
    closes[events.offsets[1:] - 1] = True
    member = rank[events.trajectory] - question_offsets[groups.group[events.trajectory]]
    most = int(np.diff(question_offsets).max(initial=0))
    if (
        most >= MOST_TRAJECTORIES
        or most * int(curves.tokens.max(initial=0)) >= 1 << COST_BITS
        or most * curves.probes >= 1 << (62 - COST_BITS)
    ):
        raise ValueError(
            f"a question of model {model}, benchmark {group} is too large to resample: "
            f"trajectories x tokens must stay below 2^{COST_BITS}, trajectories x probes below "
            f"2^{62 - COST_BITS}, trajectories below {MOST_TRAJECTORIES}"
        )
    return CellTable(
        group=group,
        model=model,
        trajectory=order,
        question_offsets=question_offsets,
        zero=curves.zero_correct_s[order].astype(np.int64),
        full=curves.full_correct_s[order].astype(np.int64),
        tokens=curves.full_tokens_s[order],
        event_step=(events.gain << COST_BITS) + events.spend,
        event_member=(2 * member + closes).astype(np.int16),
        event_offsets=events.offsets,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """A few replicates of one cell.

    Attributes
    ----------
    question
        Question of every occurrence, int64 ``(replicates, questions)``.
    weight
        How often each of its trajectories was drawn, int64
        ``(replicates, questions, most trajectories)``.
    """

    question: IntArray
    weight: IntArray


def draw_samples(table: CellTable, seed: int, first: int, question: IntArray) -> Samples:
    """Return the trajectories of replicates from ``first`` on, for their drawn questions."""
    sizes = np.diff(table.question_offsets)[question]
    raw = [
        raw_numbers(seed, first + row, table.group, table.model + 1, int(count))
        for row, count in enumerate(sizes.sum(axis=1))
    ]
    weight = np.zeros((*question.shape, table.most_trajectories), np.int64)
    flat = weight.reshape(question.size, table.most_trajectories)
    _count_draws(np.concatenate(raw), sizes.reshape(-1), flat)
    return Samples(question=question, weight=weight)


def trajectory_copies(table: CellTable, samples: Samples) -> IntArray:
    """Return how often each trajectory of the cell was drawn, in the order of its curves.

    int64 ``(replicates, trajectories)``.
    """
    copies = np.zeros((samples.question.shape[0], table.trajectory.size), np.int64)
    _add_copies(samples.question, samples.weight, table.question_offsets, table.trajectory, copies)
    return copies


def occurrence_sums(table: CellTable, samples: Samples) -> IntArray:
    """Return the reward at k = 0, that at k = n and the tokens of every occurrence.

    int64 ``(3, replicates, questions)``.
    """
    sums = np.empty((3, samples.question.size), np.int64)
    _weighted_sums(
        samples.question.reshape(-1),
        samples.weight.reshape(samples.question.size, -1),
        table.question_offsets,
        table.zero,
        table.full,
        table.tokens,
        sums,
    )
    return sums.reshape(3, *samples.question.shape)


def budget_units(
    table: CellTable, samples: Samples, row: int
) -> tuple[IntArray, IntArray, IntArray, int]:
    """Return the non-dominated caps of every occurrence of one replicate.

    Returns
    -------
    reward, cost, offsets
        As units counted from their cheapest actions, whose reward and cost are 0.
    base
        Reward of the cheapest actions together; their cost is 0.
    """
    reward, cost, offsets, base = _replicate_caps(
        samples.question[row],
        samples.weight[row],
        table.event_step,
        table.event_member,
        table.event_offsets,
    )
    return reward, cost, offsets, int(base)


@nb.njit(cache=True, nogil=True)
def _count_draws(raw: RawArray, sizes: IntArray, weight: IntArray) -> None:
    at = 0
    for o in range(sizes.size):
        size = np.uint64(sizes[o])
        for _ in range(sizes[o]):
            weight[o, np.int64(raw[at] % size)] += 1
            at += 1


@nb.njit(cache=True, nogil=True)
def _add_copies(
    question: IntArray, weight: IntArray, offsets: IntArray, trajectory: IntArray, copies: IntArray
) -> None:
    for row in range(question.shape[0]):
        for o in range(question.shape[1]):
            first = offsets[question[row, o]]
            for x in range(offsets[question[row, o] + 1] - first):
                copies[row, trajectory[first + x]] += weight[row, o, x]


@nb.njit(cache=True, nogil=True)
def _weighted_sums(
    question: IntArray,
    weight: IntArray,
    offsets: IntArray,
    zero: IntArray,
    full: IntArray,
    tokens: IntArray,
    sums: IntArray,
) -> None:
    for o in range(question.size):
        first = offsets[question[o]]
        a = np.int64(0)
        b = np.int64(0)
        c = np.int64(0)
        for x in range(offsets[question[o] + 1] - first):
            a += weight[o, x] * zero[first + x]
            b += weight[o, x] * full[first + x]
            c += weight[o, x] * tokens[first + x]
        sums[0, o] = a
        sums[1, o] = b
        sums[2, o] = c


@nb.njit(cache=True, nogil=True)
def _replicate_caps(
    question: IntArray,
    weight: IntArray,
    step: IntArray,
    member: npt.NDArray[np.int16],
    event_offsets: IntArray,
) -> tuple[IntArray, IntArray, IntArray, int]:
    """Let every occurrence's cap rise through its question's events, counted as drawn."""
    size = 0
    for o in range(question.size):
        size += event_offsets[question[o] + 1] - event_offsets[question[o]]
    # One spare row: every event is written, and kept by moving on.
    kept = np.empty(size + 1, np.int64)
    offsets = np.zeros(question.size + 1, np.int64)
    count = np.int64(0)
    for o in range(question.size):
        mine = weight[o]
        best = np.int64(-1)
        both = np.int64(0)
        for event in range(event_offsets[question[o]], event_offsets[question[o] + 1]):
            who = np.int64(member[np.uint64(event)])
            both += mine[np.uint64(who >> 1)] * step[np.uint64(event)]
            reward = both >> COST_BITS
            kept[np.uint64(count)] = both
            # No branch, for whether a cap is better is anybody's guess: -1 until the cap closes.
            candidate = reward | ((who & 1) - 1)
            count += np.int64(candidate > best)
            best = max(best, candidate)
        offsets[o + 1] = count
    reward_out = np.empty(count, np.int64)
    cost_out = np.empty(count, np.int64)
    bases = np.int64(0)
    for o in range(question.size):
        base = kept[offsets[o]] >> COST_BITS
        bases += base
        for row in range(offsets[o], offsets[o + 1]):
            reward = kept[row] >> COST_BITS
            reward_out[row] = reward - base
            cost_out[row] = kept[row] - (reward << COST_BITS)
    return reward_out, cost_out, offsets, int(bases)
