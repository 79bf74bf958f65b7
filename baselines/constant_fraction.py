"""A constant fraction of a benchmark's usual thinking: a cap that depends on the benchmark only.

A fraction of the trajectory's own length cannot be used, since that length is not known in
advance. So the fraction is of the mean L(n) of the benchmark's training questions.
"""

from baselines.interface import FixedBudget
from baselines.measurements import Measurements
from baselines.views import QuestionView


class ConstantFraction(FixedBudget):
    """Cap at a fraction of the mean thinking of the benchmark's training questions."""

    name = "constant_fraction"
    control = "fraction of the mean thinking"
    grid = (*(round(0.05 * i, 2) for i in range(31)), 1.75, 2.0, 2.5, 3.0, 4.0, 6.0)
    trivial = True

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Take the mean L(n) of every benchmark, and of all for one not seen in training."""
        curves = train.curves
        self._everywhere = float(curves.full_tokens_s.mean()) if curves.trajectories else 0.0
        self._tokens = {
            curves.benchmark_names[benchmark]: float(
                curves.full_tokens_s[curves.benchmark == benchmark].mean()
            )
            for benchmark in sorted(set(curves.benchmark.tolist()))
        }

    def score(self, question: QuestionView) -> float:
        """Return the benchmark's mean thinking in tokens."""
        return self._tokens.get(question.benchmark, self._everywhere)
