"""EAT, entropy after thinking-end (Wang et al., 2025, arXiv 2509.26522): stop when it settles.

At each boundary the thinking-end is put after the prefix and the entropy of the next token is
taken. Its mean and variance are followed with exponential weights; the thinking stops when the
running variance is below a threshold. No training.

Departures. Boundaries are STP's positions from k = 1 on. The first entropy starts the running mean,
and the variance is known from the second on, divided by the weight that it has gathered so far.
``after="opening"`` takes the entropy of the answer's first token instead, for models whose token
after the thinking-end is always the same; :mod:`baselines.answer_entropy` is that variant by name.
"""

import math
from dataclasses import dataclass
from typing import Literal

from baselines.interface import EarlyExit
from baselines.views import Prefix, QuestionView


@dataclass(eq=False)
class EndEntropy(EarlyExit):
    """Stop when the running variance of the entropy after thinking-end falls below a threshold.

    Parameters
    ----------
    smoothing
        Weight of the newest entropy.
    after
        ``"end"``: after the thinking-end; ``"opening"``: after the answer's opening too.
    """

    smoothing: float = 0.2
    after: Literal["end", "opening"] = "end"

    name = "end_entropy"
    needs = ("end_entropy", "answer_entropy")
    control = "maximum variance, nats squared"
    grid = (0.0, *(float(f"{m}e{e}") for e in range(-20, 1) for m in (1, 3)))
    citation = "Wang et al., 2025, arXiv 2509.26522"

    def start(self, question: QuestionView) -> None:
        """Forget the trajectory before."""
        self._mean, self._variance, self._weight = math.nan, 0.0, 0.0

    def score(self, prefix: Prefix) -> float:
        """Return the running variance, infinite before two entropies are known."""
        name = "end_entropy" if self.after == "end" else "answer_entropy"
        entropy = float(prefix[name][-1])
        if prefix.k == 0 or math.isnan(entropy):
            return math.inf
        if math.isnan(self._mean):
            self._mean = entropy
            return math.inf
        self._mean += self.smoothing * (entropy - self._mean)
        squared = (entropy - self._mean) ** 2
        self._variance += self.smoothing * (squared - self._variance)
        self._weight += self.smoothing * (1.0 - self._weight)
        return self._variance / self._weight

    def stops(self, score: float, setting: float) -> bool:
        """Return whether the variance is below the threshold."""
        return score < setting
