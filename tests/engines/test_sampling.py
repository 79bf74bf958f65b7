"""Random streams and draws against their definitions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from stp.engines.base import SamplingParameters
from stp.engines.sampling import draw, philox_4x32, uniforms
from tests.engines.naive import naive_draw, philox_uniform


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        # The known answers of the authors' Random123 library.
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_known_answers(counter, key, words):
    got = philox_4x32(np.array(counter, dtype=np.uint64), np.array(key, dtype=np.uint64))
    assert got.tolist() == words


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**40)), min_size=1))
def test_uniforms_are_functions_of_seed_and_step(pairs):
    seeds, steps = np.array(pairs, dtype=np.uint64).T
    assert uniforms(seeds, steps).tolist() == [philox_uniform(*pair) for pair in pairs]


def test_uniforms_are_uniform_along_steps_and_across_neighbouring_seeds():
    many = np.arange(20_000, dtype=np.uint64)
    same = np.full_like(many, 7)
    for values in (uniforms(same, many), uniforms(many, same)):
        assert values.min() >= 0
        assert values.max() < 1
        assert kstest(values, "uniform").pvalue > 1e-3
        assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03


sizes = st.sampled_from((1, 2, 61, 255, 256, 257, 700))


@given(
    data=st.data(),
    size=sizes,
    temperature=st.sampled_from((0.0, 0.3, 1.0, 2.0)),
    top_p=st.sampled_from((1.0, 0.95, 0.5, 1e-6)),
    top_k=st.sampled_from((0, 1, 20, 300, 10_000)),
    spread=st.sampled_from((0.1, 3.0, 30.0)),
)
def test_draws_are_those_of_the_definition(data, size, temperature, top_p, top_k, spread):
    """Logits without ties; a spread of 0.1 makes nuclei of hundreds of tokens."""
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    logits = generator.normal(scale=spread, size=(7, size))
    uniform = np.concatenate([generator.uniform(size=5), [0.0, 0.9999]])
    sampling = SamplingParameters(temperature=temperature, top_p=top_p, top_k=top_k)
    drawn = draw(torch.from_numpy(logits), torch.from_numpy(uniform), sampling)
    expected = [
        naive_draw(row.tolist(), u, sampling) for row, u in zip(logits, uniform, strict=True)
    ]
    assert drawn.tolist() == expected


@pytest.mark.parametrize("top_k", [0, 5])
def test_frequencies_are_the_probabilities(top_k):
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5, 1.5, -2.0, 0.3], dtype=torch.float64)
    draws = 40_000
    steps = np.arange(draws, dtype=np.uint64)
    uniform = torch.from_numpy(uniforms(np.full_like(steps, 3), steps))
    sampling = SamplingParameters(temperature=0.8, top_k=top_k)
    tokens = draw(logits.expand(draws, -1), uniform, sampling)
    weights = (logits / 0.8).exp().numpy()
    if top_k:
        weights[np.argsort(weights)[:-top_k]] = 0.0
    counts = np.bincount(tokens.numpy(), minlength=8)
    assert counts[weights == 0].sum() == 0
    alive = weights > 0
    expected = draws * weights[alive] / weights.sum()
    assert chisquare(counts[alive], expected).pvalue > 1e-3


def test_a_token_of_weight_zero_is_never_drawn():
    logits = torch.full((2, 600), -math.inf, dtype=torch.float64)
    logits[:, 300] = 0.0
    uniform = torch.tensor([0.0, 1.0 - 2.0**-53], dtype=torch.float64)
    for sampling in (SamplingParameters(), SamplingParameters(top_p=0.9)):
        assert draw(logits, uniform, sampling).tolist() == [300, 300]


@pytest.mark.parametrize("temperature", [1e-300, 1e-45, 1e-6])
@pytest.mark.parametrize("limits", [{}, {"top_k": 2}, {"top_p": 0.9}])
def test_a_temperature_too_small_to_divide_by_is_greedy(temperature, limits):
    logits = torch.tensor([[0.0, -1.0, 3.0, 2.9999], [5.0, 5.0, 0.0, -torch.inf]])
    sampling = SamplingParameters(temperature=temperature, **limits)
    got = draw(logits, torch.tensor([0.999, 0.999], dtype=torch.float64), sampling)
    assert got.tolist() == [2, 0]
