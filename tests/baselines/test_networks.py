"""Training: the same every time, stopped on validation alone, torch left as it was."""

import numpy as np
import pytest
import torch

from baselines.networks import Training, train_network
from data.errors import MisuseError


def data(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 5))
    return x, x[:, :1] * 2 + 1 + 0.3 * rng.normal(size=(count, 1))


def test_learns_and_is_the_same_whatever_torch_was_doing():
    x, y = data(200, 0)
    held = data(80, 1)
    training = Training(hidden=(16,), seed=4, epochs=60)
    torch.manual_seed(1)
    first = train_network(x, y, *held, training)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.rand(7)
        second = train_network(x, y, *held, training)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert not torch.are_deterministic_algorithms_enabled()
    for a, b in zip(first.weights, second.weights, strict=True):
        assert np.array_equal(a, b)
    fresh = data(100, 2)
    assert np.mean((first.predict(fresh[0]) - fresh[1]) ** 2) < 0.3


def test_does_not_disturb_the_global_random_state():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    train_network(*data(20, 0), *data(10, 1), Training(hidden=(4,), epochs=3))
    assert torch.equal(torch.rand(4), expected)


def test_keeps_the_epoch_that_is_best_on_validation():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(30, 20)), rng.normal(size=(30, 1))
    held = rng.normal(size=(30, 20)), rng.normal(size=(30, 1))
    training = Training(hidden=(64,), learning_rate=1e-2, epochs=200, patience=15)
    network = train_network(x, noise, *held, training)
    # Pure noise: the best epoch on validation is an early one, though training error still falls.
    assert network.epochs < 60
    assert network.validation_loss == pytest.approx(
        float(np.mean((network.predict(held[0]) - held[1]) ** 2)), rel=1e-4
    )


def test_an_empty_split_is_refused():
    x, y = data(10, 0)
    with pytest.raises(MisuseError, match="one of them is empty"):
        train_network(x, y, x[:0], y[:0], Training(hidden=(4,)))


def test_hidden_states_that_are_no_numbers_are_refused():
    x, y = np.full((8, 3), np.nan), np.ones((8, 1))
    with pytest.raises(MisuseError, match="never a finite number"):
        train_network(x, y, x, y, Training(hidden=(4,), epochs=3))
