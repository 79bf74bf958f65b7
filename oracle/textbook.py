"""The textbook dynamic program: what the fast programs are compared with.

One dense array over total reward, unit after unit, action after action. Exact, short and slow:
O(units x total reward x actions). It serves the tests and the benchmarks as the reference.
"""

import numba as nb
import numpy as np

from oracle.actions import Actions
from stp.ragged import IntArray

UNREACHED = np.int64(1) << 61


def textbook_frontier(actions: Actions) -> tuple[IntArray, IntArray]:
    """Return cost and reward of the non-dominated states, int64, both rising."""
    least = textbook_value_function(actions)
    return _undominated(least)


def textbook_value_function(actions: Actions) -> IntArray:
    """Return the least cost for every exact total reward; ``UNREACHED`` if there is none."""
    least: IntArray = _program(
        actions.reward, actions.cost, actions.unit_offsets, actions.top_reward
    )
    return least


@nb.njit(cache=True)
def _program(reward: IntArray, cost: IntArray, offsets: IntArray, top: int) -> IntArray:
    least = np.full(top + 1, UNREACHED, np.int64)
    least[0] = 0
    new = np.empty_like(least)
    for u in range(offsets.size - 1):
        new[:] = UNREACHED
        for row in range(offsets[u], offsets[u + 1]):
            r = reward[row]
            c = cost[row]
            for t in range(top + 1 - r):
                if least[t] < UNREACHED and least[t] + c < new[t + r]:
                    new[t + r] = least[t] + c
        least, new = new, least
    return least


def _undominated(least: IntArray) -> tuple[IntArray, IntArray]:
    reachable = np.flatnonzero(least < UNREACHED)
    cost = least[reachable]
    cheapest_above = np.minimum.accumulate(cost[::-1])[::-1]
    keep = np.ones(cost.size, np.bool_)
    keep[:-1] = cost[:-1] < cheapest_above[1:]
    return cost[keep], reachable[keep]
