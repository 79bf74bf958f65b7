"""A run killed at any moment, again and again, ends with the rows of one that never stopped."""

import multiprocessing
import os
import random
import shutil
import signal
import time

import pytest

from stp.campaign.curves import load_curves
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.store import Store
from tests.campaign.fakes import ScriptedEngine, StreamingEngine
from tests.campaign.rows import rows_of, table_rows

# Forked, so that a child starts at once with everything imported; the kill is the system's own.
KILLS = 30

fork = multiprocessing.get_context("fork")


def _run(config, folder, engine, seconds):
    run_campaign(
        config,
        folder,
        open_model=lambda name, path: engine(path, seconds_per_call=seconds),
    )


def _killed_after(seconds, config, folder, engine):
    # A streaming engine takes more steps, of which each does less.
    each = 0.02 if engine is ScriptedEngine else 0.003
    process = fork.Process(target=_run, args=(config, folder, engine, each))
    process.start()
    process.join(seconds)
    alive = process.is_alive()
    process.kill()
    process.join()
    return alive


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "units"), [(ScriptedEngine, 1), (StreamingEngine, 4)], ids=["alone", "in-flight"]
)
def test_killed_at_random_moments(engine, units, configure, opener, tmp_path):
    """With one unit at a time, and with several in flight."""
    config = configure(f"[engine]\nunits_in_flight = {units}\n")
    assert run_campaign(config, tmp_path / "unbroken", open_model=opener).finished
    whole = rows_of(tmp_path / "unbroken")
    # Moments are shares of what a run takes on this machine now, however busy it is.
    begin = time.monotonic()
    assert not _killed_after(None, config, tmp_path / "timed", engine)
    whole_seconds = time.monotonic() - begin
    draws = random.Random(20_260_721)
    kills = rounds = 0
    while kills < KILLS and rounds < 4 * KILLS:
        rounds += 1
        folder = tmp_path / f"broken-{rounds}"
        while _killed_after(draws.uniform(0, 0.6 * whole_seconds), config, folder, engine):
            kills += 1
            if kills % 5 == 0:
                break
        assert run_campaign(config, folder, open_model=opener).finished
        assert rows_of(folder) == whole
        assert not list(folder.rglob(".*.tmp"))
    assert kills >= KILLS


class _KillInUnit(SilentObserver):
    """Kills its own process in a unit, leaving half a record of it."""

    def __init__(self, folder, stage, number):
        self.folder, self.stage, self.number, self.count = folder, stage, number, 0

    def unit_progressed(self, stage, unit, fraction, samples, tokens):
        if stage == self.stage and unit.number == self.number:
            shard = self.folder / unit.shard("probes")
            shard.parent.mkdir(parents=True, exist_ok=True)
            half = shard.with_name(f".{shard.name}.{os.getpid()}.tmp")
            half.write_bytes(b"PAR1 half a record")
            os.kill(os.getpid(), signal.SIGKILL)


def _run_and_die(config, folder, stage, number):
    run_campaign(
        config,
        folder,
        stages=("generate",),
        open_model=lambda name, path: ScriptedEngine(path),
    )
    run_campaign(
        config,
        folder,
        open_model=lambda name, path: ScriptedEngine(path),
        observer=_KillInUnit(folder, stage, number),
    )


@pytest.mark.parametrize(
    ("items", "done", "values"),
    [
        # Ten questions, killed in the sixth: five are kept, five are probed again.
        (10, 5, {"questions": 1, "trajectories": 1, "unit_trajectories": 1}),
        # Sixteen trajectories of one question, killed after six: ten are probed again.
        (16, 6, {"trajectories": 16, "unit_trajectories": 1, "questions": 1, "probes": 1}),
    ],
)
def test_what_was_done_before_a_kill_is_not_done_again(
    items, done, values, configure, opener, tmp_path
):
    config = configure(**values)
    if items == 16:
        benchmark = config.benchmarks[0].model_copy(update={"limit": 1})
        config = config.model_copy(update={"benchmarks": (benchmark,)})
    folder = tmp_path / "c"
    process = fork.Process(target=_run_and_die, args=(config, folder, "probe", done))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    kept = [name for name in Store(folder).files("probes") if name.endswith(".parquet")]
    assert len(kept) == done
    assert run_campaign(config, folder, open_model=opener).finished
    assert opener.calls == items - done
    keys = [
        tuple(row[name] for name in ("question", "trajectory", "position", "sample"))
        for row in table_rows(folder, "probes")
    ]
    assert len(set(keys)) == len(keys)
    assert len({key[:2] for key in keys}) == items
    assert load_curves(folder).trajectories == items
    shutil.rmtree(folder)
