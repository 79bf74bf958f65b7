"""Predictive Scheduling (Brown et al., 2026, arXiv 2602.01237): give each question its own budget.

A perceptron with one hidden layer of 256 units reads the hidden state of the question's last
prompt token at one layer and predicts how much thinking the question is worth. It is trained by
mean squared error with Adam at 1e-3. Of the stored layers the one with the least validation error
is taken (the paper finds middle layers best and the last worse), unless one is named.

Departures. In OTBench the target is the mean L(k*) of the question's trajectories, a multiplicative
scale is swept, and the budget is a cap shared by these trajectories (paper 002, A.4). The public
code reads the state after right padding, which can be a pad token's, and calls its test loss a
validation loss: here the state is the last prompt token's own, and selection sees validation
questions alone. Inputs are standardised and targets divided by their training mean.

The original's allocator is the method of :mod:`baselines.greedy_scheduling`.
"""

from dataclasses import dataclass

import numpy as np

from baselines.interface import FixedBudget
from baselines.layers import place_of_layer, states
from baselines.measurements import Measurements
from baselines.networks import Network, Training, best_layer, train_network
from baselines.views import QuestionView
from stp.ragged import FloatArray
from stp.seeds import PAPER_SEED


@dataclass(eq=False)
class PredictiveScheduling(FixedBudget):
    """Cap each question at a multiple of the budget predicted for it.

    Parameters
    ----------
    layer
        The layer whose state is read; chosen on validation questions when left out.
    hidden
        Units of the hidden layer.
    learning_rate, epochs, patience, seed
        Of the training.
    """

    layer: int | None = None
    hidden: int = 256
    learning_rate: float = 1e-3
    epochs: int = 300
    patience: int = 30
    seed: int = PAPER_SEED

    name = "predictive_scheduling"
    needs = ("prompt_hidden",)
    packages = ("torch",)
    control = "scale of the predicted budget"
    grid = (
        *(round(0.1 * i, 1) for i in range(31)),
        *(round(3.25 + 0.25 * i, 2) for i in range(12)),
        8.0,
        10.0,
    )
    citation = "Brown et al., 2026, arXiv 2602.01237"

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Regress the mean L(k*) on the prompt's hidden state, at the best layer."""
        target, held = best_tokens(train), best_tokens(validation)
        self._unit = max(float(target.mean()), 1.0)
        self._place, self._network = fit_layer(
            self.layer,
            train,
            validation,
            (target[:, None] / self._unit, held[:, None] / self._unit),
            Training(
                hidden=(self.hidden,),
                learning_rate=self.learning_rate,
                epochs=self.epochs,
                patience=self.patience,
                seed=self.seed,
            ),
            method=self.name,
        )

    def score(self, question: QuestionView) -> float:
        """Return the predicted budget in tokens, at least 0."""
        state = states(question["prompt_hidden"][None], self._place)
        return max(0.0, self._unit * float(self._network.predict(state)[0, 0]))


def best_tokens(measurements: Measurements) -> FloatArray:
    """Return the mean L(k*) of every question's trajectories; float64 ``(questions,)``."""
    curves = measurements.curves
    return measurements.question_means(curves.tokens[curves.rows_at(curves.k_star_s)])


def fit_layer(
    layer: int | None,
    train: Measurements,
    validation: Measurements,
    targets: tuple[FloatArray, FloatArray],
    training: Training,
    *,
    method: str,
) -> tuple[int, Network]:
    """Return the place of the layer that predicts validation targets best, and its network."""
    layers = train.prompt_layers
    places = (
        list(range(len(layers)))
        if layer is None
        else [place_of_layer(layer, layers, 0, method=method)]
    )
    networks = [
        train_network(
            states(train["prompt_hidden"], place),
            targets[0],
            states(validation["prompt_hidden"], place),
            targets[1],
            training,
        )
        for place in places
    ]
    best = best_layer(networks)
    return int(np.asarray(places)[best]), networks[best]
