"""Predictive Scheduling's own allocator (Brown et al., 2026, arXiv 2602.01237), by a price.

The original predicts, for every question, how often it is answered rightly within 1, 2, 3, ...
windows of tokens, and gives window after window to the question with the largest predicted gain
from its next one, until a total is spent. The windows given so far are always those that come
before the first whose predicted gain is below some price; so naming the price instead of the total
decides each question by itself, with the same budgets, and needs no other test question.

Departures. As in :mod:`baselines.predictive_scheduling`; a window is one in ``windows`` equal parts
of the longest training trajectory, and targets are question means of P at the last position within
the windows.
"""

from dataclasses import dataclass

import numpy as np

from baselines.interface import FixedBudget, Setting
from baselines.layers import states
from baselines.measurements import Measurements
from baselines.networks import Training
from baselines.predictive_scheduling import fit_layer
from baselines.views import QuestionView
from stp.ragged import FloatArray
from stp.seeds import PAPER_SEED


@dataclass(eq=False)
class GreedyScheduling(FixedBudget):
    """Give a question windows of tokens as long as the next one's predicted gain is worth it.

    Parameters
    ----------
    windows
        How many windows the longest training trajectory has.
    layer, hidden, learning_rate, epochs, patience, seed
        As for :class:`baselines.predictive_scheduling.PredictiveScheduling`.
    """

    windows: int = 16
    layer: int | None = None
    hidden: int = 256
    learning_rate: float = 1e-3
    epochs: int = 300
    patience: int = 30
    seed: int = PAPER_SEED

    name = "greedy_scheduling"
    needs = ("prompt_hidden",)
    packages = ("torch",)
    control = "minimum gain of a window, points"
    grid = (
        *(-100.0, -10.0, -5.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
        *(2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 75.0),
    )
    citation = "Brown et al., 2026, arXiv 2602.01237"

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Regress the accuracy within each number of windows on the prompt's hidden state."""
        longest = int(train.curves.full_tokens_s.max(initial=1))
        self._window_tokens = max(1, -(-longest // self.windows))
        self._place, self._network = fit_layer(
            self.layer,
            train,
            validation,
            (self._targets(train), self._targets(validation)),
            Training(
                hidden=(self.hidden,),
                output="sigmoid",
                learning_rate=self.learning_rate,
                epochs=self.epochs,
                patience=self.patience,
                seed=self.seed,
            ),
            method=self.name,
        )

    def _targets(self, measurements: Measurements) -> FloatArray:
        curves = measurements.curves
        caps = self._window_tokens * np.arange(self.windows + 1)
        right = np.empty((curves.trajectories, caps.size))
        for s, (start, stop) in enumerate(
            zip(curves.trajectory_offsets[:-1], curves.trajectory_offsets[1:], strict=True)
        ):
            last = np.searchsorted(curves.tokens[start:stop], caps, side="right") - 1
            right[s] = curves.correct[start + last] / curves.probes
        return np.stack([measurements.question_means(column) for column in right.T], axis=1)

    def score(self, question: QuestionView) -> FloatArray:
        """Return the predicted gain of every window, in points; float64 ``(windows,)``."""
        state = states(question["prompt_hidden"][None], self._place)
        return np.asarray(100.0 * np.diff(self._network.predict(state)[0]), np.float64)

    def cap(self, score: FloatArray, setting: Setting) -> int:
        """Return the tokens of the windows before the first that is not worth the price."""
        dear = np.flatnonzero(score < setting)
        return self._window_tokens * int(dear[0] if dear.size else score.size)
