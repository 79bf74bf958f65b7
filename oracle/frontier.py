"""Exact frontiers: the non-dominated (cost, reward) states of a strategy, and what reaches them.

Integers throughout: costs are retained thinking tokens, rewards are right probes (paper 002, A.3).
A fraction becomes an integer budget before anything is compared, and accuracy is made last.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from oracle import tree
from oracle.actions import (
    STRATEGIES,
    Actions,
    Strategy,
    full_cost,
    question_groups,
    strategy_actions,
)
from oracle.checks import LARGEST_INT64, whole_number
from stp.curves import Curves, integer_array
from stp.ragged import FloatArray, IntArray

# A float fraction stands for the simplest rational near it: 0.29 is 29/100, whatever its bits say.
LARGEST_DENOMINATOR = 10**6


@dataclass(frozen=True, kw_only=True, eq=False)
class Frontier:
    """Every non-dominated state of a problem.

    Attributes
    ----------
    cost, reward
        Of the states, int64 ``(states,)``, both strictly rising. The first is the state of the
        least cost.
    probes
        All probes that a reward is a part of: trajectories times probes per position.
    full_cost
        Tokens of full thinking; budgets are fractions of it.
    actions
        What the units could do.
    """

    cost: IntArray
    reward: IntArray
    probes: int
    full_cost: int
    actions: Actions = field(repr=False)

    def reward_within(self, budget_tokens: npt.ArrayLike) -> IntArray:
        """Return the best reward with cost at most each budget; int64, shape of the budgets.

        Raises
        ------
        ValueError
            If a budget is not an integer, or lies below the least cost.
        """
        index = self.state_within(budget_tokens)
        return self.reward[index]

    def state_within(self, budget_tokens: npt.ArrayLike) -> IntArray:
        """Return the index of the best state with cost at most each budget; as the budgets, int64.

        Raises
        ------
        ValueError
            If a budget is not an integer, or lies below the least cost.
        """
        budgets = np.asarray(budget_tokens)
        if budgets.size and not np.issubdtype(budgets.dtype, np.integer):
            raise ValueError("budgets in tokens are integers; fractions go to accuracy_at")
        index = np.searchsorted(self.cost, budgets, side="right") - 1
        if np.any(index < 0):
            raise ValueError(f"no state costs less than {int(self.cost[0])} tokens")
        return np.asarray(index, np.int64)

    def accuracy_at(self, budget_fractions: npt.ArrayLike) -> FloatArray:
        """Return the best accuracy within fractions of the full-thinking cost.

        Parameters
        ----------
        budget_fractions
            Fractions of ``full_cost`` from 0 to 1: floats, or ``fractions.Fraction`` values.
            Infinity means no limit, and gives the last state.

        Returns
        -------
        float64, shape of the fractions
            Best reward with cost at most floor(fraction x full_cost), over ``probes``.

        Raises
        ------
        ValueError
            If a fraction is negative, above 1 or no number, lies below the least cost, or there
            are no probes that an accuracy could be a fraction of.
        """
        if self.probes < 1:
            raise ValueError("there are no probes, so there is no accuracy; ask for rewards")
        budgets = budget_tokens(budget_fractions, self.full_cost)
        for value in np.asarray(budget_fractions, dtype=object).ravel():
            if 1 < float(value) < math.inf:
                raise ValueError(
                    f"a budget fraction is from 0 to 1, not {value}: divide percentages by "
                    "100; math.inf means no limit"
                )
        return np.asarray(self.reward_within(budgets) / self.probes, np.float64)

    @cached_property
    def _tree(self) -> tree.SolvedTree:
        actions = self.actions
        return tree.solve_tree(tree.unit_arrays(actions.reward, actions.cost, actions.unit_offsets))

    def actions_at(self, state: int) -> IntArray:
        """Return an optimal row of ``actions`` for every unit; int64 ``(units,)``.

        ``actions.choice[rows]`` says what each unit does, and ``actions.reward[rows].sum()`` and
        ``actions.cost[rows].sum()`` are the state's own reward and cost. Where several sets of
        actions reach the state, one of them is returned, always the same.

        Raises
        ------
        IndexError
            If there is no such state.
        """
        wanted = int(self.reward[state]) - self.actions.base_reward
        solved = self._tree
        rows = self.actions.unit_offsets[:-1].copy()
        rows[solved.arrays.unit] += tree.choices_behind(solved, wanted)
        return rows

    def actions_within(self, budget: int) -> IntArray:
        """Return :meth:`actions_at` for the best state with cost at most ``budget`` tokens.

        Raises
        ------
        ValueError
            If the budget is not an integer, or lies below the least cost.
        """
        tokens = min(whole_number("budget", budget, least=0), LARGEST_INT64)
        return self.actions_at(int(self.state_within(np.int64(tokens))))


def exact_frontier(curves: Curves, strategy: Strategy) -> Frontier:
    """Return the exact frontier of a strategy on measured curves.

    Parameters
    ----------
    curves
        One cell, or several: then all cells share one budget and every probe counts the same.
    strategy
        ``"routing"``, ``"fixed_budget"`` or ``"early_exit"``.

    Examples
    --------
    >>> curves = Curves(tokens=[0, 9, 20], correct=[1, 4, 3], trajectory_offsets=[0, 3],
    ...                 question=[0], probes=4)
    >>> frontier = exact_frontier(curves, "early_exit")
    >>> frontier.cost.tolist(), frontier.reward.tolist(), frontier.accuracy_at([0, 0.45]).tolist()
    ([0, 9], [1, 4], [0.25, 1.0])
    """
    return frontier_of_actions(
        strategy_actions(curves, strategy),
        probes=curves.trajectories * curves.probes,
        full_cost=full_cost(curves),
    )


def frontier_of_actions(
    actions: Actions, *, probes: int | None = None, full_cost: int | None = None
) -> Frontier:
    """Return the exact frontier of free-standing actions.

    Parameters
    ----------
    actions
        From :func:`oracle.make_actions` or :func:`oracle.strategy_actions`.
    probes
        What an accuracy is a fraction of; the greatest reward when left out.
    full_cost
        What a budget is a fraction of; the least cost of the greatest reward when left out.

    Raises
    ------
    ValueError
        If ``probes`` or ``full_cost`` is negative or not an integer.
    """
    cost, reward = tree.nondominated_states(actions.reward, actions.cost, actions.unit_offsets)
    # The last state is every unit's greatest reward, which one action of each unit has.
    return Frontier(
        cost=cost,
        reward=reward,
        probes=int(reward[-1]) if probes is None else whole_number("probes", probes, least=0),
        full_cost=(
            int(cost[-1]) if full_cost is None else whole_number("full_cost", full_cost, least=0)
        ),
        actions=actions,
    )


def budget_tokens(budget_fractions: npt.ArrayLike, full_cost: int) -> IntArray:
    """Return floor(fraction x full_cost) as int64, computed in integers.

    A float stands for the simplest rational near it (denominator at most a million), because
    0.29 x 100 is 28.999... in floating point and would lose a token. A budget that int64 does not
    hold, such as that of an infinite fraction, is the largest that it holds.

    Raises
    ------
    ValueError
        If a fraction is negative or no number, or ``full_cost`` is negative or not an integer.

    Examples
    --------
    >>> budget_tokens([0.29, 1], 100).tolist()
    [29, 100]
    """
    full_cost = whole_number("full_cost", full_cost, least=0)
    fractions = np.asarray(budget_fractions, dtype=object)
    budgets = np.empty(fractions.shape, np.int64)
    for index, value in np.ndenumerate(fractions):
        budgets[index] = _tokens(value, full_cost)
    return budgets


def _tokens(value: object, full_cost: int) -> int:
    if isinstance(value, Fraction):
        fraction = value
    else:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            raise ValueError(f"a budget fraction must be a number of at least 0, not {value!r}")
        if number == math.inf:
            return LARGEST_INT64
        if number == -math.inf:
            raise ValueError(f"a budget fraction must not be negative, not {value}")
        fraction = Fraction(number).limit_denominator(LARGEST_DENOMINATOR)
    if fraction < 0:
        raise ValueError(f"a budget fraction must not be negative, not {value}")
    return min(fraction.numerator * full_cost // fraction.denominator, LARGEST_INT64)


def grid_budgets(full_cost: int, steps: int = 100) -> IntArray:
    """Return floor(j x full_cost / steps) for j = 0..steps; int64 ``(steps + 1,)``.

    Raises
    ------
    ValueError
        If ``full_cost`` is not an integer in 0..2^63 - 1, or ``steps`` no integer of 1 or more.
    """
    full_cost = whole_number("full_cost", full_cost, least=0, most=LARGEST_INT64)
    steps = whole_number("steps", steps, least=1)
    if full_cost * steps < 1 << 62:
        return np.arange(steps + 1, dtype=np.int64) * full_cost // steps
    # Python integers where j x full_cost may pass 2^63.
    return np.array([j * full_cost // steps for j in range(steps + 1)], np.int64)


def stopping_positions(
    curves: Curves, strategy: Strategy, choice: Sequence[int] | IntArray
) -> IntArray:
    """Return the position k at which every trajectory stops under chosen actions.

    Parameters
    ----------
    curves, strategy
        What :func:`oracle.strategy_actions` was given.
    choice
        One entry of ``Actions.choice`` per unit, ``(units,)``.

    Returns
    -------
    int64 ``(trajectories,)``
        With it a person can add up ``curves.tokens`` and ``curves.correct`` by hand; see
        :func:`measured_point`.

    Raises
    ------
    ValueError
        If the strategy is not one of :data:`oracle.STRATEGIES`, or ``choice`` has not one entry per
        unit that this strategy may choose.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"unknown strategy {strategy!r}; choose from {', '.join(STRATEGIES)}")
    if strategy == "early_exit":
        return _positions("choice", choice, curves)
    groups = question_groups(curves)
    chosen = _one_per_unit("choice", choice, groups.count, "(model, question) pairs")
    most = 1 if strategy == "routing" else LARGEST_INT64
    if chosen.size and not 0 <= chosen.min() <= chosen.max() <= most:
        allowed = "0 or 1 (thinks)" if strategy == "routing" else "caps in tokens, 0 or more"
        raise ValueError(f"choice must hold {allowed} for {strategy}")
    per_trajectory = chosen[groups.group]
    starts, ends = curves.trajectory_offsets[:-1], curves.trajectory_offsets[1:]
    if strategy == "routing":
        return np.where(per_trajectory == 1, ends - starts - 1, 0)
    stops = np.empty(curves.trajectories, np.int64)
    for s, (start, end) in enumerate(zip(starts, ends, strict=True)):
        stops[s] = np.searchsorted(curves.tokens[start:end], per_trajectory[s], side="right") - 1
    return stops


def measured_point(curves: Curves, stop_s: IntArray) -> tuple[int, int]:
    """Return cost and reward of stopping trajectory s at position ``stop_s[s]``.

    Raises
    ------
    ValueError
        If ``stop_s`` has not one of its own positions for every trajectory.
    """
    rows = curves.rows_at(_positions("stop_s", stop_s, curves))
    return int(curves.tokens[rows].sum()), int(curves.correct[rows].sum())


def _positions(name: str, values: npt.ArrayLike, curves: Curves) -> IntArray:
    """Return a position of every trajectory, refusing positions that do not exist."""
    stops = _one_per_unit(name, values, curves.trajectories, "trajectories")
    wrong = np.flatnonzero((stops < 0) | (stops >= np.diff(curves.trajectory_offsets)))
    if wrong.size:
        s = int(wrong[0])
        last = int(np.diff(curves.trajectory_offsets)[s]) - 1
        raise ValueError(f"{name}: trajectory {s} has positions 0..{last}, not {int(stops[s])}")
    return stops


def _one_per_unit(name: str, values: npt.ArrayLike, count: int, units: str) -> IntArray:
    """Return a copy of one integer per unit as int64."""
    array = integer_array(name, values)
    if array.size != count:
        raise ValueError(f"{name} has {array.size} entries; it needs one entry for {count} {units}")
    return array.copy()
