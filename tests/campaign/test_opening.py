"""Answers that are opened for the model: what it is given, what is stored, and how they compare."""

import numpy as np
import pytest
from typer.testing import CliRunner

from data.errors import ConfigError, MisuseError, StoreMismatchError
from evaluator.analysis.probe_comparison import compare_probes, difference_frame, matched
from stp.campaign.curves import load_curves
from stp.campaign.reader import CampaignReader
from stp.campaign.run import run_campaign
from stp.cli.lazily import app
from stp.curves import Curves
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import table_rows
from tests.evaluator.synthetic import make_curves

OPENING = "The answer is "


def opened(configure, text=OPENING):
    return configure(step_tokens=f'8\nanswer_opening = "{text}"')


@pytest.fixture(scope="module")
def folders(configure, tmp_path_factory):
    folder = tmp_path_factory.mktemp("opening")
    for name, config in (("free", configure()), ("opened", opened(configure))):
        run_campaign(config, folder / name, open_model=lambda name, path: ScriptedEngine(path))
    return folder


def test_answers_are_stored_with_their_opening(folders):
    reader = CampaignReader(folders / "opened")
    ids = reader.tokenizer("scripted").fast.encode(OPENING, add_special_tokens=False).ids
    probes = table_rows(folders / "opened", "probes")
    assert probes
    assert all(
        row["answer_ids"][: len(ids)] == ids for row in probes if row["finish"] != "too_long"
    )
    assert not any(
        row["answer_ids"][: len(ids)] == ids for row in table_rows(folders / "free", "probes")
    )


def test_the_prompt_of_a_probe_ends_with_the_opening(folders):
    reader = CampaignReader(folders / "opened")
    question = next(reader.summaries()).question_id
    view = reader.trajectory(question)
    assert reader.prefix(view, 0).text.endswith(OPENING)
    free = CampaignReader(folders / "free")
    assert not free.prefix(free.trajectory(question), 0).text.endswith(OPENING)
    assert reader.probes_at(view, 0)[0].text.startswith(OPENING)


def test_thinking_is_the_same_whatever_probes_are_opened_with(folders):
    free, opened = (load_curves(folders / name) for name in ("free", "opened"))
    assert np.array_equal(free.tokens, opened.tokens)


def test_a_folder_keeps_to_its_opening(folders, configure):
    with pytest.raises(StoreMismatchError, match="answer_opening"):
        run_campaign(
            opened(configure),
            folders / "free",
            open_model=lambda name, path: ScriptedEngine(path),
        )


def test_campaigns_from_before_openings_have_none_in_their_settings(configure):
    assert "probing.answer_opening" not in configure().settings()
    assert opened(configure).settings()["probing.answer_opening"] == OPENING


def test_openings_that_cannot_be_are_refused(configure, tmp_path):
    with pytest.raises(ConfigError, match="control token"):
        run_campaign(
            opened(configure, "</think>"),
            tmp_path / "campaign",
            open_model=lambda name, path: ScriptedEngine(path),
        )
    with pytest.raises(ConfigError, match="answer_opening opens answers after thinking"):
        configure(
            trajectories='3\nmode = "direct"', probes=1, step_tokens='8\nanswer_opening = "x"'
        )


def test_comparison_of_a_campaign_with_itself_finds_nothing(folders):
    found = compare_probes(folders / "free", folders / "free", replicates=20)
    frame = found.tables[0].frame
    assert (frame["Difference"] == 0).all()
    assert "same position in 100 %" in found.sentences[1]


def test_comparison_counts_generated_tokens_only(folders):
    found = compare_probes(folders / "free", folders / "opened", replicates=20)
    ids = CampaignReader(folders / "opened").tokenizer("scripted").fast.encode(OPENING).ids
    rows = table_rows(folders / "opened", "probes")
    answered = [row for row in rows if row["finish"] != "too_long"]
    expected = sum(len(row["answer_ids"]) - len(ids) for row in answered)
    assert found.tables[2].frame.loc["second", "Tokens"] == expected


def test_command_prints_the_comparison(folders):
    result = CliRunner().invoke(
        app,
        ["probes", "compare", str(folders / "free"), str(folders / "opened"), "--replicates", "10"],
    )
    assert result.exit_code == 0, result.output
    assert "P(k), all positions" in result.output
    assert "Tokens" in result.output


def test_matching_takes_what_both_have_in_any_order_and_refuses_other_thinking():
    curves = make_curves(questions=5, trajectories=2, seed=4)
    shuffled = curves.select([7, 3, 1, 9])
    a, b = matched(curves, shuffled, names=("A", "B"))
    assert a.trajectories == 4
    assert np.array_equal(a.correct, b.correct)
    assert (difference_frame(a, b)["difference"] == 0).all()
    longer = Curves(
        tokens=curves.tokens * 2,
        correct=curves.correct,
        trajectory_offsets=curves.trajectory_offsets,
        question=curves.question,
        probes=4,
        question_names=curves.question_names,
        benchmark_names=curves.benchmark_names,
        model_names=curves.model_names,
    )
    with pytest.raises(MisuseError, match="thought differently"):
        matched(curves, longer, names=("A", "B"))
    other = make_curves(questions=5, trajectories=2, seed=4)
    renamed = Curves(
        **{name: getattr(other, name) for name in ("tokens", "correct", "trajectory_offsets")},
        question=other.question,
        probes=4,
        question_names=other.question_names,
        benchmark_names=other.benchmark_names,
        model_names=("another",),
    )
    with pytest.raises(MisuseError, match="no trajectory in common"):
        matched(curves, renamed, names=("A", "B"))


def test_difference_frame_by_the_obvious_loop():
    a = make_curves(questions=6, seed=1)
    rng = np.random.default_rng(0)
    b = Curves(
        tokens=a.tokens,
        correct=rng.integers(0, 9, a.positions),
        trajectory_offsets=a.trajectory_offsets,
        question=a.question,
        probes=8,
    )
    frame = difference_frame(a, b)
    for s in range(a.trajectories):
        part = slice(a.trajectory_offsets[s], a.trajectory_offsets[s + 1])
        gap = b.correct[part] / 8 - a.correct[part] / 4
        assert frame["difference"][s] == pytest.approx(gap.mean())
        assert frame["zero"][s] == pytest.approx(gap[0])
        assert frame["full"][s] == pytest.approx(gap[-1])
