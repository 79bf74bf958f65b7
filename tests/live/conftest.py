"""A campaign of the demo model with causal steps, its signals, and the release of both."""

import pytest

from stp.campaign import run_campaign
from stp.campaign.config import parse_config
from stp.campaign.signal_record import SignalSettings
from stp.campaign.signals import signals_campaign
from stp.engines.transformers import TransformersEngine

CAMPAIGN = """
name = "demo"
seed = 3
[[models]]
path = "demo"
[[benchmarks]]
name = "demo"
limit = 20
[generation]
trajectories = 2
thinking_limit = 160
answer_tokens = 12
[probing]
steps = "causal"
step_tokens = 16
probes = 2
answer_tokens = 12
[shards]
questions = 20
[engine.options]
threads = 1
"""


@pytest.fixture(scope="session")
def campaign(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("live") / "campaign")
    run_campaign(parse_config(CAMPAIGN, source="test"), url)
    signals_campaign(url, SignalSettings(layers=(1, "50%", -1)))
    return url


@pytest.fixture(scope="session")
def release_folder(campaign, tmp_path_factory):
    # Here: the environment of the real vLLM has no pandas, and its test needs no release.
    from evaluator.otbench.release import write_release

    folder = tmp_path_factory.mktemp("live-release") / "release"
    write_release([campaign], folder)
    return folder


@pytest.fixture(scope="session")
def release(release_folder):
    from evaluator.otbench.load import load_release

    return load_release(release_folder)


@pytest.fixture(scope="session")
def engine():
    made = TransformersEngine("data/demo_model", device="cpu", threads=1)
    yield made
    made.close()
