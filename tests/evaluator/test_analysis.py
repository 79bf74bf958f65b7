"""The whole analysis, from curves and from campaigns' folders, down to files and the command."""

import csv
import shutil

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from data.errors import MisuseError, StoreError
from data.progress import Progress
from evaluator.analysis.crossfit_frontier import cross_fitted_frontier
from evaluator.analysis.direct import direct_accuracies, read_direct_accuracies
from evaluator.analysis.files import write_analysis
from evaluator.analysis.pipeline import TABLES, Asked, analyse, analyse_campaigns
from evaluator.analysis.sensitivity_tables import (
    cross_fitted_table,
    sensitivity_table,
    trajectory_sensitivity_table,
)
from evaluator.analysis.tables import spread_table
from evaluator.simulation.store import write_campaign
from evaluator.simulation.worlds import make_world, paper_population
from stp.campaign.config import parse_config
from stp.campaign.curves import load_curves
from stp.campaign.run import run_campaign
from stp.cli.analyze import analyze
from stp.curves import Curves
from tests.campaign.conftest import configure, model_folder, sevens  # noqa: F401
from tests.campaign.fakes import ScriptedEngine
from tests.evaluator.synthetic import make_curves


@pytest.fixture(scope="module")
def campaigns(configure, tmp_path_factory):  # noqa: F811
    """Two campaigns, one a model, on the same questions."""
    folder = tmp_path_factory.mktemp("campaigns")
    for name in ("one", "two"):
        run_campaign(
            configure(name=name),
            folder / name,
            open_model=lambda name, path: ScriptedEngine(path),
        )
    return [str(folder / "one"), str(folder / "two")]


@pytest.fixture(scope="module")
def analysis(campaigns):
    asked = Asked(replicates=50, workers=1, cross_fit=True, targets=(4, 16))
    return analyse_campaigns(campaigns, asked=asked)


ENDS = ("low", "high")


def rows_of(table):
    return list(csv.DictReader(table.to_csv().splitlines()))


def test_campaigns_are_analysed_together(analysis):
    tables = {table.name: table for table in analysis.tables}
    assert len(tables) == len(analysis.tables)
    assert [row["Model"] for row in rows_of(tables["overthinking"])] == ["one", "two", "Average"]
    assert analysis.step_tokens == 8
    assert {row["b"] for row in rows_of(tables["step-lengths"])} == {"4", "8", "16"}
    assert [row["Positions"] for row in rows_of(tables["boundary-audit"])] == ["0", "0"]
    bands = rows_of(tables["frontier-intervals"])
    assert [bands[0]["Budget"], bands[-1]["Budget"], len(bands)] == ["0%", "100%", 101]
    for row in bands:
        assert float(row["Dynamic routing low"]) <= float(row["Dynamic routing high"])
        assert float(row["Dynamic routing best"]) <= float(row["Dynamic early exit best"])
    assert [row["Benchmark"] for row in rows_of(tables["bias-aware"])] == ["sevens", "sevens", ""]
    assert "Leave one out AD" in rows_of(tables["bias-aware"])[0]
    assert tuple(tables) == TABLES
    assert "60 trajectories" in tables["overthinking"].note
    assert "Incomplete" not in tables["overthinking"].note
    text = analysis.findings.to_markdown()
    low, high = (
        rows_of(tables["intervals-overthinking-ratio"])[-1][f"sevens {end}"] for end in ENDS
    )
    assert f"({float(low):.1f} to {float(high):.1f})" in text
    bias = rows_of(tables["bias-aware"])[-1]
    assert f"between {float(bias['Leave one out AD']):.1f} points" in text
    assert f"and {float(bias['Measured (paper) AD']):.1f}." in text
    assert analysis.bootstrap is not None
    assert len(analysis.bootstrap.replicates) == 50


def test_everything_is_written_in_every_form(analysis, tmp_path):
    paths = write_analysis(analysis, tmp_path)
    assert len(paths.tables) == 3 * len(analysis.tables)
    assert {path.suffix for path in paths.tables} == {".csv", ".md", ".tex"}
    assert {path.suffix for path in paths.figures} == {".png", ".pdf"}
    assert all(path.stat().st_size > 50 for path in (*paths.tables, *paths.figures))
    text = paths.findings.read_text(encoding="utf-8")
    for sentence in analysis.findings.sentences:
        assert f"- {sentence}\n" in text
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/tables/\S+\.csv: cannot be written"):
        write_analysis(analysis, tmp_path / "file")


def test_without_replicates_there_are_no_intervals():
    curves = make_curves(models=2, seed=3)
    analysis = analyse(curves, name="made up", asked=Asked(replicates=0))
    assert analysis.bootstrap is None
    assert not [table for table in analysis.tables if "intervals" in table.name]


def test_workers_do_not_change_a_table():
    curves = make_curves(models=2, benchmarks=2, questions=6, seed=4)
    one, other = (
        analyse(curves, name="made up", asked=Asked(replicates=300, workers=workers))
        for workers in (1, 3)
    )
    for a, b in zip(one.tables, other.tables, strict=True):
        assert a.to_csv() == b.to_csv()


def test_an_incomplete_campaign_says_so_in_every_table(campaigns, tmp_path):
    copy = shutil.copytree(campaigns[0], tmp_path / "copy")
    sorted((copy / "verdicts").rglob("*.parquet"))[0].unlink()
    asked = Asked(replicates=20)
    with pytest.raises(StoreError, match="not complete"):
        analyse_campaigns([str(copy), campaigns[1]], asked=asked)
    analysis = analyse_campaigns([str(copy), campaigns[1]], asked=asked, allow_incomplete=True)
    count = analysis.curves.trajectories
    assert count < 60
    gap = f"Incomplete: {count} of 60 trajectories are graded (one on sevens has {count - 30} of 30"
    for table in analysis.tables:
        assert table.note.startswith(gap)
    assert gap in analysis.findings.sentences[0]


def test_bands_take_the_questions_that_all_models_have():
    curves = make_curves(models=2, benchmarks=2, questions=5, seed=9)
    part = curves.select((curves.model != 1) | (curves.question != 2))
    analysis = analyse(part, name="made up", asked=Asked(replicates=20))
    notes = {table.name: table.note for table in analysis.tables}
    assert "model1 lacks 1 of 5 questions of bench0." in notes["overthinking"]
    assert f"n = {part.trajectories} trajectories" in notes["overthinking"]
    assert f"n = {part.trajectories - 3} trajectories" in notes["frontier-intervals"]
    assert "model1 lacks 1 of 5 questions of bench0." in notes["frontier-intervals"]


def test_unequal_models_are_analysed_only_if_allowed(configure, campaigns, tmp_path):  # noqa: F811
    config = configure(name="few", trajectories=2)
    run_campaign(config, tmp_path / "few", open_model=lambda name, path: ScriptedEngine(path))
    urls = [campaigns[0], str(tmp_path / "few")]
    with pytest.raises(StoreError, match=r"do not have the same .* range from 2 to 3"):
        analyse_campaigns(urls, asked=Asked(replicates=0))
    analysis = analyse_campaigns(urls, asked=Asked(replicates=0), allow_incomplete=True)
    assert "range from 2 to 3" in analysis.tables[0].note


def test_stages_are_told_to_their_end(campaigns):
    told = {}
    asked = Asked(replicates=60, cross_fit=True)
    progress = Progress(lambda stage, *at: told.update({stage: at}))
    analyse_campaigns(campaigns, asked=asked, progress=progress)
    assert list(told) == [
        "reading curves",
        "frontiers",
        "bootstrap",
        "frontier bootstrap",
        "latent curves",
        "fewer trajectories",
        "latent frontiers",
        "cross-fitted frontiers",
        "boundary audit",
        "step lengths",
    ]
    assert all(done == total > 0 for done, total in told.values())


@pytest.mark.slow
def test_a_campaign_without_stored_thinking_is_analysed_and_says_so(tmp_path):
    population = paper_population().sized(models=2, scale=0.01)
    write_campaign(make_world(population, 1), population, tmp_path / "synthetic")
    asked = Asked(replicates=0)
    analysis = analyse_campaigns([str(tmp_path / "synthetic")], asked=asked)
    names = {table.name for table in analysis.tables}
    assert not {"boundary-audit", "boundary-forms"} & names
    assert "No thinking is stored of" in analysis.findings.sentences[-1]
    lengths = rows_of(next(table for table in analysis.tables if table.name == "step-lengths"))
    curves = analysis.curves
    assert [row["b"] for row in lengths] == ["256", "256"]
    steps = [
        int((np.diff(curves.trajectory_offsets) - 1)[curves.model == model].sum())
        for model in (0, 1)
    ]
    assert [int(row["Steps"]) for row in lengths] == steps
    assert "step-lengths" in {figure.stem for figure in analysis.figures()}


def test_spread_and_sensitivity_hold_the_paper_averages():
    curves = make_curves(models=2, benchmarks=2, questions=4, trajectories=4, probes=6, seed=5)
    analysis = analyse(curves, name="made up", asked=Asked(replicates=0))
    spread = spread_table(curves, analysis.summary).frame
    assert spread.index.tolist()[-1] == ("Average", "")
    assert spread.iloc[-1, 0] == pytest.approx(np.mean(spread.iloc[:-1, 0]))
    sensitivity = sensitivity_table(curves).frame
    assert sensitivity.index.tolist() == [4, 6]
    overall = analysis.summary.overall
    assert sensitivity.loc[6, "OR"] == pytest.approx(100 * overall["overthinking_ratio"])
    assert sensitivity.loc[6, "AD"] == pytest.approx(100 * overall["accuracy_degradation"])
    assert sensitivity.loc[6, "Keeps k*"] == pytest.approx(100)
    assert sensitivity.loc[4, "AD"] >= sensitivity.loc[6, "AD"]


def test_fewer_trajectories_widen_the_range_and_keep_the_mean():
    curves = make_curves(models=2, benchmarks=2, questions=4, trajectories=4, seed=6)
    frame = trajectory_sensitivity_table(curves).frame
    assert frame.index.tolist() == [2, 4]
    for label in ("OR", "AD"):
        assert frame.loc[4, (label, "low")] == pytest.approx(frame.loc[4, (label, "high")])
        assert frame.loc[2, (label, "low")] < frame.loc[4, (label, "mean")]
        assert frame.loc[2, (label, "high")] > frame.loc[4, (label, "mean")]


def test_cross_fitted_table_averages_the_cells():
    curves = make_curves(models=2, benchmarks=2, questions=3, seed=7)
    frame = cross_fitted_table(curves, steps=4).frame
    cells = {(m, b): cell for m, b, cell in curves.cells()}
    expected = np.mean(
        [cross_fitted_frontier(cell, "early_exit", steps=4).accuracy for cell in cells.values()],
        axis=0,
    )
    np.testing.assert_allclose(frame["Dynamic early exit", "other probes"], 100 * expected)
    assert frame.index.tolist() == ["0%", "25%", "50%", "75%", "100%"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("model,benchmark\none,b\n", "line 2: needs the columns"),
        ("model,benchmark,accuracy\none,b,half\n", "line 2: needs the columns"),
        ("model,benchmark,accuracy\none,b,0.5\none,c,62\n", "line 3: accuracy 62.0 is not"),
        (None, "cannot be read"),
    ],
)
def test_bad_direct_accuracies_are_one_clear_error(tmp_path, content, complaint):
    path = tmp_path / "direct.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(MisuseError, match=complaint):
        read_direct_accuracies(path)


def test_direct_answers_come_from_curves_that_do_not_think():
    curves = make_curves(models=2, benchmarks=2, questions=4, seed=8)
    rng = np.random.default_rng(1)
    direct = Curves(
        tokens=np.zeros(12, np.int64),
        correct=rng.integers(0, 2, 12),
        trajectory_offsets=np.arange(13),
        question=np.repeat([0, 1, 5], 4),
        benchmark=np.repeat([0, 0, 1], 4),
        model=np.tile([0, 1], 6),
        original_correct=[1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1],
        probes=1,
        benchmark_names=curves.benchmark_names,
        model_names=curves.model_names,
    )
    analysis = analyse(curves, name="made up", asked=Asked(replicates=0), direct=direct)
    zero = next(table for table in analysis.tables if table.name == "zero-step").frame
    values = zero.xs("Direct", axis=1, level=1).to_numpy()
    expected = [[75, 50, 62.5], [25, 100, 62.5], [50, 75, 62.5]]
    assert values == pytest.approx(np.array(expected))
    with pytest.raises(MisuseError, match="trajectories think"):
        analyse(curves, name="made up", asked=Asked(replicates=0), direct=curves)


def test_a_campaign_that_thinks_gives_no_direct_answers(campaigns):
    with pytest.raises(MisuseError, match="trajectories think"):
        direct_accuracies([campaigns[0]])


def test_a_campaign_in_direct_mode_gives_direct_answers(campaigns, configure, tmp_path):  # noqa: F811
    text = configure(name="one").to_toml().replace('mode = "thinking"', 'mode = "direct"')
    direct = parse_config(text.replace("\nprobes = 4\n", "\n"), source="direct.toml")
    run_campaign(direct, tmp_path / "d", open_model=lambda name, path: ScriptedEngine(path))
    source = str(tmp_path / "d")
    answers = load_curves(source).original_correct
    table = tmp_path / "two.csv"
    table.write_text("model,benchmark,accuracy\ntwo,sevens,0.75\n")
    found = direct_accuracies([source, table])
    assert found == {("one", "sevens"): pytest.approx(answers.mean()), ("two", "sevens"): 0.75}
    asked = Asked(replicates=0)
    analysis = analyse_campaigns(campaigns, asked=asked, direct=[source, table])
    zero = next(table for table in analysis.tables if table.name == "zero-step").frame
    assert zero.loc["one", ("sevens", "Direct")] == pytest.approx(100 * answers.mean())
    with pytest.raises(MisuseError, match="direct answers elsewhere too"):
        direct_accuracies([source, source])


def command(arguments, width=80):
    app = typer.Typer()
    app.command()(analyze)
    return CliRunner().invoke(app, arguments, env={"COLUMNS": str(width)})


@pytest.mark.slow
def test_every_table_is_printed_within_80_columns(campaigns, tmp_path):
    out = str(tmp_path / "o")
    done = command([*campaigns, "--out", out, "--replicates", "20", "--tables", "all"])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.output.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 80
    assert "\u2026" not in done.output
    for title in ("Differences between models", "Boundary tokens by occurrences", "Pieces"):
        assert title in done.output
    none = command([*campaigns, "--out", out, "--replicates", "0", "--tables", "none"])
    assert "Overthinking:" not in none.output
    bad = command([*campaigns, "--tables", "table1"])
    assert isinstance(bad.exception, MisuseError)
    assert "there is no such table" in str(bad.exception)


def test_an_interrupted_analysis_says_what_is_lost(campaigns, tmp_path, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("evaluator.analysis.pipeline.analyse_campaigns", interrupt)
    done = command([*campaigns, "--out", str(tmp_path / "out")])
    assert done.exit_code == 130
    assert "the analysis is not written" in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_command_prints_findings_first_and_where_the_files_are(campaigns, tmp_path):
    direct = tmp_path / "direct.csv"
    direct.write_text("model,benchmark,accuracy\none,sevens,0.25\ntwo,sevens,0.75\n")
    out = tmp_path / "out"
    done = command([*campaigns, "--out", str(out), "--replicates", "20", "--direct", str(direct)])
    assert done.exit_code == 0, done.output
    # What must be known before any figure is believed comes before the findings.
    assert done.stdout.startswith("- one on sevens: 5 of 30 trajectories (16.7%)")
    assert "\n- 2 models, 1 benchmark, 10 questions" in done.stdout
    assert "Overthinking: OR in % of thinking tokens" in done.output
    assert str(out) in done.stdout.splitlines()[-2]
    # Cautions aside, it fits a screen or two.
    findings = done.stdout[done.stdout.index("- 2 models, 1 benchmark") :]
    assert len(findings.splitlines()) < 60
    assert (out / "findings.md").is_file()
    zero = list(csv.DictReader((out / "tables" / "zero-step.csv").read_text().splitlines()))
    values = [float(row["sevens Direct"]) for row in zero]
    assert values == pytest.approx([25, 75, 50])
