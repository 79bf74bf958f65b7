"""The driver: it finds the units that are left, and writes each when its last sample has ended.

Units flow through an engine: while the last samples of one end, others are begun, and what has its
trajectories is probed while others still generate (:mod:`stp.campaign.stream`). Held in memory are
the units under way, however large the campaign is. Knows when to stop, and what is missing, damaged
or out of date; workers do the work on a unit (:mod:`stp.campaign.workers`).
"""

import contextlib
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from evaluator.answers import ModelVerdict
from stp.campaign.asked import mend_references, warn_of_mended_files
from stp.campaign.backlog import Backlog
from stp.campaign.config import CampaignConfig
from stp.campaign.early import check_engine, engine_is_needed, planned_units
from stp.campaign.jobs import JobPool, UnitTask
from stp.campaign.lock import Part
from stp.campaign.manifest import StageRecord
from stp.campaign.models import own_context
from stp.campaign.prepare import Prepared, prepare_campaign
from stp.campaign.shares import EarlyShares
from stp.campaign.store import Store
from stp.campaign.stream import LocalPool
from stp.campaign.sum_up import sum_up
from stp.campaign.tables import ShardInfo, Work, counts_of, of_fewer_probes, round_source
from stp.campaign.units import STAGE_TABLES, STAGES, Cell, Stage, Unit
from stp.campaign.watchdog import Watchdog, end_process
from stp.campaign.workers import (
    EngineOpener,
    EngineRoom,
    EngineWorker,
    GenerateWorker,
    GradeWorker,
    ProbeWorker,
    Worker,
)
from stp.engines import open_engine
from stp.engines.base import Engine

_LOG = logging.getLogger(__name__)


class Observer(Protocol):
    """Receives the progress of a run. Every call comes from the thread that runs.

    Several stages, and several units of each, may be under way at once.
    """

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Say that a stage begins, with the trajectories done and their total."""

    def unit_progressed(
        self, stage: Stage, unit: Unit, fraction: float, samples: int, tokens: int
    ) -> None:
        """Say how far a unit is, and what ended since the last call: samples, with their tokens."""

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Say that a unit is written."""

    def stage_finished(self, stage: Stage) -> None:
        """Say that nothing of a stage is left."""


class SilentObserver:
    """Ignores the progress."""

    def stage_started(self, stage: Stage, *, done: int, total: int) -> None:
        """Do nothing."""

    def unit_progressed(
        self, stage: Stage, unit: Unit, fraction: float, samples: int, tokens: int
    ) -> None:
        """Do nothing."""

    def unit_finished(self, stage: Stage, unit: Unit, work: Work) -> None:
        """Do nothing."""

    def stage_finished(self, stage: Stage) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run ended.

    Attributes
    ----------
    finished
        Nothing of the stages asked for is left. False where the run was asked to stop, or where
        units wait.
    units
        Units done by this run.
    waiting
        Units that could not be done because the stage before has not done them.
    """

    finished: bool
    units: int
    waiting: int = 0


PoolOpener = Callable[[Prepared, EngineOpener], JobPool]
"""Opens a pool for a campaign, given how an engine is opened."""


class _StopAskedError(Exception):
    """The run was asked to stop, and no unit is under way."""


def run_campaign(
    config: CampaignConfig,
    url: str | Path,
    *,
    stages: Sequence[Stage] = STAGES,
    observer: Observer | None = None,
    stop: threading.Event | None = None,
    open_model: EngineOpener | None = None,
    open_pool: PoolOpener | None = None,
    part: Part | None = None,
    attempts: int = 3,
    retry_seconds: float = 1.0,
    on_stall: Callable[[str], None] = end_process,
) -> RunResult:
    """Run a campaign, or continue it.

    Parameters
    ----------
    config
        What to do.
    url
        The campaign's folder, made if it is not there.
    stages
        Which stages; each continues where it was, over the units that the stage before has done.
    observer
        Told how it goes.
    stop
        Set it from a signal handler: the run then ends after the units under way.
    open_model
        Opens an engine for a model; by default the one that the configuration names.
    open_pool
        Opens a pool of engines elsewhere; by default there is none, and one engine here does all.
    part
        Only this part of the units. Parts may be run side by side, into one folder or several.
    attempts, retry_seconds
        How often a unit is tried while its engine fails, and the wait before the second time,
        which doubles from then on. The engine is opened again, unless one request alone failed.
    on_stall
        Called from another thread, with one line, when the engine has given nothing for
        ``engine.stall_seconds``. It should end the process, as the default does.

    Raises
    ------
    data.errors.StpError
        One line that says what went wrong. What was written is kept.
    """
    store = Store(url)
    # Other machines may have what this one has not.
    here = open_model is None and open_pool is None
    if here and engine_is_needed(store, config, stages, part):
        check_engine(config.engine.name, config.engine.options)
    with store.lock(part):
        with store.preparing(part):
            prepared = prepare_campaign(store, config, may_grow=part is None)
        opener = open_model or configured_engine(config)
        room = EngineRoom(
            prepared,
            open_model=opener,
            attempts=attempts,
            retry_seconds=retry_seconds,
            watchdog=Watchdog(config.engine.stall_seconds, on_stall=on_stall),
            # At once: a run that is killed later has made rows with this engine.
            on_described=lambda: store.write_manifest(prepared.manifest),
        )
        run = StagedRun(
            store=store,
            prepared=prepared,
            observer=observer or SilentObserver(),
            stop=stop or threading.Event(),
            workers={
                "generate": GenerateWorker(store),
                "probe": ProbeWorker(store),
                "grade": GradeWorker(store, prepared.manifest),
            },
            part=part,
        )
        with engines_at_hand(run, room, open_pool, prepared, opener):
            return run_stages(run, stages)


def grade_campaign(
    url: str | Path,
    *,
    again: bool = False,
    unsandboxed: bool = False,
    model_judge: ModelVerdict | None = None,
    references: Path | None = None,
    benchmark: str | None = None,
    observer: Observer | None = None,
    stop: threading.Event | None = None,
) -> RunResult:
    """Grade what is probed and not graded, without a model.

    Parameters
    ----------
    url
        A campaign's folder.
    again
        Grade everything again, whatever verdicts there are.
    unsandboxed
        Allow programs to run without a sandbox if there is none.
    model_judge
        Judges answers in words, as of :class:`evaluator.answers.Checker`.
    references, benchmark
        New references to take into the campaign first, and whose they are: see
        :func:`stp.campaign.asked.mend_references`.
    observer, stop
        As :func:`run_campaign`.

    Raises
    ------
    data.errors.StpError
        One line that says what went wrong. Verdicts written before are kept.
    """
    store = Store(url)
    store.read_manifest()
    with store.lock():
        config, manifest = store.read_campaign()
        if references is not None:
            mend_references(store, manifest, references, benchmark=benchmark)
        elif again:
            files = [entry.name for entry in config.benchmarks]
            warn_of_mended_files(store, manifest, files)
        worker = GradeWorker(
            store, manifest, again=again, unsandboxed=unsandboxed, model_judge=model_judge
        )
        run = StagedRun(
            store=store,
            prepared=Prepared(config=config, manifest=manifest, models=()),
            observer=observer or SilentObserver(),
            stop=stop or threading.Event(),
            workers={"grade": worker},
        )
        return run_stages(run, ("grade",))


def configured_engine(config: CampaignConfig) -> EngineOpener:
    """Return what opens the engine that a campaign names."""

    def open_model(name: str, folder: Path) -> Engine:
        options = dict(config.engine.options)
        if config.engine.name == "vllm":
            # It reserves its cache for the longest request that there may be.
            own = own_context(folder) or config.generation.context_limit
            options.setdefault("context_limit", min(config.generation.context_limit, own))
        return open_engine(config.engine.name, folder, **options)

    return open_model


@dataclass(slots=True, kw_only=True)
class StagedRun:
    """A run under way: who does its stages' units, and what it has done so far."""

    store: Store
    prepared: Prepared
    observer: Observer
    stop: threading.Event
    workers: dict[Stage, Worker]
    pool: JobPool | None = None
    part: Part | None = None
    units: int = 0
    waiting: int = 0


@contextlib.contextmanager
def engines_at_hand(
    run: StagedRun,
    room: EngineRoom,
    open_pool: PoolOpener | None,
    prepared: Prepared,
    opener: EngineOpener,
) -> Iterator[None]:
    """Give a run its pool, by default one engine here; afterwards close it and the room."""
    with contextlib.closing(room), contextlib.ExitStack() as held:
        if open_pool is None:
            run.pool = LocalPool(room, prepared.config)
        else:
            run.pool = held.enter_context(contextlib.closing(open_pool(prepared, opener)))
        yield


def run_stages(run: StagedRun, stages: Sequence[Stage]) -> RunResult:
    """Do what is left of the stages; the caller holds the folder's lock."""
    manifest = run.prepared.manifest
    asked = [stage for stage in STAGE_TABLES if stage in stages]
    engine_stages: dict[Stage, EngineWorker] = {
        stage: worker for stage in asked if isinstance(worker := run.workers[stage], EngineWorker)
    }
    for stage in asked:
        manifest.stages[stage] = StageRecord()
    try:
        if engine_stages:
            _run_engine_stages(run, engine_stages)
        for stage in asked:
            worker = run.workers[stage]
            if isinstance(worker, GradeWorker):
                with contextlib.closing(worker):
                    _run_grading(run, worker)
    except _StopAskedError:
        _note_work(run)
        return RunResult(finished=False, units=run.units, waiting=run.waiting)
    _note_work(run)
    if run.part is None:
        sum_up(run.store, run.prepared.config, manifest)
    return RunResult(finished=run.waiting == 0, units=run.units, waiting=run.waiting)


def _note_work(run: StagedRun) -> None:
    """Write the work of all stages into the manifest. A part knows only its own, and leaves it."""
    if run.part is None:
        run.store.write_manifest(run.prepared.manifest)


def _planned(run: StagedRun) -> Iterator[Unit]:
    return planned_units(run.store, run.prepared.config, run.prepared.manifest, run.part)


def _run_engine_stages(run: StagedRun, workers: dict[Stage, EngineWorker]) -> None:
    """Have the units of all stages that need an engine done, and write each when it is."""
    records = run.prepared.manifest.stages
    backlog = Backlog(workers, _planned(run), partial(_finished_work, run.store))
    run.waiting += backlog.waiting
    for stage, state in backlog.stages.items():
        for work in state.works:
            records[stage].add(work)
        run.observer.stage_started(stage, done=state.done, total=state.total)

    def on_progress(task: UnitTask, fraction: float, samples: int, tokens: int) -> None:
        run.observer.unit_progressed(task.stage, task.unit, fraction, samples, tokens)

    early = EarlyShares(thinks=run.prepared.config.generation.mode == "thinking")
    totals = Counter[Cell]()
    for unit in _planned(run):
        totals[unit.cell] += unit.trajectories
    cells = {record.cell: record for record in run.prepared.manifest.cells}
    if any(state.left for state in backlog.stages.values()):
        assert run.pool is not None
        for done in run.pool.run(backlog, run.stop, on_progress):
            task = done.task
            _write(run, task.stage, task.unit, task.source, done.tables, done.work)
            records[task.stage].add(done.work)
            if task.stage == "generate":
                cell = task.unit.cell
                counts, count = counts_of(done.tables[0]), task.unit.trajectories
                for line in early.add(cells[cell], counts, trajectories=count, total=totals[cell]):
                    _LOG.warning("%s", line)
            for stage, work in backlog.written(task.stage, task.unit):
                records[stage].add(work)
                run.observer.unit_finished(stage, task.unit, work)
    if any(state.left for state in backlog.stages.values()):
        raise _StopAskedError
    for stage in workers:
        run.observer.stage_finished(stage)


def _run_grading(run: StagedRun, worker: GradeWorker) -> None:
    """Grade what is left, one unit after the other."""
    record = run.prepared.manifest.stages["grade"]
    pending: list[tuple[Unit, str]] = []
    done = total = 0
    for unit in _planned(run):
        total += unit.trajectories
        source = worker.source(unit)
        if source is None:
            run.waiting += 1
            continue
        work = _finished_work(run.store, "grade", unit, source, worker.again)
        if work is None:
            pending.append((unit, source))
        else:
            done += unit.trajectories
            record.add(work)
    run.observer.stage_started("grade", done=done, total=total)
    for unit, source in pending:
        if run.stop.is_set():
            raise _StopAskedError
        _grade_unit(run, worker, unit, source, record)
    probing = run.prepared.config.probing
    if probing.plan == "adaptive":
        for unit, number in itertools.product(_planned(run), range(1, probing.rounds + 1)):
            if run.stop.is_set():
                raise _StopAskedError
            grade_round(run.store, worker, unit, number)
    run.observer.stage_finished("grade")


def grade_round(store: Store, worker: GradeWorker, unit: Unit, number: int) -> None:
    """Grade a round's probes of a unit that are not graded yet, or were by another checker."""
    name = unit.round_shard("more_probes", number)
    info = store.verified_info("more_probes", name)
    first = store.shard_info("probes", unit.shard("probes"))
    if info is None or first is None or info.source != round_source(first.digest, number):
        return
    source = f"{info.digest} {worker.checker_of(unit)}"
    graded = unit.round_shard("more_verdicts", number)
    before = store.verified_info("more_verdicts", graded)
    if before is not None and before.source == source and not worker.again:
        return
    begin = time.monotonic()
    rows = store.read_shard("more_probes", name)
    verdicts = worker.judge(unit, rows)
    work = Work(samples=rows.num_rows, seconds=max(0.0, time.monotonic() - begin))
    store.write_shard("more_verdicts", graded, verdicts, source=source, work=work)


def _grade_unit(
    run: StagedRun, worker: GradeWorker, unit: Unit, source: str, record: StageRecord
) -> None:
    samples = 0

    def on_progress(fraction: float, ended: int, tokens: int = 0, /) -> None:
        nonlocal samples
        samples += ended
        run.observer.unit_progressed("grade", unit, fraction, ended, tokens)

    begin = time.monotonic()
    tables = worker.work(unit, on_progress)
    work = Work(samples=samples, seconds=max(0.0, time.monotonic() - begin))
    _write(run, "grade", unit, source, tables, work)
    record.add(work)


def _write(
    run: StagedRun,
    stage: Stage,
    unit: Unit,
    source: str,
    tables: tuple[pa.Table, ...],
    work: Work,
) -> None:
    """Write a unit's rows."""
    names = STAGE_TABLES[stage]
    for name, rows in zip(names, tables, strict=True):
        # The last table of a stage carries its work, so that it is counted once.
        share = work if name == names[-1] else Work()
        run.store.write_shard(name, unit.shard(name), rows, source=source, work=share)
    run.units += 1
    run.observer.unit_finished(stage, unit, work)


def _finished_work(store: Store, stage: Stage, unit: Unit, source: str, again: bool) -> Work | None:
    """Return the work of a stage that has done a unit, or None; set aside what cannot be used.

    What was made from rows that are gone or changed, or by another checker, is out of date.
    """
    if again:
        return None
    infos: list[ShardInfo | None] = []
    for table in STAGE_TABLES[stage]:
        name = unit.shard(table)
        info = store.verified_info(table, name)
        if info is not None and info.source != source:
            # Verdicts are cheap to make again, and are simply replaced; probes may be completed.
            if stage != "grade" and not of_fewer_probes(info.source, source):
                store.set_aside(name, "outdated")
            info = None
        infos.append(info)
    last = infos[-1]
    return None if last is None or None in infos else last.work
