"""Parts of a campaign, their merge, and signals, from the command line."""

import pytest

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
    assert f"go on with: stp run {merged}" in outcome.err and "probe 2" in outcome.err
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


def test_signals_of_an_engine_that_shows_none(stp, campaign):
    assert_one_line(
        stp("signals", campaign, "--layers", "middle"), 2, "'middle' is no layer", "50%"
    )
    assert_one_line(stp("signals", campaign / "nothing"), 2, "no campaign here")
    outcome = stp("signals", campaign, "--layers", "none")
    assert_one_line(outcome, 2, "--engine transformers")


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
