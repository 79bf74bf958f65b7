"""Rounds of more probes at chosen positions, after a first pass over all of them.

Where the plan is adaptive, every position gets a few answers first. Then come rounds: a function
that sees the graded curves so far chooses positions, they are probed and graded, and the next round
begins. The function is given by the caller (:mod:`evaluator.analysis.latent` has one). Sample
numbers continue from the earlier ones, so their seeds, and with them the answers, are those of a
full campaign.

A round's shards are a unit's as all others, with the round's number in the name. A round that was
stopped continues the units that lack it; the choice is made again from the same curves, and so
is the same.
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from data.errors import MisuseError
from stp.campaign.asks import Asking
from stp.campaign.config import CampaignConfig
from stp.campaign.curves import load_curves
from stp.campaign.early import planned_units
from stp.campaign.jobs import JobPool, UnitTask
from stp.campaign.prepare import Prepared, Subject, prepare_campaign
from stp.campaign.probe import ChosenProbes, probe_unit
from stp.campaign.run import (
    Observer,
    PoolOpener,
    RunResult,
    SilentObserver,
    configured_engine,
    grade_round,
)
from stp.campaign.store import Store, read_questions
from stp.campaign.stream import LocalPool
from stp.campaign.tables import SCHEMAS, Work, round_source
from stp.campaign.trajectories import OnProgress
from stp.campaign.units import Unit
from stp.campaign.watchdog import Watchdog, end_process
from stp.campaign.workers import EngineOpener, EngineRoom, GradeWorker
from stp.curves import Curves
from stp.engines.base import Engine
from stp.ragged import FloatArray

Choose = Callable[[Curves, FloatArray, float, int], npt.NDArray[np.integer[Any]]]
"""Given the curves so far, the tokens that an answer takes at every position, the tokens to spend
in answers, and the most answers that a position may have in all, returns how many more to sample
at every position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreProbesJob:
    """Trajectories to more probes at chosen positions."""

    unit: Unit
    questions: pa.Table
    trajectories: pa.Table
    chosen: ChosenProbes

    def ask(
        self, engine: Engine, subject: Subject, config: CampaignConfig, on_progress: OnProgress
    ) -> Asking[tuple[pa.Table, ...]]:
        """Ask for the round's probes; return their rows."""
        _, probes = yield from probe_unit(
            self.unit,
            self.questions,
            self.trajectories,
            subject=subject,
            config=config,
            chosen=self.chosen,
            on_progress=on_progress,
        )
        return (probes,)


class _Round:
    """The tasks of one round that are left, as a pool takes them."""

    def __init__(self, tasks: list[UnitTask]) -> None:
        self._left = tasks

    def take(self, model: str | None, most_open: int) -> UnitTask | None:
        """Return the next task of a model; they do not wait for each other."""
        for place, task in enumerate(self._left):
            if model is None or task.unit.cell.model == model:
                return self._left.pop(place)
        return None

    def ready(self, model: str | None) -> int:
        """Return how many tasks of a model are left."""
        return sum(model in (None, task.unit.cell.model) for task in self._left)


def run_rounds(
    config: CampaignConfig,
    url: str | Path,
    choose: Choose,
    *,
    observer: Observer | None = None,
    stop: threading.Event | None = None,
    open_model: EngineOpener | None = None,
    open_pool: PoolOpener | None = None,
    on_stall: Callable[[str], None] = end_process,
) -> RunResult:
    """Do the rounds of an adaptive campaign whose first pass is graded, or continue them.

    Parameters
    ----------
    config
        The campaign, with an adaptive plan.
    url
        Its folder.
    choose
        Chooses the positions of a round.
    observer, stop, open_model, open_pool, on_stall
        As :func:`stp.campaign.run.run_campaign`. After a stop, the units under way are finished.

    Raises
    ------
    data.errors.MisuseError
        If the plan is not adaptive.
    data.errors.StpError
        One line that says what went wrong. What was written is kept.
    """
    if config.probing.plan != "adaptive":
        raise MisuseError('rounds of more probes need probing.plan = "adaptive"')
    store = Store(url)
    with store.lock():
        prepared = prepare_campaign(store, config)
        opener = open_model or configured_engine(config)
        room = EngineRoom(
            prepared,
            open_model=opener,
            attempts=3,
            retry_seconds=1.0,
            watchdog=Watchdog(config.engine.stall_seconds, on_stall=on_stall),
            on_described=lambda: store.write_manifest(prepared.manifest),
        )
        grader = GradeWorker(store, prepared.manifest)
        with contextlib.closing(room), contextlib.closing(grader), contextlib.ExitStack() as held:
            pool: JobPool = LocalPool(room, config)
            if open_pool is not None:
                pool = held.enter_context(contextlib.closing(open_pool(prepared, opener)))
            rounds = _Rounds(
                store=store,
                prepared=prepared,
                grader=grader,
                pool=pool,
                observer=observer or SilentObserver(),
                stop=stop or threading.Event(),
                units=list(planned_units(store, config, prepared.manifest)),
            )
            numbers = range(1, config.probing.rounds + 1)
            finished = all(rounds.do(number, choose) for number in numbers)
    return RunResult(finished=finished, units=rounds.written)


@dataclass(slots=True, kw_only=True)
class _Rounds:
    """Rounds under way."""

    store: Store
    prepared: Prepared
    grader: GradeWorker
    pool: JobPool
    observer: Observer
    stop: threading.Event
    units: list[Unit]
    written: int = 0

    def do(self, number: int, choose: Choose) -> bool:
        """Do a round; return whether nothing of it is left."""
        tasks = self.tasks(number, choose)
        total = sum(unit.trajectories for unit in self.units)
        left = {task.unit for task in tasks}
        done = total - sum(unit.trajectories for unit in left)
        self.observer.stage_started("rounds", done=done, total=total)
        for made in self.pool.run(_Round(tasks), self.stop, self.tell) if tasks else ():
            self.write(number, made.task, made.tables[0], made.work)
            left.discard(made.task.unit)
        if left:
            return False
        for unit in self.units:
            grade_round(self.store, self.grader, unit, number)
        self.observer.stage_finished("rounds")
        return True

    def tell(self, task: UnitTask, fraction: float, samples: int, tokens: int) -> None:
        self.observer.unit_progressed("rounds", task.unit, fraction, samples, tokens)

    def tasks(self, number: int, choose: Choose) -> list[UnitTask]:
        """Return what is left of a round; units without a chosen position are written at once."""
        sources = {unit: self._source(unit, number) for unit in self.units}
        missing = {
            unit
            for unit, source in sources.items()
            if not self._is_done("more_probes", unit, number, source)
        }
        if not missing:
            return []
        probing = self.prepared.config.probing
        curves = load_curves(self.store.url, rounds=number - 1)
        answer_tokens = np.concatenate([self._answer_tokens(unit) for unit in self.units])
        spent = probing.share * probing.probes - probing.first_probes
        budget = spent * float(answer_tokens.sum()) / probing.rounds
        more = np.asarray(choose(curves, answer_tokens, budget, probing.probes), np.int64)
        have = curves.all_probes_k.astype(np.int64)
        tasks, first = [], 0
        for rank, unit in enumerate(self.units):
            rows = self.store.read_shard("positions", unit.shard("positions"))
            part = slice(first, first + rows.num_rows)
            first = part.stop
            if unit not in missing:
                continue
            chosen = _chosen(rows, have[part], more[part])
            source = sources[unit] or ""
            if not chosen:
                empty = SCHEMAS["more_probes"].empty_table()
                self._put("more_probes", unit, number, empty, source, Work())
                continue
            job = MoreProbesJob(
                unit=unit,
                questions=read_questions(self.store, unit.cell),
                trajectories=self.store.read_shard("trajectories", unit.shard("trajectories")),
                chosen=chosen,
            )
            tasks.append(UnitTask(stage="rounds", unit=unit, source=source, job=job, rank=rank))
        return tasks

    def _answer_tokens(self, unit: Unit) -> FloatArray:
        """Return about how many tokens an answer takes at each of a unit's positions."""
        rows = self.store.read_shard("probes", unit.shard("probes"))
        # A unit's rows are those of its positions, in their order, as many at each.
        everywhere = self.prepared.config.probing.everywhere
        lengths = pc.list_value_length(rows["answer_ids"]).to_numpy().astype(np.float64)
        own = lengths.reshape(-1, everywhere).mean(axis=1)
        starts = np.flatnonzero(rows["position"].to_numpy()[::everywhere] == 0)
        # Few answers tell their mean badly; those of the whole trajectory have half a say.
        count = np.diff(np.append(starts, own.size))
        return np.asarray((own + np.repeat(np.add.reduceat(own, starts) / count, count)) / 2)

    def write(self, number: int, task: UnitTask, rows: pa.Table, work: Work) -> None:
        self._put("more_probes", task.unit, number, rows, task.source, work)
        self.written += 1
        self.observer.unit_finished("rounds", task.unit, work)

    def _source(self, unit: Unit, number: int) -> str | None:
        info = self.store.shard_info("probes", unit.shard("probes"))
        return None if info is None else round_source(info.digest, number)

    def _is_done(self, table: Any, unit: Unit, number: int, source: str | None) -> bool:
        info = self.store.verified_info(table, unit.round_shard(table, number))
        return info is not None and info.source == source

    def _put(
        self, table: Any, unit: Unit, number: int, rows: pa.Table, source: str, work: Work
    ) -> None:
        name = unit.round_shard(table, number)
        self.store.write_shard(table, name, rows, source=source, work=work)


def _chosen(
    positions: pa.Table, have: npt.NDArray[np.int64], more: npt.NDArray[np.int64]
) -> ChosenProbes:
    """Return where to ask, from what a unit's positions have and what more they are to get."""
    chosen: dict[tuple[int, int], dict[int, range]] = {}
    names = ("question", "trajectory", "position")
    columns = (positions[name].to_pylist() for name in names)
    for q, t, k, before, extra in zip(*columns, have.tolist(), more.tolist(), strict=True):
        if extra > 0:
            chosen.setdefault((q, t), {})[k] = range(before, before + extra)
    return chosen
