"""From a campaign's folder to the report's value: texts and counts agree with the curves."""

import json
import shutil

import pytest

from data.errors import MisuseError, StoreError
from evaluator.analysis.pipeline import Asked, analyse_campaigns
from evaluator.analysis.share_tables import share_sentences, shares_of_campaigns
from evaluator.report.build import build_report
from evaluator.report.load import load_report_data
from evaluator.report.selection import SelectionLimits
from stp.campaign.curves import load_curves
from stp.campaign.run import run_campaign
from tests.campaign.conftest import configure, model_folder, sevens  # noqa: F401
from tests.campaign.fakes import ScriptedEngine


@pytest.fixture(scope="module")
def campaign(configure, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("graded") / "campaign"
    run_campaign(configure(), folder, open_model=lambda name, path: ScriptedEngine(path))
    return folder


def test_texts_and_counts_agree_with_the_curves(campaign):
    data = load_report_data(campaign)
    curves = data.curves
    assert len(data.trajectories) == curves.trajectories == 30
    assert data.selection_note == "All 30 trajectories are shown."
    assert data.warnings == share_sentences(shares_of_campaigns([campaign]))
    for text in data.trajectories:
        s = text.trajectory
        part = slice(curves.trajectory_offsets[s], curves.trajectory_offsets[s + 1])
        correct, tokens = curves.correct[part].tolist(), curves.tokens[part].tolist()
        assert len(text.steps) == len(tokens) - 1
        assert len(text.answers) == len(tokens)
        for right, answers in zip(correct, text.answers, strict=True):
            assert sum(a.count for a in answers if a.right) == right
            assert sum(a.count for a in answers) == curves.probes
            assert all(a.answer == "7" for a in answers if a.right)
            assert all(a.answer is None or f"{{{a.answer}}}" in a.reply for a in answers)
        assert (text.final_answer == "7") == (curves.original_correct[s] == 1)
        # Every step but the last ends on a boundary, as the scripted model writes them.
        assert all(step.endswith("\n\n") for step in text.steps[:-1])
        assert all(step for step in text.steps)
        assert text.thinking_finish in {"end", "limit", "stop"}
    questions = {q.question: q for q in data.questions}
    assert len(questions) == 10
    for number, question in questions.items():
        assert question.id == curves.question_names[number]
        assert question.reference == "7"
        assert question.prompt.startswith("What is ")


def test_settings_and_provenance_are_those_of_the_campaign(campaign):
    data = load_report_data(campaign, limits=SelectionLimits(trajectories=3))
    settings = dict(data.settings)
    assert data.name == "test"
    assert data.step_tokens == 8
    assert settings["Probes per position"] == "4"
    assert settings["Thinking limit"] == "60 tokens"
    assert "10 questions" in settings["Benchmarks"]
    assert len(data.trajectories) == 3
    provenance = dict(data.provenance)
    assert "weights" in provenance["scripted"]
    assert "samples" in provenance["Stage probe"]


def test_report_is_built_from_the_folder_alone(campaign, tmp_path):
    paths = build_report(str(campaign), tmp_path / "report")
    source = paths.page.read_text(encoding="utf-8")
    assert "10 questions" in source
    assert "What is 3 + 4?" in source
    assert all(path.is_file() for path in paths.figures)


def test_an_incomplete_campaign_is_refused_unless_asked_for(campaign, tmp_path):
    copy = shutil.copytree(campaign, tmp_path / "copy")
    sorted((copy / "verdicts").rglob("*.parquet"))[0].unlink()
    with pytest.raises(StoreError, match="not complete"):
        load_report_data(copy)
    data = load_report_data(copy, allow_incomplete=True)
    assert data.curves.trajectories < 30
    assert f"{data.curves.trajectories} of 30 trajectories" in data.warnings[0]
    paths = build_report(str(copy), tmp_path / "report", allow_incomplete=True)
    assert data.warnings[0] in paths.page.read_text(encoding="utf-8")


def test_a_folder_that_is_no_campaign_is_misuse(tmp_path):
    with pytest.raises(MisuseError, match="no campaign here"):
        load_report_data(tmp_path)


def test_benchmarks_of_a_users_group_are_pooled_as_in_the_analysis(configure, tmp_path):  # noqa: F811
    rows = [{"question": f"Is it {n}?", "answer": "B", "options": ["no", "yes"]} for n in range(3)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("early", "late"):
        (tmp_path / f"{name}.toml").write_text(
            'path = "q.jsonl"\nanswer_kind = "choice"\ngroup = "both"\n'
            '[columns]\nchoices = "options"\n'
        )
    config = configure(
        f'[[benchmarks]]\nname = "{tmp_path / "late.toml"}"\n', benchmark=tmp_path / "early.toml"
    )
    folder = tmp_path / "c"
    run_campaign(config, folder, open_model=lambda name, path: ScriptedEngine(path))
    data = load_report_data(folder)
    assert data.curves.benchmark_names == ("both",)
    assert load_curves(folder).benchmark_names == ("early", "late")
    analysis = analyse_campaigns([str(folder)], asked=Asked(replicates=0))
    assert analysis.curves.benchmark_names == ("both",)
    assert len(data.trajectories) == data.curves.trajectories == 2 * 3 * 3
    assert sorted(q.id for q in data.questions) == sorted(data.curves.question_names)
    # Options stand in the prompt already, under their letters.
    assert all(q.prompt.endswith("\n\nA. no\nB. yes") for q in data.questions)
    assert all(q.prompt.count("A. no") == 1 for q in data.questions)
