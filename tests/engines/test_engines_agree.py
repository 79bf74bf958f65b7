"""transformers, vLLM in process and a real ``vllm serve``: the same model, the same answers.

They run where vLLM is installed; ``test_vllm_environment.py`` runs them in the environment that
``make vllm`` sets up.
"""

from dataclasses import replace

import pytest

from data.errors import EngineError, MisuseError
from stp.engines import Branch, PromptTree, SamplingParameters, open_engine
from stp.engines.server import ServerEngine
from stp.formats import ThinkingFormat, family_for_model
from stp.prefixes import probe_tree
from stp.segmentation import boundary_token_ids, content_token_ids, segment
from stp.tokenizers import load_tokenizer
from tests.engines.same_curves import least_p_value
from tests.engines.serving import vllm_serve
from tests.engines.test_vllm import needs_vllm, trajectory

pytestmark = [pytest.mark.vllm, pytest.mark.slow, needs_vllm]

GREEDY = SamplingParameters(temperature=0.0)
HOT = SamplingParameters(temperature=2.0)

CAMPAIGN = """
[[models]]
path = "demo"

[[benchmarks]]
name = "demo"
limit = 6

[generation]
trajectories = 8
thinking_limit = {thinking_limit}
answer_tokens = 32

[probing]
step_tokens = 24
probes = 4
answer_tokens = 32

[shards]
questions = 3

[engine]
name = "{name}"

[engine.options]
{options}
"""


@pytest.fixture(scope="module")
def folder(model_folder):
    return model_folder("demo")


@pytest.fixture(scope="module")
def served(folder, tmp_path_factory):
    with vllm_serve(folder, tmp_path_factory.mktemp("serve") / "log") as found:
        yield found


@pytest.fixture(scope="module")
def url(served):
    return served.url


@pytest.fixture(scope="module")
def engines(folder, url):
    opened = {
        "transformers": open_engine("transformers", folder, device="cpu", dtype="float32"),
        "vllm": open_engine("vllm", folder, kv_cache_memory_bytes=64 << 20),
        "server": open_engine("server", folder, url=url, concurrency=16),
    }
    yield opened
    for engine in opened.values():
        engine.close()


def demo_trees(folder, engine):
    """Return greedy thinking of four questions, and the trees that probe it at every position."""
    tokenizer = load_tokenizer(folder)
    format = ThinkingFormat(family_for_model("demo"), tokenizer)
    boundaries = boundary_token_ids(tokenizer)
    prompts = [
        format.prompt_ids(f"What is {text}?", "Put the final answer in \\boxed{}.")
        for text in ("4 + 7 + 2", "9 + 5 + 8 + 1", "3 + 3", "12 + 7 + 5 + 6")
    ]
    thinking = [
        PromptTree(
            trunk_ids=tuple(prompt),
            branches=(Branch(cut=len(prompt), suffix_ids=(), seeds=(1,)),),
            max_tokens=300,
            stop_ids=format.thinking_stop_ids,
            stop_texts=format.thinking_stop_texts,
            sampling=GREEDY,
        )
        for prompt in prompts
    ]
    trees = []
    for prompt, ((sample,),) in zip(prompts, engine.generate(thinking), strict=True):
        thought = format.split(sample.token_ids).thinking_ids
        tokens = [int(length) for length in segment(thought, boundaries, 16)]
        trees.append(
            probe_tree(
                tuple(prompt),
                thought,
                tokens,
                format=format,
                content_ids=content_token_ids(tokenizer, boundaries),
                seeds=lambda position: [position],
                max_tokens=32,
                sampling=GREEDY,
            )
        )
    return thinking, trees


def test_greedy_thinking_and_answers_have_the_same_tokens(folder, engines):
    thinking, probes = demo_trees(folder, engines["transformers"])
    assert sum(len(tree.branches) for tree in probes) > 20
    for trees in (thinking, probes):
        expected = engines["transformers"].generate(trees)
        assert engines["vllm"].generate(trees) == expected
        assert engines["server"].generate(trees) == expected


def test_answers_end_with_their_first_box(folder, engines):
    """vLLM is told to end a sample under way; a server cannot be, and its samples are cut."""
    _, probes = demo_trees(folder, engines["transformers"])
    boxed = [replace(tree, box_after="") for tree in probes]
    expected = engines["transformers"].generate(boxed)
    assert expected != engines["transformers"].generate(probes)
    before = engines["vllm"].usage.copy()
    assert engines["vllm"].generate(boxed) == expected
    generated = engines["vllm"].usage.generated_tokens - before.generated_tokens
    answers = [sample for tree in expected for branch in tree for sample in branch]
    assert generated == sum(len(sample.token_ids) for sample in answers)
    assert engines["server"].generate(boxed) == expected


def test_in_process_and_served_samples_are_the_same(engines):
    tree = trajectory(seeds=(5, 6, 2**63 - 1), sampling=HOT)
    (samples,) = engines["server"].generate([tree])
    assert samples == engines["vllm"].generate([tree])[0]
    assert len(set(samples[-1])) == 3


def test_a_server_stops_counts_and_tells_progress(engines):
    server = engines["server"]
    assert isinstance(server, ServerEngine)
    (first,) = engines["vllm"].generate([trajectory(sampling=GREEDY)])
    stop = first[0][0].token_ids[3]
    tree = trajectory(sampling=GREEDY, stop_ids=frozenset({stop}), stop_texts=("e", "k"))
    calls: list[int] = []
    before = server.usage.copy()
    assert server.generate([tree], on_progress=calls.append) == engines["vllm"].generate([tree])
    assert sum(calls) == len(tree.branches)
    used = server.usage - before
    assert used.prefill_least_tokens == tree.prefill_least_tokens
    assert 0 < used.prefill_tokens <= 1.1 * used.prefill_block_least_tokens
    assert used.generated_tokens > 0
    assert server.block_tokens == 32
    assert server.describe()["engine"] == "server"
    with pytest.raises(MisuseError, match="temperatures up to 2"):
        server.generate([trajectory(sampling=SamplingParameters(temperature=2.1))])


def test_what_does_not_fit_this_server_is_refused(folder, url):
    with pytest.raises(MisuseError, match=r"serves no model named 'other', but 'demo'"):
        open_engine("server", folder, url=url, model="other")
    with pytest.raises(MisuseError, match=r"context_limit is 5000, but the server .* has 1024"):
        open_engine("server", folder, url=url, context_limit=5000)


def test_small_campaigns_give_the_same_curves_within_sampling_error(url, tmp_path):
    """As :mod:`tests.engines.same_curves` tests it, at the 0.1 % level; and it can tell a change.

    The control is a campaign whose thinking is cut at 40 tokens.
    """
    from stp.campaign import load_curves, parse_config, run_campaign
    from stp.campaign.store import Store

    curves = {}
    for key, name, options, limit in (
        ("transformers", "transformers", 'dtype = "float32"\nthreads = 1', 312),
        ("vllm", "vllm", f"kv_cache_memory_bytes = {64 << 20}", 312),
        ("server", "server", f'url = "{url}"\nconcurrency = 32', 312),
        ("cut", "server", f'url = "{url}"\nconcurrency = 32', 40),
    ):
        text = CAMPAIGN.format(name=name, options=options, thinking_limit=limit)
        result = run_campaign(parse_config(text, source=f"{key}.toml"), tmp_path / key)
        assert result.finished
        curves[key] = load_curves(tmp_path / key)
        assert curves[key].trajectories == 48
        stages = Store(tmp_path / key).read_manifest().stages
        for stage in (stages["generate"], stages["probe"]):
            assert stage.prefill_amplification is not None
            assert 0 < stage.prefill_amplification <= 1.1
    for key in ("vllm", "server"):
        assert least_p_value(curves["transformers"], curves[key]) > 1e-3
    assert least_p_value(curves["transformers"], curves["cut"]) < 1e-3


def test_a_server_that_dies_is_an_engine_error(folder, served):
    """The last test of the module: it ends the server."""
    engine = open_engine("server", folder, url=served.url, attempts=2)
    served.kill()
    with pytest.raises(EngineError, match="failed 2 times"):
        engine.generate([trajectory()])
