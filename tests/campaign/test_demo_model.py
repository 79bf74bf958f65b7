"""The whole way on the demo model: real tokens, real forks, and a resumed run bit for bit."""

import threading

import pytest

from evaluator.answers.boxes import first_box_end
from stp.campaign.config import parse_config
from stp.campaign.curves import load_curves
from stp.campaign.reader import CampaignReader
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.store import Store
from tests.campaign.rows import rows_of, table_rows

SMALL = """
[[models]]
path = "demo"

[[benchmarks]]
name = "demo"
limit = 3

[generation]
trajectories = 2
thinking_limit = 312
answer_tokens = 32

[probing]
step_tokens = 16
probes = 4
answer_tokens = 32

[shards]
questions = 1

[engine.options]
threads = 1
"""


@pytest.fixture(scope="module")
def config():
    return parse_config(SMALL, source="small.toml")


@pytest.fixture(scope="module")
def folder(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "campaign"
    assert run_campaign(config, folder).finished
    return folder


def test_thinking_helps_the_demo_model(folder):
    curves = load_curves(folder)
    assert curves.trajectories == 6
    assert curves.positions > 3 * curves.trajectories
    assert curves.full_correct_s.mean() > curves.zero_correct_s.mean()
    assert set(curves.original_correct.tolist()) <= {0, 1}


def test_the_trunk_is_read_once(folder):
    usage = Store(folder).read_manifest().stages["probe"].usage
    assert usage.prefill_least_tokens > 0
    assert usage.prefill_amplification <= 1.05


def test_every_part_can_be_read(folder):
    reader = CampaignReader(folder)
    finishes = {row["thinking_finish"] for row in table_rows(folder, "trajectories")}
    assert "end" in finishes
    for item in reader.summaries():
        view = reader.trajectory(item.question_id)
        assert "".join(view.steps) == reader.tokenizer("demo").show(view.thinking_ids)
        prefix = reader.prefix(view, len(view.tokens) - 1)
        assert prefix.ids[: len(view.prompt_ids)] == view.prompt_ids
        assert item.prompt in prefix.text
        assert prefix.text.count("</think>") == 1
        if view.thinking_finish == "end":
            assert "boxed" in view.original.text


def test_a_run_stopped_after_every_unit_gives_the_same_rows(config, folder, tmp_path):
    stops = 0
    while True:
        stop = threading.Event()

        class StopAtOnce(SilentObserver):
            def unit_finished(self, stage, unit, work, stop=stop):
                stop.set()

        if run_campaign(config, tmp_path / "c", observer=StopAtOnce(), stop=stop).finished:
            break
        stops += 1
    assert stops == 8
    assert rows_of(tmp_path / "c") == rows_of(folder)


def test_answers_that_end_with_their_box_have_the_same_verdicts(folder, tmp_path):
    """The rule is that the first closed box counts; with it nothing later changes a verdict."""
    boxed = parse_config(
        SMALL.replace("probes = 4", 'probes = 4\nanswer_end = "box"'), source="boxed.toml"
    )
    assert run_campaign(boxed, tmp_path / "boxed").finished
    keys = ("question", "trajectory", "position", "sample")

    def by_key(where, table):
        return {tuple(row[key] for key in keys): row for row in table_rows(where, table)}

    whole, cut = (by_key(where, "probes") for where in (folder, tmp_path / "boxed"))
    assert whole.keys() == cut.keys()
    tokenizer = CampaignReader(folder).tokenizer("demo")
    ends = 0
    for key, row in cut.items():
        ids = row["answer_ids"]
        assert ids == whole[key]["answer_ids"][: len(ids)]
        text = tokenizer.show(ids)
        if first_box_end(tokenizer.show(whole[key]["answer_ids"])) >= 0:
            assert first_box_end(text) == len(text)
            assert row["finish"] == "stop"
            ends += len(ids) < len(whole[key]["answer_ids"])
        else:
            assert ids == whole[key]["answer_ids"]
    assert ends > 0.9 * len(cut)
    verdicts, others = (by_key(where, "verdicts") for where in (folder, tmp_path / "boxed"))
    assert {key: row["right"] for key, row in verdicts.items()} == {
        key: row["right"] for key, row in others.items()
    }
    assert "probing.answer_end" not in parse_config(SMALL, source="small.toml").settings()
    assert boxed.settings()["probing.answer_end"] == "box"
