"""A campaign in other words: what is sent, what is kept, and what a folder refuses."""

import pytest
from typer.testing import CliRunner

from data.errors import ConfigError, StoreMismatchError
from stp.campaign.config import load_config, parse_config
from stp.campaign.run import run_campaign
from stp.campaign.store import Store
from tests.campaign.fakes import ScriptedEngine

WORDS = 'name = "theirs"\n[prompts]\nmath = "Box it, please."\n'


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.toml"
    path.write_text(WORDS)
    return path


def run(config, folder):
    run_campaign(config, folder, open_model=lambda name, path: ScriptedEngine(path))
    return Store(folder)


def prompt_of(store, config):
    from stp.campaign.reader import CampaignReader

    reader = CampaignReader(store.url)
    (model,), (benchmark,) = config.models, reader.manifest.cells
    return reader.prefix(reader.trajectory(f"{model.name}/{benchmark.benchmark}/0/0"), 0).text


def test_the_words_are_sent_kept_and_part_of_what_the_campaign_is(configure, words, tmp_path):
    own, theirs = configure(), configure().with_prompts(str(words))
    first = run(own, tmp_path / "own").read_manifest()
    assert first.prompts == {"name": "own", "version": "1", "replaced": []}
    # Campaigns from before wordings had names are the same campaigns.
    assert not any(key.startswith("prompts") for key in first.settings)
    store = run(theirs, tmp_path / "theirs")
    second = store.read_manifest()
    assert second.prompts["name"] == "theirs"
    assert second.prompts["replaced"] == ["math"]
    assert first.config_hash != second.config_hash
    rows = store.read_bytes("campaign.toml").decode()
    assert "Box it, please." in rows
    # The folder's own file is enough to continue.
    words.unlink()
    kept, _ = store.read_campaign()
    assert kept.content_hash() == theirs.content_hash()
    run(kept, tmp_path / "theirs")
    with pytest.raises(StoreMismatchError, match=r"prompts"):
        run(own, tmp_path / "theirs")


def test_a_campaign_file_names_them_beside_itself(words, tmp_path):
    path = tmp_path / "campaign.toml"
    text = 'prompts = "words.toml"\n[[models]]\npath = "demo"\n[[benchmarks]]\nname = "demo"\n'
    path.write_text(text)
    config = load_config(path)
    assert config.prompts.wording.instruction(config.prompts.wording.text("math"))
    assert config.prompts.wording.text("math") == "Box it, please."
    again = parse_config(config.to_toml(), source="kept")
    assert again.prompts == config.prompts
    words.write_text(WORDS + "[questions]\nsum = '$numbers'\n")
    with pytest.raises(ConfigError, match=r"\[questions\] is for `stp think`"):
        load_config(path)


def test_a_dry_run_and_a_benchmark_say_in_which_words(words, tmp_path):
    from stp.cli.lazily import app

    path = tmp_path / "questions.jsonl"
    path.write_text('{"id": "1", "question": "2 + 2?", "answer": "4"}\n')
    result = CliRunner().invoke(app, ["benchmarks", "show", "demo", "--n", "1"])
    assert "own (version 1)" in result.output
    result = CliRunner().invoke(
        app, ["benchmarks", "show", "think-sum", "--n", "1", "--prompts", str(words)]
    )
    assert "theirs (version" in result.output
