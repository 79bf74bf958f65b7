"""Live methods on a real vLLM: decisions that are those of replay on the trajectories it made."""

import threading

import numpy as np
import pytest

from evaluator.live.run import make
from evaluator.live.setup import Wanted, get_ready, live_tasks
from stp.campaign.sections import BenchmarkConfig, EngineConfig, ModelConfig
from stp.segmentation import segment_causal
from tests.engines.test_vllm import needs_vllm

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
