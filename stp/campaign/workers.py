"""What each stage does with one unit: make a job of its rows for an engine, or grade them.

A worker knows where its rows come from; it does not know which units there are, nor does it write.
``source`` is a digest of what a unit's rows are made from: rows that carry another one are out of
date.
"""

import contextlib
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from data.errors import EngineError, MisuseError
from evaluator.answers import CHECKER_VERSION, Checker, ModelVerdict
from stp.campaign.asked import campaign_questions
from stp.campaign.grade import grade_unit
from stp.campaign.jobs import GenerateJob, Job, ProbeJob
from stp.campaign.manifest import CellRecord, Manifest
from stp.campaign.prepare import Prepared, Subject, make_subject
from stp.campaign.store import Store, read_questions
from stp.campaign.tables import (
    SCHEMAS,
    of_fewer_probes,
    probe_source,
    trajectory_source,
    verdict_source,
)
from stp.campaign.text import StoredTokenizer
from stp.campaign.trajectories import OnProgress
from stp.campaign.units import Cell, Unit
from stp.campaign.watchdog import Watchdog
from stp.engines.base import Engine

_LOG = logging.getLogger(__name__)

EngineOpener = Callable[[str, Path], Engine]
"""Opens the engine of a model, given its name and folder."""

_UNITS_PER_CHECKER = 32
"""A checker remembers every answer it has seen; a new one now and then keeps memory bounded."""


class EngineRoom:
    """Keeps at most one model open, with the limits for failures.

    Parameters
    ----------
    prepared
        The campaign.
    open_model
        Opens an engine.
    attempts, retry_seconds
        As :func:`stp.campaign.run.run_campaign`.
    watchdog
        Watches the engine while it works.
    on_described
        Called when the manifest has learnt what engine runs a model.
    """

    def __init__(
        self,
        prepared: Prepared,
        *,
        open_model: EngineOpener,
        attempts: int,
        retry_seconds: float,
        watchdog: Watchdog,
        on_described: Callable[[], None],
    ) -> None:
        self._prepared = prepared
        self._on_described = on_described
        self._open_model = open_model
        self.attempts = attempts
        self.retry_seconds = retry_seconds
        self.watchdog = watchdog
        self._engine: Engine | None = None
        self._subject: Subject | None = None
        self._model = ""

    def close(self) -> None:
        """Close the open engine, if any."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def subject(self, name: str) -> Subject:
        """Return how a model is prompted."""
        if self._subject is None or self._subject.name != name:
            located = self._prepared.located(name)
            record = self._prepared.manifest.model_record(name)
            self._subject = make_subject(self._prepared.config, located, record)
        return self._subject

    def drop(self) -> None:
        """Close an engine that failed: it may be dead, and closing it must not hide why."""
        with contextlib.suppress(EngineError, RuntimeError, OSError):
            self.close()
        self._engine = None

    def engine(self, name: str) -> Engine:
        """Return a model's engine, opened if it is not; that of another model is closed then.

        Raises
        ------
        data.errors.StpError
            If it cannot be opened, or its context is shorter than the campaign's.
        """
        if self._engine is not None and self._model == name:
            return self._engine
        self.close()
        engine = self._open_model(name, self._prepared.located(name).folder)
        record = self._prepared.manifest.model_record(name)
        if engine.context_limit < record.context_limit:
            limit = engine.context_limit
            engine.close()
            raise MisuseError(
                f"the engine gives {name} a context of {limit} tokens, and this campaign was "
                f"made for {record.context_limit}; set generation.context_limit = {limit} and "
                "start it in another folder"
            )
        described = engine.describe()
        if record.engine and record.engine != described:
            _LOG.warning(
                "%s runs differently than before: %s, now %s", name, record.engine, described
            )
        self._engine, self._model = engine, name
        if not record.engine:
            record.engine = dict(described)
            self._on_described()
        return engine


class Worker(ABC):
    """One stage's work on a unit."""

    again = False
    """Whether to do units that are done."""

    @abstractmethod
    def source(self, unit: Unit) -> str | None:
        """Return what a unit's rows are made from, or None if that is not there yet."""


class _Questions:
    """The questions of the current cell, read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cell: Cell | None = None
        self._rows: pa.Table | None = None

    def of(self, cell: Cell) -> pa.Table:
        if self._rows is None or self._cell != cell:
            self._cell, self._rows = cell, read_questions(self._store, cell)
        return self._rows


class EngineWorker(Worker):
    """A stage that needs an engine: it makes a job of each unit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._questions = _Questions(store)

    @abstractmethod
    def job(self, unit: Unit) -> Job:
        """Return what an engine has to do for a unit."""


class GenerateWorker(EngineWorker):
    """Questions to trajectories."""

    def source(self, unit: Unit) -> str:
        """Return which unit of which campaign it is."""
        return trajectory_source(unit)

    def job(self, unit: Unit) -> Job:
        """Return the job of sampling the unit's trajectories."""
        return GenerateJob(unit=unit, questions=self._questions.of(unit.cell))


class ProbeWorker(EngineWorker):
    """Trajectories to positions and probes."""

    def source(self, unit: Unit) -> str | None:
        """Return the campaign and the digest of the unit's trajectories."""
        info = self._store.shard_info("trajectories", unit.shard("trajectories"))
        if info is None or info.source != trajectory_source(unit):
            return None
        return probe_source(unit, trajectories=info.digest)

    def job(self, unit: Unit) -> Job:
        """Return the job of probing the unit's trajectories, or of completing their probes."""
        return ProbeJob(
            unit=unit,
            questions=self._questions.of(unit.cell),
            trajectories=self._store.read_shard("trajectories", unit.shard("trajectories")),
            before=self._before(unit),
        )

    def _before(self, unit: Unit) -> tuple[pa.Table, pa.Table] | None:
        """Return the unit's positions and probes from before the campaign grew, if they are there.

        The positions are the same however many probes there are.
        """
        if not unit.grown_probes:
            return None
        names = [unit.shard("positions"), unit.shard("probes")]
        infos = [
            self._store.verified_info("positions", names[0]),
            self._store.verified_info("probes", names[1]),
        ]
        wanted = self.source(unit) or ""
        if any(
            info is None or not (info.source == wanted or of_fewer_probes(info.source, wanted))
            for info in infos
        ):
            return None
        return (
            self._store.read_shard("positions", names[0]),
            self._store.read_shard("probes", names[1]),
        )


class GradeWorker(Worker):
    """Trajectories and probes to verdicts."""

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        *,
        again: bool = False,
        unsandboxed: bool = False,
        model_judge: ModelVerdict | None = None,
    ) -> None:
        self._store = store
        self._manifest = manifest
        self._unsandboxed = unsandboxed
        self._model_judge = model_judge
        self._questions: tuple[Cell, pa.Table] | None = None
        self._checker: Checker | None = None
        self._checked_units = 0
        self._decoder: StoredTokenizer | None = None
        self.again = again

    def source(self, unit: Unit) -> str | None:
        """Return the digests of what is graded, with the checker's version."""
        trajectories = self._store.shard_info("trajectories", unit.shard("trajectories"))
        probes = self._store.shard_info("probes", unit.shard("probes"))
        if trajectories is None or trajectories.source != trajectory_source(unit):
            return None
        if probes is None or probes.source != probe_source(unit, trajectories=trajectories.digest):
            return None
        return verdict_source(
            trajectories=trajectories.digest,
            probes=probes.digest,
            checker_version=self.checker_of(unit),
        )

    def checker_of(self, unit: Unit) -> str:
        """Return the checker's version, with the references that count."""
        return f"{CHECKER_VERSION}{self._record(unit).grading_mark}"

    def _record(self, unit: Unit) -> CellRecord:
        cells = self._manifest.cells
        return next(record for record in cells if record.cell == unit.cell)

    def work(self, unit: Unit, on_progress: OnProgress) -> tuple[pa.Table, ...]:
        """Return the unit's verdicts."""
        self._manifest.checker_version = CHECKER_VERSION
        trajectories = self._store.read_shard("trajectories", unit.shard("trajectories"))
        probes = self._store.read_shard("probes", unit.shard("probes"))
        return (self._graded(unit, trajectories, probes, on_progress),)

    def judge(self, unit: Unit, probes: pa.Table) -> pa.Table:
        """Return the verdicts on some probes of the unit, without original answers."""
        trajectories = SCHEMAS["trajectories"].empty_table()
        return self._graded(unit, trajectories, probes, None)

    def _graded(
        self, unit: Unit, trajectories: pa.Table, probes: pa.Table, on_progress: OnProgress | None
    ) -> pa.Table:
        return grade_unit(
            unit,
            self._asked(unit),
            trajectories,
            probes,
            decoder=self._decoder_of(unit.cell.model),
            checker=self._fresh_checker(),
            on_progress=on_progress,
        )

    def _asked(self, unit: Unit) -> pa.Table:
        """Return the questions of the unit's cell, with the references that count, read once."""
        if self._questions is None or self._questions[0] != unit.cell:
            rows = campaign_questions(self._store, self._record(unit))
            self._questions = unit.cell, rows
        return self._questions[1]

    def close(self) -> None:
        """End the checker's processes."""
        if self._checker is not None:
            self._checker.close()
            self._checker = None

    def _fresh_checker(self) -> Checker:
        if self._checked_units % _UNITS_PER_CHECKER == 0:
            self.close()
        self._checked_units += 1
        if self._checker is None:
            # The file does not know which model judged; a judge has a memory of its own.
            kept = not self.again and self._model_judge is None
            self._checker = Checker(
                cache_path=_verdict_file() if kept else None,
                unsandboxed=self._unsandboxed,
                model_judge=self._model_judge,
            )
        return self._checker

    def _decoder_of(self, model: str) -> StoredTokenizer:
        if self._decoder is None or self._decoder.model != model:
            self._decoder = StoredTokenizer(self._store, model)
        return self._decoder


def _verdict_file() -> Path | None:
    """Return the file that keeps verdicts for later runs, or None if none can be written.

    It lies in the folder that ``STP_CACHE_DIR`` names, else in the user's cache folder.
    """
    named = os.environ.get("STP_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(named) if named else Path(base) / "stp-engine"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _LOG.warning("verdicts are not kept for later runs: %s", error)
        return None
    if not os.access(folder, os.W_OK):
        _LOG.warning("verdicts are not kept for later runs: %s cannot be written", folder)
        return None
    return folder / "verdicts.sqlite"
