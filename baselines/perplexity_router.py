"""A perplexity router (arXiv 2505.15154): think only if the short answer is uncertain.

The model first answers without thinking; the question is thought about if the perplexity of that
short answer is at least a threshold. No training.

Departures. The short answer is the greedy trial answer at k = 0, at most 20 tokens; its tokens are
counted as the signal's cost for every trajectory.
"""

import math

from baselines.interface import Router
from baselines.views import QuestionView


class PerplexityRouter(Router):
    """Think if the short answer's perplexity is at least the threshold."""

    name = "perplexity_router"
    needs = ("short_answer_logprob",)
    control = "least perplexity"
    grid = (
        *(1.0, 1.0001, 1.001, 1.005, 1.01, 1.02, 1.03, 1.05, 1.075, 1.1, 1.15, 1.2, 1.25, 1.3),
        *(1.4, 1.5, 1.6, 1.8, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0, 10.0),
    )
    citation = "arXiv 2505.15154"

    def score(self, question: QuestionView) -> float:
        """Return the short answer's perplexity, infinite if there is none."""
        perplexity = math.exp(-float(question["short_answer_logprob"]))
        return math.inf if math.isnan(perplexity) else perplexity
