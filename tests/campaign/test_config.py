"""Campaign files: the paper's defaults, what determines the rows, and errors in one line."""

import json
import os
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import get_benchmark
from data.errors import ConfigError, MisuseError
from data.prompts import load_prompts
from stp.campaign.config import CampaignConfig, load_config, parse_config
from stp.engines.checks import check_model_folder
from stp.formats import get_family
from stp.records import differences
from tests.campaign.fakes import write_model_folder

BASE = '[[models]]\npath = "demo"\n\n[[benchmarks]]\nname = "demo"\n'


def parse(text: str = "") -> CampaignConfig:
    return parse_config(BASE + text, source="c.toml")


def test_left_out_settings_are_the_papers():
    config = parse()
    assert config.seed == 20_260_721
    assert config.engine.name == "transformers"
    generation, probing = config.generation, config.probing
    assert (generation.trajectories, generation.thinking_limit) == (16, 32_768)
    assert (generation.context_limit, generation.answer_tokens) == (65_536, 4_096)
    assert (probing.step_tokens, probing.probes, probing.answer_tokens) == (256, 16, 4_096)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[probing]\nstep_tokens = -3", ["probing.step_tokens = -3", "greater than or equal to 1"]),
        ("[probing]\nstep_token = 3", ["'probing.step_token'", "did you mean 'step_tokens'"]),
        ("[generation]\ntrajectories = 1.5", ["generation.trajectories = 1.5", "integer"]),
        ("[generation]\ntrajectories = true", ["generation.trajectories = true", "integer"]),
        ("[sampling]\ntop_p = 0", ["sampling.top_p = 0", "greater than 0"]),
        ("[sampling]\ntemperature = nan", ["sampling.temperature", "finite"]),
        ("limitt = 4", ["'benchmarks[0].limitt'", "did you mean 'limit'"]),
        ("limit = 0", ["benchmarks[0].limit = 0"]),
        ("[engine]\noptions = {a = {b = nan}}", ["engine.options.a.b = NaN", "finite"]),
        ("[engine]\noptions = {a = 1979-05-27}", ["engine.options.a"]),
        ("[engine]\noptions = 3", ["[engine.options] table"]),
        ("[engine]\nname = 'vlm'", ["engine.name", "did you mean 'vllm'?", "server"]),
        ("[engine]\nname = 'VLLM'", ["engine.name", "did you mean 'vllm'?"]),
        ("[probing]\nStep_Tokens = 3", ["'probing.Step_Tokens'", "did you mean 'step_tokens'"]),
        ("[engine]\nstall_seconds = 0", ["engine.stall_seconds = 0", "greater than 0"]),
        ("[engine]\noptions = {a = inf}", ["engine.options.a"]),
        (BASE, ["models: the name 'demo' is used twice"]),
        ("[generation", ["not valid TOML"]),
    ],
)
def test_an_error_is_one_line_with_file_key_and_fix(text, parts):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith("c.toml: ")
    assert "\n" not in message
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("[probing]\nprobes = 0", "or equal to 1"),
        ("[engine]\noptions = {a = 1979-05-27}", "valid JSON value"),
        ("[probing]\nprobes = 0\nstep_tokens = 0", " (and 1 more problems after it)"),
        ("[probing]\nprobes = 0\n[generation]\nx = 1\ny = 2", " (and 2 more problems after it)"),
    ],
)
def test_an_error_counts_the_ones_after_it(text, end):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert str(caught.value).endswith(end)


def test_a_misspelt_key_is_one_slip():
    for text in (
        '[[modles]]\npath = "demo"\n[[benchmarks]]\nname = "demo"',
        '[[models]]\npaht = "demo"\n[[benchmarks]]\nname = "demo"',
    ):
        with pytest.raises(ConfigError, match=r"did you mean '(models|path)'") as caught:
            parse_config(text, source="c.toml")
        assert "more problems" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('modles = 1\n[[benchmarks]]\nname = "demo"', "did you mean 'models'"),
        ('[[benchmarks]]\nname = "demo"', "'models' is missing; add a [[models]] table"),
        ('[models]\npath = "x"\n[[benchmarks]]\nname = "demo"', "as a [[models]] table"),
        ('models = ["x"]\n[[benchmarks]]\nname = "demo"', "as a [[models]] table"),
        ('[[models]]\nname = "x"\n[[benchmarks]]\nname = "demo"', "models[0].path"),
        ('[[models]]\npath = "x"\nname = "../y"\n[[benchmarks]]\nname = "demo"', "models[0].name"),
        ("", "is missing"),
    ],
)
def test_a_missing_or_misspelt_table_is_named(text, part):
    with pytest.raises(ConfigError) as caught:
        parse_config(text, source="c.toml")
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_misuse(tmp_path):
    with pytest.raises(MisuseError, match="cannot read the campaign file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(MisuseError, match="not UTF-8"):
        load_config(tmp_path / "bytes.toml")


def test_folders_beside_the_file_become_absolute(tmp_path):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "questions").mkdir()
    text = '[[models]]\npath = "models/mine"\n[[benchmarks]]\nname = "a"\ndata_dir = "questions"\n'
    (tmp_path / "c.toml").write_text(text)
    config = load_config(tmp_path / "c.toml")
    assert config.models[0].path == str(tmp_path / "models" / "mine")
    assert config.models[0].name == "mine"
    assert config.benchmarks[0].data_dir == str(tmp_path / "questions")


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20)
OPTIONS = st.dictionaries(
    st.text('abcdefgh.-_ "=#\u00e9', min_size=1, max_size=6),
    st.one_of(
        st.integers(-(2**40), 2**40),
        st.booleans(),
        st.floats(allow_nan=False, allow_infinity=False),
        NAMES,
        st.lists(NAMES, max_size=3),
        st.dictionaries(NAMES, st.one_of(st.integers(-9, 9), st.lists(NAMES)), max_size=3),
    ),
    max_size=4,
)


@given(
    name=NAMES,
    options=OPTIONS,
    seed=st.integers(0, 2**63 - 1),
    limit=st.none() | st.integers(1, 99),
)
def test_the_canonical_file_reads_back_as_the_same_value(name, options, seed, limit):
    config = CampaignConfig.model_validate(
        {
            "name": name,
            "seed": seed,
            "models": [{"path": "demo"}, {"path": name, "name": "b", "revision": name}],
            "benchmarks": [{"name": "demo", "limit": limit}],
            "engine": {"options": options},
            "sampling": {"temperature": 0.5},
        }
    )
    assert parse_config(config.to_toml(), source="c.toml") == config
    tomllib.loads(config.to_toml())


@pytest.mark.parametrize(
    "text",
    [
        "[engine]\noptions = {threads = 2, max_num_seqs = 7}",
        "[engine]\nstall_seconds = 60",
        "data_dir = 'elsewhere'",
        "[shards]\ntrajectories = 16",
    ],
)
def test_what_cannot_change_rows_does_not_change_the_hash(text):
    assert parse(text).content_hash() == parse().content_hash()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("limit = 3", "benchmarks[0].limit"),
        ("[probing]\nprobes = 4", "probing.probes"),
        ("[sampling]\ntemperature = 0.7", "sampling.temperature"),
        ("[engine]\noptions = {dtype = 'float32'}", "engine.options.dtype"),
        ("[shards]\nquestions = 1", "shards.questions"),
    ],
)
def test_what_changes_rows_changes_the_hash_and_is_named(text, key):
    changed = parse(text)
    assert changed.content_hash() != parse().content_hash()
    (phrase,) = differences(parse().settings(), changed.settings())
    assert phrase.startswith(key + " is ")


@pytest.mark.parametrize(
    "extra",
    [
        "[sampling]\ntemperature = true\n",
        '[sampling]\ntemperature = "0.6"\n',
        "[sampling]\ntop_k = 99999999999999\n",
        "[probing]\nprobes = 1000000000\n",
        "[probing]\nstep_tokens = 99999999999999999999\n",
        "[generation]\ntrajectories = 9223372036854775807\n",
        "[generation]\nthinking_limit = 2147483648\n",
        "[shards]\nquestions = 9223372036854775807\n",
    ],
)
def test_numbers_that_no_table_could_hold_are_refused(extra):
    with pytest.raises(ConfigError) as error:
        parse(extra)
    assert "must be" in str(error.value)
    assert "\n" not in str(error.value)


def test_whole_numbers_serve_as_fractions():
    assert parse("[sampling]\ntemperature = 1\ntop_p = 1\n").sampling.temperature == 1.0


def test_deep_nesting_is_one_line():
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_config("a=" + "[" * 5000 + "]" * 5000, source="deep.toml")


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "c.toml"
    path.write_bytes(b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode())
    assert load_config(path) == parse_config(BASE, source="c.toml", name="c")


def test_a_folder_that_is_no_campaign_is_said(tmp_path):
    with pytest.raises(ConfigError, match="a folder without a campaign in it"):
        load_config(tmp_path)


def test_a_name_that_is_no_folder_name_says_what_is(tmp_path):
    with pytest.raises(ConfigError, match="begins with a letter or a digit"):
        parse_config(BASE.replace("[[models]]", '[[models]]\nname = "../x"'), source="c.toml")


def test_a_path_longer_than_the_system_has_is_no_folder(tmp_path):
    text = '[[models]]\npath = "' + "a" * 5000 + '"\nname = "m"\n[[benchmarks]]\nname = "demo"\n'
    config = parse_config(text, source="c.toml", folder=tmp_path)
    assert config.models[0].path == "a" * 5000


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "chat_template.jinja"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_model_of_pipes_and_devices_is_refused(name, kind, tmp_path):
    folder = write_model_folder(tmp_path / "model")
    (folder / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero")
    with pytest.raises(MisuseError, match=f"{name} is a pipe or a device") as caught:
        check_model_folder(folder)
    assert "\n" not in str(caught.value)


def test_files_that_are_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "c.toml")
    for read in (load_config, get_benchmark, get_family, load_prompts):
        with pytest.raises(MisuseError, match="a pipe or a device"):
            read(str(tmp_path / "c.toml"))


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        (None, "num_hidden_layers", 100_000),
        ("text_config", "num_hidden_layers", 100_000),
        (None, "hidden_size", 10**9),
        (None, "vocab_size", 10**12),
        (None, "vocab_size", 10**400),
        (None, "num_hidden_layers", -1),
        (None, "num_local_experts", 1e300),
    ],
)
def test_sizes_that_no_model_has_are_refused(section, name, value, tmp_path):
    folder = write_model_folder(tmp_path / "model")
    values = json.loads((folder / "config.json").read_text())
    (values if section is None else values.setdefault(section, {}))[name] = value
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(MisuseError, match=rf"config\.json: {name} is .* no model has more"):
        check_model_folder(folder)
