"""How far work is: the stage at work alone, names whole and text, results left in place."""

import doctest
import re
import threading
import time
from io import StringIO

import pytest
from rich.console import Console

import data.progress
import stp.cli.progress
from data.progress import NOBODY
from stp.cli import early_lines, lines
from stp.cli.progress import shown_progress
from stp.cli.stages import StagesShown

LONG = "row 12 of 17, hidden_probe(strengths=(0.1,), layers=(2, 5)), deciding, some-model-32B"
NASTY = "a[bold]b[/x]\x1b[2J"
SEEN = "a[bold]b[/x]\N{SYMBOL FOR ESCAPE}[2J"


def screen(written):
    """Return the lines that a terminal shows after what was written to it."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", written):
        if part == "\r":
            column = 0
        elif part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif part.startswith("\x1b"):
            count = int(re.sub(r"\D", "", part) or 1)
            row -= count if part.endswith("A") else 0
            lines[row] = "" if part.endswith("K") else lines[row]
        else:
            lines[row] = lines[row].ljust(column)[:column] + part + lines[row][column + len(part) :]
            column += len(part)
    assert max(map(len, lines)) <= 80
    return [line.rstrip() for line in lines if line.strip()]


@pytest.fixture
def clock(monkeypatch):
    now = [50.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    # Who looks whether a line is due would see a clock that was just put forward.
    monkeypatch.setattr(stp.cli.progress, "LOOKS_EVERY_SECONDS", 1e6)
    return now


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    return Console(file=StringIO(), force_terminal=True, width=80, height=24, color_system=None)


def test_only_the_stage_at_work_is_shown_and_no_name_is_cut(terminal, clock):
    with shown_progress(terminal) as progress:
        for stage in ("starting", *(f"stage {i}" for i in range(40)), LONG):
            progress.stage(stage)
        progress.show(LONG, 0, 60)
        progress.show("another", 0, 0)
        clock[0] += 4
        progress.show(LONG, 0, 60)
        clock[0] += 2
        progress.show(LONG, 30, 60)
        progress._bar.refresh()
        shown = screen(terminal.file.getvalue())
    *names, bar = shown
    assert " ".join(names) == LONG
    assert re.search(r"[━╸] +50 %, 2 s left$", bar)
    assert screen(terminal.file.getvalue()) == []


def test_results_stay_where_they_were_printed(terminal):
    with shown_progress(terminal) as progress:
        for row in range(3):
            progress.stage(f"row {row}")(1, 2)
            with progress.aside():
                terminal.file.write(f"result {row}\n")
        progress.stage("at last")
        progress._bar.refresh()
        shown = screen(terminal.file.getvalue())
    assert shown[:4] == ["result 0", "result 1", "result 2", "at last"]
    assert screen(terminal.file.getvalue()) == ["result 0", "result 1", "result 2"]


def test_the_bar_goes_when_the_work_fails(terminal):
    with pytest.raises(ValueError, match="x"), shown_progress(terminal) as progress:
        progress.stage("stage")(1, 2)
        raise ValueError("x")
    assert screen(terminal.file.getvalue()) == []


@pytest.mark.parametrize("dumb", [False, True])
def test_elsewhere_there_is_a_line_at_once_and_then_now_and_then(monkeypatch, clock, dumb):
    monkeypatch.setenv("TERM", "dumb")
    console = Console(file=StringIO(), force_terminal=dumb, width=80, color_system=None)
    with shown_progress(console, at_once=True) as progress:
        progress.stage("starting")
        for second in range(25):
            clock[0] += 0.2
            progress.show("first[bold]" if second < 5 else f"{LONG}\x1b", 1 + second, 50)
        with progress.aside():
            pass
    assert console.file.getvalue().splitlines() == [
        "starting",
        # Six were done when it began, and three more in less than a second.
        f"{LONG}\N{SYMBOL FOR ESCAPE}: 9 of 50, 8 s left",
        f"{LONG}\N{SYMBOL FOR ESCAPE}: 18 of 50, 6 s left",
    ]


def test_work_that_reports_nothing_is_not_silent(clock):
    console = Console(file=StringIO(), width=80)
    with shown_progress(console) as progress:
        for stage, done in ((None, 0), ("reading", 0), ("counting", 3)):
            if stage:
                progress.show(stage, done, 10 if done else 0)
            for _ in range(2):
                clock[0] += 1.5
                progress.beat()
        progress.end("counting")
        progress.meanwhile(f"closing{NASTY}")
        clock[0] += 2
        progress.beat()
        progress.stage("later")
        clock[0] += 600
        progress.beat()
        for _ in range(10):
            clock[0] += 1
            progress.beat()
    assert console.file.getvalue().splitlines() == [
        "starting: 3 s elapsed",
        "reading: 3 s elapsed",
        "counting: 3 of 10, 3 s elapsed",
        f"closing{SEEN}: 2 s elapsed",
        "later: 10 min 00 s elapsed",
        # From then on there is a line every ten seconds only.
        "later: 10 min 10 s elapsed",
    ]


def test_a_terminal_that_shows_a_bar_gets_no_lines(terminal, clock):
    with shown_progress(terminal) as progress:
        progress.stage("reading")
        clock[0] += 30
        progress.beat()
    assert "elapsed" not in terminal.file.getvalue()


def test_lines_come_by_themselves():
    console = Console(file=StringIO(), width=80)
    with shown_progress(console) as progress:
        progress.stage("reading")
        deadline = time.monotonic() + 60
        while not console.file.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert console.file.getvalue() == "reading: 2 s elapsed\n"


@pytest.mark.parametrize("moves", [False, True])
def test_names_of_strangers_stay_text(moves, clock, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    console = Console(file=StringIO(), width=80, force_terminal=moves, color_system=None)
    with shown_progress(console) as progress:
        stage = progress.stage(NASTY)
        clock[0] += 20
        stage(10, 100)
    assert SEEN in console.file.getvalue()
    assert "\x1b[2J" not in console.file.getvalue()


def test_a_stage_that_was_spoken_of_says_when_it_is_done(clock):
    console = Console(file=StringIO(), width=80)
    with shown_progress(console) as progress:
        for name, size in (("short", 2), ("long", 1000), ("short again", 2)):
            stage = progress.stage(name)
            for share in (0.0, 0.3, 0.5, 1.0, 1.0):
                clock[0] += size / 100
                stage(int(share * size), size)
    assert console.file.getvalue().splitlines() == [
        "long: 0 of 1,000, 10 s elapsed",
        "long: 300 of 1,000, 47 s left",
        "long: 500 of 1,000, 30 s left",
        "long: 1,000 of 1,000",
        "short again",
        "short again: 2 of 2",
    ]


def test_work_that_is_gone_on_with_is_not_timed_by_what_was_done_before(clock):
    console = Console(file=StringIO(), width=80)
    with shown_progress(console) as progress:
        for done in (800, 840, 900):
            progress.show("thinking", done, 1000)
            clock[0] += 11
    assert console.file.getvalue().splitlines() == [
        "thinking: 840 of 1,000, 11 s elapsed",
        # 22 seconds for 100.
        "thinking: 900 of 1,000, 22 s left",
    ]


def test_a_campaign_says_where_a_stage_begins_and_ends(clock):
    console = Console(file=StringIO(), width=40)
    with shown_progress(console) as screen:
        observer = StagesShown(screen)
        observer.stage_started("generate", done=2, total=1000)
        observer.stage_finished("generate")
    assert console.file.getvalue() == "generating: 2 of 1,000 trajectories are done\n"


def test_nobody_has_to_be_told():
    NOBODY.stage("anything").within("more").part(1, 2)(1, 1)


@pytest.mark.parametrize("module", [lines, data.progress])
def test_examples_run(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_a_command_that_loads_long_is_not_silent(monkeypatch, capsys):
    monkeypatch.setattr(early_lines, "SECONDS_BETWEEN_LINES", 0.01)
    with early_lines.early_lines():
        deadline = time.monotonic() + 60
        while "at work" not in (said := capsys.readouterr().err) and time.monotonic() < deadline:
            sum(range(10_000))
        with shown_progress(Console(file=StringIO())):
            assert early_lines.progress_is_shown() is None
    assert said.startswith("at work: ")
    assert said.endswith(" elapsed\n")


def test_no_line_is_said_after_the_end(monkeypatch, capsys):
    """The lines are ended while one is about to be said: it is said before, or not at all."""
    about = threading.Event()

    def slow_duration(seconds):
        about.set()
        time.sleep(0.2)
        return lines.duration(seconds)

    monkeypatch.setattr(early_lines, "SECONDS_BETWEEN_LINES", 0.01)
    monkeypatch.setattr(early_lines, "duration", slow_duration)
    with early_lines.early_lines():
        (speaker,) = (one for one in threading.enumerate() if one.name == "early lines")
        assert about.wait(60)
        early_lines.progress_is_shown()
        capsys.readouterr()
        speaker.join(60)
        assert not speaker.is_alive()
        assert capsys.readouterr().err == ""
        assert early_lines.progress_is_shown() is None


def test_a_line_is_due_two_seconds_after_the_last_one_whoever_said_it(clock):
    console = Console(file=StringIO(), width=80)
    with early_lines.early_lines():
        clock[0] += 1.5
        with shown_progress(console) as progress:
            progress.beat()
            assert not console.file.getvalue()
            clock[0] += 0.4
            progress.beat()
            assert console.file.getvalue() == "starting: 2 s elapsed\n"
