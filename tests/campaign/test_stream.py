"""Several units under way: the rows of one unit at a time, whatever ends, fails or is stopped when.

The slow twin of the driver is the driver with one unit at a time, on an engine that works on all
trees of a phase in one step (:class:`tests.campaign.fakes.ScriptedEngine`).
"""

import asyncio
import itertools
import random
import threading

import pytest

from data.errors import EngineError, MisuseError
from stp.campaign.asks import answered
from stp.campaign.backlog import Backlog
from stp.campaign.jobs import UnitTask
from stp.campaign.pool import _Actor
from stp.campaign.prepare import prepare_campaign
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.store import Store
from stp.campaign.stream import window_of
from stp.campaign.units import Cell, Unit
from stp.campaign.workers import GenerateWorker
from stp.engines.base import RequestError
from tests.campaign.fakes import ScriptedEngine, StreamingEngine
from tests.campaign.rows import rows_of, table_rows


@pytest.fixture(scope="module")
def unbroken(configure, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "c"
    run_campaign(configure(), folder, open_model=lambda name, path: ScriptedEngine(path))
    return rows_of(folder)


def table_rows_of(shards, table):
    return [row for name, rows in shards.items() if name.startswith(table) for row in rows]


class _Seen(SilentObserver):
    """Remembers which units were under way at once, and acts after some were finished."""

    def __init__(self, after=0, action=lambda: None):
        self.under_way, self.most, self.written = set(), 0, []
        self.samples = self.tokens = 0
        self.after, self.action = after, action

    def unit_progressed(self, stage, unit, fraction, samples, tokens):
        self.samples += samples
        self.tokens += tokens
        if stage != "grade":
            self.under_way.add((stage, unit.number))
            self.most = max(self.most, len(self.under_way))

    def unit_finished(self, stage, unit, work):
        self.under_way.discard((stage, unit.number))
        self.written.append((stage, unit.number))
        if len(self.written) == self.after:
            self.action()


def stream(
    config, folder, *, engine=StreamingEngine, observer=None, seed=0, retry_seconds=0, **options
):
    engines = []

    def open_model(name, path):
        engines.append(engine(path, seed=seed + len(engines)))
        return engines[-1]

    result = run_campaign(
        config,
        folder,
        open_model=open_model,
        observer=observer,
        retry_seconds=retry_seconds,
        **options,
    )
    return result, engines


@pytest.mark.parametrize("window", [2, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_the_rows_are_those_of_one_unit_at_a_time(window, seed, configure, unbroken, tmp_path):
    seen = _Seen()
    config = configure(f"[engine]\nunits_in_flight = {window}\n")
    result, (engine,) = stream(config, tmp_path / "c", observer=seen, seed=seed)
    assert result.finished and result.units == 24
    assert rows_of(tmp_path / "c") == unbroken
    assert 1 < seen.most <= window
    # Units that were begun first are finished first, as far as their samples allow.
    order = [unit for stage, unit in seen.written if stage == "probe"]
    assert all(later > unit - 2 * window for i, unit in enumerate(order) for later in order[i:])
    stages = Store(tmp_path / "c").read_manifest().stages
    assert stages["probe"].samples == len(table_rows(tmp_path / "c", "probes"))
    generated = sum(stages[stage].generated_tokens for stage in ("generate", "probe"))
    assert generated == engine.usage.generated_tokens == seen.tokens
    assert stages["probe"].usage.prefill_amplification == 1.0


def test_the_engine_chooses_the_window_and_probing_begins_while_others_generate(
    configure, unbroken, tmp_path
):
    class Small(StreamingEngine):
        rows = 3

    seen = _Seen()
    _, (engine,) = stream(configure(), tmp_path / "c", engine=Small, observer=seen)
    assert 1 < seen.most <= window_of(engine, unit_of(4), None) == 6
    assert rows_of(tmp_path / "c") == unbroken
    first_probe = seen.written.index(("probe", 0))
    assert ("generate", 7) not in seen.written[:first_probe]
    # While there was anything to begin, the rows were full.
    assert engine.steps_with_room <= 0.4 * engine.steps
    # And the engine held what runs, as much again, and the rest of a tree.
    assert engine.most_pending_trees <= 2 * engine.rows


def unit_of(trajectories: int) -> Unit:
    return Unit(
        cell=Cell(model="m", benchmark="b", questions=1),
        number=0,
        question_start=0,
        question_stop=1,
        trajectory_start=0,
        trajectory_stop=trajectories,
    )


def test_rows_are_full_from_the_first_step_on(configure, unbroken, tmp_path):
    """A step of a server's engine is long: units are begun before it until the rows are full."""

    class Counting(StreamingEngine):
        rows = 40
        at_first = 0

        def work(self, trees):
            self.at_first = self.at_first or self._waiting
            return super().work(trees)

    config = configure("[engine]\nunits_in_flight = 8\n")
    _, (engine,) = stream(config, tmp_path / "c", engine=Counting)
    samples = config.shards.questions * config.generation.trajectories
    assert samples < engine.rows <= engine.at_first
    assert rows_of(tmp_path / "c") == unbroken


def test_the_window_is_by_rows_and_by_units(model_folder):
    engine = StreamingEngine(model_folder)
    engine.rows = 256
    assert window_of(engine, unit_of(64), None) == 32
    assert window_of(engine, unit_of(10_000), None) == 3
    assert window_of(engine, unit_of(64), 5) == 5
    assert window_of(ScriptedEngine(model_folder), unit_of(64), None) == 1


class _Dying(StreamingEngine):
    """Dies now and then, in the middle of whatever is in flight."""

    deaths = 6

    def work(self, trees):
        if type(self).deaths and self._draws.random() < 0.1:
            type(self).deaths -= 1
            raise RuntimeError("the card fell out\nof its slot")
        return super().work(trees)


@pytest.mark.parametrize("seed", range(5))
def test_an_engine_that_dies_costs_the_units_in_flight_and_nothing_that_is_written(
    seed, configure, unbroken, tmp_path, caplog
):
    class Dying(_Dying):
        pass

    seen = _Seen()
    config = configure("[engine]\nunits_in_flight = 5\n")
    result, engines = stream(
        config, tmp_path / "c", engine=Dying, observer=seen, seed=100 * seed, attempts=9
    )
    assert result.finished
    assert len(engines) == 1 + _Dying.deaths - Dying.deaths > 1
    assert all(engine.closed for engine in engines)
    assert len(seen.written) == len(set(seen.written)) == 24
    assert rows_of(tmp_path / "c") == unbroken
    assert "the card fell out" in caplog.text and "of its slot" not in caplog.text


class _Poisoned(StreamingEngine):
    """Dies whenever one tree is among those it works on, and does not know why."""

    def work(self, trees):
        for tree in trees:
            if self.is_poison(tree):
                raise RuntimeError("illegal memory access")
        return super().work(trees)

    def is_poison(self, tree):
        return len(tree.branches) > 1 and tree.branches[0].seeds[0] == type(self).seed


@pytest.mark.parametrize("seed", range(3))
def test_a_unit_that_kills_engines_is_named_and_the_others_are_finished(
    seed, configure, unbroken, tmp_path, monkeypatch
):
    begun = []
    take = Backlog.take

    def noting(self, *arguments):
        task = take(self, *arguments)
        if task is not None:
            begun.append((task.stage, task.unit.number))
        return task

    monkeypatch.setattr(Backlog, "take", noting)
    poison = next(row for row in table_rows_of(unbroken, "probes") if row["question"] == 4)

    class Poisoned(_Poisoned):
        seed = poison["seed"]

    config = configure("[engine]\nunits_in_flight = 4\n")
    seen = _Seen()
    with pytest.raises(EngineError) as caught:
        stream(config, tmp_path / "c", engine=Poisoned, observer=seen, seed=seed)
    message = str(caught.value)
    assert "failed 3 times on scripted on sevens, questions 3 to 5" in message
    assert f"question sevens-5, trajectory {poison['trajectory']}: illegal memory access" in message
    # Whatever was begun, before it or beside it, is written, and it is not.
    assert len(begun) == len(set(begun)) >= 5
    assert set(begun) - set(seen.written) == {("probe", 2)}
    assert stream(configure(), tmp_path / "c")[0].finished
    assert rows_of(tmp_path / "c") == unbroken


def test_a_request_that_fails_costs_its_unit_a_retry_and_the_others_nothing(
    configure, unbroken, tmp_path, caplog
):
    class Picky(StreamingEngine):
        left = 2

        def work(self, trees):
            for index, tree in enumerate(trees):
                if len(tree.branches) > 3 and type(self).left:
                    type(self).left -= 1
                    raise RequestError("no such request", tree=index, branch=2)
            return super().work(trees)

    result, engines = stream(
        configure("[engine]\nunits_in_flight = 4\n"), tmp_path / "c", engine=Picky
    )
    assert result.finished and len(engines) == 1
    assert rows_of(tmp_path / "c") == unbroken
    failed = [line for line in caplog.messages if line.startswith("attempt")]
    assert len(failed) == 2 and all("position 2: no such request" in line for line in failed)
    # Asked again were trees of the units that failed, no others: at most two units of each.
    whole = len(table_rows_of(unbroken, "probes")) + 2 * len(table_rows_of(unbroken, "questions"))
    assert engines[0].samples < 1.6 * whole


def test_a_request_that_keeps_failing_lets_the_others_finish_first(configure, unbroken, tmp_path):
    class Failing(StreamingEngine):
        def work(self, trees):
            for index, tree in enumerate(trees):
                if len(tree.branches) > 1 and len(tree.trunk_ids) > 0:
                    raise RequestError("no such request", tree=index)
            return super().work(trees)

    seen = _Seen()
    config = configure("[engine]\nunits_in_flight = 4\n")
    with pytest.raises(EngineError, match=r"failed 3 times .* no such request"):
        stream(config, tmp_path / "c", engine=Failing, observer=seen)
    assert all(stage == "generate" for stage, _ in seen.written)
    assert stream(configure(), tmp_path / "c")[0].finished
    assert rows_of(tmp_path / "c") == unbroken


@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_stop_finishes_what_is_under_way_and_begins_no_more(after, configure, unbroken, tmp_path):
    stop = threading.Event()
    begun = {}

    def halt():
        begun["then"] = set(seen.under_way)
        stop.set()

    seen = _Seen(after, halt)
    config = configure("[engine]\nunits_in_flight = 4\n")
    result, _ = stream(config, tmp_path / "c", observer=seen, stop=stop)
    assert not result.finished
    assert begun["then"] <= set(seen.written)
    assert len(seen.written) <= after + 4
    again, _ = stream(config, tmp_path / "c")
    assert again.finished and again.units == 24 - len(seen.written)
    assert rows_of(tmp_path / "c") == unbroken


@pytest.mark.parametrize("attempts", [2, 3])
@pytest.mark.parametrize("error", [RuntimeError("died"), RequestError("not this one", tree=0)])
def test_a_stop_does_not_wait_out_the_pause_before_a_retry(
    error, attempts, configure, unbroken, tmp_path
):
    class Halting(threading.Event):
        """Is set while it is waited for, as by Ctrl-C."""

        waits = ()

        def wait(self, timeout=None):
            self.waits = (*self.waits, timeout)
            self.set()
            return super().wait(timeout)

    class Failing(StreamingEngine):
        def work(self, trees):
            raise error

    stop = Halting()
    config = configure("[engine]\nunits_in_flight = 3\n")
    result, _ = stream(
        config,
        tmp_path / "c",
        engine=Failing,
        stop=stop,
        retry_seconds=100,
        attempts=attempts,
    )
    assert not result.finished and result.units == 0
    assert len(stop.waits) == 1 and 50 < stop.waits[0] <= 100
    assert stream(config, tmp_path / "c")[0].units == 24
    assert rows_of(tmp_path / "c") == unbroken


def test_a_second_stop_drops_what_is_under_way(configure, unbroken, tmp_path):
    class Interrupted(StreamingEngine):
        def work(self, trees):
            if self.steps == 25:
                raise KeyboardInterrupt
            return super().work(trees)

    seen = _Seen()
    config = configure("[engine]\nunits_in_flight = 4\n")
    with pytest.raises(KeyboardInterrupt):
        stream(config, tmp_path / "c", engine=Interrupted, observer=seen)
    assert seen.under_way
    again, _ = stream(config, tmp_path / "c")
    assert again.units == 24 - len(seen.written)
    assert rows_of(tmp_path / "c") == unbroken


def test_a_wrong_request_ends_the_run_at_once(configure, tmp_path):
    class Wrong(StreamingEngine):
        def _take(self, ticket, tree):
            if len(tree.branches) > 1:
                raise MisuseError("no such thing")
            super()._take(ticket, tree)

    with pytest.raises(MisuseError, match="no such thing"):
        stream(configure(), tmp_path / "c", engine=Wrong)


def test_seconds_of_units_add_up_to_those_of_the_run(configure, tmp_path):
    import time

    begin = time.monotonic()
    stream(configure("[engine]\nunits_in_flight = 4\n"), tmp_path / "c")
    spent = time.monotonic() - begin
    stages = Store(tmp_path / "c").read_manifest().stages
    seconds = sum(stages[stage].seconds for stage in ("generate", "probe"))
    assert 0 < seconds <= spent


def test_a_job_alone_is_its_own_twin():
    """`answered` drives a job by hand as the stream does."""

    class Two:
        def run(self, trees):
            return [len(trees)] * len(trees)

    def asking():
        from stp.campaign.asks import Ask

        first = yield Ask([1, 2], lambda *_: None)
        second = yield Ask([1], lambda *_: None)
        return first, second

    assert answered(asking(), Two()) == ([2, 2], [1])


def test_units_of_two_models_do_not_mix(configure, model_folder, unbroken, tmp_path):
    """The second model's engine is opened when nothing of the first is in flight."""
    config = configure("[engine]\nunits_in_flight = 4\n")
    other = config.models[0].model_copy(update={"name": "second"})
    both = config.model_copy(update={"models": (config.models[0], other)})
    opened = []

    class Noted(StreamingEngine):
        def __init__(self, path, **options):
            opened.append(self)
            super().__init__(path, **options)

        def close(self):
            assert not self.busy
            super().close()

    result, _ = stream(both, tmp_path / "c", engine=Noted)
    assert result.finished and len(opened) == 2
    rows = [row for row in table_rows(tmp_path / "c", "probes") if row["model"] == "scripted"]
    assert len(rows) == len(table_rows_of(unbroken, "probes"))


def test_random_windows_ends_and_stops_lose_and_double_nothing(configure, unbroken, tmp_path):
    draws = random.Random(11)
    for number in range(6):
        folder = tmp_path / f"c{number}"
        for _ in range(50):
            stop = threading.Event()
            seen = _Seen(draws.randint(1, 6), stop.set)
            config = configure(f"[engine]\nunits_in_flight = {draws.randint(1, 9)}\n")
            result, _ = stream(config, folder, observer=seen, seed=draws.random(), stop=stop)
            if result.finished:
                break
        assert rows_of(folder) == unbroken


def test_an_actor_goes_on_with_other_units_while_one_waits_to_be_tried_again(configure, tmp_path):
    """Without Ray: the actor is called as Ray calls it."""
    failed, order = threading.Event(), []

    class Picky(ScriptedEngine):
        def work(self, trees):
            if not failed.is_set():
                failed.set()
                raise RequestError("no such request", tree=0)
            return super().work(trees)

    store = Store(tmp_path / "c")
    prepared = prepare_campaign(store, configure("[engine]\nunits_in_flight = 2\n"))
    worker = GenerateWorker(store)
    units = store.plan(prepared.config, prepared.manifest.cells[0])
    first, second = (
        UnitTask(stage="generate", unit=unit, source="", job=worker.job(unit), rank=unit.number)
        for unit in itertools.islice(units, 2)
    )
    actor = _Actor(prepared.config, prepared.manifest, lambda name, folder: Picky(folder))
    actor._opened().retry_seconds = 4.0

    async def do(task):
        made = await actor.run(task)
        order.append(task.rank)
        return made

    async def both():
        waits = asyncio.create_task(do(first))
        await asyncio.to_thread(failed.wait)
        assert await actor.wanted(True) == 2
        return [await do(second), await waits]

    made = asyncio.run(both())
    assert order == [1, 0]
    kept = [set(entry.tables[0]["trajectory"].to_pylist()) for entry in made]
    assert kept == [{2}, {0, 1}]  # Of three trajectories in all, two a unit.
