"""Latent curves: the accuracies behind the counts.

C(k) right answers of 16 are a noisy reading of P(k), and a maximum over noisy readings is too
high. Neighbouring positions are related: here P moves along a trajectory as
a hidden Markov chain, learned from all trajectories of a model, and OR, AD and frontiers are read
off the posterior of P instead of the counts. The paper's own measures stay what they are; these
stand beside them. ``docs/statistics.md`` says which number answers which question.
"""

from evaluator.analysis.latent.fitting import fit
from evaluator.analysis.latent.frontiers import LatentFrontier, latent_frontier
from evaluator.analysis.latent.reading import (
    held_out_log_likelihood,
    interval_widths,
    read_others,
)
from evaluator.analysis.latent.spending import choose_positions, expected_gains, next_answers
from evaluator.analysis.latent.values import MEASURES, LatentCurves

__all__ = [
    "MEASURES",
    "LatentCurves",
    "LatentFrontier",
    "choose_positions",
    "expected_gains",
    "fit",
    "held_out_log_likelihood",
    "interval_widths",
    "latent_frontier",
    "next_answers",
    "read_others",
]
