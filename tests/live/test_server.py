"""The server against the official client, with the demo model."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import openai
import pytest
import uvicorn

from data.errors import EngineError
from evaluator.live.chat import TextStream
from evaluator.live.server import ChatServer, ServerOptions
from evaluator.live.service import Service
from evaluator.live.setup import Wanted, get_ready
from stp.campaign.sections import EngineConfig, ModelConfig
from stp.formats import get_family
from tests.engines.scripted_server import ScriptedServer

QUESTION = "What is 4 + 7 + 2 + 9 + 5?"
ASKED = [{"role": "user", "content": f"{QUESTION}\n" + r"Put the final answer in \boxed{}."}]
PATIENCE = 120
"""Seconds for what must come at all, however busy the machine is."""
CHANGES = {
    "generation": {"thinking_limit": 200, "answer_tokens": 24},
    "probing": {"step_tokens": 16, "answer_tokens": 24},
}


@pytest.fixture(scope="module")
def ready():
    return get_ready(
        Wanted(
            model=ModelConfig(path="demo"),
            method="deer",
            setting="0.95",
            engine=EngineConfig(options={"threads": 1}),
            changes=CHANGES,
        )
    )


@contextlib.contextmanager
def served(service, plan, **options):
    """Serve on a free port; yield the address."""
    options = {"model_name": "demo", **options}
    application = ChatServer(service, plan, ServerOptions(**options)).application()
    config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=3)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()
        assert not service.alive


@contextlib.contextmanager
def demo_server(ready, *, batch=32, waiting=256, **options):
    engine, plan = ready.open()
    service = Service(engine, batch=batch, waiting=waiting)
    plan = replace(plan, piece_tokens=16)
    with served(service, plan, **options) as url:
        yield url, service, engine


@pytest.fixture(scope="module")
def server(ready):
    with demo_server(ready) as made:
        yield made


def client_of(url, **options):
    options = {"api_key": "none", "max_retries": 0, **options}
    return openai.OpenAI(base_url=f"{url}/v1", **options)


def idle(service, engine):
    """Return whether nothing is left of any request, before patience ends."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if service.open_jobs == 0 and not engine.busy and not engine._decoder._sessions:
            return True
        time.sleep(0.05)
    return False


def test_a_reply_has_reasoning_answer_usage_and_why_it_stopped(server):
    url, service, engine = server
    reply = client_of(url).chat.completions.with_raw_response.create(
        model="demo", messages=ASKED, seed=1
    )
    stop = reply.headers["x-stp-stop"]
    reply = reply.parse()
    message, extra = reply.choices[0].message, reply.model_extra["stp"]
    assert reply.choices[0].finish_reason == "stop"
    assert r"\boxed{" in message.content
    assert message.model_extra["reasoning_content"] == message.model_extra["reasoning"]
    assert extra["method"] == "deer"
    assert extra["reason"] in ("method", "end", "limit")
    assert stop.startswith(extra["reason"])
    details = reply.usage.model_extra | reply.usage.completion_tokens_details.model_dump()
    parts = [details[name] for name in ("reasoning_tokens", "signal_tokens", "answer_tokens")]
    assert sum(parts) == reply.usage.completion_tokens
    assert parts[1] > 0
    assert idle(service, engine)


def test_a_stream_is_the_whole_reply_in_parts(server):
    url, service, engine = server
    client = client_of(url)
    whole = client.chat.completions.create(model="demo", messages=ASKED, seed=7)
    thinking, answer, last, usage = "", "", None, None
    with client.chat.completions.create(
        model="demo",
        messages=ASKED,
        seed=7,
        stream=True,
        stream_options={"include_usage": True},
    ) as chunks:
        for chunk in chunks:
            if chunk.usage is not None:
                usage = chunk.usage
            for choice in chunk.choices:
                thinking += (choice.delta.model_extra or {}).get("reasoning_content", "")
                answer += choice.delta.content or ""
                last = chunk if choice.finish_reason else last
    message = whole.choices[0].message
    assert answer == message.content
    assert thinking.startswith(message.model_extra["reasoning_content"])
    assert last.model_extra["stp"] == whole.model_extra["stp"]
    assert usage.completion_tokens == whole.usage.completion_tokens
    assert idle(service, engine)


def test_a_request_turns_the_method_off_or_sets_it(server):
    url, _, _ = server
    client = client_of(url)

    def ask(**stp):
        body = {"stp": {"decisions": True, **stp}}
        return client.chat.completions.create(
            model="demo", messages=ASKED, seed=3, extra_body=body
        ).model_extra["stp"]

    off, early, own = ask(method="off"), ask(setting=0.3), ask()
    assert off["method"] is None and off["reason"] != "method" and off["decisions"] == []
    assert early["setting"] == 0.3 and early["tokens"] <= own["tokens"] <= off["tokens"]
    decision = own["decisions"][-1]
    assert decision["tokens"] <= own["tokens"]
    assert decision["stops"] == (own["reason"] == "method")


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "user", "content": 3}]}, 400, "content"),
        ({"messages": ASKED, "model": "other"}, 404, "other"),
        ({"messages": ASKED, "tools": [{"type": "function"}]}, 400, "tools"),
        ({"messages": ASKED, "n": 2}, 400, "n:"),
        ({"messages": ASKED, "stop": ["x"]}, 400, "stop:"),
        ({"messages": ASKED, "logprobs": True}, 400, "logprobs:"),
        ({"messages": ASKED, "top_k": 5}, 400, "top_k:"),
        ({"messages": ASKED, "logit_bias": {"5": 1}}, 400, "logit_bias:"),
        ({"messages": ASKED, "response_format": {"type": "json_object"}}, 400, "response_format:"),
        ({"messages": ASKED, "x" * 10_000: 1}, 400, "does not have it"),
        ({"messages": ASKED, "\ud800\n": 1}, 400, r"\ud800\n: this server does not have it"),
        ({"messages": ASKED, "stp": {"y\n" * 10_000: 1}}, 400, r"stp.y\ny\n"),
        ({"messages": ASKED, "stp": {"setting": "\ud800" + "x" * 10_000}}, 400, "not a setting"),
        ({"messages": ASKED, "model": "\ud800" + "x" * 10_000}, 404, "there is no model"),
        ({"messages": ASKED, "max_tokens": 10**4000}, 400, "leaves no room"),
        ({"messages": ASKED, "max_tokens": 0}, 400, "max_tokens"),
        ({"messages": ASKED, "max_tokens": 10**30}, 400, "leaves no room"),
        ({"messages": ASKED, "top_p": float("inf")}, 400, "top_p"),
        ({"messages": ASKED, "seed": -1}, 400, "seed"),
        ({"messages": ASKED, "stream": 3}, 400, "stream"),
        ({"messages": [None]}, 400, "messages.0"),
        ({"messages": [{"role": "user"}]}, 400, "content"),
        ({"messages": [{"role": "tool", "content": "4"}]}, 400, "role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "'image_url'"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, 400, "not a text part"),
        ({"messages": [{"role": "user", "content": ["text"]}]}, 400, "not a text part"),
        ({"messages": [{"role": "user", "content": [{}]}]}, 400, "names no type"),
        ({"messages": [{"role": "user", "content": ["\ud800" * 10_000]}]}, 400, "not a text part"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, 400, "half a character"),
        ({"messages": ASKED, "temperature": 9}, 400, "temperature"),
        ({"messages": ASKED, "stp": {"setting": 0.123}}, 400, "0.123"),
        ({"messages": ASKED, "stp": {"colour": "red"}}, 400, "colour"),
        ({"messages": [{"role": "user", "content": "1 + 2 " * 1000}]}, 400, "leaves no room"),
        ([], 400, "object"),
    ],
)
def test_wrong_requests_are_told_what_is_wrong(server, body, status, said):
    url, service, engine = server
    reply = httpx.post(f"{url}/v1/chat/completions", content=json.dumps(body), timeout=PATIENCE)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert said in error["message"] and "\n" not in error["message"]
    assert len(error["message"]) < 300
    assert idle(service, engine)


def test_what_asks_for_nothing_is_no_reason_to_refuse(server):
    """Clients send null for what they leave out, and defaults; a text may come in parts."""
    url, _, _ = server
    parts = [{"type": "text", "text": part} for part in (QUESTION, " \U0001f600 ½")]
    nothing = dict.fromkeys(("model", "stop", "tools", "stream", "stp", "seed", "logit_bias"))
    defaults = {"n": 1, "tool_choice": "auto", "logprobs": False, "frequency_penalty": 0.0}
    body = {"messages": [{"role": "user", "content": parts}], "user": "me", "max_tokens": 1}
    reply = httpx.post(
        f"{url}/v1/chat/completions", json={**body, **nothing, **defaults}, timeout=30
    )
    assert reply.status_code == 200
    assert reply.json()["usage"]["completion_tokens_details"]["answer_tokens"] == 1


def raw(url, sent, *, seconds=20.0):
    """Return what comes back for bytes as they are, until the server closes."""
    host, port = url.removeprefix("http://").split(":")
    received = b""
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        connection.sendall(sent)
        while part := connection.recv(1 << 16):
            received += part
    return received


def request(body, *lines, version="1.1"):
    """Return a request as bytes; the server is to close behind it."""
    head = [f"POST /v1/chat/completions HTTP/{version}", "Host: x", "Connection: close", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def test_what_comes_over_the_wire(server):
    """Old requests, no length, a length that is a lie, too much, methods and addresses."""
    url, service, engine = server
    body = json.dumps({"messages": ASKED, "max_tokens": 1, "stp": {"setting": 0.3}}).encode()
    sized = f"Content-Length: {len(body)}"
    assert b"200 OK" in raw(url, request(body, sized, version="1.0"))
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    assert b"200 OK" in raw(url, request(chunks, "Transfer-Encoding: chunked"))
    assert b"200 OK" in raw(url, request(body, sized, "X-Long: " + "y" * 60_000))
    assert b"400 Bad Request" in raw(url, request(b""))
    assert b"400 Bad Request" in raw(url, request(body, "Content-Length: -5"))
    assert b"400 Bad Request" in raw(url, b"\x16\x03\x01\x02\x00garbage\r\n\r\n")
    assert b" 413 " in raw(url, request(b"x" * (1 << 22), f"Content-Length: {1 << 22}"))
    for method, address, status in (
        ("OPTIONS", "/v1/chat/completions", 405),
        ("PUT", "/v1/models", 405),
        ("POST", "/v1/completions", 404),
        ("GET", "/", 404),
    ):
        reply = httpx.request(method, url + address)
        assert reply.status_code == status
        assert address in reply.json()["error"]["message"]
    assert httpx.head(f"{url}/v1/models").status_code == 200
    assert httpx.options(f"{url}/v1/chat/completions").headers["allow"] == "POST"
    with httpx.Client(base_url=url, timeout=30) as client:
        kept = [client.post("/v1/chat/completions", content=c) for c in (body, b"{", body)]
    assert [reply.status_code for reply in kept] == [200, 400, 200]
    assert idle(service, engine)


def test_bodies_that_never_come_are_given_up(ready, caplog):
    with demo_server(ready, request_seconds=1.0) as (url, service, engine):
        half = request(b"{", "Content-Length: 100")
        host, port = url.removeprefix("http://").split(":")
        slow = [socket.create_connection((host, int(port))) for _ in range(50)]
        for connection in slow:
            connection.sendall(half)
        assert httpx.get(f"{url}/health").json() == {"open": 0}
        assert b"408" in raw(url, half)
        for connection in slow:
            connection.close()
        # One that goes in the middle of its body is no defect.
        gone = socket.create_connection((host, int(port)))
        gone.sendall(half)
        gone.close()
        assert idle(service, engine)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_request_names_settings_within_the_bounds_only(ready):
    settings = ready.plan.policy.between("0.9", "0.99")
    with demo_server(ready, settings=settings) as (url, service, engine):
        for setting, status in ((0.9, 200), (0.99, 200), (0.5, 400), (1.0, 400), ("x", 400)):
            body = {"messages": ASKED, "max_tokens": 4, "stp": {"setting": setting}}
            reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)
            assert reply.status_code == status
            if status == 400 and setting != "x":
                assert "bounds of this server, 0.9 to 0.99" in reply.json()["error"]["message"]
        assert idle(service, engine)


class Letters:
    """A format whose token ids are characters, of a family that puts tags around its answers."""

    family = get_family("granite-3.3")

    def decode(self, ids, *, skip_special=False):
        return "".join(map(chr, ids))


@pytest.mark.parametrize(
    "text",
    [
        "<response>It is 4.</response>",
        " <response>It is <b>4</b>. </response>\n",
        "<response>It is 4.",
        "<respond>It is 4.</response",
        "It is 4.</response> or 5.</response> \n",
        "a < b </respo nse>\n\n",
        "<response></response>",
        "<resp",
        "  ",
        "<response>" + 300 * "ab" + "\n" + "c</response>",
        300 * "x\n" + "<response>4</response>",
    ],
)
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_streamed_answer_is_the_whole_one_without_its_tags(text, size):
    stream = TextStream(Letters(), answer=True)
    ids = tuple(map(ord, text))
    parts = [stream.add(ids[start : start + size]) for start in range(0, len(ids), size)]
    assert "".join([*parts, stream.add((), last=True)]) == Letters.family.answer_text(text)


def test_what_is_no_json_and_what_is_too_large(server):
    url, _, _ = server
    address = f"{url}/v1/chat/completions"
    assert httpx.post(address, content=b"{", timeout=PATIENCE).status_code == 400
    assert httpx.post(address, content=b"[" * 100_000, timeout=PATIENCE).status_code == 400
    assert httpx.post(address, content=b"x" * (1 << 21), timeout=PATIENCE).status_code == 413
    assert httpx.get(address, timeout=PATIENCE).status_code == 405
    assert httpx.get(f"{url}/v1/models", timeout=PATIENCE).json()["data"][0]["id"] == "demo"


def test_a_client_that_goes_frees_the_work(server):
    url, service, engine = server
    body = {"messages": ASKED, "stream": True, "stp": {"method": "off"}}
    address = f"{url}/v1/chat/completions"
    with httpx.stream("POST", address, json=body, timeout=PATIENCE) as reply:
        next(reply.iter_lines())
    assert idle(service, engine)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            address,
            json={"messages": ASKED, "stp": {"method": "off"}},
            timeout=httpx.Timeout(PATIENCE, read=0.05),
        )
    assert idle(service, engine)


def test_parallel_requests_are_each_their_own(server):
    url, service, engine = server

    async def ask_all():
        async with openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key="none", max_retries=0
        ) as client:
            return await asyncio.gather(
                *(
                    client.chat.completions.create(model="demo", messages=ASKED, seed=seed)
                    for seed in (1, 2, 1, 2)
                )
            )

    texts = [reply.choices[0].message.content for reply in asyncio.run(ask_all())]
    assert texts[0] == texts[2] and texts[1] == texts[3]
    assert idle(service, engine)


@pytest.mark.slow
def test_two_hundred_at_once_leave_nothing_behind(server):
    url, service, engine = server

    async def ask_all():
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(limits=limits, timeout=300) as client:
            return await asyncio.gather(
                *(
                    client.post(
                        f"{url}/v1/chat/completions",
                        json={"messages": ASKED, "seed": seed, "stp": {"setting": 0.3}},
                    )
                    for seed in range(200)
                )
            )

    assert {reply.status_code for reply in asyncio.run(ask_all())} == {200}
    assert idle(service, engine)
    assert engine._decoder._trees == {}


def test_a_full_queue_says_so_and_a_slow_request_is_ended(ready):
    with demo_server(ready, batch=1, waiting=0, request_seconds=0.05) as (url, service, engine):
        body = {"messages": ASKED, "stp": {"method": "off"}}
        with httpx.stream(
            "POST", f"{url}/v1/chat/completions", json={**body, "stream": True}, timeout=PATIENCE
        ) as slow:
            busy = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)
            text = slow.read().decode()
        assert busy.status_code in (429, 504)
        assert "more than 0.05 seconds" in text
        reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)
        assert reply.status_code == 504
        assert idle(service, engine)


def test_prompts_that_wait_to_be_encoded_count_as_work(ready, monkeypatch):
    """Those for whom no place is left are not encoded; one that waits too long is given up."""
    encoded, go = [], threading.Event()
    job = ChatServer._job

    def slow_job(self, asked, loop):
        encoded.append(asked)
        assert go.wait(PATIENCE)
        return job(self, asked, loop)

    monkeypatch.setattr(ChatServer, "_job", slow_job)
    with demo_server(ready, batch=1, waiting=1, request_seconds=3.0) as (url, service, engine):
        body = {"messages": ASKED, "max_tokens": 1}

        def ask(_):
            return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)

        with ThreadPoolExecutor(6) as pool:
            statuses = sorted(reply.status_code for reply in pool.map(ask, range(6)))
        go.set()
        assert statuses == [429] * 4 + [504] * 2
        assert len(encoded) == 1
        assert ask(None).status_code in (200, 504)
        assert idle(service, engine)


def test_a_key_is_asked_for(ready):
    with demo_server(ready, api_key="secret") as (url, _, _):
        with pytest.raises(openai.AuthenticationError):
            client_of(url, api_key="guess").chat.completions.create(model="demo", messages=ASKED)
        with pytest.raises(openai.AuthenticationError):
            client_of(url, api_key="guess").models.list()
        assert client_of(url, api_key="secret").models.list().data[0].id == "demo"
        for given in ("secret", "Basic secret", "Bearer", "Bearer secret2", "Bearer s\xe9"):
            headers = {"Authorization": given.encode("latin-1")}
            assert httpx.get(f"{url}/v1/models", headers=headers).status_code == 401


class DeadEngine:
    """An engine whose server is gone."""

    layers = -1
    busy = True

    def submit(self, tree):
        return 0

    def step(self):
        raise EngineError("http://upstream: cannot be reached")

    def drop(self, tickets=None):
        """Forget nothing."""

    def end_session(self, session):
        """Free nothing."""

    def close(self):
        """Free nothing."""


def test_a_dead_upstream_is_a_bad_gateway_and_nothing_hangs(ready):
    plan = replace(ready.plan, policy=None)
    with served(Service(DeadEngine()), plan) as url:
        for body in ({"messages": ASKED}, {"messages": ASKED, "stream": True}):
            reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=PATIENCE)
            assert reply.status_code == 502
            assert "upstream" in json.loads(reply.content)["error"]["message"]


def test_one_whose_piece_fails_at_the_upstream_is_told_and_the_others_go_on(ready):
    upstream = ScriptedServer()
    upstream.models = [{"id": "demo_model", "max_model_len": 1024}]
    engine = EngineConfig(name="server", options={"url": upstream.url, "attempts": 2})
    asked = get_ready(replace(ready.wanted, method=None, setting=None, engine=engine))
    hit = "the unlucky one"
    form = asked.plan.subject.format
    try:
        engine, plan = asked.open()
        upstream.answer = lambda body: (
            (502, {}, b"bad gateway") if hit in form.decode(body["prompt"]) else upstream.good(body)
        )
        with served(Service(engine, batch=8), replace(plan, piece_tokens=16)) as url:

            def ask(text):
                body = {"messages": [{"role": "user", "content": text}]}
                return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)

            with ThreadPoolExecutor(5) as pool:
                statuses = [r.status_code for r in pool.map(ask, ["a", "b", hit, "c", "d"])]
        assert statuses == [200, 200, 502, 200, 200]
        failed = [b for b in upstream.bodies if hit in form.decode(b["prompt"])]
        assert len(failed) == 2
    finally:
        upstream.close()


def test_a_defect_ends_those_at_work_and_not_the_server(ready):
    with demo_server(ready) as (url, _, engine):
        step, engine.step = engine.step, lambda: 1 // 0
        address, body = f"{url}/v1/chat/completions", {"messages": ASKED, "max_tokens": 1}
        reply = httpx.post(address, json=body, timeout=30)
        assert reply.status_code == 502
        assert "ZeroDivisionError" in reply.json()["error"]["message"]
        engine.step = step
        assert httpx.post(address, json=body, timeout=30).status_code == 200


def test_an_upstream_that_never_answers_holds_nothing_up(ready):
    """Time is up for its clients, a client that goes frees the work, and the server ends."""
    silence, upstream = threading.Event(), ScriptedServer()
    upstream.models = [{"id": "demo_model", "max_model_len": 1024}]
    engine = EngineConfig(name="server", options={"url": upstream.url})
    asked = get_ready(replace(ready.wanted, method=None, setting=None, engine=engine))
    try:
        engine, plan = asked.open()
        upstream.answer = lambda body: silence.wait(60) and None
        service = Service(engine, batch=2)
        with served(service, plan, request_seconds=1.0) as url:
            address, body = f"{url}/v1/chat/completions", {"messages": ASKED}
            for stream in (False, True):
                reply = httpx.post(address, json={**body, "stream": stream}, timeout=PATIENCE)
                assert reply.status_code == 504
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(address, json=body, timeout=httpx.Timeout(PATIENCE, read=0.3))
            until = time.monotonic() + PATIENCE
            while (service.open_jobs or engine.busy) and time.monotonic() < until:
                time.sleep(0.05)
            assert not service.open_jobs and not engine.busy
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(address, json=body, timeout=httpx.Timeout(PATIENCE, read=0.3))
        assert len(upstream.bodies) >= 4
    finally:
        silence.set()
        upstream.close()
