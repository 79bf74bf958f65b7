"""How far long work is: bars on a terminal, a line now and then elsewhere."""

import io

from rich.console import Console

from evaluator.watch import nobody, stage_of
from stp.cli import watching
from stp.cli.watching import shown_stages


def test_elsewhere_a_line_says_now_and_then_how_far_a_stage_is(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(watching.time, "monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=80)
    with shown_stages(console) as watch:
        short = stage_of(watch, "short")
        for done in (1, 2):
            now[0] += 4
            short(done, 2)
        long = stage_of(watch, "long")
        for done, seconds in ((1, 11), (2, 1), (200, 10), (300, 5)):
            now[0] += seconds
            long(done, 1000)
    assert console.file.getvalue().splitlines() == [
        # The first piece says nothing about the rest.
        "long: 1 of 1,000, unknown time left",
        # 22 seconds for 200.
        "long: 200 of 1,000, 1 min 28 s left",
    ]


def test_on_a_terminal_every_stage_has_a_bar():
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with shown_stages(console) as watch:
        for stage in ("reading curves", "bootstrap"):
            progress = stage_of(watch, stage)
            for done in range(1, 4):
                progress(done, 3)
    text = console.file.getvalue()
    assert "reading curves" in text and "bootstrap" in text
    assert "3/3" in text and "left" in text


def test_nobody_has_to_watch():
    stage_of(nobody, "anything")(1, 2)
