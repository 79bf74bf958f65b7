"""Curves from shards, against counting rows one by one."""

import shutil

import numpy as np
import pyarrow as pa
import pytest

from data.errors import MisuseError, StoreError
from stp.campaign.curves import load_curves
from stp.campaign.run import run_campaign
from stp.campaign.status import campaign_status
from stp.campaign.store import Store
from tests.campaign.fakes import ScriptedEngine, write_questions
from tests.campaign.rows import table_rows


def run(config, folder, **options):
    run_campaign(config, folder, open_model=lambda name, path: ScriptedEngine(path), **options)
    return folder


@pytest.fixture(scope="module")
def folder(configure, tmp_path_factory):
    return run(configure(), tmp_path_factory.mktemp("curves") / "campaign")


def naive(folder):
    """Return {(question_id, trajectory): (L, C, original)} from rows alone."""
    ids = {row["question"]: row["question_id"] for row in table_rows(folder, "questions")}
    found = {}
    for row in table_rows(folder, "positions"):
        key = ids[row["question"]], row["trajectory"]
        lengths, counts, _ = found.setdefault(key, ({}, {}, []))
        lengths[row["position"]] = row["tokens"]
        counts[row["position"]] = 0
    for row in table_rows(folder, "verdicts"):
        _, counts, own = found[ids[row["question"]], row["trajectory"]]
        if row["position"] == -1:
            own.append(int(row["right"]))
        else:
            counts[row["position"]] += row["right"]
    return {
        key: ([lengths[k] for k in sorted(lengths)], [counts[k] for k in sorted(counts)], own[0])
        for key, (lengths, counts, own) in found.items()
    }


def as_dict(curves):
    offsets = curves.trajectory_offsets
    return {
        (curves.question_names[curves.question[s]], int(curves.sample[s])): (
            curves.tokens[offsets[s] : offsets[s + 1]].tolist(),
            curves.correct[offsets[s] : offsets[s + 1]].tolist(),
            int(curves.original_correct[s]),
        )
        for s in range(curves.trajectories)
    }


def test_curves_are_what_the_rows_say(folder):
    curves = load_curves(folder)
    assert as_dict(curves) == naive(folder)
    assert (curves.probes, curves.model_names, curves.benchmark_names) == (
        4,
        ("scripted",),
        ("sevens",),
    )
    assert 0 < curves.correct.sum() < curves.positions * 4
    assert set(curves.original_correct.tolist()) == {0, 1}


def test_several_campaigns_share_question_numbers(folder, configure, tmp_path):
    other = run(configure(name="second", trajectories=2), tmp_path / "other")
    curves = load_curves([folder, other])
    assert curves.model_names == ("scripted", "second")
    assert len(curves.question_names) == 10
    assert as_dict(curves.cell(model=1, benchmark=0)) == naive(other)
    np.testing.assert_array_equal(
        np.unique(curves.question[curves.model == 0]), np.unique(curves.question[curves.model == 1])
    )


def test_campaigns_that_do_not_go_together_are_refused(folder, configure, tmp_path):
    with pytest.raises(MisuseError, match="a cell can be taken from one campaign only"):
        load_curves([folder, folder])
    other = run(configure(name="second", probes=2), tmp_path / "other")
    with pytest.raises(MisuseError, match="different numbers"):
        load_curves([folder, other])
    with pytest.raises(MisuseError, match="no campaign was given"):
        load_curves([])


def test_an_incomplete_campaign_says_what_is_missing(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "trajectories/scripted/sevens/000002.parquet").unlink()
    (copy / "probes/scripted/sevens/000003.parquet").unlink()
    (copy / "verdicts/scripted/sevens/000005.parquet").unlink()
    with pytest.raises(StoreError) as caught:
        load_curves(copy)
    assert "1 are not generated, 2 are not probed, 3 are not graded" in str(caught.value)
    assert f"stp run {copy}" in str(caught.value)
    partial = as_dict(load_curves(copy, allow_incomplete=True))
    whole = naive(folder)
    assert 0 < len(partial) < len(whole)
    assert partial == {key: whole[key] for key in partial}
    status = campaign_status(copy)
    assert [entry.units for entry in status.stages.values()] == [7, 6, 5]
    assert not status.finished


def test_nothing_graded_is_misuse(configure, tmp_path):
    folder = run(configure(), tmp_path / "c", stages=("generate", "probe"))
    with pytest.raises(StoreError, match="8 are not graded"):
        load_curves(folder)
    with pytest.raises(MisuseError, match="nothing is graded"):
        load_curves(folder, allow_incomplete=True)


def test_a_torn_shard_is_named(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    path = copy / "verdicts/scripted/sevens/000001.parquet"
    path.write_bytes(path.read_bytes()[:100])
    assert campaign_status(copy).torn == ["verdicts/scripted/sevens/000001.parquet"]
    with pytest.raises(StoreError, match="1 are not graded"):
        load_curves(copy)


def test_verdicts_of_two_checkers_are_not_mixed(folder, tmp_path, configure, monkeypatch):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "verdicts/scripted/sevens/000001.parquet").unlink()
    monkeypatch.setattr("stp.campaign.workers.CHECKER_VERSION", "99.0")
    from stp.campaign.run import grade_campaign

    store = Store(copy)
    kept = {name: store.read_bytes(name) for name in store.files("verdicts")}
    grade_campaign(copy)
    for name, content in kept.items():
        store.write_bytes(name, content)
    with pytest.raises(StoreError, match=r"checker versions .* and 99\.0 are mixed"):
        load_curves(copy)


def test_questions_that_are_too_long_have_no_curve(configure, tmp_path, caplog):
    questions = write_questions(tmp_path / "q", prompts=["short", "x" * 700, "also short"])
    folder = run(configure(benchmark=questions), tmp_path / "c")
    curves = load_curves(folder)
    assert curves.trajectories == 6
    assert {key[0] for key in as_dict(curves)} == {"sevens-1", "sevens-3"}
    assert "1 of 3 prompts of sevens are too long" in caplog.text


def test_a_missing_original_answer_is_an_error_that_says_what_to_do(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    name, store = "verdicts/scripted/sevens/000000.parquet", Store(copy)
    rows, info = store.read_checked("verdicts", name)
    first = rows.slice(0, 2)
    assert first["position"].to_pylist() == [-1, -1]
    # One trajectory's own answer twice, and another's not at all.
    twice = pa.concat_tables([first.slice(0, 1), first.slice(0, 1), rows.slice(2)])
    store.write_shard("verdicts", name, twice, source=info.source)
    with pytest.raises(
        StoreError, match=r"an original answer is missing; run `stp grade .* --again`"
    ):
        load_curves(copy)
