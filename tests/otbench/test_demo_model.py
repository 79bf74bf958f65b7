"""The whole way with the demo model: real trajectories, real signals, every method."""

import pandas as pd
import pytest

from baselines import method_names
from evaluator.otbench.load import load_release
from evaluator.otbench.release import write_release
from evaluator.otbench.session import regenerate, run_methods
from stp.campaign import load_curves, load_signals, run_campaign
from stp.campaign.config import parse_config
from stp.campaign.signal_rows import SignalSettings
from stp.campaign.signals import signals_campaign
from tests.evaluator.synthetic import undrawn

pytestmark = pytest.mark.slow

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
step_tokens = 16
probes = 2
answer_tokens = 12
[shards]
questions = 20
[engine.options]
threads = 1
"""


@pytest.fixture(scope="module", autouse=True)
def _undrawn():
    with undrawn():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return (campaign, release, session)."""
    root = tmp_path_factory.mktemp("demo")
    url = str(root / "campaign")
    run_campaign(parse_config(CAMPAIGN, source="test"), url)
    signals_campaign(url, SignalSettings(layers=(1, "50%", -1)))
    write_release([url], root / "release")
    session = run_methods(root / "release", [], root / "out", replicates=20)
    return url, root / "release", session


def test_every_method_runs_on_real_signals(made):
    _, _, session = made
    assert {row.label for row in session.rows} >= set(method_names())
    # The campaign's limit cuts some of its thinking, and the run says so; there is nothing else.
    (note,) = session.notes
    assert "12 of 40 trajectories (30.0%) had their thinking cut at its limit" in note
    for row in session.rows:
        for point in row.points:
            assert point.gap >= 0
            assert 0 <= point.tokens_fraction <= 1
        if not row.method.trivial and row.label != "no_thinking":
            # Its settings do different things: it reads something that varies.
            assert len({point.tokens_fraction for point in row.points}) > 1, row.label


def test_signals_in_the_release_are_those_that_were_read(made):
    url, folder, _ = made
    curves, signals = load_curves(url), load_signals(url)
    positions = pd.read_parquet(folder / "positions").set_index(
        ["question_id", "trajectory", "position"]
    )
    release = load_release(folder)
    assert release.measurements(0, "test", ("hidden",)).layers == tuple(signals.hidden)
    for s in (0, 7, curves.trajectories - 1):
        name = curves.question_names[curves.question[s]]
        for k, row in enumerate(range(*curves.trajectory_offsets[s : s + 2])):
            there = positions.loc[(name, int(curves.sample[s]), k)]
            assert there["end_logprob"] == signals.end_logprob[row]
            assert there["trial_tokens"] == signals.trial_tokens[row]
            assert there["tokens"] == curves.tokens[row]


def test_trained_rows_are_made_again_from_their_settings(made):
    _, folder, session = made
    for row in session.rows:
        if row.label in ("think_switcher", "predictive_scheduling", "hidden_probe"):
            assert regenerate(row, folder).digest == row.digest
