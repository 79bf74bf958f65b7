"""Think about a constant share of the questions, drawn at random: the trivial line for routers."""

from baselines.interface import Router
from baselines.views import QuestionView


class ThinkShare(Router):
    """Think about a share of the questions that is chosen at random."""

    name = "think_share"
    control = "share of questions"
    grid = tuple(round(0.05 * i, 2) for i in range(21))
    trivial = True

    def score(self, question: QuestionView) -> float:
        """Return the question's random number."""
        return question.lot

    def thinks(self, score: float, setting: float) -> bool:
        """Return whether the number falls within the share."""
        return score < setting
