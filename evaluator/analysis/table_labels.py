"""Labels and notes that the tables of measured curves share."""

from evaluator.analysis.groups import completeness
from evaluator.analysis.nesting import AVERAGE
from evaluator.present.names import benchmark_name, model_name
from stp.curves import Curves

AVERAGE_LABEL = "Average"


def model_label(curves: Curves, model: int) -> str:
    """Return a model's name, or "Average" for :data:`evaluator.analysis.nesting.AVERAGE`."""
    return AVERAGE_LABEL if model == AVERAGE else model_name(curves, model)


def benchmark_label(curves: Curves, benchmark: int) -> str:
    """Return a reporting group's name, or "Average"."""
    return AVERAGE_LABEL if benchmark == AVERAGE else benchmark_name(curves, benchmark)


def cell_labels(curves: Curves, model: int, benchmark: int) -> tuple[str, str]:
    """Return a row's labels; the average over all has no benchmark beside it."""
    overall = model == benchmark == AVERAGE
    return model_label(curves, model), "" if overall else benchmark_label(curves, benchmark)


def table_note(curves: Curves, *sentences: str) -> str:
    """Return a table's note: n, settings, what is missing."""
    n = f"n = {curves.trajectories:,} trajectories, {curves.probes} probes per position."
    if curves.extra_probes.size:
        n += (
            f" The rounds' {int(curves.extra_probes.sum()):,} more are read by latent tables alone."
        )
    return " ".join([n, *filter(None, sentences), completeness(curves).note]).strip()
