"""Live decisions are those that replay predicts, on real trajectories, for every method."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from baselines.registry import BUILT_IN
from baselines.signals import with_costs
from evaluator.live.run import make
from evaluator.live.setup import Wanted, get_ready, live_tasks
from evaluator.otbench.decide import decide
from stp.campaign.reader import CampaignReader
from stp.campaign.sections import ModelConfig
from stp.campaign.store import Store

pytestmark = pytest.mark.slow

DEMO = ModelConfig(path="demo")
NOISE = 1e-4


def made(engine, plan, tasks, batch=32):
    """Return the outcomes by (question, trajectory)."""
    found = make(engine, plan, tasks, batch, threading.Event())
    return {(task.question.id, task.trajectory): outcome for task, outcome in found}


def stored(campaign):
    """Return (thinking ids, answer ids, thinking finish) by (question, trajectory)."""
    store = Store(campaign)
    config, manifest = store.read_campaign()
    rows = {}
    for record in manifest.cells:
        names = store.read_shard("questions", f"{store_shard(record)}")["question_id"].to_pylist()
        for unit in store.plan(config, record):
            for row in store.read_shard("trajectories", unit.shard("trajectories")).to_pylist():
                rows[names[row["question"]], row["trajectory"]] = row
    return rows


def store_shard(record):
    from stp.campaign.store import questions_shard

    return questions_shard(record.cell)


@pytest.mark.parametrize("batch", [1, 40])
@pytest.mark.parametrize("watched", [False, True])
def test_what_is_never_stopped_is_the_campaign_token_for_token(
    engine, campaign, release_folder, watched, batch
):
    """Without a method, and with one that reads signals at every step and never stops."""
    method = {"method": "deer", "setting": "1.0"} if watched else {}
    ready = get_ready(Wanted(model=DEMO, release=release_folder, **method))
    tasks = live_tasks(ready, (), trajectories=2, split=None)
    if batch == 1:
        tasks = tasks[::7]
    outcomes = made(engine, ready.plan, tasks, batch)
    rows = stored(campaign)
    assert len(outcomes) == len(tasks)
    for key, outcome in outcomes.items():
        row = rows[key]
        assert outcome.thinking_ids == tuple(row["thinking_ids"])
        assert outcome.reason == {"end": "end", "limit": "limit"}[row["thinking_finish"]]
        if outcome.reason == "end":
            assert outcome.answer_ids == tuple(row["answer_ids"])
            assert outcome.answer_finish == row["answer_finish"]


def settings_of(method, decisions):
    """Return places of settings to try: those that stop most trajectories in different places."""
    spread = [len(np.unique(stops)) for stops in decisions.stop]
    order = np.argsort(spread, kind="stable")[::-1]
    return order[: 2 if len(order) > 1 else 1].tolist()


@pytest.mark.parametrize("method", list(BUILT_IN))
def test_every_method_stops_where_replay_says(engine, release, release_folder, method):
    some = find_some_setting(method)
    ready = get_ready(Wanted(model=DEMO, method=method, setting=some, release=release_folder))
    policy = ready.plan.policy
    needs = with_costs(policy.description.needs)
    measured = release.measurements(0, "test", needs)
    decisions = decide(policy.start, policy.description, measured, release.lot_q)
    tasks = live_tasks(ready, (), trajectories=2, split="test")
    curves = measured.curves
    for place in settings_of(method, decisions):
        chosen = replace(policy, setting=policy.settings[place])
        outcomes = made(engine, replace(ready.plan, policy=chosen), tasks)
        assert len(outcomes) == curves.trajectories
        stops, signal_tokens = decisions.stop[place], decisions.signal_tokens[place]
        for s in range(curves.trajectories):
            key = (curves.question_names[curves.question[s]], int(curves.sample[s]))
            outcome = outcomes[key]
            rows = slice(*curves.trajectory_offsets[s : s + 2])
            expected = curves.tokens[rows][: stops[s] + 1].tolist()
            assert list(outcome.lengths) == expected, (key, policy.settings[place])
            ended_on_boundary = (
                outcome.reason == "method" and stops[s] == rows.stop - rows.start - 1
            )
            if not ended_on_boundary:
                assert outcome.signal_tokens == signal_tokens[s]


def find_some_setting(method):
    from baselines.registry import find_method

    return str(find_method(method).make().settings()[0])


def test_the_reader_is_the_campaigns(campaign):
    assert CampaignReader(campaign).config.probing.steps == "causal"
