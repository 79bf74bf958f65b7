import asyncio
import contextlib
import dataclasses
import socket
import time

import pytest

from data import get_benchmark
from data.errors import ConfigError, EngineError, MisuseError
from stp.asking import ModelSpec, Request, RequestGroup, Response, Settings, open_responder
from stp.asking.api import ApiResponder
from stp.asking.function import CallableResponder
from stp.asking.reach import check_reachable
from tests.asking.server import chat_completion, serving

QUESTIONS = get_benchmark("demo").load(limit=4)
REQUESTS = [
    Request(id=q.id, prompt=f"{q.prompt}\nPut the final answer in \\boxed{{}}.", seed=number)
    for number, q in enumerate(QUESTIONS)
]


@pytest.fixture
def unknown_host(monkeypatch):
    """A name that no resolver knows; not every machine has one that answers."""

    def unknown(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    return "nobody.invalid"


@pytest.fixture(scope="module")
def local():
    with open_responder("demo") as responder:
        yield responder


def ask(responder, requests=REQUESTS, settings=None):
    answers: list[Response] = []
    settings = settings or Settings(max_tokens=300)
    responder.respond(
        RequestGroup(requests=requests, settings=settings, on_response=answers.append)
    )
    return {answer.id: answer for answer in answers}


@pytest.mark.slow
def test_a_server_that_parts_thinking_gives_what_the_engine_gives(local):
    direct = ask(local)
    with serving(local) as server:
        responder = open_responder(ModelSpec(model="demo", base_url=server.url))
        through = ask(responder)
        assert set(through) == {request.id for request in REQUESTS}
        for key, answer in through.items():
            expected = direct[key]
            assert answer.error is None
            assert answer.text == expected.text
            assert answer.thinking == expected.thinking
            assert answer.thinking_tokens == expected.thinking_tokens
            assert answer.output_tokens == expected.output_tokens
            assert answer.finish == expected.finish
            # An API's answer tokens are what is left: markers and the end of turn are in it.
            assert answer.answer_tokens == expected.output_tokens - expected.thinking_tokens
        assert {body["seed"] for body in server.bodies} == {0, 1, 2, 3}
        assert {body["model"] for body in server.bodies} == {"demo"}


def test_thinking_between_tags_is_parted_and_its_tokens_stay_unknown(local):
    direct = ask(local)
    with serving(local, style="tags") as server:
        through = ask(ApiResponder("demo", base_url=server.url))
    for key, answer in through.items():
        assert answer.text == direct[key].text
        assert answer.thinking == direct[key].thinking
        assert answer.output_tokens == direct[key].output_tokens
        assert answer.thinking_tokens is None
        assert answer.answer_tokens is None


def test_thinking_that_never_ends_is_all_thinking(local):
    with serving(local, style="tags") as server:
        (answer,) = ask(
            ApiResponder("demo", base_url=server.url), REQUESTS[:1], Settings(max_tokens=12)
        ).values()
    assert answer.text == ""
    assert answer.finish == "length"
    assert answer.thinking_tokens == answer.output_tokens == 12
    assert answer.answer_tokens == 0


def test_thinking_whose_start_is_in_the_prompt_needs_a_word(local):
    direct = ask(local)
    with serving(local, style="headless") as server:
        responder = ApiResponder("demo", base_url=server.url)
        whole = ask(responder, REQUESTS[:2], Settings(max_tokens=300, thinking="on"))
        (cut,) = ask(responder, REQUESTS[:1], Settings(max_tokens=12, thinking="on")).values()
        assert "reasoning_effort" not in server.bodies[0]
    for key, answer in whole.items():
        assert answer.text == direct[key].text
        assert answer.thinking == direct[key].thinking
    assert cut.text == ""
    assert cut.thinking
    assert cut.thinking_tokens == cut.output_tokens == 12


def test_without_usage_all_counts_are_unknown(local):
    with serving(local, style="bare") as server:
        (answer,) = ask(ApiResponder("demo", base_url=server.url), REQUESTS[:1]).values()
    assert answer.output_tokens is None
    assert answer.thinking_tokens is None
    assert answer.error is None


def test_one_bad_request_costs_only_itself(local):
    bad = dataclasses.replace(REQUESTS[1], prompt="please fail " + REQUESTS[1].prompt)
    requests = [REQUESTS[0], bad, *REQUESTS[2:]]
    with serving(local, bad_prompt="please fail") as server:
        through = ask(
            ApiResponder("demo", base_url=server.url),
            requests,
            Settings(max_tokens=300, retries=0),
        )
    assert [key for key, answer in through.items() if answer.error] == [bad.id]
    assert "out of memory" in through[bad.id].error
    assert through[bad.id].finish == "error"


def test_a_server_that_always_fails_stops_the_run(local):
    many = [Request(id=str(number), prompt="hello", seed=0) for number in range(40)]
    answers: list[Response] = []
    with serving(local, bad_prompt="hello") as server:
        responder = ApiResponder("demo", base_url=server.url, connections=2)
        with pytest.raises(EngineError, match="10 requests in a row"):
            responder.respond(
                RequestGroup(
                    requests=many, settings=Settings(retries=0), on_response=answers.append
                )
            )
    assert len(answers) == 10
    assert all(answer.error for answer in answers)


def test_the_next_group_is_begun_while_the_last_of_one_is_answered(monkeypatch):
    begun = asyncio.Event()

    async def answer(model, request, settings, *way):
        if settings.max_tokens == 1:
            await asyncio.wait_for(begun.wait(), 20)
        begun.set()
        return Response(id=request.id, text=str(settings.max_tokens))

    monkeypatch.setattr("stp.asking.api._answer", answer)
    first: list[Response] = []
    second: list[Response] = []
    with serving(CallableResponder(str)) as server:
        ApiResponder("demo", base_url=server.url, connections=2).respond(
            *(
                RequestGroup(
                    requests=REQUESTS[:number],
                    settings=Settings(max_tokens=number),
                    on_response=some.append,
                )
                for number, some in ((1, first), (2, second))
            )
        )
    assert [[a.text for a in some] for some in (first, second)] == [["1"], ["2", "2"]]


def said_at_once(url, message):
    responder = ApiResponder("demo", base_url=url, connections=2)
    answers: list[Response] = []
    begin = time.monotonic()
    with pytest.raises(EngineError, match=message):
        responder.respond(
            RequestGroup(
                requests=REQUESTS, settings=Settings(retries=8), on_response=answers.append
            )
        )
    assert not answers
    # Eight retries wait for minutes.
    return time.monotonic() - begin < 30


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_that_is_not_there_is_said_at_once(host):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        # Bound and not listening: nobody else can come to listen there.
        url = f"http://{host}:{free.getsockname()[1]}/v1"
        assert said_at_once(url, f"no server at {url}: connection refused")


def test_a_host_that_nobody_knows_is_said_at_once(unknown_host):
    url = f"http://{unknown_host}/v1"
    assert said_at_once(url, rf"no server at {url}: Name or service not known \({unknown_host}\)")


def test_a_server_that_does_not_take_connections_yet_is_not_refused(monkeypatch):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen(0)
        with contextlib.ExitStack() as stack:
            # The queue of the socket is full: a further connection waits.
            for _ in range(3):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(busy.getsockname())
            monkeypatch.setattr("stp.asking.reach.CONNECT_SECONDS", 0.3)
            check_reachable(f"http://127.0.0.1:{busy.getsockname()[1]}/v1")


def test_a_server_behind_a_proxy_is_not_looked_for(monkeypatch, unknown_host):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    check_reachable(f"http://{unknown_host}/v1")
    monkeypatch.setenv("no_proxy", unknown_host)
    with pytest.raises(EngineError, match="no server"):
        check_reachable(f"http://{unknown_host}/v1")


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "http://127.0.0.1:99999/v1", "http:///v1", "x", "http://[::1/v1"]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match="is not an address of a server"):
        ApiResponder("demo", base_url=url)


def test_settings_become_parameters_of_the_request(local):
    settings = Settings(
        max_tokens=40,
        temperature=0.0,
        top_p=0.9,
        presence_penalty=0.5,
        reasoning_effort="low",
        prompt_suffix="Answer in minimal tokens.",
    )
    with serving(local) as server:
        ask(ApiResponder("demo", base_url=server.url), REQUESTS[:1], settings)
        (body,) = server.bodies
    assert body["max_tokens"] == 40
    assert body["temperature"] == 0
    assert body["top_p"] == 0.9
    assert body["presence_penalty"] == 0.5
    assert body["reasoning_effort"] == "low"
    assert body["messages"][-1]["content"].endswith("\n\nAnswer in minimal tokens.")


def test_tools_are_called_and_their_results_go_back(local):
    call = {
        "role": "assistant",
        "content": "I calculate.",
        "tool_calls": [
            {
                "id": "call-1",
                "type": "function",
                "function": {"name": "calculator", "arguments": '{"expression": "45 * 67"}'},
            }
        ],
    }
    answer = {"role": "assistant", "content": "\\boxed{3015}"}
    with serving(local) as server:
        server.scripted = [chat_completion(call, finish="tool_calls"), chat_completion(answer)]
        (response,) = ask(
            ApiResponder("demo", base_url=server.url),
            REQUESTS[:1],
            Settings(tools=("calculator",)),
        ).values()
        first, second = server.bodies
    assert first["tools"][0]["function"]["name"] == "calculator"
    assert second["messages"][-1]["role"] == "tool"
    assert second["messages"][-1]["content"] == "3015"
    assert response.text == "\\boxed{3015}"
    assert response.tool_calls == 1
    assert "45 * 67" in response.tool_text
    assert response.output_tokens == 20


def test_a_model_that_only_calls_tools_is_stopped(local):
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "call-1",
                "type": "function",
                "function": {"name": "calculator", "arguments": '{"expression": "1 +"}'},
            }
        ],
    }
    with serving(local) as server:
        server.scripted = [chat_completion(call, finish="tool_calls") for _ in range(3)]
        (response,) = ask(
            ApiResponder("demo", base_url=server.url),
            REQUESTS[:1],
            Settings(tools=("calculator",), tool_rounds=2),
        ).values()
        assert "tools" not in server.bodies[-1]
    assert response.tool_calls == 2
    assert response.finish == "length"
    assert "not an arithmetic expression" in response.tool_text


def test_a_loop_that_runs_already_is_no_obstacle(local):
    async def notebook():
        with serving(local) as server:
            return ask(ApiResponder("demo", base_url=server.url), REQUESTS[:1])

    (answer,) = asyncio.run(notebook()).values()
    assert answer.error is None


def test_errors_of_a_provider_are_kept_in_the_response():
    from inspect_ai.model import ModelOutput, ModelUsage

    # With a usage of its own the mock does not count tokens, for which it would go online.
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    output = ModelOutput.from_content("mockllm/model", "", error="quota exhausted")
    outputs = [output.model_copy(update={"usage": usage})]
    responder = ApiResponder("mockllm/model", options={"custom_outputs": outputs})
    (answer,) = ask(responder, REQUESTS[:1], Settings()).values()
    assert answer.error == "EngineError: quota exhausted"


def test_a_model_without_provider_or_key_is_misuse(monkeypatch):
    with pytest.raises(MisuseError, match="names no provider"):
        ApiResponder("gpt-4.1-mini")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        ApiResponder("openai/gpt-4.1-mini")
    with pytest.raises(ConfigError, match="family is for local models"):
        open_responder(ModelSpec(model="mockllm/model", family="demo"))


class TestNoThinking:
    """Paper 004, D.2: thinking is turned off by the model's own switch, or not at all."""

    def test_a_servers_template_is_told(self, local):
        reply = chat_completion({"role": "assistant", "content": "\\boxed{1}"})
        with serving(local) as server:
            responder = open_responder(ModelSpec(model="Qwen/Qwen3-8B", base_url=server.url))
            assert responder.describe()["thinking_off"] == "chat template: enable_thinking = false"
            for thinking in ("off", "on", "default"):
                server.scripted.append(reply)
                ask(responder, REQUESTS[:1], Settings(thinking=thinking))
            off, on, default = server.bodies
        assert off["chat_template_kwargs"] == {"enable_thinking": False}
        assert on["chat_template_kwargs"] == {"enable_thinking": True}
        assert "chat_template_kwargs" not in default
        assert "reasoning_effort" not in off

    def test_tags_that_a_family_puts_around_its_answers_are_taken_off(self, local):
        with serving(local) as server:
            for text in ("<answer>\nIt is 4.\n</answer>", "It is 4.\n</answer>", "It is 4."):
                server.scripted.append(chat_completion({"role": "assistant", "content": text}))
                responder = open_responder(
                    ModelSpec(model="tencent/Hunyuan-A13B-Instruct", base_url=server.url)
                )
                (answer,) = ask(responder, REQUESTS[:1]).values()
                assert answer.text.strip() == "It is 4."

    def test_a_model_whose_switch_are_words_is_told_in_words(self, local):
        reply = chat_completion({"role": "assistant", "content": "\\boxed{1}"})
        name = "nvidia/Llama-3.1-Nemotron-Nano-8B-v1"
        with serving(local) as server:
            server.scripted.append(reply)
            responder = open_responder(ModelSpec(model=name, base_url=server.url))
            ask(responder, REQUESTS[:1], Settings(thinking="off"))
            (body,) = server.bodies
        assert body["messages"][0] == {"role": "system", "content": "detailed thinking off"}

    def test_a_model_of_which_nothing_is_known_is_refused(self, local):
        with serving(local) as server:
            responder = open_responder(ModelSpec(model="served", base_url=server.url))
            with pytest.raises(
                ConfigError, match=r"cannot be turned off: no model family.*;family=NAME"
            ):
                ask(responder, settings=Settings(thinking="off"))
            named = open_responder(ModelSpec(model="served", base_url=server.url, family="qwq"))
            with pytest.raises(ConfigError, match="it has no mode without thinking"):
                ask(named, settings=Settings(thinking="off"))
            assert not server.bodies
            server.scripted.append(chat_completion({"role": "assistant", "content": "4"}))
            plain = open_responder(ModelSpec(model="served", base_url=server.url, family="none"))
            (answer,) = ask(plain, REQUESTS[:1], Settings(thinking="off")).values()
            assert answer.thinking_tokens == 0

    @pytest.mark.parametrize("name", ["o3-mini", "gpt-5", "gpt-5-mini-2025-08-07"])
    def test_a_providers_model_without_such_a_mode_is_refused(self, name, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        responder = ApiResponder(f"openai/{name}")
        assert responder.describe()["thinking_off"] is None
        with pytest.raises(ConfigError, match="no mode without thinking; ask for its least effort"):
            ask(responder, settings=Settings(thinking="off"))
        assert ApiResponder("openai/gpt-5.1").describe()["thinking_off"] == "reasoning effort none"

    def test_thinking_that_went_on_is_no_answer_without_thinking(self, local):
        with serving(local) as server:
            responder = open_responder(ModelSpec(model="Qwen3-8B", base_url=server.url))
            settings = Settings(max_tokens=300, thinking="off")
            (answer,) = ask(responder, REQUESTS[:1], settings).values()
        assert "thinking was turned off, but the model thought for" in answer.error


@pytest.mark.parametrize(("opening", "parted"), [("<think>\n", False), ("", True)])
def test_written_thinking_is_never_0_tokens(local, caplog, opening, parted):
    """Whole tags are separated by inspect_ai; else by us, and this is said."""
    message = {"role": "assistant", "content": f"{opening}2 + 2</think>\n\nIt is 4."}
    reply = chat_completion(message)
    reply["usage"]["completion_tokens_details"] = {"reasoning_tokens": 0}
    with serving(local) as server:
        server.scripted.append(reply)
        (answer,) = ask(ApiResponder("demo", base_url=server.url), REQUESTS[:1]).values()
    assert (answer.text, answer.thinking) == ("It is 4.", "2 + 2")
    assert answer.thinking_tokens is None
    assert answer.parted is parted
    assert ("1 response(s) had thinking written in the text" in caplog.text) is parted
