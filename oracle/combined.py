"""The combined strategy: route first, then exit early.

Per (model, question), either no trajectory thinks (all at k = 0), or the question is sent to
thinking, and then each of its trajectories stops at a measured position k >= 1 of its own choice
(a trajectory without steps stays at its only position). So a router's decision is shared by a
question's trajectories and an exit is not, and sending a question to thinking costs at least one
step of every trajectory. The strategy lies between routing and early exit at every budget.

The inner problem of a thinking question, all its non-dominated totals, is solved exactly first; its
states become the question's actions in the outer problem.
"""

from dataclasses import dataclass, field

import numpy as np

from oracle.actions import Actions, full_cost, make_actions, question_groups
from oracle.frontier import Frontier, frontier_of_actions
from stp.curves import Curves
from stp.ragged import IntArray, offsets_of, spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CombinedFrontier:
    """The frontier of the combined strategy, and how to act at any of its states.

    Attributes
    ----------
    frontier
        Cost and reward of the states; its actions are those of the questions.
    """

    frontier: Frontier
    _inner: tuple[Frontier, ...] = field(repr=False)
    _members: tuple[IntArray, ...] = field(repr=False)
    _positions: tuple[IntArray, ...] = field(repr=False)
    _trajectories: int = field(repr=False)

    def stopping_positions(self, state: int) -> IntArray:
        """Return the position k at which every trajectory stops; int64 ``(trajectories,)``."""
        stops = np.zeros(self._trajectories, np.int64)
        rows = self.frontier.actions_at(state)
        choice = self.frontier.actions.choice[rows]
        for group, member in enumerate(self._members):
            if choice[group] == 0:
                continue
            inner = self._inner[group]
            inner_rows = inner.actions_at(int(choice[group]) - 1)
            stops[member] = self._positions[group][inner.actions.choice[inner_rows]]
        return stops


def combined_frontier(curves: Curves) -> CombinedFrontier:
    """Return the exact frontier of routing first and then exiting early.

    See the module's first lines for what the strategy may do. ``frontier.actions.choice`` is 0
    where a question does not think, and 1 + the state of its inner frontier where it does.
    """
    groups = question_groups(curves)
    order = np.argsort(groups.group, kind="stable")
    bounds = np.searchsorted(groups.group[order], np.arange(groups.count + 1))
    members, positions, inner, rewards, costs = [], [], [], [], []
    for group in range(groups.count):
        member = order[bounds[group] : bounds[group + 1]]
        actions, position = _thinking_actions(curves, member)
        frontier = frontier_of_actions(actions)
        members.append(member)
        positions.append(position)
        inner.append(frontier)
        rewards.append(
            np.append(curves.zero_correct_s[member].sum(dtype=np.int64), frontier.reward)
        )
        costs.append(np.append(np.int64(0), frontier.cost))
    offsets = offsets_of([reward.size for reward in rewards])
    outer = make_actions(
        reward=np.concatenate(rewards), cost=np.concatenate(costs), unit_offsets=offsets
    )
    outer = Actions(
        reward=outer.reward,
        cost=outer.cost,
        unit_offsets=outer.unit_offsets,
        choice=outer.choice - spread(offsets[:-1], outer.unit_offsets),
    )
    return CombinedFrontier(
        frontier=frontier_of_actions(
            outer, probes=curves.trajectories * curves.probes, full_cost=full_cost(curves)
        ),
        _inner=tuple(inner),
        _members=tuple(members),
        _positions=tuple(positions),
        _trajectories=curves.trajectories,
    )


def _thinking_actions(curves: Curves, member: IntArray) -> tuple[Actions, IntArray]:
    """Return what a thinking question's trajectories may do, and the position behind every row."""
    chosen = curves.select(member)
    lengths = np.diff(chosen.trajectory_offsets)
    position = chosen.position_k
    allowed = (position > 0) | chosen.spread(lengths == 1)
    offsets = offsets_of(np.maximum(lengths - 1, 1))
    actions = make_actions(
        reward=chosen.correct[allowed], cost=chosen.tokens[allowed], unit_offsets=offsets
    )
    return actions, position[allowed]
