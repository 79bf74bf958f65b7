"""The best token-accuracy trade-off that a strategy could reach, exactly.

Names are loaded on first use, so that ``import oracle`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oracle.actions import STRATEGIES, Actions, Strategy, make_actions, strategy_actions
    from oracle.bootstrap import (
        FrontierBootstrap,
        FrontierReplicates,
        bootstrap_frontiers,
        percentile_interval,
    )
    from oracle.combined import CombinedFrontier, combined_frontier
    from oracle.fleet import FleetFrontier, equal_weights, fleet_frontier
    from oracle.frontier import (
        Frontier,
        budget_tokens,
        exact_frontier,
        frontier_of_actions,
        grid_budgets,
        measured_point,
        stopping_positions,
    )
    from oracle.grid import Grid, best_rewards
    from oracle.prices import (
        Hull,
        MarginalValue,
        PricedPolicy,
        marginal_value,
        policy_at_price,
        price_hull,
    )
    from oracle.scale_out import bootstrap_frontiers_on_ray

__all__ = [
    "STRATEGIES",
    "Actions",
    "CombinedFrontier",
    "FleetFrontier",
    "Frontier",
    "FrontierBootstrap",
    "FrontierReplicates",
    "Grid",
    "Hull",
    "MarginalValue",
    "PricedPolicy",
    "Strategy",
    "best_rewards",
    "bootstrap_frontiers",
    "bootstrap_frontiers_on_ray",
    "budget_tokens",
    "combined_frontier",
    "equal_weights",
    "exact_frontier",
    "fleet_frontier",
    "frontier_of_actions",
    "grid_budgets",
    "make_actions",
    "marginal_value",
    "measured_point",
    "percentile_interval",
    "policy_at_price",
    "price_hull",
    "stopping_positions",
    "strategy_actions",
]

_HOME = {
    "STRATEGIES": "actions",
    "Actions": "actions",
    "Strategy": "actions",
    "make_actions": "actions",
    "strategy_actions": "actions",
    "FrontierBootstrap": "bootstrap",
    "FrontierReplicates": "bootstrap",
    "bootstrap_frontiers": "bootstrap",
    "percentile_interval": "bootstrap",
    "CombinedFrontier": "combined",
    "combined_frontier": "combined",
    "FleetFrontier": "fleet",
    "equal_weights": "fleet",
    "fleet_frontier": "fleet",
    "Frontier": "frontier",
    "budget_tokens": "frontier",
    "exact_frontier": "frontier",
    "frontier_of_actions": "frontier",
    "grid_budgets": "frontier",
    "measured_point": "frontier",
    "stopping_positions": "frontier",
    "Grid": "grid",
    "best_rewards": "grid",
    "Hull": "prices",
    "MarginalValue": "prices",
    "PricedPolicy": "prices",
    "marginal_value": "prices",
    "policy_at_price": "prices",
    "price_hull": "prices",
    "bootstrap_frontiers_on_ray": "scale_out",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
