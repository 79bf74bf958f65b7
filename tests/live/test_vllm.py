"""Live methods on a real vLLM: in this process, and served in front of a real ``vllm serve``."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from evaluator.live.run import make
from evaluator.live.service import Service
from evaluator.live.serving import PIECE_TOKENS
from evaluator.live.setup import Wanted, get_ready, live_tasks
from stp.campaign.sections import BenchmarkConfig, EngineConfig, ModelConfig
from stp.segmentation import segment_causal
from tests.engines.serving import vllm_serve
from tests.engines.test_vllm import needs_vllm
from tests.live.test_server import ASKED, client_of, served

CHANGES = {
    "generation": {"thinking_limit": 160, "answer_tokens": 16},
    "probing": {"step_tokens": 16, "answer_tokens": 16},
}


@pytest.mark.vllm
@needs_vllm
def test_a_method_stops_at_causal_steps_of_what_vllm_writes():
    ready = get_ready(
        Wanted(
            model=ModelConfig(path="demo"),
            method="deer",
            setting="0.95",
            engine=EngineConfig(
                name="vllm", options={"kv_cache_memory_bytes": 64 << 20, "context_limit": 1024}
            ),
            changes=CHANGES,
        )
    )
    tasks = live_tasks(ready, [BenchmarkConfig(name="demo", limit=4)])
    engine, plan = ready.open()
    try:
        outcomes = {
            task.question.id: outcome
            for task, outcome in make(engine, plan, tasks, 4, threading.Event())
        }
    finally:
        engine.close()
    assert len(outcomes) == 4
    stopped = 0
    for outcome in outcomes.values():
        ids = np.array(outcome.thinking_ids[: outcome.tokens], np.int32)
        steps = segment_causal(ids, plan.subject.boundary_ids, 16).tolist()
        assert list(outcome.lengths) == steps
        for entry in outcome.decisions:
            assert entry.stops == (entry.score is not None and entry.score > 0.95)
        if outcome.reason == "method":
            stopped += 1
            assert [entry.stops for entry in outcome.decisions[-1:]] == [True]
            assert outcome.answer_ids
    # Pieces have streams of their own: texts do not repeat from step to step.
    assert stopped


DEMO = Path(__file__).resolve().parents[2] / "data" / "demo_model"


@pytest.mark.vllm
@needs_vllm
def test_a_server_in_front_of_a_real_vllm_server(tmp_path):
    """Clients are served by the upstream's tokens; once it is dead they are told, at once."""
    with vllm_serve(DEMO, tmp_path / "log", "--max-model-len", "1024") as upstream:
        ready = get_ready(
            Wanted(
                model=ModelConfig(path="demo"),
                method="answer_convergence",
                setting="2",
                engine=EngineConfig(name="server", options={"url": upstream.url}),
                changes=CHANGES,
            )
        )
        engine, plan = ready.open(attempts=2)
        service = Service(engine, batch=8)
        with served(service, replace(plan, piece_tokens=PIECE_TOKENS)) as url:
            client = client_of(url)

            def ask(seed):
                return client.chat.completions.create(
                    model="demo", messages=ASKED, seed=seed, extra_body={"stp": {"decisions": True}}
                )

            with ThreadPoolExecutor(8) as pool:
                replies = list(pool.map(ask, range(8)))
            for reply in replies:
                stop = reply.model_extra["stp"]
                assert r"\boxed{" in reply.choices[0].message.content
                assert (stop["reason"] == "method") == stop["decisions"][-1]["stops"]
            assert any(reply.model_extra["stp"]["reason"] == "method" for reply in replies)

            thinking, answer = "", ""
            for chunk in client.chat.completions.create(
                model="demo", messages=ASKED, seed=3, stream=True
            ):
                for choice in chunk.choices:
                    thinking += (choice.delta.model_extra or {}).get("reasoning_content", "")
                    answer += choice.delta.content or ""
            whole = replies[3].choices[0].message
            assert answer == whole.content
            assert thinking.startswith(whole.model_extra["reasoning_content"])

            upstream.kill()
            for stream in (False, True):
                began = time.monotonic()
                body = {"messages": ASKED, "stream": stream}
                reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)
                assert reply.status_code == 502
                assert upstream.url in reply.json()["error"]["message"]
                assert time.monotonic() - began < 20
            assert service.open_jobs == 0
