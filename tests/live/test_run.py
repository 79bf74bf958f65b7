"""A live run in a folder: stopped and continued, compared with its release, chosen from it."""

import json
import threading
from fractions import Fraction

import pytest

from data.errors import MisuseError, StoreMismatchError
from evaluator.live.choose import choose
from evaluator.live.compare import compare_live, read_live, summary
from evaluator.live.run import ROWS, run_live
from evaluator.live.setup import Wanted, get_ready, live_tasks
from stp.campaign.sections import EngineConfig, ModelConfig

pytestmark = pytest.mark.slow

DEMO = ModelConfig(path="demo")
ONE_THREAD = EngineConfig(options={"threads": 1})


def ready_for(release_folder, **wanted):
    asked = {"model": DEMO, "engine": ONE_THREAD, "release": release_folder, **wanted}
    return get_ready(Wanted(**asked))


class StopsAfter(threading.Event):
    """Is set once so many rows are in a file."""

    def __init__(self, path, rows):
        super().__init__()
        self._path, self._rows = path, rows

    def is_set(self):
        return self._path.exists() and self._path.read_bytes().count(b"\n") >= self._rows


def made_of(folder):
    """Return all rows but for their times, in one order."""
    rows = [json.loads(line) for line in (folder / "graded.jsonl").read_text().splitlines()]
    for row in rows:
        del row["seconds"]
    return rows


def test_a_run_goes_on_and_is_compared(release, release_folder, tmp_path):
    ready = ready_for(release_folder, method="deer", setting="0.95")
    tasks = live_tasks(ready, ())
    whole = run_live(ready, tasks, tmp_path / "whole", batch=4)
    assert whole.finished
    assert whole.made == 2 * len(tasks)
    stopped = run_live(
        ready, tasks, tmp_path / "parts", batch=4, stop=StopsAfter(tmp_path / "parts" / ROWS, 3)
    )
    assert not stopped.finished
    with pytest.raises(MisuseError, match="not finished"):
        read_live(tmp_path / "parts")
    # What a kill leaves: a line that was not finished.
    with (tmp_path / "parts" / ROWS).open("ab") as file:
        file.write(b'{"arm": "fu')
    rest = run_live(ready, tasks, tmp_path / "parts", batch=4)
    assert rest.finished
    assert rest.made == 2 * len(tasks) - stopped.made
    assert made_of(tmp_path / "parts") == made_of(tmp_path / "whole")
    assert run_live(ready, tasks, tmp_path / "parts", batch=4).made == 0

    other = ready_for(release_folder, method="deer", setting="0.9")
    with pytest.raises(StoreMismatchError, match=r"setting is 0\.95 in the folder"):
        run_live(other, tasks, tmp_path / "parts")

    table = compare_live(tmp_path / "whole", release, replicates=200)
    frame = table.frame
    # Each trajectory is compared with its own in the release, and live equals replay.
    for measure in ("thinking tokens", "signal tokens"):
        difference = frame.loc["measured - predicted", measure]
        assert (difference.low, difference.value, difference.high) == (0, 0, 0)
    assert (
        frame.loc["predicted, full", "thinking tokens"]
        == (frame.loc["measured, full", "thinking tokens"])
    )
    full, own = frame.loc["measured, full"], frame.loc["measured, method"]
    assert own["thinking tokens"].value < full["thinking tokens"].value
    assert full["signal tokens"].value == 0 < own["signal tokens"].value
    assert "saved" in table.note or "more" in table.note
    assert list(summary(read_live(tmp_path / "whole")).frame.index) == ["full", "method"]


def test_full_thinking_alone_has_nothing_to_compare(release, release_folder, tmp_path):
    ready = ready_for(release_folder)
    run_live(ready, live_tasks(ready, ())[:2], tmp_path / "full")
    with pytest.raises(MisuseError, match="--method"):
        compare_live(tmp_path / "full", release)


def test_a_choice_keeps_accuracy_or_a_budget(release):
    kept = choose(release, methods=("deer", "constant_cap", "always_think"), replicates=200)
    assert kept.accuracy >= kept.full_accuracy - 1e-9
    assert kept.tokens <= 100.0
    assert kept.accuracy_change[0] <= kept.accuracy - kept.full_accuracy <= kept.accuracy_change[1]
    within = choose(
        release, methods=("deer", "constant_cap"), tokens=Fraction(1, 2), replicates=200
    )
    assert within.tokens <= 50.0
    with pytest.raises(MisuseError, match="stays within the budget"):
        choose(release, methods=("always_think",), tokens=Fraction(1, 2))
