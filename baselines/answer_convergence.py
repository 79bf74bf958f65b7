"""Answer convergence (Liu & Wang, 2025, arXiv 2506.02536): stop when probed answers agree.

At each boundary the thinking is closed and one answer is taken; the thinking stops when the last m
answers are the same. No training.

Departures. The answer is the first of STP's probes at the position, equality is the evaluator's
(mathematical for mathematics), and an answer that cannot be read agrees with nothing. Boundaries
are STP's positions from k = 1 on. The probe is one of those that accuracy is counted over.
"""

import math

from baselines.interface import EarlyExit
from baselines.views import Prefix


class AnswerConvergence(EarlyExit):
    """Stop when the last m answers agree."""

    name = "answer_convergence"
    needs = ("answer",)
    control = "m, agreeing answers"
    grid = tuple(range(1, 21))
    citation = "Liu and Wang, 2025, arXiv 2506.02536"

    def score(self, prefix: Prefix) -> float:
        """Return how many answers up to here agree without a break."""
        answers = prefix["answer"][1:]
        if not answers.size or answers[-1] < 0:
            return -math.inf
        other = (answers != answers[-1]).nonzero()[0]
        return float(answers.size - (other[-1] + 1 if other.size else 0))
