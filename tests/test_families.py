"""Model families: each on a chat template of its kind, and which one a name gets.

The templates are small ones of ours with the marks, the switches and the ends of the models' own.
"""

import importlib.resources
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from data.errors import ConfigError, MisuseError
from stp.formats import ThinkingFormat, family_for_model, family_names, find_family, get_family
from stp.formats.finding import family_by_name
from tests.small_tokenizers import CHATML, HARMONY, byte_level_tokenizer, with_template

TURNS = (
    "{%- for m in messages -%}{{- '<|' + m.role + '|>' + m.content -}}{%- endfor -%}"
    "{{- '<|assistant|>' -}}"
)
"""Turns without ends, as DeepSeek's, GLM's and others'."""


def switch(option, on, off):
    """Return a template that opens or closes thinking by an option."""
    opened, closed = f"{{{{- {on!r} -}}}}", f"{{{{- {off!r} -}}}}"
    return f"{TURNS}{{%- if {option} -%}}{opened}{{%- else -%}}{closed}{{%- endif -%}}"


def word(off, closing, opening=""):
    """Return a template that turns thinking off by a word in the system prompt."""
    return (
        f"{TURNS}{{%- if {off!r} in messages[0].content -%}}{{{{- {closing!r} -}}}}"
        f"{{%- else -%}}{{{{- {opening!r} -}}}}{{%- endif -%}}"
    )


@dataclass(frozen=True)
class Case:
    """A family's models, its kind of template, its tokens, and the ends of its two prompts."""

    models: tuple[str, ...]
    template: str
    on: str
    off: str
    tokens: tuple[str, ...] = ("<think>", "</think>")
    special: tuple[str, ...] = ()


THINK = "<|assistant|><think>\n"
CLOSED = "<|assistant|><think>\n</think>\n\n"
QWEN = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
GLM = ("<|endoftext|>", "<|user|>", "<|observation|>")
OPENED = TURNS + "{{- '<think>\\n' -}}"

CASES = {
    "deepseek-r1": Case(("deepseek-ai/DeepSeek-R1", "DeepSeek-R1-0528"), OPENED, THINK, CLOSED),
    "deepseek-r1-0528-qwen3-8b": Case(
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "R1-0528-Qwen3-8B"), TURNS, THINK, CLOSED
    ),
    "deepseek-r1-distill-llama": Case(
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "R1-Distill-Llama-70B"),
        OPENED, THINK, CLOSED,
    ),
    "deepseek-r1-distill-qwen": Case(
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "DeepSeek-R1-Distill-Qwen-32B/"),
        OPENED, THINK, CLOSED, special=("<｜end▁of▁sentence｜>",),
    ),
    "deepseek-r1-distilled": Case(
        ("agentica-org/DeepScaleR-1.5B-Preview", "Skywork-OR1-7B", "AceReason-Nemotron-14B"),
        OPENED, THINK, CLOSED,
    ),
    "deepseek-v3.1": Case(
        ("deepseek-ai/DeepSeek-V3.1", "DeepSeek-V3.1-Terminus"),
        switch("thinking", "<think>", "</think>"), "<|assistant|><think>", "<|assistant|></think>",
    ),
    "demo": Case(("demo",), CHATML, "assistant\n<think>\n", "assistant\n<think>\n</think>\n\n",
                 special=QWEN),
    "exaone-4": Case(
        ("LGAI-EXAONE/EXAONE-4.0-32B",),
        switch("enable_thinking", "<think>\n", "<think>\n\n</think>\n\n"),
        THINK, "<|assistant|><think>\n\n</think>\n\n",
    ),
    "exaone-deep": Case(
        ("LGAI-EXAONE/EXAONE-Deep-7.8B",), TURNS + "{{- '<thought>\\n' -}}",
        "<|assistant|><thought>\n", "<|assistant|><thought>\n</thought>\n\n",
        tokens=("<thought>", "</thought>"),
    ),
    "glm-4.5": Case(
        ("zai-org/GLM-4.5", "zai-org/GLM-4.5-Air-FP8"),
        switch("enable_thinking", "", "\n<think></think>"),
        "<|assistant|>\n<think>", "<|assistant|>\n<think></think>", special=GLM,
    ),
    "glm-4.6": Case(
        ("zai-org/GLM-4.6",), switch("enable_thinking", "", "\n<think></think>"),
        "<|assistant|>\n<think>", "<|assistant|>\n<think></think>", special=GLM,
    ),
    "glm-z1": Case(("zai-org/GLM-Z1-9B-0414",), OPENED, THINK, CLOSED, tokens=(), special=GLM),
    "gpt-oss": Case(
        ("openai/gpt-oss-20b", "gpt-oss-120b"), HARMONY,
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|channel|>analysis<|message|><|end|><|start|>assistant<|channel|>final<|message|>",
        tokens=(),
        special=("<|start|>", "<|end|>", "<|channel|>", "<|message|>", "<|return|>", "<|call|>",
                 "<|endoftext|>"),
    ),
    "granite-3.2": Case(
        ("ibm-granite/granite-3.2-8b-instruct",), switch("thinking", "", " "),
        "<|assistant|>Here is my thought process:\n", "<|assistant|> ", tokens=(),
    ),
    "granite-3.3": Case(
        ("ibm-granite/granite-3.3-2b-instruct",), switch("thinking", "", " "),
        "<|assistant|><think>", "<|assistant|> ", tokens=(),
    ),
    "hunyuan": Case(
        ("tencent/Hunyuan-A13B-Instruct", "tencent/Hunyuan-7B-Instruct"),
        switch("enable_thinking", "", "<think>\n\n</think>\n"),
        THINK, "<|assistant|><think>\n\n</think>\n", tokens=(),
    ),
    "kimi-k2-thinking": Case(
        ("moonshotai/Kimi-K2-Thinking",), TURNS,
        "<|assistant|><think>", "<|assistant|><think></think>", special=("<|im_end|>",),
    ),
    "llama-nemotron": Case(
        ("nvidia/Llama-3.1-Nemotron-Nano-8B-v1", "nvidia/Llama-3_3-Nemotron-Super-49B-v1"), TURNS,
        "<|system|>detailed thinking on<|user|>Q\n\nI<|assistant|><think>\n",
        "<|system|>detailed thinking off<|user|>Q\n\nI<|assistant|>", tokens=(),
    ),
    "llama-nemotron-1.5": Case(
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1_5",), word("/no_think", "<think>\n\n</think>\n\n"),
        THINK, "<|assistant|><think>\n\n</think>\n\n", tokens=(),
    ),
    "magistral": Case(
        ("mistralai/Magistral-Small-2509", "mistralai/Ministral-3-8B-Reasoning-2512"), TURNS,
        "<|user|>Q\n\nI<|assistant|>[THINK]", "<|assistant|>[THINK][/THINK]",
        tokens=("[THINK]", "[/THINK]"),
    ),
    "magistral-2506": Case(
        ("mistralai/Magistral-Small-2506",), TURNS, THINK, CLOSED, tokens=(),
    ),
    "mimo": Case(("XiaomiMiMo/MiMo-7B-RL",), TURNS, THINK, CLOSED, special=QWEN),
    "minimax-m2": Case(("MiniMaxAI/MiniMax-M2",), OPENED, THINK, CLOSED, special=("[e~[",)),
    "nemotron-nano-v2": Case(
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2",), word("/no_think", "<think></think>", "<think>\n"),
        THINK, "<|assistant|><think></think>", special=("<SPECIAL_12>",),
    ),
    "olmo-3-think": Case(("allenai/Olmo-3-7B-Think",), OPENED, THINK, CLOSED, tokens=()),
    "openreasoning-nemotron": Case(
        ("nvidia/OpenReasoning-Nemotron-7B",), TURNS, THINK, CLOSED, tokens=(), special=QWEN
    ),
    "phi-4-mini-flash-reasoning": Case(
        ("microsoft/Phi-4-mini-flash-reasoning",), TURNS,
        THINK, "<|assistant|><think>\n</think>\n", tokens=(),
    ),
    "phi-4-mini-reasoning": Case(
        ("microsoft/Phi-4-mini-reasoning",), TURNS,
        THINK, "<|assistant|><think>\n</think>\n", tokens=(),
    ),
    "phi-4-reasoning": Case(
        ("microsoft/Phi-4-reasoning", "Phi-4-reasoning-plus"),
        "{{- '<|system|>You are Phi.' -}}" + TURNS,
        "<|user|>Q\n\nI" + THINK, "<|assistant|><think>\n</think>\n",
    ),
    "qwen3": Case(
        ("Qwen/Qwen3-8B", "Qwen3-0.6B", "Qwen3-235B-A22B", "Qwen3-32B-AWQ", "Qwen3-4B-GPTQ-Int8"),
        switch("enable_thinking", "", "<think>\n\n</think>\n\n"),
        THINK, "<|assistant|><think>\n\n</think>\n\n", special=QWEN,
    ),
    "qwen3-thinking": Case(
        ("Qwen/Qwen3-4B-Thinking-2507", "Qwen3-30B-A3B-Thinking-2507-FP8"),
        OPENED, "<|system|>I<|user|>Q" + THINK, CLOSED, special=QWEN,
    ),
    "qwq": Case(("Qwen/QwQ-32B", "QwQ-32B-AWQ"), OPENED, THINK, CLOSED, special=QWEN),
    "s1": Case(
        ("simplescaling/s1.1-32B", "s1-32B"), TURNS, "<|assistant|><|im_start|>think\n",
        "<|im_start|>think\n<|im_start|>answer\n", tokens=(), special=QWEN,
    ),
    "seed-oss": Case(
        ("ByteDance-Seed/Seed-OSS-36B-Instruct",), TURNS,
        "<|assistant|><seed:think>", "<|assistant|><seed:think></seed:think>",
        tokens=("<seed:think>", "</seed:think>"), special=("<seed:eos>",),
    ),
    "smollm3": Case(
        ("HuggingFaceTB/SmolLM3-3B",),
        switch("enable_thinking", "", "<think>\n\n</think>\n"),
        THINK, "<|assistant|><think>\n\n</think>\n", special=("<|im_end|>",),
    ),
    "written-tags": Case(
        ("HuggingFaceTB/SmolLM2-135M-Instruct",), TURNS,
        "Then answer. I" + THINK, "<|user|>Q\n\nI<|assistant|>", tokens=(),
    ),
}  # fmt: skip


def format_of(name):
    case = CASES[name]
    tokenizer = byte_level_tokenizer(special=case.special or ("<|eos|>",), added=case.tokens)
    eos = case.special[-1] if case.special else "<|eos|>"
    return ThinkingFormat(get_family(name), with_template(tokenizer, case.template, eos=eos))


def test_every_family_has_its_case_and_its_source():
    assert set(CASES) == set(family_names())
    assert all(get_family(name).source for name in family_names())


def test_the_page_has_every_family_as_it_is():
    page = (Path(__file__).parents[1] / "docs" / "families.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    assert list(rows) == list(family_names())
    for name, row in rows.items():
        family = get_family(name)
        off = family.off_switch or "an empty thinking"
        start = family.thinking_start.strip().replace("|", "\\|")
        numbers = ", ".join(
            f"{number:g}" for number in (family.sampling.temperature, family.sampling.top_p)
        ) + (f", {family.sampling.top_k}" if family.sampling.top_k else "")
        for part in (f"`{start}` ({family.markers})", off, numbers, family.source):
            assert f"| {part} |" in row
        assert all(f"`{pattern}`" in row for pattern in family.patterns)


@pytest.mark.parametrize("name", CASES)
def test_names(name):
    for model in CASES[name].models:
        assert family_for_model(model).name == name
        assert find_family(model).pattern in get_family(name).patterns


@pytest.mark.parametrize("name", CASES)
def test_prompts_of_both_modes(name):
    case, form = CASES[name], format_of(name)
    on, off = form.decode(form.prompt_ids("Q", "I")), form.decode(form.answer_prompt_ids("Q", "I"))
    assert on.endswith(case.on)
    assert off.endswith(case.off)
    assert "Q" in on and "I" in on and "Q" in off and "I" in off
    start, end = form.family.thinking_start.strip(), form.family.thinking_end
    assert on.count(start) == 1 + form.family.thinking_request.count(start)
    if name not in ("gpt-oss", "s1"):  # Their ends are those of every message.
        assert off.count(end) == (end in case.off)


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_parted(name):
    form = format_of(name)
    family = form.family
    assert form.written == (not CASES[name].tokens and name not in ("gpt-oss", "s1"))
    text = f"So it is 4.\n\nWait{family.thinking_end}{family.answer_open}Yes"
    ids = form.tokenizer.encode(text, add_special_tokens=False)
    for output in (ids, form.tokenizer.encode(family.thinking_start.lstrip() + text)):
        parts = form.split(output)
        assert form.decode(parts.thinking_ids).strip() == "So it is 4.\n\nWait"
        assert form.decode(parts.answer_ids) == "Yes"
        assert parts.thinking_finish == "end"
    cut = form.split(form.tokenizer.encode("So it is 4.\n\nWait"))
    assert (cut.answer_ids, cut.thinking_finish) == ((), "limit")


def test_no_pattern_stands_twice():
    """Which family a name gets must not hang on the order of files."""
    patterns = [p.lower() for name in family_names() for p in get_family(name).patterns]
    file = importlib.resources.files("stp.formats") / "not_thinking.toml"
    for entry in tomllib.loads(file.read_text(encoding="utf-8"))["models"]:
        patterns += entry["patterns"]
    assert len(set(patterns)) == len(patterns)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "no thinking mode"),
        ("Qwen/Qwen3-Coder-480B-A35B", "no thinking mode"),
        ("Qwen/Qwen3-4B-Instruct-2507", "no thinking mode"),
        ("Qwen/Qwen3-8B-Base", "base model"),
        ("Qwen/QwQ-32B-Preview", "without marks"),
    ],
)
def test_models_that_only_look_like_thinkers(model, reason):
    found = find_family(model)
    assert found.family is None
    assert reason in found.reason
    with pytest.raises(MisuseError, match=reason):
        family_for_model(model)


def test_what_others_trained_from_a_hybrid_is_no_hybrid_by_its_name():
    assert family_by_name("somebody/Medical-Qwen3-8B") is None


def own_tokenizer(template, *, added=("<think>", "</think>")):
    return with_template(byte_level_tokenizer(added=added), template)


def test_an_unknown_template_with_a_switch_is_recognised(tmp_path):
    template = CHATML + "{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    (tmp_path / "generation_config.json").write_text(
        json.dumps({"temperature": 0.5, "top_k": 7, "do_sample": True, "eos_token_id": [3, 10**9]})
    )
    found = find_family("somebody/Medical-Qwen3-8B", own_tokenizer(template), tmp_path)
    family = found.family
    assert "which enable_thinking turns on and off" in found.reason
    assert (family.name, family.markers) == ("recognised", "tokens")
    assert family.off_switch == "enable_thinking = false"
    assert (family.sampling.temperature, family.sampling.top_p, family.sampling.top_k) == (
        0.5,
        1,
        7,
    )
    form = ThinkingFormat(family, own_tokenizer(template))
    assert 3 in form.answer_stop_ids
    assert form.decode(form.prompt_ids("Q")).endswith("assistant\n<think>\n")
    assert form.decode(form.answer_prompt_ids("Q")).endswith("assistant\n<think>\n\n</think>\n\n")


@pytest.mark.parametrize(
    ("template", "added", "start", "kind"),
    [
        (CHATML + "<think>\n", ("<think>", "</think>"), "<think>", "tokens"),
        (CHATML + "<think>\n", (), "<think>", "written"),
        (CHATML + "[THINK]", ("[THINK]", "[/THINK]"), "[THINK]", "tokens"),
        ("{% set c = m.content.split('</think>')[-1] %}" + CHATML, (), "<think>", "written"),
    ],
)
def test_an_unknown_template_without_a_switch_is_recognised(template, added, start, kind):
    found = find_family("my-model", own_tokenizer(template, added=added))
    assert (found.family.thinking_start.strip(), found.family.markers) == (start, kind)
    assert found.family.off_switch is None


def test_an_unknown_model_is_never_asked_to_write_tags():
    with pytest.raises(MisuseError, match=r"seems to think: its vocabulary has </think>.*families"):
        find_family("my-model", own_tokenizer(CHATML))
    plain = find_family("my-model", own_tokenizer(CHATML, added=()))
    assert plain.family is None and "neither" in plain.reason
    with pytest.raises(MisuseError, match="no model family for 'my-model'") as caught:
        family_for_model("my-model", own_tokenizer(CHATML, added=()))
    assert "\n" not in str(caught.value)


def test_a_template_that_ignores_the_switch_is_refused():
    form = ThinkingFormat(
        get_family("qwen3"),
        with_template(byte_level_tokenizer(special=QWEN), OPENED, eos="<|im_end|>"),
    )
    with pytest.raises(ConfigError, match=r"does not know enable_thinking = false.*'qwen3'"):
        form.answer_prompt_ids("Q")


def run(*arguments):
    from typer.testing import CliRunner

    from stp.cli.lazily import app

    return CliRunner().invoke(app, ["families", *arguments], env={"COLUMNS": "200"})


def test_the_command_lists_all_families():
    result = run()
    assert result.exit_code == 0
    for name in family_names():
        assert name in result.output
    assert "enable_thinking = false" in result.output


def test_the_command_says_which_family_a_name_gets_and_why(tmp_path):
    result = run("Qwen/Qwen3-8B", "Qwen/Qwen3-Coder-30B-A3B-Instruct", "my-model")
    assert result.exit_code == 0
    assert "Qwen/Qwen3-8B: qwen3, for its name fits qwen3-[0-9]*b" in result.output
    assert "Instruct: no family, for it has no thinking mode" in result.output
    assert "my-model: no family, for its name fits none" in result.output
    form = own_tokenizer(CHATML + "<think>\n")
    form.save_pretrained(tmp_path / "my-thinker")
    result = run(str(tmp_path / "my-thinker"))
    assert "recognised, for its name fits none, but its chat template has <think>" in result.output


def test_the_command_shows_a_family_whole():
    result = run("qwen3")
    for text in ("temperature 0.7, top_p 0.8, top_k 20", "Qwen/Qwen3-8B", "<think>", "user_after"):
        assert text in result.output


@pytest.mark.parametrize(
    ("name", "close"), [("hunyuan", "</answer>"), ("granite-3.3", "</response>")]
)
def test_tags_around_an_answer_are_taken_off(name, close):
    form = format_of(name)
    family = form.family
    opening = family.answer_open.strip()

    def after(text):
        return form.answer_text(form.split(form.tokenizer.encode(text)).answer_ids).strip()

    end = family.thinking_end
    assert after(f"Hm.{end}{family.answer_open}It is 4.\n{close}") == "It is 4."
    # Other white space before the opening than the family has.
    assert after(f"Hm.{end}\n\n\n{opening}\nIt is 4.{close}\n ") == "It is 4."
    assert after(f"Hm.{end}{family.answer_open}It is 4.") == "It is 4."
    assert after(f"Hm.{end}{family.answer_open}{close}") == ""
    # What stands behind the tag may be the answer.
    assert after(f"Hm.{end}{family.answer_open}No.{close} It is 4.") == f"No.{close} It is 4."
    assert family.answer_text(f"{opening}It is 4.{close}") == "It is 4."


def test_where_tags_are_taken_off_does_not_make_a_family_another_one():
    family = get_family("hunyuan")
    assert family.model_copy(update={"answer_close": ""}).settings() == family.settings()
    assert get_family("qwen3").answer_text("<answer>4</answer>") == "<answer>4</answer>"
