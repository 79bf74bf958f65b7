"""DEER (Yang et al., 2025, arXiv 2504.15895): stop when a trial answer is confident.

At each boundary a trial answer of at most 20 tokens is decoded greedily; the thinking stops if the
geometric mean of its token probabilities exceeds a threshold, 0.95 in the paper. No training.

Departures. Boundaries are STP's positions from k = 1 on, where the original looks for words that
turn the thought; the trial answer is opened as STP's probes are. ``mean`` chooses the arithmetic
mean of the probabilities instead.
"""

import math
from dataclasses import dataclass
from typing import Literal

from baselines.interface import EarlyExit
from baselines.views import Prefix


@dataclass(eq=False)
class Deer(EarlyExit):
    """Stop when the trial answer's mean token probability exceeds the threshold.

    Parameters
    ----------
    mean
        Which mean of the token probabilities.
    """

    mean: Literal["geometric", "arithmetic"] = "geometric"

    name = "deer"
    needs = ("trial_logprob", "trial_probability")
    control = "least confidence"
    grid = (
        *(0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99),
        *(0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999, 0.99999, 1.0),
    )
    citation = "Yang et al., 2025, arXiv 2504.15895"

    def score(self, prefix: Prefix) -> float:
        """Return the trial answer's confidence; minus infinity if there is none."""
        if prefix.k == 0:
            return -math.inf
        confidence = (
            math.exp(prefix["trial_logprob"][-1])
            if self.mean == "geometric"
            else float(prefix["trial_probability"][-1])
        )
        return -math.inf if math.isnan(confidence) else confidence

    def stops(self, score: float, setting: float) -> bool:
        """Return whether the confidence exceeds the threshold."""
        return score > setting
