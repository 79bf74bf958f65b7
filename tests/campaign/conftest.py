"""A tiny model folder, and campaigns over questions whose right answers are all 7."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stp.campaign.config import CampaignConfig, parse_config
from tests.campaign.fakes import ScriptedEngine, write_model_folder, write_questions


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    return write_model_folder(tmp_path_factory.mktemp("models") / "scripted")


@pytest.fixture(scope="session")
def sevens(tmp_path_factory) -> Path:
    return write_questions(tmp_path_factory.mktemp("questions"))


TEMPLATE = """
name = "test"

[[models]]
path = "{model}"
name = "{name}"
family = "demo"

[[benchmarks]]
name = "{benchmark}"

[generation]
trajectories = {trajectories}
thinking_limit = {thinking_limit}
answer_tokens = 20
context_limit = {context_limit}

[probing]
step_tokens = {step_tokens}
probes = {probes}
answer_tokens = 20

[shards]
questions = {questions}
trajectories = {unit_trajectories}
"""

Configure = Callable[..., CampaignConfig]


@pytest.fixture(scope="session")
def configure(model_folder, sevens) -> Configure:
    def make(extra: str = "", **values: object) -> CampaignConfig:
        settings: dict[str, object] = {
            "model": model_folder,
            "name": "scripted",
            "benchmark": sevens,
            "trajectories": 3,
            "thinking_limit": 60,
            "context_limit": 600,
            "step_tokens": 8,
            "probes": 4,
            "questions": 3,
            "unit_trajectories": 2,
            **values,
        }
        return parse_config(TEMPLATE.format(**settings) + extra, source="test.toml")

    return make


@pytest.fixture
def opener():
    """An opener of scripted engines that remembers the ones it opened."""

    class Opener:
        def __init__(self) -> None:
            self.engines: list[ScriptedEngine] = []
            self.options: dict[str, object] = {}

        def __call__(self, name: str, folder: Path) -> ScriptedEngine:
            self.engines.append(ScriptedEngine(folder, **self.options))
            return self.engines[-1]

        @property
        def calls(self) -> int:
            return sum(engine.calls for engine in self.engines)

        @property
        def samples(self) -> int:
            return sum(engine.samples for engine in self.engines)

    return Opener()
