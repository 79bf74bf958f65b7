"""Never think: the point (0, P(0)) that every strategy starts from."""

from baselines.interface import Router
from baselines.views import QuestionView


class NeverThink(Router):
    """k = 0 everywhere."""

    name = "never_think"
    control = "none"
    grid = ("never",)
    trivial = True

    def score(self, question: QuestionView) -> float:
        """Return 0: nothing is read."""
        return 0.0

    def thinks(self, score: float, setting: str) -> bool:
        """Return False."""
        return False
