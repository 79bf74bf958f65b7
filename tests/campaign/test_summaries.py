"""Summaries of cells: the same as the shards say, or not taken."""

import os
import shutil

import pytest

from stp.campaign import status as status_module
from stp.campaign.merge import merge_campaigns
from stp.campaign.reader import CampaignReader
from stp.campaign.run import grade_campaign, run_campaign
from stp.campaign.status import campaign_status
from stp.campaign.store import Store
from tests.campaign.fakes import ScriptedEngine

NAME = "summaries/scripted/sevens.parquet"


@pytest.fixture(scope="module")
def whole(configure, tmp_path_factory):
    folder = tmp_path_factory.mktemp("summaries") / "campaign"
    run_campaign(configure(), folder, open_model=lambda name, path: ScriptedEngine(path))
    return folder


@pytest.fixture
def copy(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


def said(folder):
    status = campaign_status(folder)
    stages = {stage: entry.model_dump() for stage, entry in status.stages.items()}
    shares = [cell.shares for cell in status.shares]
    return (
        (status.units, status.trajectories, stages, status.torn, shares),
        list(CampaignReader(folder).summaries()),
    )


@pytest.fixture
def opened(monkeypatch):
    """The units whose shards were looked at."""
    units = []
    real = status_module.unit_state

    def remember(store, unit, **how):
        units.append(unit)
        return real(store, unit, **how)

    monkeypatch.setattr(status_module, "unit_state", remember)
    monkeypatch.setattr("stp.campaign.reader.unit_state", remember)
    return units


def test_a_summary_says_what_the_shards_say(copy, opened):
    with_summary = said(copy)
    assert not opened
    (copy / NAME).unlink()
    assert said(copy) == with_summary
    assert opened


@pytest.mark.parametrize("change", ["flip", "torn", "gone", "older"])
def test_a_summary_that_does_not_hold_is_not_taken(copy, opened, change):
    expected = said(copy)
    path, shard = copy / NAME, copy / Store(copy).files("verdicts")[2]
    if change == "flip":
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 1
        path.write_bytes(bytes(content))
    elif change == "torn":
        path.write_bytes(path.read_bytes()[:100])
    elif change == "gone":
        shard.unlink()
    else:
        os.utime(shard, ns=(1, 1))
    found = said(copy)
    # A byte that says nothing may change.
    assert opened or change == "flip"
    if change == "gone":
        assert found[0][2]["grade"]["units"] == expected[0][2]["grade"]["units"] - 1
    else:
        assert found == expected


def test_whoever_writes_sums_up(copy, opened, configure, opener, tmp_path):
    grade_campaign(copy, again=True)
    opened.clear()
    graded = said(copy)
    assert not opened
    merge_campaigns([copy], tmp_path / "merged")
    opened.clear()
    assert said(tmp_path / "merged")[1] == graded[1]
    assert not opened
    # A run with nothing left to do sums up what was copied by other means.
    (copy / NAME).unlink()
    run_campaign(configure(), copy, open_model=opener)
    assert (copy / NAME).exists()
