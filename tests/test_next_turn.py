"""Answers that go on into the next turn, in templates that write it in ordinary text."""

from importlib.resources import files
from pathlib import Path

import pytest

from evaluator.thinkbench.config import ThinkConfig
from evaluator.thinkbench.running import run as run_think
from evaluator.thinkbench.stored import load_run
from evaluator.thinkbench.tables import run_cautions, run_table
from stp.asking import Request, RequestGroup, Settings
from stp.asking.chat import PlainChat
from stp.asking.engine import EngineResponder
from stp.formats import ThinkingFormat, get_family
from stp.formats.turn_end import find_turn_end
from stp.tokenizers import load_tokenizer, token_bytes
from tests.asking.test_local import ScriptedEngine
from tests.small_tokenizers import byte_level_tokenizer, with_template


def turns(user: str, assistant: str, start: str = "") -> str:
    """Return a chat template that puts texts around the contents."""
    return (
        start + "{% for m in messages %}{% if m.role == 'user' %}" + user + "{% else %}" + assistant
        + "{% endif %}{% endfor %}"
    )  # fmt: skip


# As the models' own templates write them, with the end-of-sequence token behind answers.
TEMPLATES = {
    "vicuna": turns("USER: {{ m.content }} ", "ASSISTANT: {{ m.content }}{{ eos_token }}"),
    "alpaca": turns(
        "### Instruction:\n{{ m.content }}\n\n",
        "### Response:\n{{ m.content }}{{ eos_token }}\n\n",
        "Below is an instruction that describes a task.\n\n",
    ),
    "llama-2": turns("{{ bos_token }}[INST] {{ m.content }} [/INST]", " {{ m.content }} </s>"),
    "zephyr": turns(
        "<|user|>\n{{ m.content }}{{ eos_token }}\n",
        "<|assistant|>\n{{ m.content }}{{ eos_token }}\n",
    ),
    "chatml in ordinary text": turns(
        "<|im_start|>user\n{{ m.content }}<|im_end|>\n",
        "<|im_start|>assistant\n{{ m.content }}<|im_end|>\n",
    ),
    "plain": turns("User: {{ m.content }}\n\n", "Assistant: {{ m.content }}{{ eos_token }}"),
    "no end at all": turns("Q: {{ m.content }}\n", "A: {{ m.content }}\n\n"),
    "a line": turns("user\n{{ m.content }}\n", "assistant\n{{ m.content }}{{ eos_token }}\n"),
    "chinese": turns("用户:{{ m.content }}\n", "助手:{{ m.content }}{{ eos_token }}\n"),
}

RUN_ON = {
    "vicuna": ["4\nUSER: And 3 + 3?", "\\boxed{4}\n\n USER: So", "USER: And 3 + 3?"],
    "alpaca": ["4\n\n### Instruction:\nAnd 3 + 3?", "4\n### Instruction:\r\n"],
    "llama-2": ["4 [INST] And 3 + 3? [/INST] 6", "[INST]", "4\n[INST] x"],
    "zephyr": ["4\n<|user|>\nAnd 3 + 3?", "4<|user|>\n"],
    "chatml in ordinary text": ["4<|im_end|>\n<|im_start|>user\nAnd", "4<|im_start|>user\n"],
    "plain": ["4\n\nUser: And 3 + 3?", "4\nUser:"],
    "no end at all": ["4\n\nQ: And 3 + 3?\nA: 6"],
    "a line": ["4\nuser\nAnd 3 + 3?", "4\nuser"],
    "chinese": ["4\n用户:3 + 3?"],
}

ORDINARY = (
    "", "4", "\\boxed{4}\n\nThat is all.", "The USER: field is empty.", "So [A] is right, not [B].",
    "A user said so.\nusers count 4", "the `### Instruction:` part asks for 4",
    "In a chat, User: and Assistant: stand before turns.", "See FAQ: 4", "super-user\n4",
    "### Response:\n4", "in 用户:4", "\n\n4\n\n", "<b>4</b>", "Instruction:\n4", "user 4",
    "INST 4", "Users: 4", "usher\n", "\nUSERS: 4", "Usage: 4",
)  # fmt: skip


def tokenizer_with(template: str):
    special = ("<s>", "</s>")
    tokenizer = with_template(byte_level_tokenizer(special=special, added=()), template, eos="</s>")
    tokenizer.bos_token = "<s>"
    return tokenizer


@pytest.mark.parametrize("style", TEMPLATES)
def test_the_next_turn_is_seen_and_ordinary_answers_are_none(style):
    tokenizer = tokenizer_with(TEMPLATES[style])
    turn_end, forms = find_turn_end(None, tokenizer), token_bytes(tokenizer)

    def runs_on(text):
        return turn_end.runs_on(tokenizer.encode(text, add_special_tokens=False), forms)

    assert [text for text in RUN_ON[style] if not runs_on(text)] == []
    own = [text for text in ORDINARY if runs_on(text)]
    # A line of its own that says "user" is the next turn only where the template writes one.
    assert own == []
    stop = tokenizer.convert_tokens_to_ids("</s>")
    assert not turn_end.runs_on([*tokenizer.encode("4", add_special_tokens=False), stop], forms)
    assert not turn_end.runs_on([len(forms) + 3, -1], forms)  # Padding stands for no text.


def test_control_tokens_are_seen_by_their_ids():
    tokenizer = tokenizer_with(TEMPLATES["vicuna"])
    turn_end, forms = find_turn_end(None, tokenizer), token_bytes(tokenizer)
    assert turn_end.stray_ids == {tokenizer.convert_tokens_to_ids("<s>")}
    assert turn_end.runs_on([65, *turn_end.stray_ids, 65], forms)


@pytest.mark.parametrize(
    "template", [None, "{{ messages[0].content }}", "{{ raise_exception('x') }}", "{% if"]
)
def test_without_a_template_that_writes_turns_nothing_is_looked_for(template):
    assert find_turn_end(None, tokenizer_with(template)).next_turn is None


def test_templates_of_this_package_write_turns_with_control_tokens():
    form = ThinkingFormat(
        get_family("demo"), load_tokenizer(Path(str(files("data"))) / "demo_model")
    )
    assert form.turn_end.runs_on(form.tokenizer.encode("4\nuser\n1 + 1?"), form.forms)
    assert not form.turn_end.runs_on(form.tokenizer.encode("\\boxed{4}"), form.forms)


def test_responses_say_it():
    tokenizer = tokenizer_with(TEMPLATES["vicuna"])
    engine = ScriptedEngine(tokenizer, ["4\nUSER: And 3?</s>", "So 4</s>"])
    taken = []
    requests = [Request(id=name, prompt="2 + 2?", seed=0) for name in ("a", "b")]
    group = RequestGroup(requests=requests, settings=Settings(), on_response=taken.append)
    with EngineResponder(engine, lambda settings: PlainChat(tokenizer)) as responder:
        responder.respond(group)
    assert {response.id: response.ran_on for response in taken} == {"a": True, "b": False}


def test_a_run_of_the_fourteen_tasks_says_it_first(tmp_path):
    tokenizer = tokenizer_with(TEMPLATES["alpaca"])
    texts = ["\\boxed{4}\n\n### Instruction:\nAnd 3?</s>", "\\boxed{4}</s>"]
    engine = ScriptedEngine(tokenizer, texts)
    config = ThinkConfig(tasks=("sum",), samples=2, folds=1, sizes=(8,))
    with EngineResponder(engine, lambda settings: PlainChat(tokenizer)) as responder:
        done = run_think(responder, tmp_path / "run", config)
    assert done.measures.overall.ran_on == 1
    (said,) = [line for line in run_cautions([load_run(tmp_path / "run")]) if "next turn" in line]
    assert "1 of 2 responses (50.0%) go on into the next turn" in said
    assert "go on into the next turn" in run_table(done).note
