"""ThinkBrake (Song et al., 2026, arXiv 2510.00546): stop when ending is nearly the likeliest step.

At each step boundary the margin is the log-probability of the best token other than the
thinking-end, less that of the thinking-end, both after the same prefix. The thinking stops at the
first boundary where the margin is at most the threshold. No training.

Departures. The public code compares with a sampled token after another prefix, and takes a
threshold of 0 for never: here it is the paper's rule. The published sweep is 0.1, 0.25, 1, 2.5 and
5; the grid has more, so that the curve reaches both ends. Where an engine shows only its best
tokens and the thinking-end is not among them, the margin is known only to be large: no stop.
Boundaries are STP's positions from k = 1 on.
"""

import math

from baselines.interface import EarlyExit
from baselines.views import Prefix


class ThinkBrake(EarlyExit):
    """Stop at the first boundary whose margin is at most the threshold."""

    name = "think_brake"
    needs = ("end_logprob", "other_logprob", "end_exact")
    control = "maximum margin, nats"
    grid = (
        *(-5.0, -2.0, -1.0, -0.5, 0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0),
        *(7.0 + 0.5 * i for i in range(35)),
        *(26.0, 30.0),
    )
    citation = "Song et al., 2026, arXiv 2510.00546"

    def score(self, prefix: Prefix) -> float:
        """Return the margin, infinite where no boundary or no exact value is there."""
        if prefix.k == 0 or not prefix["end_exact"][-1]:
            return math.inf
        return float(prefix["other_logprob"][-1]) - float(prefix["end_logprob"][-1])

    def stops(self, score: float, setting: float) -> bool:
        """Return whether the margin is at most the threshold."""
        return score <= setting
