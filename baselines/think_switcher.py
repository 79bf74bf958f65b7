"""ThinkSwitcher (Liang et al., 2025, arXiv 2505.14183): think where thinking is predicted to help.

A perceptron of five layers reads the model's own hidden state of the question (last prompt token)
and regresses two pass rates, without and with thinking. Its loss is the squared error of both,
plus ``margin_weight`` times the squared error of the predicted gap. The question is thought about
if the predicted gap is at least the threshold, which OTBench sweeps.

Departures. The original's second mode is a short chain of thought; here it is P(0), an answer
after no thinking, and the targets are question means of P(0) and P(n) (paper 002, A.4). The weight
of the margin term is not published: 1 unless set. Inputs are standardised, outputs go through a
sigmoid, and training stops early on validation loss. The last stored layer is read unless another
is named.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from baselines.interface import Router
from baselines.layers import place_of_layer, states
from baselines.measurements import Measurements
from baselines.networks import Network, Training, train_network
from baselines.views import QuestionView
from stp.ragged import FloatArray
from stp.seeds import PAPER_SEED

if TYPE_CHECKING:
    import torch


@dataclass(eq=False)
class ThinkSwitcher(Router):
    """Route by the predicted gain of thinking.

    Parameters
    ----------
    layer
        The layer whose state is read; the last that the release holds when left out.
    hidden
        Units of the hidden layers; with a state of 3,584 numbers these make 4.4 M parameters, and
        the original has 3 to 7 M.
    margin_weight
        Weight of the margin term.
    learning_rate, weight_decay, epochs, patience, seed
        Of the training.
    """

    layer: int | None = None
    hidden: tuple[int, ...] = (1024, 512, 256, 128)
    margin_weight: float = 1.0
    learning_rate: float = 1e-4
    weight_decay: float = 1e-2
    epochs: int = 300
    patience: int = 30
    seed: int = PAPER_SEED

    name = "think_switcher"
    needs = ("prompt_hidden",)
    packages = ("torch",)
    control = "minimum predicted gain"
    grid = tuple(round(-0.5 + 0.025 * i, 3) for i in range(61))
    citation = "Liang et al., 2025, arXiv 2505.14183"

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Regress question means of P(0) and P(n) on the prompt's hidden state."""
        self._place = place_of_layer(self.layer, train.prompt_layers, -1, method=self.name)
        self._network: Network = train_network(
            states(train["prompt_hidden"], self._place),
            endpoint_rates(train),
            states(validation["prompt_hidden"], self._place),
            endpoint_rates(validation),
            Training(
                hidden=tuple(self.hidden),
                output="sigmoid",
                learning_rate=self.learning_rate,
                weight_decay=self.weight_decay,
                epochs=self.epochs,
                patience=self.patience,
                seed=self.seed,
            ),
            self._loss,
        )

    def _loss(self, predicted: "torch.Tensor", target: "torch.Tensor") -> "torch.Tensor":
        gap = (predicted[:, 1] - predicted[:, 0]) - (target[:, 1] - target[:, 0])
        return ((predicted - target) ** 2).mean() + self.margin_weight * (gap**2).mean()

    def score(self, question: QuestionView) -> float:
        """Return the predicted P(n) less the predicted P(0)."""
        state = states(question["prompt_hidden"][None], self._place)
        zero, full = self._network.predict(state)[0].tolist()
        return float(full - zero)


def endpoint_rates(measurements: Measurements) -> FloatArray:
    """Return question means of P(0) and P(n); float64 ``(questions, 2)``."""
    curves = measurements.curves
    ends = (curves.zero_correct_s, curves.full_correct_s)
    return np.stack([measurements.question_means(end / curves.probes) for end in ends], axis=1)
