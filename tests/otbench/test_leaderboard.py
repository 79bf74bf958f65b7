"""Rows: what is in them, made again from their own settings, compared across runs."""

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from data.errors import MisuseError, StoreError, StpError
from evaluator.analysis.intervals import central_range
from evaluator.otbench import session as session_module
from evaluator.otbench.asked import methods_for, parse_method
from evaluator.otbench.compare import (
    best_trivial,
    differences_table,
    leaderboard_table,
    terminal_tables,
)
from evaluator.otbench.leaderboard import digest_of, points_frame, read_rows, replicates_of
from evaluator.otbench.load import load_release
from evaluator.otbench.session import regenerate, run_methods
from evaluator.otbench.summary import SUMMARIES
from evaluator.present.numbers import Span
from evaluator.present.terminal import rich_table
from evaluator.runs.folder import locked_folder
from tests.evaluator.synthetic import undrawn
from tests.otbench.campaigns import campaign, released, with_signals

CALM = '''
from dataclasses import dataclass

from baselines import EarlyExit


@dataclass
class Calm(EarlyExit):
    """Stop when the next token is certain."""

    shift: float = 0.0

    name = "calm"
    needs = ("entropy",)
    grid = (0.2, 0.5, 0.9)

    def score(self, prefix):
        return -prefix["entropy"][-1] + self.shift

    def stops(self, score, setting):
        return score >= -setting
'''
METHODS = ("think_brake", "deer(mean='arithmetic')", "predictive_scheduling(epochs=5)")


@pytest.fixture(autouse=True)
def _undrawn():
    # The session's own figures are drawn, before this.
    with undrawn():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return (release, folder of a run, session)."""
    root = tmp_path_factory.mktemp("leaderboard")
    url = campaign(root / "campaign")
    with pytest.MonkeyPatch.context() as patch:
        with_signals(patch)
        folder = released(root / "release", url)
    (root / "calm.py").write_text(CALM)
    methods = (*METHODS, f"{root}/calm.py:Calm(shift=0.1)", "hidden_probe(strengths=(0.1,))")
    session = run_methods(folder, methods, root / "out", replicates=40)
    return folder, root / "out", session


def row_of(session, name):
    return next(row for row in session.rows if row.method.name == name)


def test_a_row_has_all_that_is_promised(made):
    folder, out, session = made
    labels = {row.label for row in session.rows}
    trivial = {"never_think", "always_think", "think_share", "constant_cap", "constant_fraction"}
    assert labels == trivial | {
        "think_brake",
        "deer(mean='arithmetic')",
        "predictive_scheduling(epochs=5)",
        "calm(shift=0.1)",
        "hidden_probe(strengths=(0.1,))",
    }
    release = load_release(folder)
    for row in (each.plain() for each in session.rows):
        assert row["release"]["checksum"] == release.checksum
        assert row["resampling"] == {"replicates": 40, "seed": 20260721}
        assert set(row["summary"]) == set(SUMMARIES)
        assert set(row["versions"]) >= {"numpy", "torch", "scikit-learn"}
        assert {"date", "fit_seconds", "decide_seconds"} <= set(row["run"])
        assert len(row["points"]) == len(row["cells"][0]["tokens"])
        assert [(c["model"], c["group"]) for c in row["cells"]] == [
            (m, g) for m in ("model-0", "model-1") for g in ("AIME", "MATH")
        ]
        for point in row["points"]:
            for name, (low, high) in point["intervals"].items():
                assert (low is None) == (high is None) or point[name] is None
        accuracy = np.mean([c["right"][0] / c["probes"] for c in row["cells"]])
        assert row["points"][0]["accuracy"] == pytest.approx(accuracy)
    lines = (out / "leaderboard.jsonl").read_text().splitlines()
    assert len(lines) == len(session.rows)
    assert all("NaN" not in line and "Infinity" not in line for line in lines)


def test_points_agree_with_stored_curves_read_by_pandas_alone(made):
    """The never-thinking and always-thinking points, from the release's tables."""
    folder, _, session = made
    trajectories = pd.read_parquet(folder / "trajectories").query("split == 'test'")
    cells = trajectories.groupby(["model", "benchmark"])[["zero_correct", "full_correct", "probes"]]
    sums = cells.sum()
    for column, name in (("zero_correct", "never_think"), ("full_correct", "always_think")):
        expected = (sums[column] / sums["probes"]).groupby("model").mean().mean()
        assert row_of(session, name).points[0].accuracy == pytest.approx(expected)


def test_every_row_can_be_made_again_from_its_own_settings(made):
    folder, out, _ = made
    for row in read_rows([out]):
        again = regenerate(row, folder)
        assert again.digest == row.digest, row.label
        assert again.points == row.points


def test_another_release_or_a_changed_file_is_refused(made, tmp_path):
    folder, out, session = made
    other = tmp_path / "other"
    url = campaign(tmp_path / "campaign", models=1, questions=(12, 8), seed=9)
    released(other, url)
    with pytest.raises(MisuseError, match="its checksum begins"):
        regenerate(row_of(session, "constant_cap"), other)
    file = out.parent / "calm.py"
    file.write_text(CALM.replace("0.9", "0.8"))
    try:
        with pytest.raises(MisuseError, match=r"the row was made with calm\.py sha256:"):
            regenerate(row_of(session, "calm"), folder)
    finally:
        file.write_text(CALM)


def test_a_row_that_was_edited_is_refused(made, tmp_path):
    lines = (made[1] / "leaderboard.jsonl").read_text().splitlines()
    row = json.loads(lines[2])
    row["summary"]["best_accuracy"]["value"] = 0.999
    path = tmp_path / "edited.jsonl"
    path.write_text("\n".join([lines[0], json.dumps(row)]) + "\n")
    with pytest.raises(MisuseError, match=r"edited.jsonl, line 2: changed since it was written"):
        read_rows([path])
    path.write_text("not a row\n")
    with pytest.raises(MisuseError, match="line 1: no leaderboard row"):
        read_rows([path])
    with pytest.raises(MisuseError, match=r"gone\.jsonl: no leaderboard file"):
        read_rows([tmp_path / "gone.jsonl"])


def test_differences_are_paired_across_runs(made, tmp_path):
    folder, out, _ = made
    run_methods(folder, ["answer_convergence"], tmp_path / "late", replicates=40)
    rows = read_rows([out, tmp_path / "late"])
    rows = [r for r in rows if r.label in ("answer_convergence", "think_brake")]
    table = differences_table(rows, "think_brake")
    late, brake = (
        next(r for r in rows if r.label == label) for label in ("answer_convergence", "think_brake")
    )
    values = [replicates_of(row)["curve_area"] for row in (late, brake)]
    low, high = central_range(100 * (values[0] - values[1]))
    found = table.frame.loc[("Dynamic early exit", "answer_convergence"), "area"]
    exact = late.area - brake.area
    assert found == Span(pytest.approx(100 * exact), low, high)
    # Paired: the same draws, so much narrower than if the two were independent.
    assert np.var(values[0] - values[1]) < np.var(values[0]) + np.var(values[1])


def test_rows_that_cannot_be_paired_are_refused(made, tmp_path):
    folder, out, session = made
    run_methods(folder, ["end_entropy"], tmp_path / "few", replicates=10)
    rows = read_rows([out, tmp_path / "few"])
    rows = [r for r in rows if r.label in ("end_entropy", "think_brake")]
    with pytest.raises(MisuseError, match="have other replicates or another seed"):
        differences_table(rows, "think_brake")
    with pytest.raises(MisuseError, match="no row is called 'x'; there are"):
        differences_table(rows, "x")
    alone = tmp_path / "alone"
    alone.mkdir()
    subprocess.run(["cp", out / "leaderboard.jsonl", alone], check=True)
    with pytest.raises(MisuseError, match="its replicates are not beside"):
        differences_table(read_rows([alone]), "think_brake")
    assert best_trivial(session.rows) in {"constant_cap", "constant_fraction", "think_share"}


def test_replicates_of_the_row_before_are_not_this_ones(made, tmp_path):
    folder, out, _ = made
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", out, copy], check=True)
    rows = {row.label: row for row in read_rows([copy])}
    assert replicates_of(rows["think_brake"]) is not None
    run_methods(folder, ["think_brake"], copy, replicates=0)
    again = {row.label: row for row in read_rows([copy])}
    assert replicates_of(again["think_brake"]) is None
    with pytest.raises(MisuseError, match="its replicates are not beside"):
        replaced = [
            row.model_copy(update={"resampling": rows["think_brake"].resampling})
            for row in again.values()
        ]
        differences_table(replaced, "think_brake")
    # A file of another run in its place, and a torn one.
    name = next((out / "replicates").glob("think_brake-*")).name
    subprocess.run(["cp", out / "replicates" / name, copy / "replicates" / name], check=True)
    assert replicates_of(again["think_brake"]) is None
    (copy / "replicates" / name).write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(StoreError, match="torn or changed; run think_brake again"):
        replicates_of(again["think_brake"])


def test_rows_without_replicates_cannot_be_compared(made, tmp_path):
    session = run_methods(made[0], ["no_thinking"], tmp_path, replicates=0)
    with pytest.raises(MisuseError, match="run it with --replicates"):
        differences_table(session.rows, "no_thinking")


@pytest.mark.parametrize(
    "line",
    [
        '{"schema_version": 1, "digest": "x"}',
        '{"schema_version": 1, "digest": "x", "run": 5}',
        '{"schema_version": 1, "digest": "x", "run": {}, "a": NaN}',
        '{"schema_version": 1, "digest": "x", "run": {}, "a": "\\ud800"}',
        "[" * 100_000,
        "[]",
        "7",
    ],
)
def test_lines_that_are_no_rows_are_named(tmp_path, line):
    (tmp_path / "rows.jsonl").write_text(line + "\n")
    with pytest.raises(
        MisuseError, match=r"rows.jsonl, line 1: (no leaderboard row|changed since)"
    ):
        read_rows([tmp_path / "rows.jsonl"])


def changed(row, place, value):
    """Return a row, resealed, with another value at a place; None: with nothing there."""
    row = json.loads(json.dumps({**row.plain(), "run": {}}))
    *path, last = place.split(".")
    there = row
    for name in path:
        there = there[name]
    there[last] = value
    if value is None:
        del there[last]
    return row | {"digest": digest_of(row)}


@pytest.mark.parametrize("value", [None, 5, "x", -1, True, [], {}, 1e300, [[]], "\x1b[2J"])
@pytest.mark.parametrize(
    "place",
    [
        *("label", "method", "release", "resampling", "summary", "points", "selected", "versions"),
        *("method.name", "method.spec", "method.origin", "method.strategy", "method.given"),
        *("method.trivial", "release.name", "release.checksum", "resampling.replicates"),
        *("resampling.seed", "selected.index", "summary.curve_area", "full_accuracy"),
        *("summary.curve_area.value", "schema_version", "cells", "selected.setting"),
    ],
)
def test_rows_with_a_right_digest_and_wrong_values(made, tmp_path, place, value):
    row = changed(row_of(made[2], "constant_cap"), place, value)
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    try:
        (read,) = read_rows([path])
        leaderboard_table([read])
        points_frame([read])
        for table in terminal_tables([read], intervals=True):
            Console(file=io.StringIO()).print(rich_table(table))
        differences_table([read], read.label)
    except StpError as error:
        assert "\n" not in str(error)
    else:
        pytest.fail("a row without replicates beside it was compared")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("resampling.replicates", 10**7),
        ("full_accuracy", 3.0),
        ("zero_accuracy", -0.1),
        ("summary.selected_accuracy.value", 3.0),
        ("summary.best_accuracy.high", 1.5),
    ],
)
def test_a_row_that_claims_what_cannot_be_is_refused(made, tmp_path, place, value):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(changed(row_of(made[2], "constant_cap"), place, value)) + "\n")
    with pytest.raises(MisuseError, match=r"line 1: no leaderboard row: "):
        read_rows([path])


@pytest.mark.parametrize(
    ("spec", "origin", "message"),
    [
        ("{folder}/evil.py:Evil", "stp-engine", "the row was made with stp-engine, and here is"),
        ("{folder}/evil.py:Evil", "evil.py sha256:00", "the row was made with evil.py sha256:00"),
        ("{folder}/pipe.py:Evil", "pipe.py sha256:00", "is not a file"),
        ("{folder}/nul\0.py:Evil", "nul.py sha256:00", "cannot read"),
        ("~nobody-here/x.py:Evil", "x.py sha256:00", "cannot read"),
        ("deer", "deer 1.0", "the row was made with deer 1.0, and here is stp-engine"),
        ("gone", "gone 1.0", "there is no method 'gone'"),
    ],
)
def test_a_row_cannot_have_another_file_run(made, tmp_path, spec, origin, message):
    folder, _, session = made
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath('/').touch()\n")
    os.mkfifo(tmp_path / "pipe.py")
    row = row_of(session, "constant_cap")
    method = row.method.model_copy(update={"spec": spec.format(folder=tmp_path), "origin": origin})
    with pytest.raises(MisuseError, match=message):
        regenerate(row.model_copy(update={"method": method}), folder)


def test_two_runs_into_one_folder_are_refused(made, tmp_path):
    run_methods(made[0], ["no_thinking"], tmp_path, replicates=0)
    with locked_folder(tmp_path), pytest.raises(StoreError):
        run_methods(made[0], ["think_brake"], tmp_path, replicates=0)


def test_a_second_run_keeps_other_rows_and_replaces_its_own(made, tmp_path):
    folder, out, _ = made
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", out, copy], check=True)
    before = {row.label for row in read_rows([copy])}
    session = run_methods(folder, ["no_thinking", "think_brake"], copy, replicates=0)
    assert {row.label for row in session.rows} == before | {"no_thinking"}
    assert len(session.rows) == len(before) + 1
    other = released(tmp_path / "other", campaign(tmp_path / "c", questions=(9, 9), seed=4))
    with pytest.raises(MisuseError, match="holds rows of another release"):
        run_methods(other, ["no_thinking"], copy, replicates=0)


@pytest.mark.slow
def test_a_row_of_another_method_is_not_replaced(made, tmp_path):
    folder, out, _ = made
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", out, copy], check=True)
    (tmp_path / "other.py").write_text(CALM)
    with pytest.raises(MisuseError, match=r"holds a row 'calm\(shift=0.1\)' of another method"):
        run_methods(folder, [f"{tmp_path}/other.py:Calm(shift=0.1)"], copy, replicates=0)
    # The same file, moved and edited, is the same method.
    (tmp_path / "calm.py").write_text(CALM.replace("0.9", "0.8"))
    spec = f"{tmp_path}/calm.py:Calm(shift=0.1)"
    session = run_methods(folder, [spec], copy, replicates=0)
    assert row_of(session, "calm").points[2].setting == 0.8


@pytest.mark.slow
def test_a_method_that_fails_costs_no_other_its_row(made, tmp_path):
    (tmp_path / "fails.py").write_text(CALM.replace("+ self.shift", "+ 1 // 0"))
    with pytest.raises(MisuseError, match=r"ZeroDivisionError .*; the rows of the other methods"):
        run_methods(made[0], [f"{tmp_path}/fails.py:Calm", "deer"], tmp_path, replicates=0)
    assert "deer" in {row.label for row in read_rows([tmp_path])}
    alone = tmp_path / "alone"
    run_methods(made[0], ["constant_cap"], alone, replicates=0)
    with pytest.raises(MisuseError, match="ZeroDivisionError"):
        run_methods(made[0], [f"{tmp_path}/fails.py:Calm"], alone, replicates=0)


def test_a_slip_is_said_before_anything_long(made, tmp_path, monkeypatch):
    (tmp_path / "slips.py").write_text(CALM.replace("+ self.shift", "+ shfit"))

    def long(*_, **__):
        raise AssertionError("a method was evaluated")

    monkeypatch.setattr(session_module, "evaluate", long)
    with pytest.raises(MisuseError, match=r"NameError .*shfit"):
        run_methods(made[0], ["deer", f"{tmp_path}/slips.py:Calm"], tmp_path / "out", replicates=0)


@pytest.mark.slow
def test_other_packages_break_nothing(made, tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text(CALM.replace("+ self.shift", "+ 1 // 0"))
    info = tmp_path / "theirs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[stp.methods]\nfails = theirs:Calm\ngone = theirs:Gone\nmain = __main__.x:Bad\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    release = load_release(made[0])
    # Nothing of theirs is looked at where methods are named.
    assert {a.label for a in methods_for(release, ["deer"]).asked} >= {"deer", "constant_cap"}
    assert not [note for note in methods_for(release, ["deer"]).notes if "left out" in note]
    session = run_methods(made[0], [], tmp_path / "out", replicates=0)
    left = "\n".join(session.notes)
    assert re.search("calm is left out: .*ZeroDivisionError", left)
    assert "gone is left out: method gone: its package cannot be imported" in left
    assert "main is left out: method main: its package cannot be imported" in left
    assert {row.label for row in session.rows} >= {"deer", "constant_cap", "hidden_probe"}


@pytest.mark.slow
def test_trivial_rows_that_are_there_are_not_run_again(made, tmp_path):
    folder, out, _ = made
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", out, copy], check=True)
    dates = {row.label: row.run for row in read_rows([copy])}
    session = run_methods(folder, ["no_thinking", "constant_cap"], copy, replicates=40)
    fresh = {row.label for row in session.rows if row.run != dates.get(row.label)}
    assert fresh == {"no_thinking", "constant_cap"}
    session = run_methods(folder, ["no_thinking"], copy, replicates=10)
    assert row_of(session, "think_share").resampling.replicates == 10


def test_points_are_a_table_too(made):
    _, out, session = made
    points = pd.read_csv(out / "points.csv")
    assert len(points) == sum(len(row.points) for row in session.rows)
    chosen = points[points["selected"]].set_index("label")["accuracy"]
    for row in session.rows:
        assert chosen[row.label] == pytest.approx(row.summary["selected_accuracy"].value)


def test_without_replicates_there_are_no_intervals(made, tmp_path):
    session = run_methods(made[0], ["no_thinking"], tmp_path, replicates=0)
    row = row_of(session, "no_thinking").plain()
    assert "low" not in row["summary"]["curve_area"]
    assert "intervals" not in row["points"][0]
    assert "<h2" in session.page.read_text()
    assert leaderboard_table(session.rows).frame.iloc[0, 0].low is None


def test_the_page_shows_every_method_with_the_trivial_lines(made):
    _, out, session = made
    page = (out / "otbench.html").read_text()
    shown = json.loads(re.search(r'id="page-data">(.*?)</script>', page)[1])
    assert {row["label"] for row in shown["rows"]} == {row.label for row in session.rows}
    assert set(shown["frontiers"]) == {"routing", "fixed_budget", "early_exit"}
    for points in shown["frontiers"].values():
        assert points == sorted(points)
    for row in session.rows:
        assert row.label.replace("'", "&#39;") in page
    assert {p.name for p in (out / "figures").iterdir()} == {
        f"otbench_{stem}.{kind}"
        for stem in ("methods", "routing", "fixed_budget", "early_exit")
        for kind in ("png", "pdf")
    }


def test_methods_are_named_with_hyperparameters(made):
    assert parse_method("deer").hyperparameters == {}
    asked = parse_method('deer(mean="arithmetic")')
    made_here = asked.seat().method
    assert (asked.label, made_here.mean) == ("deer(mean='arithmetic')", "arithmetic")
    for wrong in (
        *("deer(1)", "deer(mean=open)", "deer(mean=", "deer(x=1)", "deer(mean={[]: 1})"),
        *("deer(**{'mean': 'arithmetic'})", "deer(mean=1e999)"),
        "deer(mean='arithmetic', mean='geometric')",
    ):
        with pytest.raises(MisuseError, match="deer"):
            parse_method(wrong)
    release = load_release(made[0])
    with pytest.raises(MisuseError, match="deer is named twice"):
        methods_for(release, ["deer", "deer"])


def test_methods_whose_signals_are_not_there_are_left_out_or_refused(tmp_path):
    folder = released(tmp_path / "r", campaign(tmp_path / "c", models=1, questions=(9, 9)))
    release = load_release(folder)
    chosen = methods_for(release)
    labels = {asked.label for asked in chosen.asked}
    assert labels >= {"constant_cap", "answer_convergence", "dynasor"}
    assert not chosen.named
    assert "deer is left out: the release holds no trial_logprob, trial_probability" in chosen.notes
    with pytest.raises(MisuseError, match=r"think_brake needs end_logprob, .* which .* does not"):
        methods_for(release, ["think_brake"])


@pytest.mark.slow
def test_without_torch_the_other_methods_run(made, tmp_path, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "torch" else find(name, *a)
    )
    monkeypatch.setitem(sys.modules, "torch", None)
    session = run_methods(made[0], [], tmp_path, replicates=0)
    assert "think_switcher is left out: it needs torch" in session.notes
    assert {row.label for row in session.rows} >= {"think_brake", "hidden_probe", "deer"}
    with pytest.raises(MisuseError, match="trains a network with torch; install it: pip install"):
        run_methods(made[0], ["think_switcher"], tmp_path / "x", replicates=0)


def test_an_empty_split_is_refused(tmp_path):
    url = campaign(tmp_path / "c", models=1, questions=(2, 1), trajectories=2)
    folder = released(tmp_path / "r", url, allow_empty_splits=True)
    with pytest.raises(MisuseError, match="there are no validation questions of model-0"):
        run_methods(folder, ["no_thinking"], tmp_path / "o", replicates=0)


def test_a_digest_covers_everything_but_the_run(made):
    row = row_of(made[2], "think_brake").plain()
    assert digest_of({**row, "run": {}}) == row["digest"]
    assert digest_of({**row, "label": "other"}) != row["digest"]
