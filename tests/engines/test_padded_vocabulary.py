"""Models whose vocabulary is padded beyond their tokenizer's: such ids are never sampled."""

import json
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stp.campaign.config import parse_config
from stp.campaign.run import run_campaign
from stp.campaign.status import campaign_shares
from stp.engines import Branch, PromptTree, open_engine
from stp.engines.checks import padding_bias
from stp.formats import ThinkingFormat, get_family
from stp.tokenizers import load_tokenizer, unknown_ids
from tests.campaign.rows import table_rows
from tests.campaign.test_shares import DEMO
from tests.engines.test_vllm import needs_vllm

PADDING = 24


@pytest.fixture(scope="module")
def padded(tmp_path_factory) -> Path:
    """The demo model with ids of padding that it writes more often than any token."""
    folder = tmp_path_factory.mktemp("padded") / "demo-padded"
    shutil.copytree(Path(str(files("data"))) / "demo_model", folder)
    weights = load_file(folder / "model.safetensors")
    name = "model.embed_tokens.weight"
    embedding = weights[name]
    generator = torch.Generator().manual_seed(0)
    some = embedding[torch.randint(len(embedding), (PADDING,), generator=generator)]
    weights[name] = torch.cat([embedding, 1.5 * some])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["vocab_size"] = len(weights[name])
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_ids_without_a_token(padded):
    found = unknown_ids(load_tokenizer(padded), 395 + PADDING)
    assert found == tuple(range(395, 395 + PADDING))


def test_they_are_not_drawn(padded):
    engine = open_engine("transformers", padded, threads=1)
    tree = PromptTree(
        trunk_ids=(391, 334, 198, 365),
        branches=(Branch(cut=4, suffix_ids=(), seeds=tuple(range(64))),),
        max_tokens=32,
    )
    ((samples,),) = engine.generate([tree])
    assert max(max(sample.token_ids) for sample in samples) < 395
    engine._model._unsampled = None
    ((samples,),) = engine.generate([tree])
    assert max(max(sample.token_ids) for sample in samples) >= 395
    engine.close()


def test_a_campaign_on_such_a_model(padded, tmp_path):
    text = DEMO.format(thinking=64, answer=16).replace('"demo"', f'"{padded}"\nfamily = "demo"', 1)
    run_campaign(parse_config(text, source="test"), tmp_path / "campaign")
    (cell,) = campaign_shares(tmp_path / "campaign")
    assert cell.counts["unknown_ids"] == 0
    assert all(
        max(row["thinking_ids"]) < 395 for row in table_rows(tmp_path / "campaign", "trajectories")
    )


@pytest.mark.parametrize("family", ["demo", "written-tags"])
@pytest.mark.parametrize("unknown", [395, 10**6, 2**31 - 1])
def test_outputs_that_hold_them_are_parted_and_read(family, unknown):
    tokenizer = load_tokenizer(Path(str(files("data"))) / "demo_model")
    form = ThinkingFormat(get_family(family), tokenizer)
    thought = tuple(tokenizer.encode("one\n\ntwo", add_special_tokens=False))
    said = tuple(tokenizer.encode("three", add_special_tokens=False))
    ids = (unknown, *thought, unknown, *form.end_ids, unknown, *said, unknown)
    parts = form.split(ids)
    assert parts.closed
    assert form.decode(parts.thinking_ids) == "one\n\ntwo"
    assert form.decode(parts.answer_ids).strip() == "three"
    assert form.knows(np.array([unknown, thought[0]])).tolist() == [False, True]


def test_what_vllm_is_told_of_padding(padded):
    assert padding_bias(padded, 395 + PADDING) == dict.fromkeys(range(395, 395 + PADDING), -100.0)
    # Nothing for a vocabulary that is not padded, nor where the tokenizer is not that of the model.
    assert padding_bias(padded, 395) is None
    assert padding_bias(padded.parent, 395) is None


@pytest.mark.vllm
@needs_vllm
def test_they_are_not_drawn_by_vllm(padded):
    engine = open_engine("vllm", padded, kv_cache_memory_bytes=64 << 20, context_limit=128)
    tree = PromptTree(
        trunk_ids=(391, 334, 198, 365),
        branches=(Branch(cut=4, suffix_ids=(), seeds=tuple(range(64))),),
        max_tokens=32,
    )
    ((samples,),) = engine.generate([tree])
    assert max(max(sample.token_ids) for sample in samples) < 395
    engine._bias = None
    ((samples,),) = engine.generate([tree])
    assert max(max(sample.token_ids) for sample in samples) >= 395
    engine.close()
