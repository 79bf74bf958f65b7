r"""LLMThinkBench: basic arithmetic, how right and at what length (papers 000, 001, 003).

``run(model, out)`` runs it; ``compare_runs`` scores several runs in one pool. The modules:
``config`` and ``questions`` (what is asked), ``running`` (asking and grading), ``stored`` (the
folder), ``grading`` (responses to verdicts and counts), ``measures`` (per task, category, overall),
``pools`` (token efficiency and O-Scores), ``significance``, ``stability``, ``correlations``,
``lengths`` and ``comparison`` (runs beside each other), ``error_kinds``, ``patterns``, ``judge``
and ``agreement`` (the taxonomy), ``bridge`` (beside a campaign of step-wise truncation probing),
``leaderboard``, ``tables``, ``page`` and ``output`` (what people read).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.thinkbench.agreement import LabelAgreement, cohens_kappa
    from evaluator.thinkbench.bridge import Bridge, bridge_campaign
    from evaluator.thinkbench.comparison import Comparison, compare_runs
    from evaluator.thinkbench.config import STYLES, ThinkConfig
    from evaluator.thinkbench.error_kinds import ERROR_KINDS
    from evaluator.thinkbench.leaderboard import aggregate_runs, read_leaderboard
    from evaluator.thinkbench.measures import Measures, measure
    from evaluator.thinkbench.output import write_comparison
    from evaluator.thinkbench.patterns import PATTERNS, trace_pattern
    from evaluator.thinkbench.pools import Pool, make_pool, pareto_set, score_all, score_model
    from evaluator.thinkbench.running import grade, run
    from evaluator.thinkbench.significance import paired_tests
    from evaluator.thinkbench.stability import leave_one_out
    from evaluator.thinkbench.stored import ThinkRun, load_run

_HOMES = {
    "LabelAgreement": "agreement",
    "cohens_kappa": "agreement",
    "Bridge": "bridge",
    "bridge_campaign": "bridge",
    "Comparison": "comparison",
    "compare_runs": "comparison",
    "STYLES": "config",
    "ThinkConfig": "config",
    "ERROR_KINDS": "error_kinds",
    "aggregate_runs": "leaderboard",
    "read_leaderboard": "leaderboard",
    "Measures": "measures",
    "measure": "measures",
    "write_comparison": "output",
    "PATTERNS": "patterns",
    "trace_pattern": "patterns",
    "Pool": "pools",
    "make_pool": "pools",
    "score_all": "pools",
    "score_model": "pools",
    "ThinkRun": "stored",
    "grade": "running",
    "load_run": "stored",
    "run": "running",
    "leave_one_out": "stability",
    "paired_tests": "significance",
    "pareto_set": "pools",
}

__all__ = [
    "ERROR_KINDS",
    "PATTERNS",
    "STYLES",
    "Bridge",
    "Comparison",
    "LabelAgreement",
    "Measures",
    "Pool",
    "ThinkConfig",
    "ThinkRun",
    "aggregate_runs",
    "bridge_campaign",
    "cohens_kappa",
    "compare_runs",
    "grade",
    "leave_one_out",
    "load_run",
    "make_pool",
    "measure",
    "paired_tests",
    "pareto_set",
    "read_leaderboard",
    "run",
    "score_all",
    "score_model",
    "trace_pattern",
    "write_comparison",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for on first use, so that the package itself stays light."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
