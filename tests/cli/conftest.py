"""A campaign file on disk and a way to call the command line."""

import os
from pathlib import Path

import pytest

from stp.cli.main import main
from tests.campaign.fakes import write_model_folder, write_questions
from tests.cli.scripted import use_scripted_engine

CAMPAIGN = """
name = "small"

[[models]]
path = "model"
family = "demo"

[[benchmarks]]
name = "sevens.toml"

[generation]
trajectories = 2
thinking_limit = 60
answer_tokens = 20
context_limit = 600

[probing]
step_tokens = 8
probes = 3
answer_tokens = 20

[shards]
questions = 2
"""


@pytest.fixture(scope="session")
def campaign_file(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    write_model_folder(folder / "model")
    write_questions(folder)
    (folder / "campaign.toml").write_text(CAMPAIGN)
    return folder / "campaign.toml"


class Outcome:
    """What a call of the command line ended with and printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def stp(capsys, monkeypatch):
    """Call the command line in this process, on the scripted engine."""
    from stp.campaign import run, signals

    monkeypatch.setattr(run, "check_engine", run.check_engine)
    monkeypatch.setattr(signals, "check_engine", signals.check_engine)
    monkeypatch.setattr(run, "open_engine", run.open_engine)
    use_scripted_engine(0)
    monkeypatch.setitem(os.environ, "COLUMNS", "200")

    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture(scope="session")
def campaign(campaign_file, tmp_path_factory) -> Path:
    """A finished campaign."""
    from stp.campaign.config import load_config
    from stp.campaign.run import run_campaign
    from tests.campaign.fakes import ScriptedEngine

    folder = tmp_path_factory.mktemp("done") / "campaign"
    config = load_config(campaign_file)
    run_campaign(config, folder, open_model=lambda name, path: ScriptedEngine(path))
    return folder
