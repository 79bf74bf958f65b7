"""OptimalThinkingBench (paper 004): overthinking and underthinking in one score.

The metrics are plain functions of arrays; everything else is imported on first use. Modules:
``metrics`` (OAA, AUC_OAA, F1), ``records`` (graded responses), ``scores`` (from responses to one
number, with intervals), ``subsets`` (what is asked), ``judge`` (a model as a judge), ``methods``
(how it is asked), ``plan``, ``run`` and ``grade`` (a run on disk), ``recipe`` (how OvT-General is
made), ``selection`` (which tasks need thinking), ``analyses`` and ``examples``, ``bridge`` (to
step-wise truncation probing), ``page`` (the report).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.optimal.metrics import auc_oaa, f1_otb, oaa, oaa_curve

__all__ = ["auc_oaa", "f1_otb", "oaa", "oaa_curve"]

_HOMES = {
    "auc_oaa": "metrics",
    "f1_otb": "metrics",
    "oaa": "metrics",
    "oaa_curve": "metrics",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module on first use."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
