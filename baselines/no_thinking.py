"""NoThinking (Ma et al., 2025, arXiv 2504.09858): no thinking at all, for every question.

Departures. The original fills the thinking with a short dummy text and may draw many answers to
vote on; here the thinking is empty (k = 0) and the accuracy is that of single answers.
"""

from baselines.interface import Router
from baselines.views import QuestionView


class NoThinking(Router):
    """k = 0 everywhere."""

    name = "no_thinking"
    control = "none"
    grid = ("k = 0",)
    citation = "Ma et al., 2025, arXiv 2504.09858"

    def score(self, question: QuestionView) -> float:
        """Return 0: nothing is read."""
        return 0.0

    def thinks(self, score: float, setting: str) -> bool:
        """Return False."""
        return False
