"""Which engine of a pool gets which unit, and when; without a cluster (see like_ray)."""

import threading
import time

import pytest

from data.errors import EngineError
from stp.campaign import pool as pool_module
from stp.campaign.pool import RayPool
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.stream import may_wait
from tests.campaign.fakes import ScriptedEngine, StreamingEngine
from tests.campaign.like_ray import LikeRay
from tests.campaign.rows import rows_of

ENGINES = "[engine]\nactors = 2\nunits_in_flight = 10\n"


@pytest.fixture
def ray(monkeypatch):
    ray = LikeRay()
    monkeypatch.setattr(pool_module, "_import_ray", lambda: ray)
    monkeypatch.setattr(pool_module, "_connect", lambda ray, address: False)
    return ray


def pool(prepared, open_model):
    return RayPool(prepared, open_model=open_model)


class _Opener:
    """Opens engines one after the other, and keeps them."""

    def __init__(self, engine):
        self.engines, self._engine, self._lock = [], engine, threading.Lock()

    def __call__(self, name, folder):
        with self._lock:
            number = len(self.engines)
            engine = self._engine(folder, number)
            self.engines.append(engine)
        return engine


class _Ended(SilentObserver):
    """Acts when so many units are written."""

    def __init__(self, units, action):
        self.left, self.action = units, action

    def unit_finished(self, stage, unit, work):
        self.left -= 1
        if self.left == 0:
            self.action()


@pytest.fixture
def unbroken(configure, tmp_path):
    config = configure(questions=1, unit_trajectories=1, trajectories=4)
    run_campaign(config, tmp_path / "unbroken", open_model=lambda _, path: ScriptedEngine(path))
    return rows_of(tmp_path / "unbroken")


def test_an_engine_takes_more_than_its_rows_hold_only_while_there_is_enough_for_all():
    assert may_wait(1, engines=1, under_way=100)
    assert may_wait(9, engines=2, under_way=4)
    assert not may_wait(8, engines=2, under_way=4)
    assert may_wait(1, engines=8, under_way=0)


def test_an_engine_that_is_open_later_still_gets_its_share(ray, configure, tmp_path):
    """The first one fills its rows, and leaves what would only wait there to the other."""
    full = threading.Event()
    under_way = [0, 0]

    class Engine(StreamingEngine):
        """Ends nothing before both have what they are to have."""

        def __init__(self, folder, number):
            super().__init__(folder, seed=number)
            self.number = number
            self.given_up_at = time.monotonic() + 20

        def _work(self):
            if full.is_set() or time.monotonic() > self.given_up_at:
                super()._work()
                return
            under_way[self.number] = len(self._flights)
            if under_way[1] >= self.rows:
                full.set()
            time.sleep(0.01)

    def open_engine(folder, number):
        if number == 1:
            # Long enough for the first to take all that it may.
            time.sleep(1.0)
        return Engine(folder, number)

    # 30 units of one sample; an engine has 12 rows.
    engines = ENGINES.replace("10", "100")
    config = configure(engines, questions=1, unit_trajectories=1, trajectories=3)
    opener = _Opener(open_engine)
    assert run_campaign(config, tmp_path / "c", open_model=opener, open_pool=pool).finished
    assert under_way == [12, 12]


def test_an_actor_that_is_lost_costs_its_units_and_nothing_that_is_written(
    ray, configure, unbroken, tmp_path, caplog
):
    class Engine(StreamingEngine):
        """The first one ends nothing; its actor is lost."""

        def __init__(self, folder, number):
            super().__init__(folder, seed=number)
            self.first = number == 0

        def _work(self):
            if self.first:
                time.sleep(0.01)
            else:
                super()._work()

    opener = _Opener(Engine)

    def lose_first():
        rooms = [actor.instance._room for actor in ray.actors]
        engines = [None if room is None else room._engine for room in rooms]
        ray.actors[engines.index(opener.engines[0])].lose()

    config = configure(ENGINES, questions=1, unit_trajectories=1, trajectories=4)
    folder = tmp_path / "c"
    result = run_campaign(
        config, folder, open_model=opener, open_pool=pool, observer=_Ended(15, lose_first)
    )
    assert result.finished and len(ray.actors) == 3
    lost = caplog.text.count("was lost with its actor and is given to another")
    assert 1 < lost <= 10  # What it had in flight.
    assert rows_of(folder) == unbroken


def test_an_engine_that_dies_in_an_actor_is_opened_anew_there(ray, configure, unbroken, tmp_path):
    died = threading.Event()

    class Dying(StreamingEngine):
        def _work(self):
            if self.calls == 5 and not died.is_set():
                died.set()
                raise EngineError("the card fell out")
            super()._work()

    opener = _Opener(lambda folder, number: Dying(folder, seed=number))
    config = configure(ENGINES, questions=1, unit_trajectories=1, trajectories=4)
    folder = tmp_path / "c"
    assert run_campaign(config, folder, open_model=opener, open_pool=pool).finished
    assert len(opener.engines) == 3 and len(ray.actors) == 2
    assert rows_of(folder) == unbroken


def test_a_stop_finishes_what_both_engines_have(ray, configure, unbroken, tmp_path):
    stop = threading.Event()
    config = configure(ENGINES, questions=1, unit_trajectories=1, trajectories=4)
    opener = _Opener(lambda folder, number: StreamingEngine(folder, seconds_per_call=0.01))
    folder = tmp_path / "c"
    options = {"open_model": opener, "open_pool": pool}
    halted = run_campaign(config, folder, stop=stop, observer=_Ended(10, stop.set), **options)
    # Each had ten at most.
    assert not halted.finished and 10 <= halted.units <= 30
    assert run_campaign(config, folder, **options).finished
    assert rows_of(folder) == unbroken
