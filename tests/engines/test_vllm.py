"""The vLLM engine against the forked one, on a real vLLM.

They run where vLLM is installed, a CPU build included. Elsewhere they are skipped, and
``test_vllm_environment.py`` runs them in the environment that ``make vllm`` sets up.
"""

import importlib.util
import json
import random
import subprocess
import sys

import numpy as np
import pytest

from data.errors import ConfigError, EngineError, MisuseError
from stp.campaign.early import check_engine
from stp.engines import open_engine
from stp.engines.base import Branch, PromptTree, SamplingParameters, Usage
from tests.engines.models import CONTEXT, VOCABULARY
from tests.engines.test_streaming import streamed
from tests.engines.test_transformers_twin import GREEDY, tree_of

HAS_VLLM = importlib.util.find_spec("vllm") is not None
needs_vllm = pytest.mark.skipif(
    not HAS_VLLM, reason="runs in the environment of `make vllm`; see test_vllm_environment.py"
)

KIND = "demo"
SMALL = {"kv_cache_memory_bytes": 64 << 20, "context_limit": CONTEXT}


@pytest.fixture(scope="module")
def vllm_engine(model_folder):
    engine = open_engine("vllm", model_folder(KIND), **SMALL)
    yield engine
    engine.close()


def trajectory(**others) -> PromptTree:
    """Return a trunk of 100 tokens with a branch every seven."""
    return tree_of(range(1, 100, 7), trunk=100, max_tokens=12, **others)


@pytest.mark.vllm
@needs_vllm
def test_greedy_tokens_are_those_of_the_forked_engine(vllm_engine, engine_of):
    forest = [trajectory(seeds=(1, 2), sampling=GREEDY), tree_of((0, 3, 20), max_tokens=20)]
    assert vllm_engine.generate(forest) == engine_of(KIND, context_limit=CONTEXT).generate(forest)


@pytest.mark.vllm
@needs_vllm
def test_prefill_is_the_least_that_blocks_allow(vllm_engine):
    vllm_engine.generate([trajectory()])
    vllm_engine.usage = type(vllm_engine.usage)()
    generator = np.random.default_rng(9)
    tree = PromptTree(
        trunk_ids=tuple(generator.integers(VOCABULARY, size=110).tolist()),
        branches=tuple(
            Branch(cut=cut, suffix_ids=(1, 2), seeds=tuple(range(16))) for cut in range(5, 110, 5)
        ),
        max_tokens=4,
    )
    vllm_engine.generate([tree])
    usage = vllm_engine.usage
    assert usage.block_amplification <= 1.1
    assert usage.prefill_least_tokens == 105 + 21 * 2
    assert usage.prefill_least_tokens < usage.prefill_block_least_tokens
    assert usage.generated_tokens == 21 * 16 * 4


@pytest.mark.vllm
@needs_vllm
def test_samples_depend_on_their_seed_alone(vllm_engine):
    # Hot: on these made-up ids the demo model is sure of itself, and samples would be alike.
    hot = SamplingParameters(temperature=2.0)
    tree = trajectory(seeds=(5, 6, 2**63 - 1), sampling=hot)
    (together,) = vllm_engine.generate([tree])
    last = PromptTree(
        trunk_ids=tree.trunk_ids,
        branches=(tree.branches[-1],),
        max_tokens=tree.max_tokens,
        sampling=tree.sampling,
    )
    assert vllm_engine.generate([last])[0][0] == together[-1]
    assert len(set(together[-1])) == 3


@pytest.mark.vllm
@needs_vllm
def test_first_tokens_have_the_same_distribution_as_the_forked_engine(vllm_engine, engine_of):
    """Two samples of one distribution: a chi-square test over the tokens of 3,000 draws each."""
    from scipy.stats import chi2_contingency

    sampling = SamplingParameters(temperature=1.3, top_k=12, top_p=0.9)
    tree = tree_of((20,), seeds=tuple(range(3000)), max_tokens=1, sampling=sampling)
    counts = []
    for engine in (vllm_engine, engine_of(KIND, context_limit=CONTEXT)):
        ((completions,),) = engine.generate([tree])
        tokens = [completion.token_ids[0] for completion in completions]
        counts.append(np.bincount(tokens, minlength=VOCABULARY))
    table = np.array(counts)
    table = table[:, table.sum(0) > 0]
    assert table.shape[1] > 1
    assert chi2_contingency(table).pvalue > 1e-3


@pytest.mark.vllm
@needs_vllm
def test_stops_limits_and_progress(vllm_engine, engine_of):
    calls: list[int] = []
    greedy = engine_of(KIND, context_limit=CONTEXT).generate([trajectory()])[0]
    stop = greedy[0][0].token_ids[3]
    texts = trajectory(stop_texts=("e", "k"), stop_ids=frozenset({stop}))
    assert vllm_engine.generate([texts], on_progress=calls.append) == engine_of(
        KIND, context_limit=CONTEXT
    ).generate([texts])
    assert sum(calls) == len(texts.branches)
    full = tree_of((120,), trunk=128, max_tokens=50)
    ((completions,),) = vllm_engine.generate([full])
    assert completions[0].finish == "length"
    assert len(completions[0].token_ids) < 10
    with pytest.raises(MisuseError, match="leaves no room"):
        vllm_engine.generate([tree_of((128,), trunk=128)])
    with pytest.raises(MisuseError, match="temperatures up to 2"):
        vllm_engine.generate([trajectory(sampling=SamplingParameters(temperature=2.01))])
    with pytest.raises(MisuseError, match="between -2 and 2"):
        vllm_engine.generate([trajectory(sampling=SamplingParameters(presence_penalty=3.0))])


@pytest.mark.vllm
@needs_vllm
def test_options_of_vllm_are_checked_before_it_starts(model_folder):
    with pytest.raises(
        ConfigError, match=r"'max_num_seq' is unknown .* did you mean 'max_num_seqs'"
    ):
        open_engine("vllm", model_folder(KIND), max_num_seq=3)
    with pytest.raises(ConfigError, match=r"max_model_len cannot be set .* is context_limit"):
        open_engine("vllm", model_folder(KIND), max_model_len=64)
    # What fails without a model is the start, and says nothing of the options.
    check_engine("vllm", {**SMALL, "max_num_seqs": 3})


@pytest.mark.vllm
@needs_vllm
def test_a_small_cache_is_not_thrashed(vllm_engine, monkeypatch):
    """More trunks and tails than fit, all at hand at once: what vLLM schedules is counted."""
    monkeypatch.setattr(type(vllm_engine), "cache_tokens", 40 * 32)
    pool = vllm_engine._engine.engine_core.engine_core.scheduler.kv_cache_manager.block_pool
    generator = np.random.default_rng(4)
    trees = [
        PromptTree(
            trunk_ids=tuple(generator.integers(VOCABULARY, size=size).tolist()),
            branches=tuple(
                Branch(cut=cut, suffix_ids=(1, 2), seeds=(1, 2, 3)) for cut in range(8, size, 16)
            ),
            max_tokens=16,
            sampling=GREEDY,
        )
        for size in (100, 20, 100, 30, 20, 100, 100, 30)
    ]
    assert sum(tree.longest_cut for tree in trees) + 16 * 3 * 8 > 400
    # All blocks but forty are taken away for the time being.
    taken = pool.get_new_blocks(pool.get_num_free_blocks() - 40)
    try:
        before = vllm_engine.usage.copy()
        vllm_engine.generate(trees)
        used = vllm_engine.usage - before
    finally:
        pool.free_blocks(taken)
    assert used.block_amplification <= 1.3


@pytest.mark.vllm
@needs_vllm
def test_a_stream_gives_what_one_call_gives(vllm_engine):
    draws = random.Random(2)
    trees = [
        tree_of(range(1, size, 7), trunk=size, max_tokens=12, seeds=(1, 2), sampling=GREEDY)
        for size in draws.sample(range(30, 100), 9)
    ]
    expected = vllm_engine.generate(trees)
    made = streamed(vllm_engine, trees, draws, dropped={2, 5})
    assert all(made[index] == expected[index] for index in made)
    assert made.keys() >= set(range(9)) - {2, 5}
    assert not vllm_engine.busy and not vllm_engine._running
    # What was dropped is gone: the next call has nothing of it.
    vllm_engine.submit(trees[0])
    vllm_engine.step()
    vllm_engine.drop()
    assert vllm_engine.generate(trees[:2]) == expected[:2]


@pytest.mark.vllm
@needs_vllm
def test_description_is_plain(vllm_engine):
    description = vllm_engine.describe()
    assert json.loads(json.dumps(description)) == description
    assert description["engine"] == "vllm"
    assert isinstance(vllm_engine.usage, Usage)


@pytest.mark.vllm
@needs_vllm
def test_a_model_that_vllm_refuses_is_an_engine_error(model_folder):
    with pytest.raises(EngineError, match="vLLM cannot start"):
        open_engine("vllm", model_folder(KIND), **SMALL, block_size=7)


def test_vllm_missing_names_the_extra(model_folder):
    program = (
        "import sys; sys.modules['vllm'] = None\n"
        "from data.errors import MissingDependencyError\n"
        "from stp.engines import open_engine\n"
        f"try: open_engine('vllm', {str(model_folder('qwen3'))!r})\n"
        "except MissingDependencyError as error: print(error)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert "needs vllm; install it with: pip install 'stp-engine[vllm]'" in output
