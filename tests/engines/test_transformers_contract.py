"""What the engine promises besides tokens: stops, limits, usage, errors."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from data.errors import ConfigError, EngineError, MisuseError, StpError
from stp.engines import open_engine
from stp.engines.base import Branch, PromptTree, SamplingParameters, Usage
from stp.engines.checks import weights_hash
from tests.engines.conftest import toy_tokenizer
from tests.engines.models import CONTEXT, NOT_FORKABLE, VOCABULARY
from tests.engines.test_transformers_twin import SAMPLED, tree_of


def used(engine, trees) -> Usage:
    before = engine.usage
    engine.usage = Usage()
    engine.generate(trees)
    after, engine.usage = engine.usage, before
    return after


def test_usage_counts_each_trunk_token_once_and_every_suffix(engine_of):
    tree = tree_of((3, 9, 9, 30), seeds=(1, 2, 3, 4), max_tokens=5, trunk=40)
    suffixes = sum(len(branch.suffix_ids) for branch in tree.branches)
    usage = used(engine_of("qwen3"), [tree, tree])
    # Nobody keeps the last ten tokens of the trunk.
    assert usage.prefill_least_tokens == 2 * (30 + suffixes)
    assert usage.prefill_tokens == usage.prefill_least_tokens
    assert usage.prefill_amplification == 1.0
    assert usage.generated_tokens == 2 * 16 * 5


def test_branches_without_samples_cost_nothing(engine_of):
    tree = tree_of((3, 30), seeds=(), max_tokens=5)
    assert engine_of("qwen3").generate([tree]) == [((), ())]
    assert used(engine_of("qwen3"), [tree]) == Usage()


def test_nothing_to_do(engine_of):
    assert engine_of("qwen3").generate([]) == []


def test_samples_of_a_branch_that_exceed_the_rows_are_split_and_counted(engine_of):
    tree = PromptTree(
        trunk_ids=(1, 2, 3),
        branches=(Branch(cut=3, suffix_ids=(4, 5), seeds=tuple(range(10))),),
        max_tokens=4,
    )
    usage = used(engine_of("qwen3", max_rows=4), [tree])
    assert (usage.prefill_tokens, usage.prefill_least_tokens) == (3 + 3 * 2, 3 + 2)


def test_progress_adds_up_to_the_samples(engine_of):
    calls: list[int] = []
    tree = tree_of(
        (3, 9), seeds=(1, 2, 3), max_tokens=20, sampling=SAMPLED, stop_ids=frozenset({7})
    )
    engine_of("qwen3", max_rows=4).generate([tree, tree], on_progress=calls.append)
    assert sum(calls) == 12
    assert min(calls) > 0


def test_stop_ids_end_a_sample_and_stay_in_it(engine_of):
    free = tree_of((9,), seeds=tuple(range(20)), max_tokens=30, sampling=SAMPLED)
    ((everything,),) = engine_of("qwen3").generate([free])
    stops = frozenset({5, 17})
    stopped = tree_of((9,), seeds=tuple(range(20)), max_tokens=30, sampling=SAMPLED, stop_ids=stops)
    ((completions,),) = engine_of("qwen3").generate([stopped])
    assert {completion.finish for completion in completions} == {"stop", "length"}
    for whole, completion in zip(everything, completions, strict=True):
        ends = [i for i, token in enumerate(whole.token_ids) if token in stops]
        end = ends[0] + 1 if ends else 30
        assert completion.token_ids == whole.token_ids[:end]
        assert completion.finish == ("stop" if ends else "length")


def test_stop_texts_end_a_sample_with_the_token_that_completes_them(engine_of, naive_of):
    """One text spans several tokens, and one is a letter whose two bytes are two tokens."""
    decode = toy_tokenizer().decode
    free = tree_of((9,), seeds=tuple(range(40)), max_tokens=40, sampling=SAMPLED)
    ((everything,),) = engine_of("qwen3").generate([free])
    texts = [decode(list(completion.token_ids)) for completion in everything]
    texts_to_meet = ("é", texts[0][4:7], texts[1][8:11])
    tree = tree_of(
        (9,), seeds=tuple(range(40)), max_tokens=40, sampling=SAMPLED, stop_texts=texts_to_meet
    )
    ((completions,),) = engine_of("qwen3").generate([tree])
    assert {completion.finish for completion in completions} == {"stop", "length"}
    for whole, completion in zip(everything, completions, strict=True):
        end = next(
            (
                i
                for i in range(1, 41)
                if any(text in decode(list(whole.token_ids[:i])) for text in texts_to_meet)
            ),
            None,
        )
        assert completion.token_ids == whole.token_ids[: end or 40]
        assert completion.finish == ("stop" if end else "length")


def test_the_context_cuts_a_sample_and_says_length(engine_of, caplog):
    tree = tree_of((CONTEXT - 5,), max_tokens=50, trunk=CONTEXT)
    ((((completion),),),) = engine_of("llama").generate([tree])
    prompt = CONTEXT - 5 + len(tree.branches[0].suffix_ids)
    assert len(completion.token_ids) == CONTEXT - prompt
    assert completion.finish == "length"
    assert "leaves less than max_tokens" in caplog.text


def bad(**changes) -> PromptTree:
    fields = {
        "trunk_ids": (1, 2, 3),
        "branches": (Branch(cut=1, suffix_ids=(2,), seeds=(1,)),),
        "max_tokens": 4,
    }
    return PromptTree(**(fields | changes))


def branch(cut=1, suffix=(), seeds=(1,)) -> Branch:
    return Branch(cut=cut, suffix_ids=suffix, seeds=seeds)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (bad(branches=()), "no branches"),
        (bad(branches=(branch(4),)), "cut 4"),
        (bad(branches=(branch(-1, (1,)),)), "cut -1"),
        (bad(branches=(branch(2), branch(1))), "rising order"),
        (bad(branches=(branch(0),)), "empty prompt"),
        (bad(branches=(branch(seeds=(2**63,)),)), "seed"),
        (bad(branches=(branch(seeds=(-1,)),)), "seed"),
        (bad(branches=(branch(suffix=(VOCABULARY,)),)), f"token id {VOCABULARY}"),
        (bad(trunk_ids=(1, -1)), "token id -1"),
        (bad(max_tokens=0), "max_tokens is 0"),
        (bad(sampling=SamplingParameters(temperature=-1)), "temperature is -1"),
        (bad(sampling=SamplingParameters(temperature=float("nan"))), "temperature is nan"),
        (bad(sampling=SamplingParameters(top_p=0)), "top_p is 0"),
        (bad(sampling=SamplingParameters(top_p=1.1)), "top_p is 1.1"),
        (bad(sampling=SamplingParameters(top_k=-1)), "top_k is -1"),
        (bad(branches=(branch(1, (1,) * 127),)), "128 tokens leaves no room"),
    ],
)
def test_bad_trees_are_refused_in_one_line(tree, words, engine_of):
    good = tree_of((3,))
    with pytest.raises(MisuseError, match=words) as caught:
        engine_of("qwen3").generate([good, tree])
    assert str(caught.value).startswith("tree 1: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", NOT_FORKABLE)
def test_models_that_cannot_be_forked_are_refused_in_one_line(kind, model_folder):
    with pytest.raises(EngineError, match="cannot be forked") as caught:
        open_engine("transformers", model_folder(kind))
    assert "\n" not in str(caught.value)


def test_missing_pieces_of_a_model_are_named(tmp_path, model_folder):
    with pytest.raises(MisuseError, match="does not exist"):
        open_engine("transformers", tmp_path / "nowhere")
    with pytest.raises(MisuseError, match=r"no config\.json"):
        open_engine("transformers", tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(MisuseError, match="safetensors"):
        open_engine("transformers", tmp_path)
    shutil.copy(model_folder("qwen3") / "model.safetensors", tmp_path)
    with pytest.raises(EngineError, match=r"config\.json cannot be used") as caught:
        open_engine("transformers", tmp_path)
    assert "\n" not in str(caught.value)


def test_torn_weights_are_an_error_in_one_line(tmp_path, model_folder):
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "torn")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(EngineError, match="cannot be loaded") as caught:
        open_engine("transformers", folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dtype", "evil"),
        ("num_hidden_layers", 0),
        ("num_attention_heads", 0),
        ("hidden_size", -5),
        ("vocab_size", 2**70),
        ("hidden_act", "evil"),
        ("layer_types", 7),
        ("quantization_config", 7),
        ("rope_parameters", [1]),
    ],
)
def test_a_configuration_that_cannot_be_is_one_line(tmp_path, model_folder, key, value):
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "odd")
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, key: value}))
    # Sizes that no model has are refused before anything is loaded.
    said = r"cannot be (used|loaded|forked)|is the file damaged"
    with pytest.raises((EngineError, MisuseError), match=said) as caught:
        open_engine("transformers", folder)
    assert "\n" not in str(caught.value)


def test_stop_texts_without_a_tokenizer_are_refused(tmp_path, model_folder):
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "bare")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(MisuseError, match=r"tokenizer\.json"):
        open_engine("transformers", folder).generate([tree_of((3,), stop_texts=("x",))])


def test_weights_that_are_not_numbers_are_an_engine_error(tmp_path, model_folder):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "nan")
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EngineError):
        open_engine("transformers", folder).generate([tree_of((3,))])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"device": "abacus"}, "device is 'abacus'"),
        ({"max_rows": 0}, "max_rows is 0"),
        ({"threads": -1}, "threads is -1"),
        ({"beams": 3}, "beams"),
    ],
)
def test_bad_options_are_refused(options, words, model_folder):
    with pytest.raises(ConfigError, match=words):
        open_engine("transformers", model_folder("qwen3"), **options)


def test_an_unknown_engine_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match="'llamacpp' is unknown; choose one of transformers, vllm"
    ):
        open_engine("llamacpp", tmp_path)


def test_torch_missing_names_the_extra(tmp_path):
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from data.errors import MissingDependencyError\n"
        "from stp.engines import open_engine\n"
        "try: open_engine('transformers', '.')\n"
        "except MissingDependencyError as error: print(error)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert "needs torch; install it with: pip install 'stp-engine[torch]'" in output


def test_the_package_is_light():
    program = "import sys, stp.engines; print('torch' in sys.modules, 'numpy' in sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == ["False", "False"]


def test_description_is_plain_and_names_the_weights(engine_of, model_folder, tmp_path):
    description = engine_of("qwen3").describe()
    assert json.loads(json.dumps(description)) == description
    assert description["weights_sha256"] == weights_hash(model_folder("qwen3"))
    assert description["dtype"] == "float32"
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "other")
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert weights_hash(folder) != description["weights_sha256"]


def test_context_limit_option(model_folder):
    engine = open_engine("transformers", model_folder("qwen3"), context_limit=20)
    assert engine.context_limit == 20
    with pytest.raises(StpError, match="context of 20"):
        engine.generate([tree_of((20,))])


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"threds": 2}, r"has no option 'threds'; did you mean 'threads'\?"),
        (
            {"THREADS": 2},
            r"has no option 'THREADS'; did you mean 'threads'\? \(there are .*threads",
        ),
        ({"beams": 2}, r"has no option 'beams' \(there are .*threads"),
        ({"threads": "many"}, "option threads is 'many': it must be a valid integer"),
        ({"threads": True}, "option threads is True"),
        ({"max_rows": 1.5}, r"option max_rows is 1\.5"),
        ({"dtype": 32}, "option dtype is 32: it must be a valid string"),
    ],
)
def test_options_of_another_name_or_type_are_refused_in_one_line(option, words, model_folder):
    with pytest.raises(ConfigError, match=words) as caught:
        open_engine("transformers", model_folder("qwen3"), **option)
    assert "\n" not in str(caught.value)


def _rewrite(folder, change):
    """Change a model's tensors in place."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def test_a_model_of_another_class_than_its_config_says_is_refused(tmp_path, model_folder):
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        EngineError, match=r"is not a LlamaForCausalLM.* has, unlike the class"
    ) as caught:
        open_engine("transformers", folder)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_all_there_are_refused(tmp_path, model_folder):
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "less")
    name = "model.layers.0.mlp.up_proj.weight"
    _rewrite(folder, lambda tensors: tensors.pop(name))
    with pytest.raises(EngineError, match=re.escape(f"it lacks {name}")):
        open_engine("transformers", folder)


def test_what_lies_beside_the_decoder_does_no_harm(tmp_path, model_folder):
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "more")
    _rewrite(folder, lambda tensors: tensors.update({"vision.layers.0.weight": torch.ones(2)}))
    assert open_engine("transformers", folder).context_limit


def test_weights_that_are_no_numbers_are_named(tmp_path, model_folder):
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "nan")
    _rewrite(folder, lambda tensors: tensors["model.norm.weight"].fill_(float("nan")))
    with pytest.raises(EngineError, match="logits that are not numbers"):
        open_engine("transformers", folder)


@pytest.mark.parametrize(
    "value",
    [
        {"num_attention_heads": 0},
        {"num_attention_heads": "many"},
        {"vocab_size": 1, "pad_token_id": 5},
    ],
)
def test_a_config_with_an_impossible_value_is_one_line(tmp_path, model_folder, value):
    folder = shutil.copytree(model_folder("qwen3"), tmp_path / "odd")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | value))
    with pytest.raises(EngineError) as caught:
        open_engine("transformers", folder)
    assert "\n" not in str(caught.value)
