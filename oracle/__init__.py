"""The best token-accuracy trade-off that a strategy could reach, exactly.

Names are loaded on first use, so that ``import oracle`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oracle.actions import STRATEGIES, Actions, Strategy, make_actions, strategy_actions
    from oracle.frontier import (
        Frontier,
        budget_tokens,
        exact_frontier,
        frontier_of_actions,
        grid_budgets,
        measured_point,
        stopping_positions,
    )

__all__ = [
    "STRATEGIES",
    "Actions",
    "Frontier",
    "Strategy",
    "budget_tokens",
    "exact_frontier",
    "frontier_of_actions",
    "grid_budgets",
    "make_actions",
    "measured_point",
    "stopping_positions",
    "strategy_actions",
]

_HOME = {
    "STRATEGIES": "actions",
    "Actions": "actions",
    "Strategy": "actions",
    "make_actions": "actions",
    "strategy_actions": "actions",
    "Frontier": "frontier",
    "budget_tokens": "frontier",
    "exact_frontier": "frontier",
    "frontier_of_actions": "frontier",
    "grid_budgets": "frontier",
    "measured_point": "frontier",
    "stopping_positions": "frontier",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
