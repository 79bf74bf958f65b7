"""OptimalThinkingBench (paper 004): overthinking and underthinking in one score.

The metrics are plain functions of arrays; everything else is imported on first use. Modules:
``metrics`` (OAA, AUC_OAA, F1), ``scores`` (from responses to one
number, with intervals), ``subsets`` (what is asked), ``judge`` (a model as a judge), ``methods``
(how it is asked), ``plan``, ``running``, ``grading`` and ``stored`` (a run on disk), ``recipe`` and
``building`` (how OvT-General is made), ``selection`` (which tasks need thinking), ``analyses`` and
``examples``, ``bridging`` (to step-wise truncation probing), ``results``, ``page`` and ``output``
(the report).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.optimal.bridging import bridge, method_rows
    from evaluator.optimal.building import build
    from evaluator.optimal.examples import find_examples
    from evaluator.optimal.grading import grade
    from evaluator.optimal.judge import ModelJudge
    from evaluator.optimal.metrics import auc_oaa, f1_otb, oaa, oaa_curve
    from evaluator.optimal.output import write_results
    from evaluator.optimal.plan import OptimalPlan
    from evaluator.optimal.recipe import Recipe
    from evaluator.optimal.results import make_results
    from evaluator.optimal.running import run
    from evaluator.optimal.scores import score
    from evaluator.optimal.selection import select
    from evaluator.optimal.stored import OptimalRun, load_run

__all__ = [
    "ModelJudge",
    "OptimalPlan",
    "OptimalRun",
    "Recipe",
    "auc_oaa",
    "bridge",
    "build",
    "f1_otb",
    "find_examples",
    "grade",
    "load_run",
    "make_results",
    "method_rows",
    "oaa",
    "oaa_curve",
    "run",
    "score",
    "select",
    "write_results",
]

_HOMES = {
    "ModelJudge": "judge",
    "OptimalPlan": "plan",
    "OptimalRun": "stored",
    "Recipe": "recipe",
    "auc_oaa": "metrics",
    "bridge": "bridging",
    "build": "building",
    "f1_otb": "metrics",
    "find_examples": "examples",
    "grade": "grading",
    "load_run": "stored",
    "make_results": "results",
    "method_rows": "bridging",
    "oaa": "metrics",
    "oaa_curve": "metrics",
    "run": "running",
    "score": "scores",
    "select": "selection",
    "write_results": "output",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module on first use."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
