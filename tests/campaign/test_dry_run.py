"""A dry run checks, shows and estimates, and leaves nothing behind."""

import numpy as np
import pytest

from data.errors import MisuseError
from stp.campaign import dry_run as module
from stp.campaign import run
from stp.campaign.dry_run import costs_of_plans, plan_campaign
from stp.campaign.run import run_campaign
from stp.campaign.store import Store
from stp.cli.dry_run import dry_run
from tests.campaign.fakes import ScriptedEngine, write_questions


def test_what_it_expects_is_about_what_a_run_takes(configure, opener, tmp_path):
    config = configure(trajectories=16, unit_trajectories=16, questions=4)
    plan = plan_campaign(config, open_model=opener, folder=tmp_path / "c")
    assert not (tmp_path / "c").exists()
    assert all(engine.closed for engine in opener.engines)
    run_campaign(config, tmp_path / "c", open_model=opener)
    stages = Store(tmp_path / "c").read_manifest().stages
    (cell,) = plan.cells
    # The tables of a tiny warm-up are mostly headers, so of the disk only the order is right.
    for expected, stage in ((cell.generate, stages["generate"]), (cell.probe, stages["probe"])):
        assert expected.tokens == pytest.approx(stage.generated_tokens, rel=0.2)
        assert expected.samples == pytest.approx(stage.samples, rel=0.2)
        assert expected.tokens < expected.most_tokens
    assert plan.total.bytes > 0


def test_seconds_are_those_of_the_clock_that_it_is_given(configure, opener):
    config = configure(trajectories=16, unit_trajectories=16, questions=4)
    still = plan_campaign(config, open_model=opener, clock=lambda: 0.0)
    assert still.total.seconds == still.seconds(1)[0] == still.cells[0].warm_up_seconds == 0.0

    def calls():
        return float(sum(engine.calls for engine in opener.engines))

    # A second for each call: trajectories and probes of one sample first, then the warm-up's own.
    plan = plan_campaign(config, open_model=opener, clock=calls)
    assert plan.cells[0].warm_up_seconds == int(plan.cells[0].warm_up_seconds) >= 6
    assert plan.seconds(1)[0] > 0


def test_prompts_that_do_not_fit_are_named(configure, opener, tmp_path, monkeypatch, capsys):
    prompts = ["x" * count for count in (10, 150, 200, 300, 400)]
    benchmark = write_questions(tmp_path / "q", prompts=prompts)
    config = configure(benchmark=benchmark, context_limit=350, thinking_limit=60)
    plan = plan_campaign(config, open_model=opener)
    (cell,) = plan.cells
    assert cell.first_id == "sevens-1"
    assert cell.first_text.startswith("<|im_start|>user\nxxxxxxxxxx")
    assert cell.shortened_ids == ("sevens-2", "sevens-3")
    assert cell.too_long_ids == ("sevens-4", "sevens-5")
    assert cell.longest_prefix_tokens <= 350
    monkeypatch.setattr(run, "open_engine", lambda name, path: ScriptedEngine(path))
    dry_run(config, "")
    shown = capsys.readouterr().out
    assert "2 get less thinking than was asked for: sevens-2, sevens-3" in shown
    assert "2 are too long and would not run: sevens-4, sevens-5" in shown
    assert "| <|im_start|>user" in shown
    assert str(cell.first_ids[0]) in shown
    assert shown.rstrip().endswith("nothing was written")
    assert max(map(len, shown.splitlines())) <= 80


def test_what_cannot_fit_is_refused(configure, opener, tmp_path, monkeypatch):
    opener.options = {"context": 300}
    with pytest.raises(MisuseError, match=r"set generation\.context_limit = 300"):
        plan_campaign(configure(), open_model=opener)
    opener.options = {}
    usage = module.shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(MisuseError, match=r"0\.0 GB free"):
        plan_campaign(configure(), open_model=opener, folder=tmp_path / "not" / "there")


def test_lengths_that_were_cut_are_expected_longer():
    generator = np.random.default_rng(5)
    lengths = generator.exponential(500.0, size=4_000)
    cut = np.minimum(lengths, 250.0)
    ended = int((lengths < 250.0).sum())
    expected = module._expected_length(cut, ended, 2_000.0)
    assert expected == pytest.approx(np.minimum(lengths, 2_000.0).mean(), rel=0.05)
    assert module._expected_length(cut, 0, 2_000.0) == 2_000.0
    assert module._expected_length(np.array([]), 0, 2_000.0) == 0.0


def test_nothing_is_left_of_a_finished_campaign(configure, opener, tmp_path, capsys):
    folder = tmp_path / "c"
    run.run_campaign(configure(), folder, open_model=opener)
    dry_run(configure(), str(folder))
    assert "nothing is left to do" in capsys.readouterr().out


@pytest.mark.parametrize("opening", ["", "Answer: "])
def test_plans_are_priced_with_free_and_with_opened_answers(configure, opener, opening):
    lines = f'8\nanswer_opening = "{opening}"'
    config = configure(trajectories=8, unit_trajectories=8, step_tokens=lines, probes=16)
    plan = plan_campaign(config, open_model=opener)
    costs = costs_of_plans(config, plan)
    assert list(costs) == [
        (name, kind)
        for name in ("uniform 16", "uniform 4", "adaptive, 35%")
        for kind in ("free", "opened")
    ]
    own = "opened" if opening else "free"
    assert costs["uniform 16", own] == plan.cells[0].probe
    for kind in ("free", "opened"):
        assert costs["uniform 4", kind].samples == pytest.approx(
            costs["uniform 16", kind].samples / 4, abs=1
        )
        assert costs["adaptive, 35%", kind].tokens == pytest.approx(
            0.35 * costs["uniform 16", kind].tokens, abs=1
        )


def test_what_an_adaptive_campaign_takes_is_priced_with_its_rounds(configure, opener):
    plan = '8\nplan = "adaptive"\nshare = 0.5'
    uniform, adaptive = (
        plan_campaign(
            configure(trajectories=8, unit_trajectories=8, step_tokens=lines, probes=16),
            open_model=opener,
        )
        for lines in (8, plan)
    )
    ratio = adaptive.cells[0].probe.samples / uniform.cells[0].probe.samples
    # Steps a token are measured on the trajectories that are probed, which are not the same ones.
    assert ratio == pytest.approx(0.5, rel=0.01)
