"""The server engine against a scripted server: what it sends, what it bears, what it refuses."""

import asyncio
import dataclasses
import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from data.errors import ConfigError, EngineError, MisuseError
from stp.engines import RequestError, open_engine
from stp.engines.base import Branch, PromptTree, SamplingParameters
from tests.engines.scripted_server import ScriptedServer, completion


@pytest.fixture
def server():
    scripted = ScriptedServer()
    yield scripted
    scripted.close()


@pytest.fixture
def opened(server, model_folder):
    """Open an engine on the scripted server; then forget what was asked while opening."""
    engines = []

    def open_it(**options):
        engine = open_engine(
            "server", model_folder("demo"), **{"url": server.url, "model": "demo", **options}
        )
        engines.append(engine)
        server.bodies.clear()
        return engine

    yield open_it
    for engine in engines:
        engine.close()


@pytest.fixture
def waits(monkeypatch):
    """The waits between attempts, none of which is waited for."""
    waited: list[float] = []

    async def note(seconds):
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    return waited


def tree(seeds=(1, 2), **others) -> PromptTree:
    branches = (
        Branch(cut=2, suffix_ids=(5,), seeds=tuple(seeds)),
        Branch(cut=6, suffix_ids=(5, 6), seeds=tuple(seeds)),
    )
    return PromptTree(trunk_ids=tuple(range(20, 30)), branches=branches, max_tokens=4, **others)


def failing(server, *failures):
    """Let the next completions fail, one after the other, and the rest be good."""
    left = iter(failures)
    lock = threading.Lock()

    def answer(body):
        with lock:
            failure = next(left, False)
        return server.good(body) if failure is False else failure

    server.answer = answer


def test_every_sample_is_a_request_with_ids_seed_and_all_parameters(server, opened):
    sampling = SamplingParameters(temperature=0.6, top_p=0.9, top_k=20, presence_penalty=0.5)
    engine = opened(concurrency=1)
    calls: list[int] = []
    asked = tree(sampling=sampling, stop_ids=frozenset({99, 98}), stop_texts=("x",))
    (((a, b), (c, d)),) = engine.generate([asked], on_progress=calls.append)
    assert [item.token_ids for item in (a, b, c, d)] == [(11,) * 4, (12,) * 4, (11,) * 4, (12,) * 4]
    assert {item.finish for item in (a, b, c, d)} == {"length"}
    assert [body["prompt"] for body in server.bodies] == [
        [20, 21, 5],
        [20, 21, 5],
        [20, 21, 22, 23, 24, 25, 5, 6],
        [20, 21, 22, 23, 24, 25, 5, 6],
    ]
    assert [body["seed"] for body in server.bodies] == [1, 2, 1, 2]
    assert sum(calls) == 4
    body = server.bodies[0]
    assert (body["temperature"], body["top_p"], body["top_k"]) == (0.6, 0.9, 20)
    assert body["presence_penalty"] == 0.5
    assert body["stop_token_ids"] == [98, 99]
    assert body["stop"] == ["x"]
    # What the model's generation_config.json would set if it were left out.
    assert body["repetition_penalty"] == 1.0
    assert body["min_p"] == body["frequency_penalty"] == 0.0
    assert body["ignore_eos"] is body["include_stop_str_in_output"] is True


def test_answers_belong_to_their_requests_in_whatever_order_they_come(server, opened):
    engine = opened(concurrency=16)
    gate = threading.Barrier(16)

    def answer(body):
        gate.wait(10)  # All sixteen are in flight at once.
        return server.good(body)

    server.answer = answer
    ((first, second),) = engine.generate([tree(seeds=range(8))])
    assert [item.token_ids[0] for item in first] == [10 + seed for seed in range(8)]
    assert first == second


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ((500, {}, b'{"error": {"message": "boom"}}'), "HTTP 500: boom"),
        ((503, {}, b"<html>busy</html>"), "HTTP 503: <html>busy</html>"),
        ((429, {}, b"{}"), "HTTP 429"),
        (None, "closed connection"),
        ((200, {}, b'{"choices": [{"tok'), "not JSON"),
        ((200, {}, b"[1]"), "not a JSON object"),
        ((200, {}, b"[" * 100_000), "not JSON"),
        ((200, {}, b'{"choices": []}'), "0 choices"),
        ((200, {}, json.dumps({"choices": [{"token_ids": [1.5]}]}).encode()), "without token ids"),
    ],
)
def test_what_passes_is_tried_again_and_what_stays_is_an_error(
    failure, reason, server, opened, waits
):
    engine = opened(concurrency=1, attempts=3)
    failing(server, failure, failure)
    ((first, _),) = engine.generate([tree()])
    assert first[0].token_ids == (11,) * 4
    assert len(server.bodies) == 6
    failing(server, *itertools.repeat(failure, 50))
    with pytest.raises(RequestError, match=r"failed 3 times in \d+ seconds, last: ") as caught:
        engine.generate([tree()])
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (caught.value.tree, caught.value.branch) == (0, 0)


def test_waits_double_up_to_a_minute_and_are_jittered(server, opened, waits):
    engine = opened(concurrency=1, attempts=9)
    failing(server, *itertools.repeat((500, {}, b""), 8))
    engine.generate([tree(seeds=(1,))])
    for index, wait in enumerate(waits):
        most = min(60.0, 2.0**index)
        assert most / 2 <= wait <= most
    assert len(waits) == 8
    assert len({wait / min(60.0, 2.0**index) for index, wait in enumerate(waits)}) > 1


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7, 7), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.5, 1), ("soon", 0.5, 1), ("1e9", 600, 600)],
)
def test_retry_after_is_kept(header, least, most, server, opened, waits):
    engine = opened(concurrency=1)
    failing(server, (429, {"Retry-After": header}, b"{}"))
    engine.generate([tree(seeds=(1,))])
    (wait,) = waits
    assert least <= wait <= most


def test_a_server_that_answers_too_late_is_asked_again(server, opened, waits):
    engine = opened(concurrency=1, timeout_seconds=0.2)
    over = threading.Event()
    calls = itertools.count()

    def answer(body):
        if next(calls) == 0:
            over.wait(10)
        return server.good(body)

    server.answer = answer
    engine.generate([tree(seeds=(1,))])
    over.set()
    assert len(waits) == 1


def test_what_a_server_refuses_is_not_asked_again_and_ends_the_call(server, opened, waits):
    engine = opened(concurrency=4)

    def answer(body):
        if len(body["prompt"]) == 8:
            return 400, {}, b'{"error": {"message": "too \\u001b[31m long"}}'
        return server.good(body)

    server.answer = answer
    with pytest.raises(RequestError, match=r"refused it \(HTTP 400\): too \[31m long") as caught:
        engine.generate([tree(), tree()])
    assert caught.value.branch == 1
    assert waits == []


def test_a_server_that_went_away_is_an_engine_error(server, opened, waits, model_folder):
    engine = opened(attempts=2)
    server.close()
    with pytest.raises(EngineError, match="failed 2 times"):
        engine.generate([tree()])
    with pytest.raises(EngineError, match="failed 2 times"):
        open_engine("server", model_folder("demo"), url=server.url, attempts=2)


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        (
            lambda body: (200, {}, b'{"choices": [{"text": "hello", "finish_reason": "stop"}]}'),
            ["gives text, not token ids", "vllm serve"],
        ),
        (
            lambda body: (400, {}, b'{"error": {"message": "prompt must be a string"}}'),
            ["does not take token ids as a prompt", "prompt must be a string"],
        ),
        (lambda body: (404, {}, b"not found"), ["HTTP 404", "vllm serve"]),
        (lambda body: (401, {}, b'{"error": "no"}'), ["wants another key", "api_key_env"]),
        (
            lambda body: ScriptedServer.good(body, prompt_token_ids=[0, *body["prompt"]]),
            ["changed the ids of a prompt"],
        ),
        (
            lambda body: ScriptedServer.good({**body, "stop_token_ids": []}),
            ["does not end at stop_token_ids"],
        ),
    ],
)
def test_servers_that_cannot_carry_a_campaign_are_refused_at_the_start(
    answer, parts, server, opened
):
    server.answer = answer
    with pytest.raises(MisuseError) as caught:
        opened()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_the_model_is_found_by_name_or_folder_or_refused(server, opened, model_folder):
    folder = model_folder("demo")
    server.models = [{"id": "a", "max_model_len": 9}, {"id": "b", "root": f"/m/{folder.name}/"}]
    with pytest.raises(MisuseError, match="does not say how long its context is"):
        opened(model=None)
    assert opened(model=None, context_limit=50).context_limit == 50
    server.models[1]["max_model_len"] = 200
    assert opened(model=None).context_limit == 200
    with pytest.raises(MisuseError, match=r"serves no model named 'c', but 'a', 'b'; set the"):
        opened(model="c")
    server.models = []
    with pytest.raises(MisuseError, match=rf"no model that ends in '{folder.name}', but none"):
        opened(model=None)


def test_samples_that_cannot_be_repeated_are_said(server, opened, caplog):
    counter = itertools.count()

    def answer(body):
        if body["temperature"] > 0:
            return server.good({**body, "seed": next(counter)})
        return server.good(body)

    server.answer = answer
    with caplog.at_level(logging.WARNING):
        opened()
    assert "two samples of one seed that differ" in caplog.text
    assert "amplification stays unknown" in caplog.text


def test_what_the_cache_held_is_counted_where_the_server_says_it(server, opened):
    def answer(body):
        reply = completion(body)
        reply["usage"]["prompt_tokens_details"] = {"cached_tokens": len(body["prompt"]) // 2}
        return 200, {}, json.dumps(reply).encode()

    server.answer = answer
    engine = opened()
    engine.generate([tree()])
    assert engine.usage.prefill_tokens == 2 * 2 + 2 * 4
    assert engine.usage.prefill_least_tokens == 6 + 1 + 2
    assert engine.usage.prefill_block_least_tokens == 2 * 3 + 2 * 8
    assert engine.usage.generated_tokens == 16
    server.answer = server.good
    unknown = opened()
    unknown.generate([tree()])
    assert unknown.usage.prefill_tokens == unknown.usage.prefill_least_tokens == 0
    assert unknown.usage.generated_tokens == 16


def test_a_key_comes_from_the_environment_and_goes_nowhere_else(server, opened, monkeypatch):
    monkeypatch.setenv("MY_KEY", "s3cret")
    engine = opened(api_key_env="MY_KEY")
    engine.generate([tree()])
    assert server.headers[-1]["authorization"] == "Bearer s3cret"
    assert "s3cret" not in json.dumps(engine.describe())
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ConfigError, match="api_key_env names MY_KEY, which is not set"):
        opened(api_key_env="MY_KEY")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"url": "localhost:8000"}, "must be like http://HOST:PORT"),
        ({"url": "http://me:key@localhost:8000"}, "holds a user or a password"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds is nan"),
        ({"atempts": 3}, "did you mean 'attempts'"),
        ({"context_limit": 129}, "context_limit is 129, but the server"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, reason, opened):
    with pytest.raises(ConfigError, match=reason):
        opened(**options)


def test_a_missing_httpx_is_one_line(model_folder):
    program = (
        "import sys; sys.modules['httpx'] = None\n"
        "from data.errors import MissingDependencyError\n"
        "from stp.engines import open_engine\n"
        f"try: open_engine('server', {str(model_folder('demo'))!r}, url='http://localhost')\n"
        "except MissingDependencyError as error: print(error)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert "needs httpx; install it with: pip install httpx" in output


def test_a_server_without_an_address_is_refused(model_folder):
    with pytest.raises(ConfigError, match=r"engine 'server' needs the option 'url'; set it under"):
        open_engine("server", model_folder("demo"))


def test_prompts_that_do_not_fit_and_ids_that_are_none_are_refused_before_sending(server, opened):
    engine = opened()
    long = PromptTree(
        trunk_ids=(1,) * 128, branches=(Branch(cut=128, suffix_ids=(), seeds=(1,)),), max_tokens=1
    )
    with pytest.raises(MisuseError, match="leaves no room"):
        engine.generate([long])
    with pytest.raises(MisuseError, match="outside the model's vocabulary"):
        engine.generate([dataclasses.replace(long, trunk_ids=(10**6,) * 128)])
    assert server.bodies == []


def test_it_works_inside_a_running_event_loop(opened):
    """A notebook's cells run in one."""

    async def cell():
        engine = opened()
        first = engine.generate([tree()])
        again = engine.generate([tree()])
        engine.close()
        return first, again

    first, again = asyncio.run(cell())
    assert first == again
    engine = opened()
    assert engine.generate([tree()]) == first
    engine.close()


@pytest.mark.parametrize("reply", [{"error": {"message": "CUDA error"}}, {"choices": []}, {}])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_server_that_says_200_with_an_error_while_it_is_opened(server, opened, reply, after):
    def answer(body):
        if len(server.bodies) <= after:
            return server.good(body)
        return 200, {}, json.dumps(reply).encode()

    server.answer = answer
    with pytest.raises(MisuseError, match="answers with no completion but with"):
        opened()


class Full:
    """Answers one request at a time, and only while as many are under way as may be.

    No clock is in it: an engine that leaves a place empty waits until the test fails.
    """

    def __init__(self, server, places, requests):
        self._server, self._places, self.left = server, places, requests
        self._change, self.under_way, self.counts = threading.Condition(), 0, []
        self.all_answered = threading.Event()

    def __call__(self, body):
        with self._change:
            self.under_way += 1
            self._change.notify_all()
            if not self._change.wait_for(self._is_full, timeout=60):
                self._places = 0  # One wait is enough to fail.
            self.counts.append((self.under_way, min(self._places, self.left)))
            self.under_way, self.left = self.under_way - 1, self.left - 1
            if not self.left:
                self.all_answered.set()
            self._change.notify_all()
        return self._server.good(body)

    def _is_full(self):
        return self.under_way >= min(self._places, self.left)


def test_as_many_requests_are_under_way_as_may_be_until_nothing_is_left(server, opened):
    """Trees come one by one, and each answer makes room for one more at once."""
    engine = opened(concurrency=8)
    trees = [tree(seeds=(1, 2)) for _ in range(20)]
    requests = sum(len(branch.seeds) for each in trees for branch in each.branches)
    server.answer = full = Full(server, 8, requests)
    waiting, made = list(trees), 0
    while waiting or engine.busy:
        while waiting and engine.wants_more:
            engine.submit(waiting.pop())
        made += len(engine.step().trees)
    assert made == 20
    assert full.left == 0 and len(full.counts) == requests
    assert all(count == most for count, most in full.counts)


def test_requests_go_on_while_nobody_steps(server, opened):
    """What was handed over is asked for, as many at once as may be, whatever the driver does."""
    engine = opened(concurrency=4)
    server.answer = full = Full(server, 4, 40)
    tickets = [engine.submit(tree(seeds=range(4))) for _ in range(5)]
    assert full.all_answered.wait(120)
    assert all(count == most for count, most in full.counts)
    ended = []
    while engine.busy:
        ended += engine.step().trees
    assert sorted(entry.ticket for entry in ended) == tickets
    assert all(entry.made[1][3].token_ids == (13,) * 4 for entry in ended)


def test_requests_are_sent_in_their_order_whatever_the_driver_does_meanwhile(server, opened):
    sent = []
    for pause in (0.0, 0.02):
        engine = opened(concurrency=1)
        waiting = [tree(seeds=(10 * number, 10 * number + 1)) for number in range(6)]
        while waiting or engine.busy:
            time.sleep(pause)
            while waiting and engine.wants_more:
                engine.submit(waiting.pop(0))
            engine.step()
        sent.append([(len(body["prompt"]), body["seed"]) for body in server.bodies])
    assert sent[0] == sent[1] and len(sent[0]) == 24


@pytest.fixture
def interruptible():
    """Let SIGINT raise: a shell lets what it starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_wait_and_nothing_more_is_sent(server, opened):
    engine = opened(concurrency=3)
    gate, all_sent = threading.Event(), threading.Event()

    def answer(body):
        if len(server.bodies) == 3:
            all_sent.set()
        gate.wait(120)
        return server.good(body)

    def interrupt():
        all_sent.wait(60)
        time.sleep(0.2)  # Most of the time the main thread is within a step then.
        os.kill(os.getpid(), signal.SIGINT)

    server.answer = answer
    for _ in range(4):
        engine.submit(tree())
    begin, pulse = time.monotonic(), engine.pulse
    # A step waits a little, whether something ends or not; the signal may come between two.
    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=interrupt).start()
        while time.monotonic() - begin < 90:
            engine.step()
    assert engine.pulse == pulse  # What hangs shows no sign of life.
    engine.close()
    assert time.monotonic() - begin < 90  # Nothing waited for the answers.
    gate.set()
    assert len(server.bodies) == 3


def test_what_is_dropped_is_cancelled_and_its_place_taken(server, opened):
    engine = opened(concurrency=2)
    gate = threading.Event()
    first = server.answer

    def answer(body):
        if body["seed"] == 7:
            gate.wait(10)
        return server.good(body)

    server.answer = answer
    slow = engine.submit(tree(seeds=(7,)))
    engine.submit(tree(seeds=(1,)))
    for _ in range(2):
        engine.drop([slow])
        ended = []
        while engine.busy:
            ended += engine.step().trees
    gate.set()
    server.answer = first
    assert not engine.busy
    ((sample,), _) = engine.generate([tree(seeds=(2,))])[0]
    assert sample.token_ids == (12,) * 4
