"""Verdicts are kept for later runs, and a run continues where they cannot be."""

import logging

import pytest

from evaluator.answers import Checker
from stp.campaign.run import grade_campaign, run_campaign


@pytest.fixture
def opened(monkeypatch):
    """The cache files of the checkers that grade; others, as of references, are given none."""
    paths = []
    original = Checker.__init__

    def remember(self, **options):
        if "cache_path" in options:
            paths.append(options["cache_path"])
        original(self, **options)

    monkeypatch.setattr(Checker, "__init__", remember)
    return paths


def test_a_run_keeps_its_verdicts_and_grading_again_does_not_trust_them(
    configure, opener, tmp_path, monkeypatch, opened
):
    monkeypatch.setenv("STP_CACHE_DIR", str(tmp_path / "cache"))
    run_campaign(configure(), tmp_path / "c", open_model=opener)
    assert opened == [tmp_path / "cache" / "verdicts.sqlite"]
    assert opened[0].is_file()
    grade_campaign(tmp_path / "c", again=True)
    assert opened[1:] == [None]


def test_a_cache_that_cannot_be_written_costs_no_run(
    configure, opener, tmp_path, monkeypatch, caplog, opened
):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("STP_CACHE_DIR", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING):
        assert run_campaign(configure(), tmp_path / "c", open_model=opener).finished
    assert opened == [None]
    assert "verdicts are not kept for later runs" in caplog.text
