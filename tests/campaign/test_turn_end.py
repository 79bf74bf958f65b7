"""Where an answer ends, wherever a model says so: on the demo model with its files changed."""

import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from data.errors import ConfigError, StoreMismatchError
from stp.campaign.config import parse_config
from stp.campaign.models import locate_model, record_model
from stp.campaign.prepare import make_subject
from stp.campaign.run import run_campaign
from stp.campaign.sections import ModelConfig
from stp.campaign.store import Store
from stp.formats import get_family
from stp.formats.turn_end import find_turn_end
from stp.tokenizers import load_tokenizer
from tests.campaign.rows import table_rows

END, DOCUMENT = 392, 390

FAMILY = """
thinking_start = "<think>\\n"
thinking_end = "</think>"
answer_open = "\\n\\n"
instruction_place = "user_after"
instruction_separator = "\\n"
"""

CAMPAIGN = """
[[models]]
path = "{model}"
family = "{family}"

[[benchmarks]]
name = "demo"
limit = 2

[generation]
trajectories = 2
thinking_limit = 312
answer_tokens = 32

[probing]
step_tokens = 64
probes = 2
answer_tokens = 32

[engine.options]
threads = 1
"""


@pytest.fixture
def model(tmp_path) -> Path:
    """The demo model with a tokenizer that names the end of a document only."""
    folder = tmp_path / "model"
    shutil.copytree(Path(str(files("data"))) / "demo_model", folder)
    change(folder / "tokenizer_config.json", eos_token="<|endoftext|>")
    change(folder / "generation_config.json", eos_token_id=None)
    change(folder / "config.json", eos_token_id=None)
    untemplated(folder)
    return folder


@pytest.fixture
def family(tmp_path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(FAMILY)
    return path


def change(path: Path, **values: object) -> None:
    found = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**found, **values}))


def untemplated(folder: Path) -> None:
    """Let the template write no end of turn after an assistant's message."""
    template = (
        "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}<|im_end|>\n"
        "{% else %}{{ m.content }}\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<think>\n{% endif %}"
    )
    change(folder / "tokenizer_config.json", chat_template=template)


def sources(folder: Path, family: Path) -> dict[str, tuple[int, ...]]:
    return find_turn_end(get_family(family), load_tokenizer(folder)).sources


def test_nothing_but_the_tokenizer(model, family):
    assert sources(model, family) == {"tokenizer": (DOCUMENT,)}


def test_a_template_in_which_the_next_turn_begins_without_an_end(model, family):
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\n{% endfor %}"
    change(model / "tokenizer_config.json", chat_template=template)
    start = load_tokenizer(model).backend_tokenizer.token_to_id("<|im_start|>")
    assert sources(model, family)["chat_template"] == (start,)


@pytest.mark.parametrize("named", [END, [END], [END, DOCUMENT]])
def test_generation_config(model, family, named):
    change(model / "generation_config.json", eos_token_id=named)
    found = sources(model, family)["generation_config"]
    assert set(found) == set(named if isinstance(named, list) else [named])


def test_generation_config_that_is_absent(model, family):
    (model / "generation_config.json").unlink()
    change(model / "config.json", eos_token_id=END)
    assert sources(model, family) == {"tokenizer": (DOCUMENT,), "config": (END,)}


def test_text_part_of_a_configuration(model, family):
    change(model / "config.json", text_config={"eos_token_id": [END]})
    assert sources(model, family)["config"] == (END,)


def test_config_with_a_number_that_is_no_control_token(model, family):
    change(model / "config.json", eos_token_id=2)
    assert "config" not in sources(model, family)


def test_stop_strings(model, family):
    change(model / "generation_config.json", stop_strings=["<|im_end|>"])
    assert sources(model, family)["generation_config"] == (END,)


def test_ids_outside_the_vocabulary_are_left_out_and_said(model, family, caplog):
    change(model / "generation_config.json", eos_token_id=[END, 395, 10**9, -1])
    assert sources(model, family)["generation_config"] == (END,)
    assert "1000000000" in caplog.text


@pytest.mark.parametrize("named", ["392", [392.0], True, [None, "x"], {"a": 1}])
def test_what_is_no_id_is_refused(model, family, named):
    change(model / "generation_config.json", eos_token_id=named)
    with pytest.raises(ConfigError, match="eos_token_id"):
        sources(model, family)


def test_a_damaged_configuration_is_refused(model, family):
    (model / "generation_config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"generation_config\.json: cannot be read"):
        sources(model, family)


def test_the_template(model, family):
    path = model / "tokenizer_config.json"
    change(path, chat_template="{% for m in messages %}{{ m.content }}<|im_end|>\n{% endfor %}")
    assert sources(model, family)["chat_template"] == (END,)


def test_a_template_that_ends_only_turns_that_another_follows(model, family):
    path = model / "tokenizer_config.json"
    template = (
        "{% for m in messages %}{{ m.content }}{% if not loop.last %}<|im_end|>{% endif %}"
        "{% endfor %}"
    )
    change(path, chat_template=template)
    assert sources(model, family)["chat_template"] == (END,)


def test_the_end_of_thinking_is_no_end_of_turn(model, family):
    change(model / "generation_config.json", eos_token_id=[END, 394, 393])
    thinking = {load_tokenizer(model).backend_tokenizer.token_to_id(t) for t in MARKERS}
    assert thinking <= {393, 394}
    assert sources(model, family)["generation_config"] == (END,)


MARKERS = ("<think>", "</think>")


def test_a_model_without_any_is_refused(model, family):
    path = model / "tokenizer_config.json"
    values = json.loads(path.read_text())
    del values["eos_token"]
    path.write_text(json.dumps(values))
    config = parse_config(
        CAMPAIGN.format(model=model, family=family), source="test", folder=model.parent
    )
    with pytest.raises(ConfigError, match="nothing says where an answer of model ends"):
        run_campaign(config, model.parent / "campaign")
    assert not Store(model.parent / "campaign").is_campaign()


def test_answers_end_where_the_generation_config_says(model, family, tmp_path):
    change(model / "generation_config.json", eos_token_id=[END, DOCUMENT])
    config = parse_config(CAMPAIGN.format(model=model, family=family), source="test")
    folder = tmp_path / "campaign"
    run_campaign(config, folder)
    rows = table_rows(folder, "probes")
    assert rows
    for row in rows:
        ids = row["answer_ids"]
        assert END not in ids[:-1]
        assert row["finish"] == ("stop" if ids[-1] in (END, DOCUMENT) else "length")
    assert sum(row["finish"] == "stop" for row in rows) > 0.9 * len(rows)
    record = Store(folder).read_manifest().models[0]
    assert record.turn_end == {
        "tokenizer": [DOCUMENT],
        "generation_config": [DOCUMENT, END],
    }
    change(model / "generation_config.json", eos_token_id=[DOCUMENT])
    with pytest.raises(StoreMismatchError, match=r"\[390, 392\] when this campaign began"):
        run_campaign(config, folder)


def test_the_demo_model_names_its_end_everywhere():
    located = locate_model(ModelConfig(path="demo"))
    found = find_turn_end(located.family, load_tokenizer(located.folder)).sources
    assert set(found) == {
        "family",
        "tokenizer",
        "generation_config",
        "config",
        "chat_template",
    }
    assert set(found.values()) == {(END,)}
    config = parse_config(CAMPAIGN.format(model="demo", family="demo"), source="test")
    subject = make_subject(config, located, record_model(located, context_limit=1024))
    assert subject.format.answer_stop_ids == {END}


def test_a_tokenizer_without_the_end_of_turn_changes_no_answer(family, tmp_path):
    """Where the generation config has it: every row is that of the model with the right one."""
    folder = tmp_path / "demo"
    shutil.copytree(Path(str(files("data"))) / "demo_model", folder)
    change(folder / "tokenizer_config.json", eos_token="<|endoftext|>")
    change(folder / "generation_config.json", eos_token_id=[END, DOCUMENT])
    for name, model, own in (("right", "demo", "demo"), ("other", folder, family)):
        config = parse_config(CAMPAIGN.format(model=model, family=own), source="test")
        run_campaign(config, tmp_path / name)
    for table in ("trajectories", "probes", "verdicts"):
        rows = table_rows(tmp_path / "other", table)
        assert rows and rows == table_rows(tmp_path / "right", table)
