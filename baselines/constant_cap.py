"""One cap in tokens for all questions: the trivial line for fixed budgets."""

from baselines.interface import FixedBudget
from baselines.views import QuestionView


class ConstantCap(FixedBudget):
    """The same cap everywhere."""

    name = "constant_cap"
    control = "cap, tokens"
    # 0, then eight to the doubling: from the demo model's steps to the paper's thinking limit.
    grid = (0, *sorted({round(8 * 2 ** (i / 8)) for i in range(97)}))
    trivial = True

    def score(self, question: QuestionView) -> float:
        """Return 1: nothing is read."""
        return 1.0

    def cap(self, score: float, setting: int) -> int:
        """Return the cap itself."""
        return int(setting)
