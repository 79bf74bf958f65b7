"""The whole analysis, from curves and from campaigns' folders, down to files and the command."""

import csv
import shutil

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from data.errors import MisuseError, StoreError
from evaluator.analysis import (
    analyse,
    analyse_campaigns,
    read_direct_accuracies,
    write_analysis,
)
from evaluator.crossfit_frontier import cross_fitted_frontier
from evaluator.tables import (
    cross_fitted_table,
    sensitivity_table,
    spread_table,
    trajectory_sensitivity_table,
)
from stp.campaign.run import run_campaign
from stp.cli.analyze import analyze
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
    return analyse_campaigns(campaigns, replicates=50, workers=1, targets=(4, 16))


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
    assert rows_of(tables["bias-aware"])[0]["Estimate"] == "As measured (paper)"
    assert "60 trajectories" in tables["overthinking"].note
    assert "Incomplete" not in tables["overthinking"].note
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
    with pytest.raises(StoreError, match="cannot write the analysis"):
        write_analysis(analysis, tmp_path / "file")


def test_without_replicates_there_are_no_intervals():
    analysis = analyse(make_curves(models=2, seed=3), name="made up", replicates=0)
    assert analysis.bootstrap is None
    assert not [table for table in analysis.tables if "intervals" in table.name]


def test_workers_do_not_change_a_table():
    curves = make_curves(models=2, benchmarks=2, questions=6, seed=4)
    one, other = (
        analyse(curves, name="made up", replicates=300, workers=workers) for workers in (1, 3)
    )
    for a, b in zip(one.tables, other.tables, strict=True):
        assert a.to_csv() == b.to_csv()


def test_an_incomplete_campaign_says_so_in_every_table(campaigns, tmp_path):
    copy = shutil.copytree(campaigns[0], tmp_path / "copy")
    sorted((copy / "verdicts").rglob("*.parquet"))[0].unlink()
    with pytest.raises(StoreError, match="not complete"):
        analyse_campaigns([str(copy), campaigns[1]], replicates=0)
    analysis = analyse_campaigns([str(copy), campaigns[1]], replicates=0, allow_incomplete=True)
    count = analysis.curves.trajectories
    assert count < 60
    for table in analysis.tables:
        assert table.note.startswith(f"Incomplete: {count} of 60 trajectories are graded.")
    assert "Incomplete" in analysis.findings.sentences[0]


def test_spread_and_sensitivity_hold_the_paper_averages():
    curves = make_curves(models=2, benchmarks=2, questions=4, trajectories=4, probes=6, seed=5)
    analysis = analyse(curves, name="made up", replicates=0)
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


def test_command_prints_tables_and_findings(campaigns, tmp_path):
    app = typer.Typer()
    app.command()(analyze)
    direct = tmp_path / "direct.csv"
    direct.write_text("model,benchmark,accuracy\none,sevens,0.25\ntwo,sevens,0.75\n")
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app,
        [*campaigns, "--out", str(out), "--replicates", "20", "--direct", str(direct)],
        env={"COLUMNS": "200"},
    )
    assert done.exit_code == 0, done.output
    assert "Overthinking: OR in % of thinking tokens" in done.output
    assert "- 2 models, 1 benchmark, 10 questions" in done.output
    assert (out / "findings.md").is_file()
    zero = list(csv.DictReader((out / "tables" / "zero-step.csv").read_text().splitlines()))
    values = [float(row["sevens Direct"]) for row in zero]
    assert values == pytest.approx([25, 75, 50])
