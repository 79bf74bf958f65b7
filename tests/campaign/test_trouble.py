"""Requests that fail, engines that hang, clocks that jump: nothing is lost, nothing is graded."""

import contextlib
import decimal
import itertools
import logging
import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from data.errors import EngineError, StoreError, StpError
from evaluator.answers.mathematics import MathJudge
from stp.campaign import load_curves, watchdog
from stp.campaign.graded import graded_answers
from stp.campaign.run import grade_campaign, run_campaign
from stp.campaign.status import campaign_shares, campaign_status
from stp.campaign.store import Store
from stp.cli.verdicts import show_verdicts
from stp.engines import RequestError
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import rows_of, table_rows


@pytest.fixture(scope="module")
def unbroken(configure, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "c"
    run_campaign(configure(), folder, open_model=lambda name, path: ScriptedEngine(path))
    return rows_of(folder)


class Picky(ScriptedEngine):
    """Fails at one prompt of the probing, so often; knows which request it was, or does not."""

    left = 0
    knows = True
    opened = 0

    def __init__(self, folder, **options):
        super().__init__(folder, **options)
        type(self).opened += 1

    def work(self, trees):
        for index, tree in enumerate(trees):
            if len(tree.branches) > 3 and type(self).left:
                type(self).left -= 1
                if self.knows:
                    raise RequestError("no such request", tree=index, branch=2)
                raise EngineError("it broke")
        return super().work(trees)


@pytest.fixture
def picky():
    class Fresh(Picky):
        pass

    return Fresh


def run(engine, config, folder):
    return run_campaign(config, folder, open_model=lambda name, path: engine(path), retry_seconds=0)


def test_a_request_that_fails_is_tried_again_without_opening_the_engine_anew(
    picky, configure, unbroken, tmp_path
):
    picky.left = 2
    assert run(picky, configure(), tmp_path / "c").finished
    assert rows_of(tmp_path / "c") == unbroken
    assert picky.opened == 1


@pytest.mark.parametrize("knows", [True, False])
def test_a_request_that_keeps_failing_is_named_and_never_graded(
    knows, picky, configure, unbroken, tmp_path
):
    picky.left, picky.knows = 99, knows
    with pytest.raises(EngineError) as caught:
        run(picky, configure(), tmp_path / "c")
    message = str(caught.value)
    assert "\n" not in message
    first = next(
        (row["question"], row["trajectory"])
        for row in table_rows(tmp_path / "c", "trajectories")
        if row["question"] < 3 and row["trajectory"] < 2 and _positions(row) > 3
    )
    questions = {row["question"]: row for row in table_rows(tmp_path / "c", "questions")}
    named = f"question {questions[first[0]]['question_id']}, trajectory {first[1]}"
    assert f"{named}{', position 2' if knows else ''}: " in message
    assert ("no such request" if knows else "it broke") in message
    assert "nothing of it was graded" in message
    assert table_rows(tmp_path / "c", "verdicts") == []
    picky.left = 0
    assert run(picky, configure(), tmp_path / "c").finished
    assert rows_of(tmp_path / "c") == unbroken


def _positions(row) -> int:
    from stp.segmentation import segment

    return len(segment(row["thinking_ids"], BOUNDARIES, 8))


# Ids of the two boundary tokens of the scripted model.
BOUNDARIES = frozenset({261, 262})


class _StalledError(Exception):
    """Stands for the end of the process."""


def test_an_engine_that_gives_nothing_is_noticed_and_one_that_is_slow_is_not(
    configure, unbroken, tmp_path, monkeypatch
):
    config = configure("[engine]\nstall_seconds = 0.5\n")
    said: list[str] = []
    hang, looked = threading.Event(), threading.Event()
    now = 0.0

    def clock():
        looked.set()
        return now

    # The watchdog's time passes only where the engine lets it.
    monkeypatch.setattr(watchdog, "time", SimpleNamespace(monotonic=clock))

    class Slow(ScriptedEngine):
        def work(self, trees):
            nonlocal now
            if len(trees[0].branches) == 1:
                if self.calls == 0:
                    for _ in range(8):  # Longer than it may hang, but it shows that it lives.
                        now += 0.3
                        self.pulse += 1
                        looked.clear()
                        assert looked.wait(60)
                return super().work(trees)
            while not hang.is_set():
                now += 0.3
                looked.clear()
                assert looked.wait(60)
            raise _StalledError

    def on_stall(message):
        said.append(message)
        hang.set()

    with pytest.raises(_StalledError):
        run_campaign(
            config, tmp_path / "c", open_model=lambda name, path: Slow(path), on_stall=on_stall
        )
    (message,) = said
    assert "gave nothing for 0.5 seconds on scripted on sevens, questions 0 to 2" in message
    assert "\n" not in message
    done = Store(tmp_path / "c").files("trajectories")
    assert done
    assert run_campaign(
        config, tmp_path / "c", open_model=lambda name, path: ScriptedEngine(path)
    ).finished
    assert rows_of(tmp_path / "c") == unbroken


def test_a_clock_that_jumps_changes_nothing(configure, unbroken, tmp_path, monkeypatch):
    """An hour back, a day forward, at every look."""
    real, jumps = time.time, itertools.cycle((-3600.0, 86_400.0, 0.0, -1e9))
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    begin = time.monotonic()
    assert run_campaign(
        configure(), tmp_path / "c", open_model=lambda name, path: ScriptedEngine(path)
    ).finished
    spent = time.monotonic() - begin
    assert rows_of(tmp_path / "c") == unbroken
    for stage in Store(tmp_path / "c").read_manifest().stages.values():
        assert 0 <= stage.seconds <= spent


def test_a_warning_says_what_failed(picky, configure, tmp_path, caplog):
    picky.left = 1
    with caplog.at_level(logging.WARNING):
        run(picky, configure(), tmp_path / "c")
    assert "attempt 1 on scripted on sevens, questions" in caplog.text
    assert "position 2: no such request" in caplog.text


@pytest.mark.parametrize("where", ["quick", "extract"])
def test_a_rule_that_fails_is_recorded_counted_and_shown(
    where, configure, opener, tmp_path, monkeypatch, capsys
):
    def fails(self, text):
        raise decimal.InvalidOperation

    run_campaign(configure(), tmp_path / "c", open_model=opener)
    with monkeypatch.context() as patch:
        patch.setattr(MathJudge, where, fails)
        grade_campaign(tmp_path / "c", again=True)
    (cell,) = campaign_shares(tmp_path / "c")
    failed = [row for row in table_rows(tmp_path / "c", "verdicts") if "rule" in row["reason"]]
    assert cell.share("troubled").count == len(failed) > 0
    assert not any(row["right"] for row in failed)
    said = " ".join(cell.sentences())
    assert f"a rule failed on it: {len(failed)}" in said
    assert "--trouble" in said
    found = graded_answers(tmp_path / "c", trouble=True)
    assert found.responses == len(failed)
    assert all(answer.response for answer in found.answers)
    show_verdicts(tmp_path / "c", trouble=True, n=3)
    shown = capsys.readouterr().out
    assert found.answers[0].question.reference in shown
    assert "a rule failed on it (InvalidOperation)" in shown
    grade_campaign(tmp_path / "c", again=True)
    assert graded_answers(tmp_path / "c", trouble=True).responses == 0


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_files_of_a_campaign_that_have_no_end_are_refused(kind, configure, tmp_path):
    """A folder from elsewhere may hold pipes, which give nothing, or links to devices."""
    folder = tmp_path / "c"
    run_campaign(configure(), folder, open_model=lambda name, path: ScriptedEngine(path))
    names = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    assert len(names) > 8
    signal.alarm(120)  # Each would be read for ever.
    try:
        for name in names:
            kept = (folder / name).read_bytes()
            (folder / name).unlink()
            if kind == "pipe":
                os.mkfifo(folder / name)
            else:
                (folder / name).symlink_to("/dev/zero")
            for read in (campaign_status, load_curves, graded_answers):
                with contextlib.suppress(StpError):
                    read(folder)
            with pytest.raises(StoreError, match="a pipe or a device"):
                Store(folder).read_bytes(str(name))
            (folder / name).unlink()
            (folder / name).write_bytes(kept)
    finally:
        signal.alarm(0)
    assert campaign_status(folder).finished


@pytest.mark.parametrize("read", [load_curves, graded_answers])
def test_a_torn_file_is_named_once_by_who_leaves_it_out(read, configure, tmp_path, caplog):
    folder = tmp_path / "c"
    run_campaign(configure(), folder, open_model=lambda name, path: ScriptedEngine(path))
    torn = sorted((folder / "probes").rglob("*.parquet"))[0]
    torn.write_bytes(torn.read_bytes()[:-9])
    caplog.clear()
    for _ in range(2):
        with contextlib.suppress(StpError):
            read(folder)
    said = [record.getMessage() for record in caplog.records if "is torn" in record.getMessage()]
    assert len(said) == 1 and torn.name in said[0] and "stp run" in said[0]
