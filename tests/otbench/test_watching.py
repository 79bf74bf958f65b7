"""How a run is shown: the stage at work alone, names whole, results left in place."""

import re
from io import StringIO

import pytest
from rich.console import Console

from stp.cli import watching_one
from stp.cli.watching_one import how_far, shown_one

LONG = "row 12 of 17, hidden_probe(strengths=(0.1,), layers=(2, 5)): deciding, some-model-32B"


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
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    return Console(file=StringIO(), force_terminal=True, width=80, height=24, color_system=None)


def test_only_the_stage_at_work_is_shown_and_no_name_is_cut(terminal):
    with shown_one(terminal) as progress:
        for stage in ("starting", *(f"stage {i}" for i in range(40)), LONG):
            progress(stage, 0, 0)
        progress(LONG, 30, 60)
        progress("another", 0, 0)
        progress(LONG, 30, 60)
        progress._progress.refresh()
        shown = screen(terminal.file.getvalue())
    *names, bar = shown
    assert " ".join(names) == LONG
    assert re.search(r"━ +50 %, 0:0\d left$", bar)
    assert screen(terminal.file.getvalue()) == []


def test_results_stay_where_they_were_printed(terminal):
    with shown_one(terminal) as progress:
        for row in range(3):
            progress(f"row {row}", 1, 2)
            with progress.aside():
                terminal.file.write(f"result {row}\n")
        progress("at last", 0, 0)
        progress._progress.refresh()
        shown = screen(terminal.file.getvalue())
    assert shown[:4] == ["result 0", "result 1", "result 2", "at last"]
    assert screen(terminal.file.getvalue()) == ["result 0", "result 1", "result 2"]


def test_the_bar_goes_when_the_work_fails(terminal):
    with pytest.raises(ValueError, match="x"), shown_one(terminal) as progress:
        progress("stage", 1, 2)
        raise ValueError("x")
    assert screen(terminal.file.getvalue()) == []


@pytest.mark.parametrize("dumb", [False, True])
def test_elsewhere_there_is_a_line_at_once_and_then_now_and_then(monkeypatch, dumb):
    monkeypatch.setenv("TERM", "dumb")
    now = [100.0]
    monkeypatch.setattr(watching_one.time, "monotonic", lambda: now[0])
    console = Console(file=StringIO(), force_terminal=dumb, width=80, color_system=None)
    with shown_one(console) as progress:
        progress("starting", 0, 0)
        for second in range(25):
            now[0] += 1
            progress("first[bold]" if second < 5 else f"{LONG}\x1b", 1 + second, 50)
        with progress.aside():
            pass
    assert console.file.getvalue().splitlines() == [
        "starting",
        f"{LONG}\N{SYMBOL FOR ESCAPE}: 20 %, 0:16 left",
        f"{LONG}\N{SYMBOL FOR ESCAPE}: 40 %, 0:21 left",
    ]


def test_a_long_time_has_hours():
    assert how_far(1, 10, 3600.0) == "10 %, 9:00:00 left"
