"""Engines that know less: one that pauses at every boundary, and pieces of a few tokens."""

import threading
from dataclasses import replace

import pytest

from evaluator.live.run import make
from evaluator.live.setup import Wanted, get_ready, live_tasks
from stp.campaign.sections import BenchmarkConfig, EngineConfig, ModelConfig
from stp.engines.base import PromptTree

CHANGES = {
    "generation": {"thinking_limit": 100, "answer_tokens": 16},
    "probing": {"step_tokens": 16, "answer_tokens": 16},
}


class Forgetful:
    """An engine as one whose library knows no ``pause_after``, and keeps nothing of a session."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def submit(self, tree):
        if isinstance(tree, PromptTree):
            tree = replace(tree, pause_after=1, grows=False)
        return self._engine.submit(replace(tree, session=None))


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


def made(engine, plan, tasks):
    found = make(engine, plan, tasks, 8, threading.Event())
    return {task.question.id: (o.lengths, o.thinking_ids, o.answer_ids) for task, o in found}


def test_what_is_made_does_not_depend_on_pauses_sessions_and_pieces(engine, ready):
    tasks = live_tasks(ready, [BenchmarkConfig(name="demo", limit=6)])
    expected = made(engine, ready.plan, tasks)
    assert made(Forgetful(engine), ready.plan, tasks) == expected
    assert made(engine, replace(ready.plan, piece_tokens=7), tasks) == expected
    assert not engine._decoder._sessions


def test_a_session_ends_with_its_trajectory_when_a_run_is_stopped(engine, ready):
    tasks = live_tasks(ready, [BenchmarkConfig(name="demo", limit=6)])
    stop = threading.Event()
    for _ in make(engine, ready.plan, tasks, 6, stop):
        stop.set()
    assert not engine.busy
    assert not engine._decoder._sessions
