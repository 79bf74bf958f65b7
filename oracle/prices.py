"""Tokens with a price: the Lagrangian view of a frontier, and what one more token is worth.

At a price per token every unit decides alone, so the best policy is exact and needs no dynamic
program; its points, over all prices, are the vertices of the frontier's hull. Prices and values
are exact fractions: right probes per token, and right probes.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from oracle.actions import Actions
from oracle.core import core_of_arrays
from oracle.frontier import Frontier, frontier_of_actions
from stp.ragged import IntArray, first_greatest, spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PricedPolicy:
    """The best that can be done when every token costs ``price`` right probes.

    Attributes
    ----------
    price
        Right probes per token.
    value
        ``reward - price x cost``, the greatest there is.
    reward, cost
        Of the policy; of equally valuable ones the cheapest.
    rows
        Row of ``Actions`` that every unit takes, int64 ``(units,)``.
    """

    price: Fraction
    value: Fraction
    reward: int
    cost: int
    rows: IntArray = field(repr=False)


def policy_at_price(actions: Actions, price: Fraction) -> PricedPolicy:
    """Return the best policy for a price per token, and its value.

    Parameters
    ----------
    actions
        What the units may do.
    price
        Right probes that a token costs, at least 0: ``Fraction(1, 500)`` asks for one more right
        probe per 500 tokens.

    Raises
    ------
    ValueError
        If the price is negative.

    Examples
    --------
    >>> from oracle import make_actions
    >>> actions = make_actions(reward=[0, 3, 4], cost=[0, 6, 20], unit_offsets=[0, 3])
    >>> policy_at_price(actions, Fraction(1, 4)).value
    Fraction(3, 2)
    """
    price = Fraction(price)
    if price < 0:
        raise ValueError(f"a price per token must not be negative, not {price}")
    bound = max(
        price.numerator * (actions.top_cost + 1), price.denominator * (actions.top_reward + 1)
    )
    # Python integers where 64 bits do not hold the products.
    kind: type = np.int64 if bound < 1 << 62 else object
    value: npt.NDArray[Any] = actions.reward.astype(kind) * price.denominator - actions.cost.astype(
        kind
    ) * (price.numerator)
    starts = actions.unit_offsets[:-1]
    if actions.units == 0:
        return PricedPolicy(price=price, value=Fraction(0), reward=0, cost=0, rows=starts.copy())
    # The first of a unit's best rows is its cheapest.
    rows = starts + first_greatest(value, actions.unit_offsets)
    reward, cost = int(actions.reward[rows].sum()), int(actions.cost[rows].sum())
    return PricedPolicy(
        price=price, value=reward - price * cost, reward=reward, cost=cost, rows=rows
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hull:
    """Vertices of the frontier's upper hull: all that prices can reach.

    Attributes
    ----------
    cost, reward
        Of the vertices, int64 ``(vertices,)``, rising; vertex j is best for prices between
        ``(reward[j+1] - reward[j]) / (cost[j+1] - cost[j])`` and the same one step before.
    """

    cost: IntArray
    reward: IntArray


def price_hull(actions: Actions) -> Hull:
    """Return the hull of the frontier, without solving for the frontier where that can be helped.

    Where costs times rewards of one unit reach 2^52, the frontier is solved for, in time and memory
    that grow with the total reward.
    """
    base = spread(actions.unit_offsets[:-1], actions.unit_offsets)
    prepared = core_of_arrays(
        actions.reward - actions.reward[base],
        actions.cost - actions.cost[base],
        actions.unit_offsets,
    )
    if not prepared.exact:
        frontier = frontier_of_actions(actions)
        vertices = _upper_hull(frontier.cost, frontier.reward)
        return Hull(cost=frontier.cost[vertices], reward=frontier.reward[vertices])
    gain, spend = prepared.edge_gain, prepared.edge_pay
    # Edges of one slope are one edge of the hull.
    last = np.ones(gain.size, np.bool_)
    last[:-1] = prepared.slope[1:] != prepared.slope[:-1]
    cost = np.concatenate([[0], np.cumsum(spend)[last]]) + actions.base_cost
    reward = np.concatenate([[0], np.cumsum(gain)[last]]) + actions.base_reward
    return Hull(cost=cost.astype(np.int64), reward=reward.astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarginalValue:
    """What more tokens would buy at given budgets; each array int64 ``(budgets,)``.

    Attributes
    ----------
    next_gain, next_tokens
        The next state of the frontier: right probes more than now, and the tokens that the budget
        lacks for it. Both 0 if nothing is left to gain.
    rate_gain, rate_tokens
        The hull's edge at the budget: ``rate_gain`` right probes per ``rate_tokens`` tokens is the
        price at which this budget would be chosen, the linear program's marginal value. Both 0
        where nothing is left to gain.
    """

    next_gain: IntArray
    next_tokens: IntArray
    rate_gain: IntArray
    rate_tokens: IntArray


def marginal_value(frontier: Frontier, budgets: IntArray) -> MarginalValue:
    """Return what one more token is worth at each budget.

    Raises
    ------
    ValueError
        If a budget is not an integer or lies below the least cost.
    """
    asked = np.asarray(budgets)
    state = frontier.state_within(asked)
    following = np.minimum(state + 1, frontier.cost.size - 1)
    open_ = following > state
    vertices = _upper_hull(frontier.cost, frontier.reward)
    cost, reward = frontier.cost[vertices], frontier.reward[vertices]
    edge = np.searchsorted(cost, asked, side="right") - 1
    after = np.minimum(edge + 1, cost.size - 1)
    return MarginalValue(
        next_gain=frontier.reward[following] - frontier.reward[state],
        next_tokens=np.where(open_, frontier.cost[following] - asked, 0),
        rate_gain=reward[after] - reward[edge],
        rate_tokens=cost[after] - cost[edge],
    )


@nb.njit(cache=True, nogil=True)
def _upper_hull(cost: IntArray, reward: IntArray) -> IntArray:
    """Return the states on the upper hull, collinear ones left out; slopes compared exactly."""
    stack = np.empty(cost.size, np.int64)
    top = 0
    for i in range(cost.size):
        while top >= 2:
            a, b = stack[top - 2], stack[top - 1]
            dx, dy = reward[i] - reward[b], cost[i] - cost[b]
            dx_before, dy_before = reward[b] - reward[a], cost[b] - cost[a]
            # Cost per reward of the new edge at most that of the one before? Quotients first, so
            # that only remainders are multiplied.
            q, q_before = dy // dx, dy_before // dx_before
            if q < q_before or (
                q == q_before
                and (dy - q * dx) * dx_before <= (dy_before - q_before * dx_before) * dx
            ):
                top -= 1
            else:
                break
        stack[top] = i
        top += 1
    return stack[:top].copy()
