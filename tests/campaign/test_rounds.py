"""Adaptive probing: rounds of more probes, subsets of a full campaign, resumed where they were."""

import shutil
import threading
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

from data.errors import ConfigError, MisuseError, StoreError
from stp.campaign.curves import load_curves
from stp.campaign.graded import changed_verdicts
from stp.campaign.merge import merge_campaigns
from stp.campaign.rounds import run_rounds
from stp.campaign.run import grade_campaign, run_campaign
from stp.campaign.store import Store
from stp.cli.lazily import app
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import table_rows

PLAN = '8\nplan = "adaptive"\nfirst_probes = 4\nrounds = 2\nshare = 0.5'


def open_scripted(name, path):
    return ScriptedEngine(path)


def choose_every_third(curves, answer_tokens, budget, most):
    """Two more answers at every third position, within what a position and the round may have."""
    more = np.where(np.arange(curves.positions) % 3 == 0, 2, 0)
    more = np.minimum(more, most - curves.all_probes_k)
    return np.where(np.cumsum(more * answer_tokens) <= budget, more, 0)


@pytest.fixture(scope="module")
def adaptive(configure):
    return configure(step_tokens=PLAN, probes=16)


@pytest.fixture(scope="module")
def folders(configure, adaptive, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rounds")
    run_campaign(configure(probes=16), folder / "full", open_model=open_scripted)
    run_campaign(adaptive, folder / "adaptive", open_model=open_scripted)
    result = run_rounds(adaptive, folder / "adaptive", choose_every_third, open_model=open_scripted)
    assert result.finished
    return folder


def key(row):
    return tuple(row[name] for name in ("question", "trajectory", "position", "sample"))


def test_probes_are_a_subset_of_those_of_the_full_campaign(folders):
    full = {key(row): row for row in table_rows(folders / "full", "probes")}
    first = table_rows(folders / "adaptive", "probes")
    more = table_rows(folders / "adaptive", "more_probes")
    assert more
    assert len({key(row) for row in (*first, *more)}) == len(first) + len(more)
    for row in (*first, *more):
        assert row["answer_ids"] == full[key(row)]["answer_ids"]
        assert row["seed"] == full[key(row)]["seed"]
    assert {row["sample"] for row in first} == set(range(4))
    assert {row["sample"] for row in more} == set(range(4, 8))


def test_curves_have_the_rounds_as_extra_answers(folders):
    full, curves = load_curves(folders / "full"), load_curves(folders / "adaptive")
    assert curves.probes == 4
    chosen = np.arange(curves.positions) % 3 == 0
    assert set(curves.extra_probes[chosen].tolist()) == {4}
    assert not curves.extra_probes[~chosen].any()
    verdicts = {key(row): row["right"] for row in table_rows(folders / "full", "verdicts")}
    names = ("question", "trajectory", "position")
    rows = table_rows(folders / "adaptive", "positions")
    expected = [
        sum(verdicts[(*(row[name] for name in names), sample)] for sample in range(4, 8))
        for row in rows
    ]
    found = dict(
        zip(
            [tuple(row[name] for name in names) for row in rows],
            curves.extra_correct.tolist(),
            strict=True,
        )
    )
    for row, right in zip(rows, expected, strict=True):
        place = tuple(row[name] for name in names)
        assert found[place] in (0, right)
    assert np.array_equal(curves.extra_correct[chosen], np.array(expected)[chosen])
    assert full.probes == 16


def test_fewer_rounds_can_be_read(folders):
    one = load_curves(folders / "adaptive", rounds=1)
    assert set(one.extra_probes.tolist()) == {0, 2}
    assert load_curves(folders / "adaptive", rounds=0).extra_probes.size == 0


def test_who_chooses_is_told_what_an_answer_takes_and_what_there_is_to_spend(
    folders, adaptive, tmp_path
):
    asked = []

    def choose(curves, answer_tokens, budget, most):
        asked.append((answer_tokens, budget, most))
        return np.zeros(curves.positions, np.int64)

    shutil.copytree(folders / "adaptive", tmp_path / "c")
    store = Store(tmp_path / "c")
    for name in store.files("more_probes"):
        (tmp_path / "c" / name).unlink()
    run_rounds(adaptive, tmp_path / "c", choose, open_model=open_scripted)
    own, whole = {}, {}
    for row in table_rows(tmp_path / "c", "probes"):
        where = (row["question"], row["trajectory"])
        own.setdefault((*where, row["position"]), []).append(len(row["answer_ids"]))
        whole.setdefault(where, []).append(len(row["answer_ids"]))
    wanted = [
        (
            np.mean(own[row["question"], row["trajectory"], row["position"]])
            + np.mean(whole[row["question"], row["trajectory"]])
        )
        / 2
        for row in table_rows(tmp_path / "c", "positions")
    ]
    assert len(asked) == 2
    for answer_tokens, budget, most in asked:
        np.testing.assert_allclose(answer_tokens, wanted)
        # Half of 16 answers everywhere, less the 4 of the first pass, in two rounds.
        assert (budget, most) == (pytest.approx(2 * sum(wanted)), 16)


def test_a_second_run_does_nothing(folders, adaptive):
    def never(curves, answer_tokens, budget, most):
        raise AssertionError("nothing is left to choose")

    result = run_rounds(adaptive, folders / "adaptive", never, open_model=open_scripted)
    assert (result.finished, result.units) == (True, 0)


def test_a_stopped_round_goes_on_and_has_the_same_rows(folders, adaptive, tmp_path):
    run_campaign(adaptive, tmp_path / "c", open_model=open_scripted)
    with pytest.raises(StoreError, match="lack some of 2 rounds"):
        load_curves(tmp_path / "c")
    stop = threading.Event()

    class Stopping(ScriptedEngine):
        def work(self, trees):
            stop.set()
            return super().work(trees)

    result = run_rounds(
        adaptive,
        tmp_path / "c",
        choose_every_third,
        stop=stop,
        open_model=lambda name, path: Stopping(path),
    )
    assert not result.finished
    partial = load_curves(tmp_path / "c", allow_incomplete=True)
    assert partial.extra_probes.sum() < load_curves(folders / "adaptive").extra_probes.sum()
    result = run_rounds(adaptive, tmp_path / "c", choose_every_third, open_model=open_scripted)
    assert result.finished
    for table in ("more_probes", "more_verdicts"):
        rows, wanted = (
            sorted(table_rows(folder, table), key=key)
            for folder in (tmp_path / "c", folders / "adaptive")
        )
        assert rows == wanted


def test_a_torn_round_is_made_again(folders, adaptive, tmp_path):
    run_campaign(adaptive, tmp_path / "c", open_model=open_scripted)
    run_rounds(adaptive, tmp_path / "c", choose_every_third, open_model=open_scripted)
    store = Store(tmp_path / "c")
    name = store.files("more_probes")[0]
    whole = store.read_bytes(name)
    store.write_bytes(name, whole[: len(whole) // 2])
    result = run_rounds(adaptive, tmp_path / "c", choose_every_third, open_model=open_scripted)
    assert (result.finished, result.units) == (True, 1)
    assert np.array_equal(
        load_curves(tmp_path / "c").extra_correct, load_curves(folders / "adaptive").extra_correct
    )


def test_grading_again_grades_the_rounds_too(folders, tmp_path):
    """Verdicts of rounds that are wrong or gone are listed, mended and made, as all others."""
    folder = shutil.copytree(folders / "adaptive", tmp_path / "c")
    store, wanted = Store(folder), load_curves(folder)
    spoiled, gone, *_ = store.files("more_verdicts")
    rows, info = store.read_checked("more_verdicts", spoiled)
    turned = pc.invert(rows["right"])
    flipped = rows.set_column(rows.schema.get_field_index("right"), "right", turned)
    store.write_shard("more_verdicts", spoiled, flipped, source=info.source, work=info.work)
    assert not np.array_equal(load_curves(folder).extra_correct, wanted.extra_correct)
    changes = changed_verdicts(folder)
    assert sum(change.answer.count for change in changes.changed) == rows.num_rows
    assert all(change.answer.response for change in changes.changed)
    assert grade_campaign(folder, again=True).finished
    assert np.array_equal(load_curves(folder).extra_correct, wanted.extra_correct)
    assert changed_verdicts(folder).changed == ()
    Path(folder, gone).unlink()
    with pytest.raises(StoreError, match="lack some of 2 rounds"):
        load_curves(folder)
    assert grade_campaign(folder).finished
    assert np.array_equal(load_curves(folder).extra_correct, wanted.extra_correct)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('8\nplan = "adaptive"\nfirst_probes = 16', "begins with fewer than probes"),
        ('8\nplan = "adaptive"\nshare = 0.2', "no more than the 4 of the first pass"),
        ('8\nplan = "clever"', "plan"),
    ],
)
def test_plans_that_cannot_be_are_refused(configure, lines, message):
    with pytest.raises(ConfigError, match=message):
        configure(step_tokens=lines, probes=16)


def test_settings_of_uniform_campaigns_have_no_plan(configure, adaptive):
    assert not [name for name in configure().settings() if "plan" in name or "share" in name]
    assert adaptive.settings()["probing.plan"] == "adaptive"


def test_uniform_campaigns_have_no_rounds(folders, configure):
    with pytest.raises(MisuseError, match="adaptive"):
        run_rounds(configure(), folders / "full", choose_every_third, open_model=open_scripted)


def test_parts_and_merges_are_refused(folders, adaptive, tmp_path):
    (tmp_path / "c.toml").write_text(adaptive.to_toml())
    result = CliRunner().invoke(
        app, ["run", str(tmp_path / "c.toml"), "--out", str(tmp_path / "x"), "--shard", "1/2"]
    )
    assert isinstance(result.exception, MisuseError)
    with pytest.raises(MisuseError, match="cannot be merged"):
        merge_campaigns([folders / "adaptive"], tmp_path / "merged")
