"""From a campaign's folder to the report's value: texts and counts agree with the curves."""

import json
import shutil

import pytest

from data.errors import MisuseError, StoreError
from evaluator.analysis.pipeline import Asked, analyse_campaigns
from evaluator.analysis.share_tables import share_sentences, shares_of_campaigns
from evaluator.report.build import build_report
from evaluator.report.load import load_report_data
from stp.campaign.curves import load_curves
from stp.campaign.run import run_campaign
from tests.campaign.conftest import configure, model_folder, sevens  # noqa: F401
from tests.campaign.fakes import ScriptedEngine
from tests.evaluator.synthetic import undrawn


@pytest.fixture(scope="module")
def campaign(configure, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("graded") / "campaign"
    run_campaign(configure(), folder, open_model=lambda name, path: ScriptedEngine(path))
    return folder


def test_curves_and_warnings_are_those_of_the_campaign(campaign):
    data = load_report_data(campaign)
    assert data.curves.trajectories == 30
    assert data.campaign == str(campaign)
    assert data.warnings == share_sentences(shares_of_campaigns([campaign]))


def test_settings_and_provenance_are_those_of_the_campaign(campaign):
    data = load_report_data(campaign)
    settings = dict(data.settings)
    assert data.name == "test"
    assert data.step_tokens == 8
    assert settings["Probes per position"] == "4"
    assert settings["Thinking limit"] == "60 tokens"
    assert "10 questions" in settings["Benchmarks"]
    provenance = dict(data.provenance)
    assert "weights" in provenance["scripted"]
    assert "samples" in provenance["Stage probe"]


def test_report_is_built_from_the_folder_alone(campaign, tmp_path):
    with undrawn():
        paths = build_report(str(campaign), tmp_path / "report")
    source = paths.page.read_text(encoding="utf-8")
    assert "10 questions" in source
    assert f"<code>stp explore {campaign}</code>" in source
    assert all(path.is_file() for path in paths.figures)


def test_an_incomplete_campaign_is_refused_unless_asked_for(campaign, tmp_path):
    copy = shutil.copytree(campaign, tmp_path / "copy")
    sorted((copy / "verdicts").rglob("*.parquet"))[0].unlink()
    with pytest.raises(StoreError, match="not complete"):
        load_report_data(copy)
    data = load_report_data(copy, allow_incomplete=True)
    assert data.curves.trajectories < 30
    assert f"{data.curves.trajectories} of 30 trajectories" in data.warnings[0]
    with undrawn():
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
    assert data.curves.trajectories == 2 * 3 * 3
