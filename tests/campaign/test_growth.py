"""A campaign that grows in its folder has the rows of one that asked for all at once."""

import multiprocessing
import os
import random
import shutil
import signal
import time

import pytest

from data.errors import MisuseError, StoreError, StoreMismatchError
from stp.campaign.config import CampaignConfig, parse_config
from stp.campaign.curves import load_curves
from stp.campaign.lock import Part
from stp.campaign.reader import CampaignReader
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.status import campaign_status
from stp.campaign.store import Store
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import table_rows

KEYS = ("model", "benchmark", "question", "trajectory", "position", "sample")
TABLES = ("trajectories", "positions", "probes", "verdicts")

fork = multiprocessing.get_context("fork")


def limited(config: CampaignConfig, limit: int | None) -> CampaignConfig:
    benchmark = config.benchmarks[0].model_copy(update={"limit": limit})
    return config.model_copy(update={"benchmarks": (benchmark,)})


def rows(folder):
    """All rows in one order, however they were cut into units."""
    return {
        table: sorted(
            table_rows(folder, table),
            key=lambda row: tuple(row.get(key, 0) for key in KEYS),
        )
        for table in TABLES
    }


GROWTHS = {
    "trajectories": ({"trajectories": 2}, 6, {"trajectories": 5}, 6),
    "probes": ({"probes": 1}, 6, {"probes": 4}, 6),
    "questions": ({}, 5, {}, None),
    "all": ({"trajectories": 1, "probes": 2}, 4, {"trajectories": 3, "probes": 3}, 10),
    "units of all trajectories": (
        {"trajectories": 2, "unit_trajectories": 9},
        7,
        {"trajectories": 4, "unit_trajectories": 9},
        7,
    ),
}


@pytest.mark.parametrize("what", GROWTHS)
def test_a_grown_campaign_has_the_rows_of_one_that_asked_for_all(what, configure, opener, tmp_path):
    first, few, then, more = GROWTHS[what]
    before, now = limited(configure(**first), few), limited(configure(**then), more)
    run_campaign(now, tmp_path / "at once", open_model=opener)
    whole = rows(tmp_path / "at once")
    run_campaign(before, tmp_path / "c", open_model=opener)
    kept = rows(tmp_path / "c")["trajectories"]
    assert run_campaign(now, tmp_path / "c", open_model=opener).finished
    assert rows(tmp_path / "c") == whole
    assert all(row in whole["trajectories"] for row in kept)
    assert campaign_status(tmp_path / "c").finished
    assert run_campaign(now, tmp_path / "c", open_model=opener).units == 0
    assert Store(tmp_path / "c").read_campaign()[0] == now
    found, expected = (load_curves(tmp_path / name) for name in ("c", "at once"))
    assert (found.trajectories, found.probes) == (expected.trajectories, expected.probes)
    assert list(CampaignReader(tmp_path / "c").summaries()) == list(
        CampaignReader(tmp_path / "at once").summaries()
    )


def test_growing_asks_for_what_is_missing_only(configure, tmp_path):
    asked = []

    class Counting(ScriptedEngine):
        def work(self, trees):
            asked.extend(
                seed for tree in trees for branch in tree.branches for seed in branch.seeds
            )
            return super().work(trees)

    def run(config):
        asked.clear()
        run_campaign(config, tmp_path / "c", open_model=lambda name, path: Counting(path))
        return set(asked)

    first = run(limited(configure(trajectories=1, probes=2), 4))
    more = run(limited(configure(trajectories=2, probes=3), 7))
    assert not first & more
    shutil.rmtree(tmp_path / "c")
    assert run(limited(configure(trajectories=2, probes=3), 7)) == first | more


def test_a_campaign_never_shrinks(configure, opener, tmp_path):
    run_campaign(limited(configure(), 6), tmp_path / "c", open_model=opener)
    before = rows(tmp_path / "c")
    for smaller in ({"trajectories": 2}, {"probes": 3}, {"trajectories": 9, "probes": 3}):
        with pytest.raises(StoreMismatchError, match=r"may grow .* and never shrink"):
            run_campaign(limited(configure(**smaller), 6), tmp_path / "c", open_model=opener)
    with pytest.raises(StoreMismatchError, match="6 questions before, 5 now"):
        run_campaign(limited(configure(), 5), tmp_path / "c", open_model=opener)
    for other in ({"step_tokens": 9}, {"thinking_limit": 61, "trajectories": 9}):
        with pytest.raises(StoreMismatchError, match="another configuration"):
            run_campaign(limited(configure(**other), 6), tmp_path / "c", open_model=opener)
    assert rows(tmp_path / "c") == before


def test_parts_do_not_grow(configure, opener, tmp_path):
    run_campaign(configure(), tmp_path / "c", open_model=opener)
    with pytest.raises(MisuseError, match="once without --shard"):
        run_campaign(configure(probes=5), tmp_path / "c", open_model=opener, part=Part(1, 2))


def test_an_adaptive_campaign_does_not_grow(configure, opener, tmp_path):
    def adaptive(probes):
        text = configure(probes=probes).to_toml()
        text = text.replace('plan = "uniform"', 'plan = "adaptive"')
        return parse_config(text.replace("share = 0.35", "share = 0.9"), source="x")

    run_campaign(adaptive(8), tmp_path / "c", open_model=opener, stages=("generate",))
    with pytest.raises(StoreMismatchError, match="another configuration"):
        run_campaign(adaptive(9), tmp_path / "c", open_model=opener)


def _grow_slowly(config, folder):
    run_campaign(
        config,
        folder,
        open_model=lambda name, path: ScriptedEngine(path, seconds_per_call=0.02),
    )


@pytest.mark.slow
def test_killed_at_random_moments_while_it_grows(configure, opener, tmp_path):
    before = limited(configure(trajectories=1, probes=2), 5)
    now = limited(configure(trajectories=3, probes=4), 10)
    run_campaign(now, tmp_path / "at once", open_model=opener)
    whole = rows(tmp_path / "at once")
    run_campaign(before, tmp_path / "before", open_model=opener)

    def killed(folder, seconds):
        process = fork.Process(target=_grow_slowly, args=(now, folder))
        process.start()
        process.join(seconds)
        alive = process.is_alive()
        process.kill()
        process.join()
        return alive

    begin = time.monotonic()
    assert not killed(shutil.copytree(tmp_path / "before", tmp_path / "timed"), None)
    seconds = time.monotonic() - begin
    draws = random.Random(20_260_721)
    kills = 0
    for attempt in range(40):
        folder = shutil.copytree(tmp_path / "before", tmp_path / f"c{attempt}")
        while killed(folder, draws.uniform(0, 0.6 * seconds)):
            kills += 1
        assert run_campaign(now, folder, open_model=opener).finished
        assert rows(folder) == whole
        if kills >= 20:
            break
    assert kills >= 20


def test_killed_between_the_files_that_say_it_grows(configure, opener, tmp_path, monkeypatch):
    before, now = limited(configure(probes=2), 5), limited(configure(probes=3), 8)
    run_campaign(now, tmp_path / "at once", open_model=opener)
    run_campaign(before, tmp_path / "c", open_model=opener)

    class Killed(BaseException):
        pass

    real = Store.write_bytes
    for last in ("questions", "manifest.json"):

        def write(self, name, content, last=last):
            real(self, name, content)
            if name.startswith(last):
                raise Killed

        monkeypatch.setattr(Store, "write_bytes", write)
        with pytest.raises(Killed):
            run_campaign(now, tmp_path / "c", open_model=opener)
        monkeypatch.undo()
        with pytest.raises(StoreError, match=r"run the same command|with the campaign's own file"):
            list(CampaignReader(tmp_path / "c").summaries())
    assert run_campaign(now, tmp_path / "c", open_model=opener).finished
    assert rows(tmp_path / "c") == rows(tmp_path / "at once")


DEMO = """
name = "demo"
[[models]]
path = "demo"
[[benchmarks]]
name = "demo"
limit = {questions}
[engine.options]
threads = 1
[generation]
trajectories = {trajectories}
thinking_limit = 120
context_limit = 400
answer_tokens = 16
[probing]
step_tokens = 32
probes = {probes}
answer_tokens = 16
[shards]
questions = 2
"""


def _run_and_die(config, folder, units):
    """Kill this process in the unit after so many."""

    class Killer(SilentObserver):
        done = 0

        def unit_finished(self, stage, unit, work):
            self.done += 1

        def unit_progressed(self, stage, unit, fraction, samples, tokens):
            if self.done == units and stage != "grade":
                os.kill(os.getpid(), signal.SIGKILL)

    run_campaign(config, folder, observer=Killer())


@pytest.mark.slow
def test_a_real_engine_gives_a_grown_campaign_the_same_rows(tmp_path):
    before, now = (
        parse_config(DEMO.format(questions=q, trajectories=t, probes=p), source="demo.toml")
        for q, t, p in ((3, 1, 2), (5, 2, 4))
    )
    run_campaign(now, tmp_path / "at once")
    run_campaign(before, tmp_path / "c")
    spawn = multiprocessing.get_context("spawn")
    for units in (1, 2):
        process = spawn.Process(target=_run_and_die, args=(now, tmp_path / "c", units))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert run_campaign(now, tmp_path / "c").finished
    assert rows(tmp_path / "c") == rows(tmp_path / "at once")
