"""Always think: full thinking, the point (1, P(n)) that methods are measured against."""

from baselines.interface import Router
from baselines.views import QuestionView


class AlwaysThink(Router):
    """k = n everywhere."""

    name = "always_think"
    control = "none"
    grid = ("always",)
    trivial = True

    def score(self, question: QuestionView) -> float:
        """Return 0: nothing is read."""
        return 0.0

    def thinks(self, score: float, setting: str) -> bool:
        """Return True."""
        return True
