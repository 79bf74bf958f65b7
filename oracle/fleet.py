"""How several cells should spend one common budget.

``exact_frontier`` on curves of several cells already gives their common frontier, every probe
counting the same. This module starts from the cells' own frontiers instead, says what each cell
gets at a budget, and can weigh cells, for example so that every benchmark counts the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm

import numpy as np

from oracle.actions import Actions, make_actions
from oracle.checks import whole_number
from oracle.frontier import Frontier, frontier_of_actions
from stp.ragged import IntArray, offsets_of, spread

MOST_REWARD = 1 << 27


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetFrontier:
    """The common frontier of several cells.

    Attributes
    ----------
    frontier
        Cost in tokens; reward in right probes times the cells' weights. ``choice`` of its actions
        is the state of a cell's own frontier.
    weights
        Whole weights of the cells, in lowest terms.
    """

    frontier: Frontier
    weights: tuple[int, ...]

    def states_within(self, budget: int) -> IntArray:
        """Return the state of every cell's own frontier at the best use of a budget in tokens."""
        rows = self.frontier.actions_within(budget)
        return self.frontier.actions.choice[rows]


def equal_weights(frontiers: Sequence[Frontier]) -> tuple[int, ...]:
    """Return integer weights with which every cell's accuracy counts the same.

    Raises
    ------
    ValueError
        If there is no cell, or one has no probes.
    """
    if not frontiers:
        raise ValueError("a fleet needs at least one cell")
    if any(frontier.probes < 1 for frontier in frontiers):
        raise ValueError("a cell without probes has no accuracy, and no weight; leave it out")
    common = lcm(*(frontier.probes for frontier in frontiers))
    return _lowest_terms([common // frontier.probes for frontier in frontiers])


def fleet_frontier(
    frontiers: Sequence[Frontier], weights: Sequence[int] | None = None
) -> FleetFrontier:
    """Return the exact common frontier of cells whose frontiers are known.

    Parameters
    ----------
    frontiers
        One per cell; the strategies may differ.
    weights
        Positive integers; a right probe of cell c counts ``weights[c]``. All 1 when left out. Time
        and memory grow with the total weighted reward, which may be at most 2^27.

    Raises
    ------
    ValueError
        If there is no cell, a weight is not an integer of 1 or more, or the total weighted reward
        is too large.
    """
    actions, whole = _fleet_actions(frontiers, weights)
    if actions.top_reward - actions.base_reward > MOST_REWARD:
        raise ValueError(
            f"the weighted rewards add up to {actions.top_reward - actions.base_reward}, more than "
            f"{MOST_REWARD}; use smaller weights"
        )
    return FleetFrontier(
        frontier=frontier_of_actions(
            actions,
            probes=sum(w * f.probes for w, f in zip(whole, frontiers, strict=True)),
            full_cost=sum(frontier.full_cost for frontier in frontiers),
        ),
        weights=whole,
    )


def _fleet_actions(
    frontiers: Sequence[Frontier], weights: Sequence[int] | None
) -> tuple[Actions, tuple[int, ...]]:
    if not frontiers:
        raise ValueError("a fleet needs at least one cell")
    given = [1] * len(frontiers) if weights is None else list(weights)
    if len(given) != len(frontiers):
        raise ValueError(f"{len(given)} weights for {len(frontiers)} cells")
    whole = _lowest_terms(
        [whole_number(f"weights[{c}]", weight, least=1) for c, weight in enumerate(given)]
    )
    sizes = np.array([frontier.cost.size for frontier in frontiers], np.int64)
    offsets = offsets_of(sizes)
    actions = make_actions(
        reward=np.concatenate([w * f.reward for w, f in zip(whole, frontiers, strict=True)]),
        cost=np.concatenate([frontier.cost for frontier in frontiers]),
        unit_offsets=offsets,
    )
    # Frontiers hold no dominated state, so every row is kept.
    state = actions.choice - spread(offsets[:-1], offsets)
    return (
        Actions(
            reward=actions.reward,
            cost=actions.cost,
            unit_offsets=actions.unit_offsets,
            choice=state,
        ),
        whole,
    )


def _lowest_terms(weights: Sequence[int]) -> tuple[int, ...]:
    divisor = gcd(*weights)
    return tuple(weight // divisor for weight in weights)
