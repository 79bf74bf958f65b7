"""Actions: what each strategy may do with each decision unit, and what it costs.

A unit is what an oracle decides on: a (model, question) pair for routing and fixed budgets, a
trajectory for early exit. An action is one choice for a unit, an integer (reward, cost) pair:
right probes and retained thinking tokens (paper 002, sections 4.1 and A.3). Dominated actions are
removed here, so everything after this module sees, per unit, costs and rewards that both rise.
"""

from dataclasses import dataclass, field
from typing import Literal, get_args

import numba as nb
import numpy as np
import numpy.typing as npt

from stp.curves import Curves, integer_array
from stp.ragged import IntArray, greatest, group_offsets, row_of, spread

Strategy = Literal["routing", "fixed_budget", "early_exit"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Actions:
    """Non-dominated actions of every unit, concatenated.

    Attributes
    ----------
    reward, cost
        Of every action, int64 ``(actions,)``; within a unit both rise strictly.
    unit_offsets
        Where each unit's actions start, and the end of the last; int64 ``(units + 1,)``.
    choice
        What the action is, int64 ``(actions,)``: 0 or 1 (thinks) for routing, the cap in tokens
        for fixed budgets, the position k for early exit, the row given for free-standing arrays.
    """

    reward: IntArray
    cost: IntArray
    unit_offsets: IntArray
    choice: IntArray = field(repr=False)

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit_offsets.size - 1)

    @property
    def base_reward(self) -> int:
        """Reward when every unit takes its cheapest action."""
        return int(self.reward[self.unit_offsets[:-1]].sum())

    @property
    def base_cost(self) -> int:
        """Cost when every unit takes its cheapest action."""
        return int(self.cost[self.unit_offsets[:-1]].sum())

    @property
    def top_reward(self) -> int:
        """Greatest possible reward."""
        return int(self.reward[self.unit_offsets[1:] - 1].sum())

    @property
    def top_cost(self) -> int:
        """Least cost of the greatest reward."""
        return int(self.cost[self.unit_offsets[1:] - 1].sum())


def make_actions(
    *, reward: npt.ArrayLike, cost: npt.ArrayLike, unit_offsets: npt.ArrayLike
) -> Actions:
    """Return actions from plain arrays, the dominated ones removed.

    Parameters
    ----------
    reward, cost
        Non-negative integers ``(rows,)``, the rows of one unit side by side, in any order.
    unit_offsets
        Integers ``(units + 1,)``: unit u owns rows ``unit_offsets[u]:unit_offsets[u + 1]``.

    Returns
    -------
    Actions
        ``choice`` is the row. Of rows with equal reward and cost the first is kept.

    Raises
    ------
    ValueError
        If a value is negative or not an integer, a unit has no row, or sums leave the range that
        the exact programs are safe in (2^60).

    Examples
    --------
    >>> actions = make_actions(reward=[0, 3, 2], cost=[0, 5, 9], unit_offsets=[0, 3])
    >>> actions.reward.tolist(), actions.cost.tolist(), actions.choice.tolist()
    ([0, 3], [0, 5], [0, 1])
    """
    columns = {"reward": reward, "cost": cost, "unit_offsets": unit_offsets}
    arrays = {}
    for name, values in columns.items():
        arrays[name] = integer_array(name, values)
        if arrays[name].size and int(arrays[name].min()) < 0:
            raise ValueError(f"{name} must not be negative")
    reward_a, cost_a, offsets = arrays["reward"], arrays["cost"], arrays["unit_offsets"]
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != reward_a.size:
        raise ValueError("unit_offsets must start at 0 and end at the number of rows")
    if reward_a.size != cost_a.size:
        raise ValueError(f"reward has {reward_a.size} rows and cost has {cost_a.size}")
    if np.any(np.diff(offsets) < 1):
        raise ValueError("every unit needs at least one row")
    if offsets.size > 1:
        for name, array in (("reward", reward_a), ("cost", cost_a)):
            if greatest(array, offsets).astype(np.float64).sum() >= 2.0**60:
                raise ValueError(f"the {name}s of all units together reach 2^60")
    unit = row_of(offsets)
    order = np.lexsort((-reward_a, cost_a, unit))
    keep, kept_offsets = _last_of_cost_rising(cost_a[order], reward_a[order], offsets)
    rows = order[keep]
    return Actions(reward=reward_a[rows], cost=cost_a[rows], unit_offsets=kept_offsets, choice=rows)


def strategy_actions(curves: Curves, strategy: Strategy) -> Actions:
    """Return the actions that a strategy has on measured curves.

    Routing has two per question: all trajectories at k = 0, or all at k = n. Fixed budgets have
    one per distinct token count of a question: every trajectory stops at its last position whose
    retained tokens do not exceed the cap; the cost is what is retained, not the cap. Early exit
    has one per position of each trajectory (paper 002, Table 2 and A.3). In a value of several
    models the unit of the first two is the (model, question) pair, in the order of
    :func:`question_groups`; that of early exit is the trajectory, in the order of ``curves``.

    Raises
    ------
    ValueError
        If the strategy is not one of :data:`STRATEGIES`, or all thinking together reaches 2^60
        tokens.
    """
    if curves.full_tokens_s.astype(np.float64).sum() >= 2.0**60:
        raise ValueError("the costs of all units together reach 2^60")
    if strategy == "early_exit":
        return _early_exit(curves)
    groups = question_groups(curves)
    if strategy == "routing":
        return _routing(curves, groups)
    if strategy == "fixed_budget":
        return _fixed_budget(curves, groups)
    raise ValueError(f"unknown strategy {strategy!r}; choose from {', '.join(STRATEGIES)}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuestionGroups:
    """Trajectories grouped by (model, question), groups sorted by the two numbers.

    Attributes
    ----------
    model, question
        Of each group, int32 ``(groups,)``.
    group
        Of each trajectory, int64 ``(trajectories,)``.
    """

    model: npt.NDArray[np.int32]
    question: npt.NDArray[np.int32]
    group: IntArray

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.model.size)


def question_groups(curves: Curves) -> QuestionGroups:
    """Return the (model, question) pairs of the curves and the pair of each trajectory."""
    # Two 32-bit numbers side by side in one sort in the order of the pair.
    pair = (curves.model.astype(np.int64) << 32) + curves.question
    _, first, group = np.unique(pair, return_index=True, return_inverse=True)
    return QuestionGroups(
        model=curves.model[first],
        question=curves.question[first],
        group=group.reshape(-1).astype(np.int64),
    )


def full_cost(curves: Curves) -> int:
    """Return the tokens of full thinking, the sum of L(n)."""
    return int(curves.full_tokens_s.sum())


def _writable(array: IntArray) -> IntArray:
    """Return a writable array: numba compiles again for a read-only one."""
    return np.require(array, requirements=["C", "W"])


def _sum_by_group(values: IntArray, group: IntArray, groups: int) -> IntArray:
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(groups))
    return np.asarray(np.add.reduceat(values[order], starts) if groups else values[:0], np.int64)


def _routing(curves: Curves, groups: QuestionGroups) -> Actions:
    count = groups.count
    zero = _sum_by_group(curves.zero_correct_s.astype(np.int64), groups.group, count)
    full = _sum_by_group(curves.full_correct_s.astype(np.int64), groups.group, count)
    tokens = _sum_by_group(curves.full_tokens_s, groups.group, count)
    reward = np.stack([zero, full], axis=1).reshape(-1)
    cost = np.stack([np.zeros(count, np.int64), tokens], axis=1).reshape(-1)
    actions = make_actions(
        reward=reward, cost=cost, unit_offsets=2 * np.arange(count + 1, dtype=np.int64)
    )
    return Actions(
        reward=actions.reward,
        cost=actions.cost,
        unit_offsets=actions.unit_offsets,
        choice=actions.choice % 2,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CapEvents:
    """What happens to each question as its cap rises: trajectories move on, one position each.

    Attributes
    ----------
    tokens
        Cap at which the event happens, int64 ``(positions,)``, rising within a group.
    gain, spend
        Right probes and tokens that the move adds, int64. At k = 0 the gain is C(0).
    trajectory
        Which trajectory moves, int64 ``(positions,)``.
    offsets
        Where each group's events start, and the end of the last; int64 ``(groups + 1,)``.
    """

    tokens: IntArray
    gain: IntArray
    spend: IntArray
    trajectory: IntArray
    offsets: IntArray


def cap_events(curves: Curves, groups: QuestionGroups) -> CapEvents:
    """Return the events of all (model, question) pairs, in the order of ``groups``."""
    gain = np.diff(curves.correct.astype(np.int64), prepend=0)
    spend = np.diff(curves.tokens, prepend=0)
    first = curves.trajectory_offsets[:-1]
    gain[first] = curves.correct[first]
    spend[first] = 0
    member = np.argsort(groups.group, kind="stable")
    member_offsets = group_offsets(groups.group, groups.count)
    rows, trajectory, offsets = _merge_by_tokens(
        _writable(curves.tokens), _writable(curves.trajectory_offsets), member, member_offsets
    )
    return CapEvents(
        tokens=curves.tokens[rows],
        gain=gain[rows],
        spend=spend[rows],
        trajectory=trajectory,
        offsets=offsets,
    )


def _fixed_budget(curves: Curves, groups: QuestionGroups) -> Actions:
    events = cap_events(curves, groups)
    reward, cost, cap, offsets = _caps(events.tokens, events.gain, events.spend, events.offsets)
    return Actions(reward=reward, cost=cost, unit_offsets=offsets, choice=cap)


def _early_exit(curves: Curves) -> Actions:
    correct = curves.correct.astype(np.int64)
    keep, offsets = _last_of_cost_rising(
        _writable(curves.tokens), correct, _writable(curves.trajectory_offsets)
    )
    return Actions(
        reward=correct[keep],
        cost=curves.tokens[keep],
        unit_offsets=offsets,
        choice=keep - spread(curves.trajectory_offsets[:-1], offsets),
    )


@nb.njit(cache=True, nogil=True)
def _last_of_cost_rising(
    cost: IntArray, reward: IntArray, offsets: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the non-dominated rows where costs never fall within a unit, and unit offsets."""
    keep = np.empty(reward.size, np.int64)
    kept_offsets = np.zeros(offsets.size, np.int64)
    count = 0
    for u in range(offsets.size - 1):
        best = np.int64(-1)
        for row in range(offsets[u], offsets[u + 1]):
            if reward[row] > best:
                # A better reward at the same cost dominates what was kept for that cost.
                if best >= 0 and cost[row] == cost[keep[count - 1]]:
                    count -= 1
                best = reward[row]
                keep[count] = row
                count += 1
        kept_offsets[u + 1] = count
    return keep[:count], kept_offsets


@nb.njit(cache=True, nogil=True)
def _caps(
    tokens: IntArray, gain: IntArray, spend: IntArray, offsets: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return reward, cost and cap of the non-dominated caps, and unit offsets.

    Events are sorted by tokens within a unit; those of equal tokens happen together.
    """
    size = tokens.size
    out_reward = np.empty(size, np.int64)
    out_cost = np.empty(size, np.int64)
    out_cap = np.empty(size, np.int64)
    kept_offsets = np.zeros(offsets.size, np.int64)
    count = 0
    for u in range(offsets.size - 1):
        best = np.int64(-1)
        reward = np.int64(0)
        cost = np.int64(0)
        stop = offsets[u + 1]
        for row in range(offsets[u], stop):
            reward += gain[row]
            cost += spend[row]
            if row + 1 < stop and tokens[row + 1] == tokens[row]:
                continue
            if reward > best:
                best = reward
                out_reward[count] = reward
                out_cost[count] = cost
                out_cap[count] = tokens[row]
                count += 1
        kept_offsets[u + 1] = count
    return out_reward[:count].copy(), out_cost[:count].copy(), out_cap[:count].copy(), kept_offsets


@nb.njit(cache=True, nogil=True)
def _merge_by_tokens(
    tokens: IntArray, trajectory_offsets: IntArray, member: IntArray, member_offsets: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return positions by group and then tokens, their trajectories, and group offsets.

    A trajectory's tokens never fall, so groups are merged from sorted runs, two by two.
    """
    size = tokens.size
    rows = np.empty(size, np.int64)
    trajectory = np.empty(size, np.int64)
    offsets = np.zeros(member_offsets.size, np.int64)
    spare_rows = np.empty(size, np.int64)
    spare_trajectory = np.empty(size, np.int64)
    most = 1
    for group in range(member_offsets.size - 1):
        most = max(most, member_offsets[group + 1] - member_offsets[group])
    runs = np.empty(most + 1, np.int64)
    at = 0
    for group in range(member_offsets.size - 1):
        begin = at
        count = 0
        runs[0] = begin
        for m in range(member_offsets[group], member_offsets[group + 1]):
            s = member[m]
            for row in range(trajectory_offsets[s], trajectory_offsets[s + 1]):
                rows[at] = row
                trajectory[at] = s
                at += 1
            count += 1
            runs[count] = at
        while count > 1:
            merged = 0
            for run in range(0, count, 2):
                left, middle = runs[run], runs[run + 1]
                right = runs[run + 2] if run + 2 <= count else middle
                i, j = left, middle
                for out in range(left, right):
                    if j >= right or (i < middle and tokens[rows[i]] <= tokens[rows[j]]):
                        spare_rows[out] = rows[i]
                        spare_trajectory[out] = trajectory[i]
                        i += 1
                    else:
                        spare_rows[out] = rows[j]
                        spare_trajectory[out] = trajectory[j]
                        j += 1
                if right == middle:
                    spare_rows[left:middle] = rows[left:middle]
                    spare_trajectory[left:middle] = trajectory[left:middle]
                runs[merged] = left
                merged += 1
            runs[merged] = at
            count = merged
            rows[begin:at] = spare_rows[begin:at]
            trajectory[begin:at] = spare_trajectory[begin:at]
        offsets[group + 1] = at
    return rows, trajectory, offsets
