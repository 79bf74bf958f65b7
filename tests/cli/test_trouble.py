"""Two runs on one folder, and an engine that hangs, as processes see them."""

import multiprocessing
import os
import sys
import time
from pathlib import Path

from stp.campaign import run as run_module
from stp.campaign.store import Store
from stp.cli.main import main
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import rows_of
from tests.cli.scripted import use_scripted_engine

fork = multiprocessing.get_context("fork")


class Hanging(ScriptedEngine):
    """Makes trajectories, and then nothing before it may go on."""

    may_go_on = fork.Event()

    def work(self, trees):
        if len(trees[0].branches) > 1:
            self.may_go_on.wait(3600)
        return super().work(trees)


def _in_a_process(arguments, err):
    with Path(err).open("w") as file:
        os.dup2(file.fileno(), 2)
        sys.stderr = file
        use_scripted_engine(0)
        run_module.open_engine = lambda name, folder, **options: Hanging(folder)
        main(arguments)


def _start(arguments, err):
    process = fork.Process(target=_in_a_process, args=([str(item) for item in arguments], str(err)))
    process.start()
    return process


def test_the_second_of_two_runs_is_refused_and_the_first_goes_on(campaign_file, campaign, tmp_path):
    folder = tmp_path / "c"
    Hanging.may_go_on.clear()
    first = _start(["run", campaign_file, "--out", folder], tmp_path / "first")
    deadline = time.monotonic() + 60
    while not Store(folder).files("trajectories") and time.monotonic() < deadline:
        time.sleep(0.02)
    second = _start(["run", campaign_file, "--out", folder], tmp_path / "second")
    second.join(60)
    Hanging.may_go_on.set()
    assert second.exitcode == 1
    said = (tmp_path / "second").read_text().strip().splitlines()[-1]
    assert said.startswith("stp: error: ")
    assert f"process {first.pid}" in said and "works on this campaign" in said
    first.join(60)
    assert first.exitcode == 0
    assert rows_of(folder) == rows_of(campaign)


def test_an_engine_that_hangs_ends_the_run_in_one_line_and_loses_nothing(
    campaign_file, campaign, tmp_path, stp
):
    folder, file = tmp_path / "c", campaign_file.with_name("stalling.toml")
    file.write_text(campaign_file.read_text() + "\n[engine]\nstall_seconds = 2\n")
    Hanging.may_go_on.clear()
    process = _start(["run", file, "--out", folder], tmp_path / "err")
    process.join(60)
    assert process.exitcode == 1
    lines = (tmp_path / "err").read_text().splitlines()
    errors = [line for line in lines if line.startswith("stp: error: ")]
    assert len(errors) == 1 and errors[0] == lines[-1]
    assert "gave nothing for 2 seconds on model on sevens, questions 0 to 1" in errors[0]
    assert "run the same command again" in errors[0]
    assert len(Store(folder).files("trajectories")) == 1
    assert stp("run", folder).code == 0
    assert rows_of(folder) == rows_of(campaign)
