"""Small multilayer perceptrons, trained the same way every time.

Training uses torch with one thread, a seed of its own and deterministic algorithms, stops early on
validation data alone and keeps the best epoch. What is kept are plain arrays: a trained network
predicts with numpy and needs no torch.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from data.errors import MissingDependencyError, MisuseError
from stp.ragged import FloatArray

if TYPE_CHECKING:
    import torch

Output = Literal["linear", "sigmoid"]
# Smallest deviation that an input is divided by: a constant input stays constant.
_LEAST_DEVIATION = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """A trained network with rectified hidden units.

    Attributes
    ----------
    mean, deviation
        Of the training inputs, float64 ``(inputs,)``; inputs are standardised by them.
    weights, biases
        Of every layer.
    output
        What the last layer's values go through.
    validation_loss
        Of the epoch that was kept.
    epochs
        Which epoch that was, counted from 1.
    """

    mean: FloatArray
    deviation: FloatArray
    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    output: Output
    validation_loss: float
    epochs: int

    def predict(self, inputs: npt.ArrayLike) -> FloatArray:
        """Return the outputs; float64 ``(rows, outputs)`` for inputs ``(rows, inputs)``."""
        values = (np.asarray(inputs, np.float64) - self.mean) / self.deviation
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = values @ weight.T + bias
            if layer < last:
                values = np.maximum(values, 0.0)
        if self.output == "sigmoid":
            values = 1.0 / (1.0 + np.exp(-np.clip(values, -60.0, 60.0)))
        return np.asarray(values, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a network is trained.

    Attributes
    ----------
    hidden
        Units of every hidden layer.
    output
        See :class:`Network`.
    learning_rate, weight_decay
        Of AdamW; without decay it is Adam.
    batch, epochs, patience
        Rows a step; most epochs; epochs without a better validation loss before stopping.
    seed
        Of initial weights and of the order of rows.
    """

    hidden: tuple[int, ...]
    output: Output = "linear"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch: int = 32
    epochs: int = 200
    patience: int = 20
    seed: int = 0


Loss = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def squared_error(predicted: "torch.Tensor", target: "torch.Tensor") -> "torch.Tensor":
    """Return the mean squared error."""
    return ((predicted - target) ** 2).mean()


def train_network(
    inputs: npt.ArrayLike,
    targets: npt.ArrayLike,
    validation_inputs: npt.ArrayLike,
    validation_targets: npt.ArrayLike,
    training: Training,
    loss: Loss = squared_error,
) -> Network:
    """Train a network and return its best epoch by validation loss.

    Parameters
    ----------
    inputs, targets
        ``(rows, inputs)`` and ``(rows, outputs)``.
    validation_inputs, validation_targets
        Likewise, of other questions.
    training
        How.
    loss
        Of predictions and targets, a scalar.

    Raises
    ------
    data.errors.MissingDependencyError
        If torch is not installed.
    data.errors.MisuseError
        If there is no training or no validation row, or the loss is never finite.
    """
    torch = _torch()
    x, y, held_x, held_y = (
        np.asarray(a, np.float64) for a in (inputs, targets, validation_inputs, validation_targets)
    )
    if not x.shape[0] or not held_x.shape[0]:
        raise MisuseError(
            "a network needs training and validation questions, and one of them is empty; "
            "make the release from more questions"
        )
    mean = x.mean(axis=0)
    deviation = np.maximum(x.std(axis=0), _LEAST_DEVIATION)
    with _deterministic(training.seed):
        network = _layers([x.shape[1], *training.hidden, y.shape[1]], training.output)
        optimiser = torch.optim.AdamW(
            network.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
        )
        rows = [
            torch.tensor((a - m) / d, dtype=torch.float32)
            for a, m, d in (
                (x, mean, deviation),
                (y, 0, 1),
                (held_x, mean, deviation),
                (held_y, 0, 1),
            )
        ]
        best, best_epoch, kept = np.inf, 0, [p.detach().clone() for p in network.parameters()]
        for epoch in range(1, training.epochs + 1):
            for part in torch.randperm(x.shape[0]).split(training.batch):
                optimiser.zero_grad()
                step_loss: Any = loss(network(rows[0][part]), rows[1][part])
                step_loss.backward()
                optimiser.step()
            with torch.no_grad():
                value = float(loss(network(rows[2]), rows[3]))
            if value < best:
                best, best_epoch = value, epoch
                kept = [p.detach().clone() for p in network.parameters()]
            elif epoch - best_epoch >= training.patience:
                break
    if not np.isfinite(best):
        raise MisuseError(
            "a network's validation loss was never a finite number; look for signals or hidden "
            "states that are not numbers, and read them again with `stp signals --again`"
        )
    arrays = [np.asarray(p.numpy(), np.float64) for p in kept]
    return Network(
        mean=mean,
        deviation=deviation,
        weights=tuple(arrays[::2]),
        biases=tuple(arrays[1::2]),
        output=training.output,
        validation_loss=float(best),
        epochs=best_epoch,
    )


def best_layer(networks: Sequence[Network]) -> int:
    """Return the place of the network with the least validation loss, the first on ties."""
    return int(np.argmin([network.validation_loss for network in networks]))


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            'this method trains a network with torch; install it: pip install "stp-engine[torch]"'
        ) from error
    return torch


def _layers(sizes: Sequence[int], output: Output) -> Any:
    torch = _torch()
    modules: list[Any] = []
    for i, (before, after) in enumerate(itertools.pairwise(sizes)):
        modules.append(torch.nn.Linear(before, after))
        if i < len(sizes) - 2:
            modules.append(torch.nn.ReLU())
    if output == "sigmoid":
        modules.append(torch.nn.Sigmoid())
    return torch.nn.Sequential(*modules)


@contextmanager
def _deterministic(seed: int) -> Iterator[None]:
    """Give torch one thread and a seed; put back what was there afterwards."""
    torch = _torch()
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(strict)
            torch.set_num_threads(threads)
