"""Signals of a real vLLM are those of the transformers engine.

They run where vLLM is installed; see ``test_vllm_environment.py``.
"""

import numpy as np
import pytest

from data.errors import ConfigError, MisuseError
from stp.engines import open_engine
from stp.engines.signals import SignalTree
from tests.engines.test_transformers_signals import random_tree
from tests.engines.test_vllm import SMALL, needs_vllm

pytestmark = [pytest.mark.vllm, needs_vllm]


@pytest.fixture(scope="module")
def vllm_engine(model_folder):
    engine = open_engine("vllm", model_folder("demo"), max_logprobs=-1, **SMALL)
    yield engine
    engine.close()


def test_distributions_are_those_of_the_transformers_engine(vllm_engine, engine_of):
    trees = [random_tree(seed, layers=()) for seed in range(3)]
    expected = engine_of("demo").signals(trees)
    for one, other in zip(vllm_engine.signals(trees), expected, strict=True):
        for name in ("end_logprob", "other_logprob", "entropy"):
            assert np.allclose(getattr(one, name), getattr(other, name), atol=2e-4)
        assert np.array_equal(one.other_id, other.other_id)
        for name in ("suffix_logprobs", "suffix_entropies"):
            for ours, theirs in zip(getattr(one, name), getattr(other, name), strict=True):
                assert np.allclose(ours, theirs, atol=5e-4)
        assert one.hidden == {}


def test_a_trajectory_is_not_read_again_for_every_position(vllm_engine):
    before = vllm_engine.usage.prefill_tokens
    draws = np.random.default_rng(77)
    ids = tuple(draws.integers(61, size=110).tolist())
    cuts = tuple(range(10, 111, 4))
    vllm_engine.signals([SignalTree(trunk_ids=ids, cuts=cuts, end_id=0)])
    # Whole blocks are found again; the last, unfinished one is not.
    assert vllm_engine.usage.prefill_tokens - before < 0.6 * sum(cuts)


def test_hidden_states_are_refused(vllm_engine):
    with pytest.raises(MisuseError, match="layer 0 is not one"):
        vllm_engine.signals([SignalTree(trunk_ids=(1,), cuts=(1,), end_id=0, layers=(0,))])


def test_an_engine_opened_for_sampling_says_what_it_needs(vllm_engine, monkeypatch):
    monkeypatch.setattr(vllm_engine._engine.model_config, "max_logprobs", 20)
    with pytest.raises(ConfigError, match="max_logprobs = -1"):
        vllm_engine.signals([])
