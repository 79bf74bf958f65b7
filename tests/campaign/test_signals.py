"""Signals of a campaign with the demo model, against a plain pass for every position."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import data
from data.errors import MisuseError, StoreError
from stp.campaign import SignalSettings, load_curves, load_signals, run_campaign, signals_campaign
from stp.campaign.config import parse_config
from stp.campaign.lock import Part
from stp.campaign.reader import CampaignReader
from stp.campaign.run import SilentObserver
from stp.campaign.signal_record import SIGNALS_FILE
from stp.campaign.status import campaign_status
from stp.campaign.store import Store
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import table_rows

DEMO = Path(data.__file__).parent / "demo_model"

CONFIG = """
[[models]]
path = "demo"

[[benchmarks]]
name = "demo"
limit = 3

[engine.options]
device = "cpu"
threads = 1

[generation]
trajectories = 2
thinking_limit = 96
answer_tokens = 16

[probing]
step_tokens = 16
probes = 2
answer_tokens = 12

[shards]
questions = 2
trajectories = 1
"""

SETTINGS = SignalSettings(layers=(0, "50%", -1), trial_tokens=6)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("signals") / "campaign"
    run_campaign(parse_config(CONFIG, source="test"), folder)
    assert signals_campaign(folder, SETTINGS).finished
    return folder


@pytest.fixture(scope="module")
def plain():
    model = AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()

    @torch.inference_mode()
    def look(ids):
        output = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
        log = torch.log_softmax(output.logits[0].double(), -1).numpy()
        return log, [state[0, -1].numpy() for state in output.hidden_states]

    return look


def entropy(log):
    return -(np.exp(log) * log).sum()


def test_signals_are_those_of_a_pass_per_position(campaign, plain):
    curves, signals = load_curves(campaign), load_signals(campaign)
    assert np.array_equal(signals.trajectory_offsets, curves.trajectory_offsets)
    reader = CampaignReader(campaign)
    end_id = reader.tokenizer("demo").fast.token_to_id("</think>")
    last = len(plain([1, 2])[1]) - 1
    assert list(signals.hidden) == sorted({0, round(last / 2), last})
    for s in range(curves.trajectories):
        name = curves.question_names[curves.question[s]]
        view = reader.trajectory(name, int(curves.sample[s]))
        start = curves.trajectory_offsets[s]
        for k, length in enumerate(view.tokens):
            log, states = plain(view.prompt_ids + view.thinking_ids[:length])
            here, after = start + k, log[-1]
            assert signals.end_logprob[here] == pytest.approx(after[end_id], abs=1e-4)
            others = np.delete(after, end_id)
            assert signals.other_logprob[here] == pytest.approx(others.max(), abs=1e-4)
            assert signals.other_id[here] != end_id
            assert signals.entropy[here] == pytest.approx(entropy(after), abs=1e-3)
            for layer, array in signals.hidden.items():
                assert np.allclose(array[here], states[layer], rtol=2e-3, atol=2e-3)
            closed = reader.prefix(view, k).ids
            log, _ = plain(closed)
            assert signals.answer_entropy[here] == pytest.approx(entropy(log[-1]), abs=1e-3)
            at_end = len(closed) - 1 - closed[::-1].index(end_id)
            assert signals.end_entropy[here] == pytest.approx(entropy(log[at_end]), abs=1e-3)
    prompts = zip(signals.prompt_model.tolist(), signals.prompt_question.tolist(), strict=True)
    row_of = {prompt: row for row, prompt in enumerate(prompts)}
    rows = [row_of[pair] for pair in zip(curves.model, curves.question, strict=True)]
    for layer, array in signals.prompt_hidden.items():
        first = signals.hidden[layer][curves.trajectory_offsets[:-1]]
        assert np.array_equal(array[rows], first)


def test_trial_answers_are_greedy_and_their_log_probabilities_the_models(campaign, plain):
    reader = CampaignReader(campaign)
    names = reader.store.read_shard("questions", "questions/demo/demo.parquet")["question_id"]
    signals, curves = load_signals(campaign), load_curves(campaign)
    seen = 0
    for row in table_rows(campaign, "signals")[::5]:
        view = reader.trajectory(names[row["question"]].as_py(), row["trajectory"])
        closed = reader.prefix(view, row["position"]).ids
        ids = tuple(row["trial_ids"])
        assert 1 <= len(ids) <= 6
        log, _ = plain(closed + ids)
        steps = log[len(closed) - 1 : -1]
        assert steps.argmax(-1).tolist() == list(ids)
        expected = steps[np.arange(len(ids)), list(ids)]
        assert np.allclose(row["trial_logprobs"], expected, atol=1e-4)
        (s,) = np.flatnonzero(
            (curves.sample == row["trajectory"])
            & (np.array(curves.question_names)[curves.question] == view.question.id)
        )
        here = curves.trajectory_offsets[s] + row["position"]
        assert signals.trial_tokens[here] == len(ids)
        assert signals.trial_logprob[here] == pytest.approx(expected.mean(), abs=1e-4)
        assert signals.trial_probability[here] == pytest.approx(np.exp(expected).mean(), abs=1e-4)
        seen += 1
    assert seen > 3


class _StopAfter(SilentObserver):
    def __init__(self, stop, units):
        self.stop, self.units = stop, units

    def unit_finished(self, stage, unit, work):
        self.units -= 1
        if self.units == 0:
            self.stop.set()


def test_reading_goes_on_where_it_was_stopped(campaign, tmp_path):
    import shutil
    import threading

    folder = tmp_path / "again"
    shutil.copytree(campaign, folder)
    for table in ("signals", "prompt_signals"):
        shutil.rmtree(folder / table)
    stop = threading.Event()
    first = signals_campaign(folder, observer=_StopAfter(stop, 1), stop=stop)
    assert not first.finished and first.units == 1
    with pytest.raises(StoreError, match="`stp signals FOLDER` reads those"):
        load_signals(folder)
    (read,) = campaign_status(folder).signals.values()
    assert (read.trajectories, read.total) == (2, 6)
    # The settings are those of the folder.
    assert signals_campaign(folder).units == first_units(campaign) - 1
    for table in ("signals", "prompt_signals"):
        assert table_rows(folder, table) == table_rows(campaign, table)
    (read,) = campaign_status(folder).signals.values()
    assert (read.trajectories, read.total) == (6, 6)
    # What is torn is said with the command that makes it again, and made again by it.
    name = Store(folder).files("signals")[0]
    (folder / name).write_bytes((folder / name).read_bytes()[:99])
    with pytest.raises(StoreError, match="`stp signals` on this campaign"):
        load_signals(folder)
    assert campaign_status(folder).remedies == {name: f"stp signals {folder}"}
    assert signals_campaign(folder).units == 1
    assert table_rows(folder, "signals") == table_rows(campaign, "signals")


def first_units(folder) -> int:
    return len(Store(folder).files("signals"))


def test_other_settings_are_refused_until_all_is_read_anew(campaign, tmp_path):
    import shutil

    folder = tmp_path / "other"
    shutil.copytree(campaign, folder)
    other = SignalSettings(layers=(), trial_tokens=0)
    with pytest.raises(MisuseError, match="other settings"):
        signals_campaign(folder, other)
    assert signals_campaign(folder, other, again=True).finished
    signals = load_signals(folder)
    assert not signals.hidden and not signals.prompt_hidden
    assert (signals.trial_tokens == 0).all() and np.isnan(signals.trial_logprob).all()
    assert np.array_equal(signals.entropy, load_signals(campaign).entropy)


def test_layers_are_numbers_or_shares_of_the_model():
    assert SignalSettings(layers=(-1, 0, "50%", 3)).layers_of(28) == (0, 3, 14, 28)
    with pytest.raises(MisuseError, match="layer 29"):
        SignalSettings(layers=(29,)).layers_of(28)


@pytest.mark.parametrize("part", [None, Part(number=1, count=2)])
def test_settings_that_the_model_refuses_leave_nothing(campaign, tmp_path, part):
    import shutil

    wrong = SignalSettings(layers=(99,), trial_tokens=0)
    fresh = tmp_path / "fresh"
    shutil.copytree(
        campaign, fresh, ignore=shutil.ignore_patterns(SIGNALS_FILE, "signals", "prompt_signals")
    )
    for _ in range(2):
        with pytest.raises(MisuseError, match="layer 99 is not one of the model's"):
            signals_campaign(fresh, wrong, part=part)
        assert not (fresh / SIGNALS_FILE).exists()
    assert not campaign_status(fresh).signals
    # What was read before stays, and is still what its record says.
    read = tmp_path / "read"
    shutil.copytree(campaign, read)
    before = (read / SIGNALS_FILE).read_bytes()
    with pytest.raises(MisuseError, match="layer 99"):
        signals_campaign(read, wrong, again=True, part=part)
    assert (read / SIGNALS_FILE).read_bytes() == before
    assert signals_campaign(read).units == 0
    load_signals(read)


def test_a_part_that_is_refused_leaves_what_another_has_read(campaign, tmp_path):
    import shutil

    folder = tmp_path / "parts"
    shutil.copytree(
        campaign, folder, ignore=shutil.ignore_patterns(SIGNALS_FILE, "signals", "prompt_signals")
    )
    assert signals_campaign(folder, SETTINGS, part=Part(number=1, count=2)).units
    before = (folder / SIGNALS_FILE).read_bytes()
    with pytest.raises(MisuseError, match="--engine transformers"):
        signals_campaign(
            folder,
            part=Part(number=2, count=2),
            open_model=lambda name, path: ScriptedEngine(path, context=1024),
        )
    assert (folder / SIGNALS_FILE).read_bytes() == before
    assert signals_campaign(folder, part=Part(number=2, count=2)).units
    assert table_rows(folder, "signals") == table_rows(campaign, "signals")


def test_an_engine_that_shows_none_names_one_that_does(campaign):
    with pytest.raises(MisuseError, match="stp signals FOLDER --engine transformers"):
        signals_campaign(
            campaign,
            SETTINGS,
            again=True,
            open_model=lambda name, folder: ScriptedEngine(folder, context=1024),
        )
    assert signals_campaign(campaign, SETTINGS, again=True, engine="transformers").finished


def test_an_end_written_in_several_tokens_counts_with_all_of_them(tmp_path, plain):
    family = tmp_path / "stop.toml"
    family.write_text(
        """markers = "written"
thinking_start = "<think>"
thinking_end = "<done/>"
answer_open = "\\n"
instruction_place = "user_after"
thinking_request = "Think."
answer_stops = ["<|im_end|>"]
"""
    )
    config = parse_config(
        CONFIG.replace('path = "demo"', f'path = "demo"\nfamily = "{family}"').replace(
            "limit = 3", "limit = 1"
        ),
        source="test",
    )
    run_campaign(config, tmp_path / "c")
    assert signals_campaign(tmp_path / "c", SignalSettings(trial_tokens=2)).finished
    reader = CampaignReader(tmp_path / "c")
    signals, curves = load_signals(tmp_path / "c"), load_curves(tmp_path / "c")
    end_ids = tuple(reader.tokenizer("demo").fast.encode("<done/>", add_special_tokens=False).ids)
    assert len(end_ids) > 2
    view = reader.trajectory(curves.question_names[0], 0)
    for k, length in enumerate(view.tokens):
        prefix = view.prompt_ids + view.thinking_ids[:length]
        log, _ = plain(prefix + end_ids)
        steps = log[len(prefix) - 1 : -1]
        expected = steps[np.arange(len(end_ids)), list(end_ids)].sum()
        assert signals.end_logprob[k] == pytest.approx(expected, rel=1e-4)


def test_a_campaign_without_signals_says_how_to_read_them(campaign, tmp_path):
    import shutil

    folder = tmp_path / "none"
    shutil.copytree(campaign, folder)
    (folder / SIGNALS_FILE).unlink()
    with pytest.raises(MisuseError, match="stp signals"):
        load_signals(folder)
    with pytest.raises(MisuseError, match="no model 'other'"):
        load_signals(campaign, model="other")
