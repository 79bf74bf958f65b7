"""Parts of a campaign, their merge, and signals, from the command line."""

import shutil

import pytest

from stp.campaign.early import planned_units
from stp.campaign.signal_record import (
    SIGNALS_FILE,
    SignalSettings,
    SignalsRecord,
    signal_source,
)
from stp.campaign.store import Store
from stp.campaign.tables import SCHEMAS, make_table
from stp.campaign.units import STAGE_TABLES
from stp.cli.main import _arguments
from tests.campaign.rows import rows_of
from tests.cli.test_commands import assert_one_line


def test_parts_are_run_and_merged(stp, campaign_file, campaign, tmp_path):
    for number in (1, 2):
        folder = tmp_path / f"part-{number}"
        outcome = stp("run", campaign_file, "--out", folder, "--shard", f"{number}/2")
        assert outcome.code == 0, outcome.err
        assert f"part {number} of 2 is done" in outcome.err and "stp merge" in outcome.err
    merged = tmp_path / "merged"
    outcome = stp("merge", tmp_path / "part-1", "--out", merged)
    assert outcome.code == 0
    assert f"continue: stp run {merged}" in outcome.err and "probe 2" in outcome.err
    outcome = stp("merge", tmp_path / "part-1", tmp_path / "part-2", "--out", merged)
    assert "8 shards written" in outcome.err and "all 5 units are done" in outcome.err
    assert rows_of(merged) == rows_of(campaign)


def test_what_cannot_be_merged_or_parted_is_one_line(stp, campaign_file, campaign, tmp_path):
    outcome = stp("run", campaign_file, "--out", tmp_path / "c", "--shard", "3/2")
    assert_one_line(outcome, 2, "no part 3 of 2")
    outcome = stp("run", campaign_file, "--out", tmp_path / "c", "--shard", "half")
    assert_one_line(outcome, 2, "as in 2/8")
    assert not (tmp_path / "c").exists()
    assert_one_line(stp("merge", tmp_path, "--out", tmp_path / "m"), 2, "no campaign here")
    assert_one_line(stp("merge", campaign, "--out", campaign), 2, "is one of the parts")


@pytest.mark.parametrize(
    "shard", ["0/2", "3/2", "2/0", "0/0", "-1/2", "1/2/3", "", "1.5/2", "half"]
)
@pytest.mark.parametrize("further", [(), ("--dry-run",)])
def test_a_wrong_shard_is_refused_before_anything_is_prepared(
    stp, campaign_file, campaign, tmp_path, shard, further
):
    outcome = stp("run", campaign_file, "--out", tmp_path / "c", "--shard", shard, *further)
    assert_one_line(outcome, 2, "as in")
    assert "preparing" not in outcome.err and not (tmp_path / "c").exists()
    shutil.copytree(campaign, tmp_path / "done", ignore=shutil.ignore_patterns(SIGNALS_FILE))
    assert_one_line(stp("signals", tmp_path / "done", "--shard", shard), 2, "as in")
    assert not (tmp_path / "done" / SIGNALS_FILE).exists()


def test_wrong_engine_options_are_refused_before_anything_is_read(
    stp, campaign_file, tmp_path, monkeypatch
):
    from stp.campaign import prepare, run
    from stp.campaign.early import check_engine

    def locate(model):
        raise AssertionError("a model was looked for")

    monkeypatch.setattr(run, "check_engine", check_engine)
    monkeypatch.setattr(prepare, "locate_model", locate)
    file = campaign_file.with_name("options.toml")
    for option, part in (("max_row = 3", "did you mean 'max_rows'"), ("threads = 0", "is 0")):
        file.write_text(campaign_file.read_text() + f"\n[engine.options]\n{option}\n")
        outcome = stp("run", file, "--out", tmp_path / "c")
        assert_one_line(outcome, 2, part)
        assert_one_line(stp("run", file, "--dry-run"), 2, part)
    assert not (tmp_path / "c").exists()


def test_signals_of_an_engine_that_shows_none(stp, campaign):
    assert_one_line(
        stp("signals", campaign, "--layers", "middle"), 2, "'middle' is not a layer", "50%"
    )
    assert_one_line(stp("signals", campaign / "nothing"), 2, "no campaign here")
    outcome = stp("signals", campaign, "--layers", "none")
    assert_one_line(outcome, 2, "--engine transformers")


def read_signals(folder, units):
    """Write shards as reading the signals of the first units would, without rows in them."""
    store = Store(folder)
    record = SignalsRecord(settings=SignalSettings(layers=()))
    store.write_bytes(SIGNALS_FILE, record.model_dump_json().encode())
    config, manifest = store.read_campaign()
    for unit in list(planned_units(store, config, manifest))[:units]:
        digest = store.shard_info("trajectories", unit.shard("trajectories")).digest
        source = signal_source(unit, trajectories=digest, settings=record.settings)
        for table in STAGE_TABLES["signals"]:
            rows = make_table(table, {name: [] for name in SCHEMAS[table].names})
            store.write_shard(table, unit.shard(table), rows, source=source)


def test_status_counts_the_signals_that_are_read(stp, campaign, tmp_path):
    folder = tmp_path / "c"
    shutil.copytree(campaign, folder)
    (folder / SIGNALS_FILE).unlink(missing_ok=True)
    assert "signals:" not in stp("status", folder).out
    read_signals(folder, 0)
    assert f"signals: 0 of 20 trajectories; continue: stp signals {folder}" in (
        stp("status", folder).out
    )
    read_signals(folder, 3)
    assert "signals: 12 of 20 trajectories; continue" in stp("status", folder).out
    read_signals(folder, 5)
    assert "signals: 20 of 20 trajectories\n" in stp("status", folder).out
    # What is not generated cannot be read: `stp run` is what continues.
    store = Store(folder)
    name = store.files("trajectories")[0]
    (folder / name).rename(tmp_path / "aside")
    out = stp("status", folder).out
    assert "signals: 16 of 20 trajectories\n" in out and f"continue: stp run {folder}" in out
    (folder / store.files("signals")[1]).unlink()
    assert "signals: 12 of 20 trajectories; continue: stp signals" in stp("status", folder).out
    (tmp_path / "aside").rename(folder / name)
    read_signals(folder, 5)
    # Other trajectories than those that were read.
    rows, info = store.read_checked("trajectories", name)
    store.write_shard("trajectories", name, rows.slice(1), source=info.source)
    assert "signals: 16 of 20 trajectories; continue" in stp("status", folder).out


def test_status_says_what_makes_a_torn_file_again(stp, campaign, tmp_path):
    folder = tmp_path / "c"
    shutil.copytree(campaign, folder)
    read_signals(folder, 5)
    store = Store(folder)
    for table, command in (
        ("signals", "signals"),
        ("prompt_signals", "signals"),
        ("probes", "run"),
    ):
        name = store.files(table)[1]
        whole = store.read_bytes(name)
        store.write_bytes(name, whole[: len(whole) // 2])
        out = stp("status", folder).out
        assert f"torn: {name}; `stp {command} {folder}` makes it again" in out
        assert out.count("torn:") == 1
        if command == "signals":
            assert "signals: 16 of 20" in out
        store.write_bytes(name, whole)
    store.write_bytes(SIGNALS_FILE, b"{")
    out = stp("status", folder).out
    assert f"torn: signals.json; `stp signals {folder} --again` makes it again" in out
    assert "trajectories; continue" not in out and "complete" in out


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (["run", "c", "--ray"], "auto"),
        (["run", "--ray", "c.toml", "--out", "x"], "auto"),
        (["run", "c", "--ray", "--out", "x"], "auto"),
        (["run", "c", "--ray", "local"], "local"),
        (["run", "c", "--ray", "auto"], "auto"),
        (["run", "c", "--ray", "10.0.0.7:6379"], "10.0.0.7:6379"),
        (["run", "c", "--ray", "ray://head:10001"], "ray://head:10001"),
    ],
)
def test_an_address_may_be_left_out(given, address):
    arguments = _arguments(["--debug", *given])
    assert "--debug" not in arguments
    assert arguments[arguments.index("--ray") + 1] == address
    assert [item for item in arguments if item != address] == [
        item for item in given if item != address
    ]
