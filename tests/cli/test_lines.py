"""How far work is, in lines: one rhythm for all of them, and names of strangers stay text."""

import doctest
import time
from io import StringIO

import pytest
from rich.console import Console

from stp.cli import lines
from stp.cli.progress import LineObserver
from stp.cli.think_progress import shown_progress
from stp.cli.watching import shown_stages
from stp.cli.watching_one import shown_one

NASTY = "a[bold]b[/x]\x1b[2J"
SEEN = "a[bold]b[/x]\N{SYMBOL FOR ESCAPE}[2J"


@pytest.fixture
def clock(monkeypatch):
    now = [50.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("shown", [shown_stages, shown_one])
@pytest.mark.parametrize("terminal", [False, True])
def test_names_of_strangers_stay_text(shown, terminal, clock, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=StringIO(), width=80, force_terminal=terminal, color_system=None)
    with shown(console) as watch:
        watch(NASTY, 0, 100)
        clock[0] += 20
        watch(NASTY, 10, 100)
    assert SEEN in console.file.getvalue()
    assert "\x1b[2J" not in console.file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_title_of_strangers_stays_text(terminal, monkeypatch):
    written = StringIO()
    console = Console(file=written, width=80, force_terminal=terminal, color_system=None)
    monkeypatch.setattr("stp.cli.think_progress.Console", lambda **options: console)
    with shown_progress(NASTY, "responses") as tell:
        tell(1, 2)
    assert SEEN in written.getvalue()
    assert "\x1b[2J" not in written.getvalue()


def test_work_that_is_gone_on_with_is_not_timed_by_what_was_done_before(clock):
    console = Console(file=StringIO(), width=80)
    with shown_stages(console) as watch:
        watch("thinking", 800, 1000)
        clock[0] += 11
        watch("thinking", 840, 1000)
        clock[0] += 11
        watch("thinking", 900, 1000)
    assert console.file.getvalue().splitlines() == [
        "thinking: 840 of 1,000, unknown time left",
        # 22 seconds for 100.
        "thinking: 900 of 1,000, 22 s left",
    ]


def test_a_study_says_where_it_begins_and_ends_and_now_and_then_between(clock, monkeypatch):
    written = StringIO()
    console = Console(file=written, width=80)
    monkeypatch.setattr("stp.cli.think_progress.Console", lambda **options: console)
    with shown_progress("m", "responses") as tell:
        for done, seconds in ((4, 3), (5, 3), (6, 3), (7, 3), (7, 30), (7, 0), (10, 0), (10, 0)):
            tell(done, 10)
            clock[0] += seconds
    assert written.getvalue().splitlines() == [
        "m: 4 of 10 responses",
        # Twelve seconds after the last line, three of ten later.
        "m: 7 of 10 responses, 12 s left",
        "m: 10 of 10 responses",
    ]


def test_a_campaign_says_where_a_stage_begins(clock):
    console = Console(file=StringIO(), width=40)
    observer = LineObserver(console)
    observer.stage_started("generate", done=2, total=1000)
    observer.stage_finished("generate")
    assert console.file.getvalue() == "generating: 2 of 1,000 trajectories are done\n"


def test_examples_run():
    found = doctest.testmod(lines)
    assert found.attempted > 0
    assert found.failed == 0
