"""A probe on hidden states (Zhang et al., 2025, arXiv 2504.05419): stop when right already.

A classifier reads the hidden state of the boundary token and predicts whether an answer given now
would be right; the thinking stops if its probability is at least a threshold.

Departures. The original labels each chunk with one verdict; here every training position counts
with its share of right probes. The classifier is linear (logistic regression on standardised
states); layer and regularisation are those with the least log-loss on validation questions.
Boundaries are STP's positions from k = 1 on.
"""

import math
from dataclasses import dataclass

import numpy as np

from baselines.interface import EarlyExit
from baselines.layers import place_of_layer, states
from baselines.measurements import Measurements
from baselines.views import Prefix
from data.errors import MisuseError
from stp.ragged import FloatArray, IntArray
from stp.seeds import PAPER_SEED

_STRENGTHS = (0.001, 0.01, 0.1, 1.0)


@dataclass(eq=False)
class HiddenProbe(EarlyExit):
    """Stop when a linear probe says that the answer is right.

    Parameters
    ----------
    layer
        The layer whose state is read; chosen on validation questions when left out.
    strengths
        Inverse regularisation strengths to choose from.
    most_positions
        Positions to train on at most, drawn evenly.
    seed
        Of that draw.
    """

    layer: int | None = None
    strengths: tuple[float, ...] = _STRENGTHS
    most_positions: int = 20_000
    seed: int = PAPER_SEED

    name = "hidden_probe"
    needs = ("hidden",)
    control = "minimum probability of being right"
    grid = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.96, 0.97, 0.98, 0.99, 0.995, 0.999)
    citation = "Zhang et al., 2025, arXiv 2504.05419"

    def fit(self, train: Measurements, validation: Measurements) -> None:
        """Fit a probe at every layer and strength, and keep the one best on validation.

        Raises
        ------
        data.errors.MisuseError
            If training or validation questions have no step, or the layer is not stored.
        """
        rows, held = self._rows(train), self._rows(validation)
        if not rows.size or not held.size:
            raise MisuseError(
                f"{self.name}: the training or the validation questions have no step; it needs both"
            )
        places = (
            list(range(len(train.layers)))
            if self.layer is None
            else [place_of_layer(self.layer, train.layers, 0, method=self.name)]
        )
        right, held_right = (
            m.curves.correct[r] / m.curves.probes for m, r in ((train, rows), (validation, held))
        )
        best = math.inf
        for place in places:
            x, held_x = (
                states(train["hidden"][rows], place),
                states(validation["hidden"][held], place),
            )
            mean, deviation = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
            for strength in self.strengths:
                weights, bias = _logistic((x - mean) / deviation, right, strength)
                weights = weights / deviation
                bias -= float(mean @ weights)
                loss = _log_loss(held_x @ weights + bias, held_right)
                if loss < best:
                    best, self._place, self._weights, self._bias = loss, place, weights, bias

    def _rows(self, measurements: Measurements) -> IntArray:
        """Return the positions with a step before them, at most so many."""
        rows = np.delete(
            np.arange(measurements.curves.positions), measurements.curves.trajectory_offsets[:-1]
        )
        if rows.size > self.most_positions:
            draws = np.random.default_rng(self.seed).permutation(rows.size)[: self.most_positions]
            rows = rows[np.sort(draws)]
        return rows

    def score(self, prefix: Prefix) -> float:
        """Return the probability that an answer would be right now."""
        if prefix.k == 0:
            return -math.inf
        state = states(prefix["hidden"][-1:], self._place)[0]
        return float(_sigmoid(np.asarray(state @ self._weights + self._bias)))


def _logistic(x: FloatArray, right: FloatArray, strength: float) -> tuple[FloatArray, float]:
    """Return weights and bias of a logistic regression on shares of right answers."""
    from sklearn.linear_model import LogisticRegression

    labels = np.repeat([1, 0], right.size)
    weights = np.concatenate([right, 1 - right])
    used = weights > 0
    if np.unique(labels[used]).size < 2:
        # All right or all wrong: nothing to tell apart.
        return np.zeros(x.shape[1]), 30.0 if labels[used][0] else -30.0
    model = LogisticRegression(C=strength, max_iter=500)
    model.fit(np.concatenate([x, x])[used], labels[used], sample_weight=weights[used])
    return np.asarray(model.coef_[0], np.float64), float(model.intercept_[0])


def _sigmoid(logits: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -60.0, 60.0))))


def _log_loss(logits: FloatArray, right: FloatArray) -> float:
    chance = np.clip(_sigmoid(logits), 1e-12, 1 - 1e-12)
    return float(-(right * np.log(chance) + (1 - right) * np.log(1 - chance)).mean())
