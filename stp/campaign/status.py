"""How far a campaign is, from the summaries of its cells, or the footers of its shards."""

import functools
import logging
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from pydantic import BaseModel, Field

from data.errors import StoreError
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import CellRecord, StageRecord
from stp.campaign.row_counts import COUNTED_COLUMNS, count_rows
from stp.campaign.shares import CellShares, shares_of
from stp.campaign.signal_record import (
    SIGNALS_FILE,
    SignalSettings,
    read_signals_record,
    signal_source,
)
from stp.campaign.store import Store, read_questions
from stp.campaign.summaries import read_summary, summary_mark
from stp.campaign.tables import (
    ShardInfo,
    TornShardError,
    Work,
    probe_source,
    trajectory_source,
    verdict_source,
)
from stp.campaign.units import STAGE_TABLES, STAGES, Stage, TableName, Unit

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitState:
    """Which stages have done a unit, each on the rows that the stage before has now.

    ``torn`` names shards whose footer is not whole. ``works`` has the work of each stage done.
    ``digest`` is that of its trajectories, if they are there. ``counts`` has, by table, what its
    shards of these stages say of their rows; None for one that says nothing. ``checker_version``
    judged it, with the references that ``grading_mark`` names (see
    :attr:`stp.campaign.manifest.CellRecord.grading_mark`).
    """

    works: dict[Stage, Work]
    counts: dict[TableName, dict[str, int] | None] = field(default_factory=dict)
    digest: str = ""
    checker_version: str = ""
    grading_mark: str = ""
    torn: tuple[str, ...] = ()

    @property
    def generated(self) -> bool:
        """Whether its trajectories are there."""
        return "generate" in self.works

    @property
    def probed(self) -> bool:
        """Whether these trajectories are probed."""
        return "probe" in self.works

    @property
    def graded(self) -> bool:
        """Whether these probes are graded."""
        return "grade" in self.works


@functools.lru_cache(maxsize=1_024)
def _say_torn(url: str, name: str, argument: str) -> None:
    """Say once that a file is torn: units are looked at many times."""
    _LOG.warning(
        "%s/%s is torn, and is left out here; `stp run %s` makes it again", url, name, argument
    )


def unit_state(store: Store, unit: Unit, *, quiet: bool = False) -> UnitState:
    """Return how far a unit is; say which of its files is torn, unless the caller does."""
    torn: list[str] = []

    def info(table: TableName) -> ShardInfo | None:
        try:
            return store.shard_info(table, unit.shard(table))
        except TornShardError:
            torn.append(unit.shard(table))
            if not quiet:
                _say_torn(store.url, unit.shard(table), store.argument)
            return None

    works: dict[Stage, Work] = {}
    counts: dict[TableName, dict[str, int] | None] = {}
    digest = version = mark = ""
    trajectories = info("trajectories")
    if trajectories is not None and trajectories.source == trajectory_source(unit):
        works["generate"], digest = trajectories.work, trajectories.digest
        counts["trajectories"] = trajectories.counts
        positions, probes = info("positions"), info("probes")
        if (
            positions is not None
            and probes is not None
            and positions.source == probes.source
            and probes.source == probe_source(unit, trajectories=trajectories.digest)
        ):
            works["probe"], counts["probes"] = probes.work, probes.counts
            verdicts = info("verdicts")
            made_from = verdict_source(
                trajectories=trajectories.digest, probes=probes.digest, checker_version=""
            )
            if verdicts is not None and verdicts.source.startswith(made_from):
                works["grade"], counts["verdicts"] = verdicts.work, verdicts.counts
                version = verdicts.source.removeprefix(made_from)
                version, _, mark = version.partition(" ")
    return UnitState(
        works=works,
        counts=counts,
        digest=digest,
        checker_version=version,
        grading_mark=f" {mark}" if mark else "",
        torn=tuple(torn),
    )


def unit_counts(store: Store, unit: Unit, state: UnitState) -> Counter[str]:
    """Return how many of a unit's rows are of which kind.

    Shards from before rows were counted are counted now, but for what their ids would tell.
    """
    total: Counter[str] = Counter()
    for table, counts in state.counts.items():
        if counts is None:
            rows = store.read_columns(table, unit.shard(table), COUNTED_COLUMNS[table])
            counts = count_rows(table, rows)
        total.update(counts)
    return total


def campaign_shares(url: str | Path) -> tuple[CellShares, ...]:
    """Return the shares of every cell of a campaign, over the units that are done so far.

    Raises
    ------
    data.errors.StpError
        If the folder is not a campaign, or cannot be read.
    """
    return tuple(campaign_status(url).shares)


class StageStatus(BaseModel):
    """How far a stage is.

    ``trajectories`` counts those of units done; ``record`` is the work they took.
    """

    trajectories: int = 0
    units: int = 0
    record: StageRecord = Field(default_factory=StageRecord)

    @property
    def samples_per_second(self) -> float | None:
        """Rate over the work so far; None before any."""
        return self.record.samples / self.record.seconds if self.record.seconds > 0 else None

    def seconds_left(self, total_trajectories: int) -> float | None:
        """Return the time left at the pace so far, in one process; None before any work."""
        if not self.trajectories or total_trajectories < self.trajectories:
            return None
        pace = self.record.seconds / self.trajectories
        return pace * (total_trajectories - self.trajectories)


class SignalStatus(BaseModel):
    """How many trajectories of a cell have their signals read.

    ``generated`` are those that are there, and could be read now; ``total`` all of the cell.
    """

    trajectories: int = 0
    generated: int = 0
    total: int = 0


class CellProgress(BaseModel):
    """How far a cell is: its part of :class:`CampaignStatus`.

    ``counts`` are those of :mod:`stp.campaign.row_counts`, over the units that are done.
    """

    units: int = 0
    trajectories: int = 0
    stages: dict[Stage, StageStatus] = Field(
        default_factory=lambda: {stage: StageStatus() for stage in STAGES}
    )
    counts: dict[str, int] = Field(default_factory=dict)
    torn: list[str] = Field(default_factory=list)
    signals: SignalStatus = Field(default_factory=SignalStatus)


@dataclass(slots=True, kw_only=True)
class CampaignStatus:
    """How far a campaign is.

    Attributes
    ----------
    name, url
        What and where it is.
    cells
        Its cells, with the questions that do not fit.
    trajectories, units
        All of the campaign.
    stages
        How far each stage is.
    torn
        Files that are not whole; :attr:`remedies` says what makes them again.
    too_long
        By cell (its folder), the ids of the questions whose prompts do not fit and are not run.
    running
        Who works on it now, in words; None if nobody does.
    signals
        By cell (its folder), how far its signals are; empty if nobody asked for signals.
    shares
        Which of each cell's rows may mislead.
    """

    name: str
    url: str
    cells: list[CellRecord]
    trajectories: int = 0
    units: int = 0
    stages: dict[Stage, StageStatus] = field(
        default_factory=lambda: {stage: StageStatus() for stage in STAGES}
    )
    torn: list[str] = field(default_factory=list)
    too_long: dict[str, tuple[str, ...]] = field(default_factory=dict)
    running: str | None = None
    signals: dict[str, SignalStatus] = field(default_factory=dict)
    shares: list[CellShares] = field(default_factory=list)

    @property
    def remedies(self) -> dict[str, str]:
        """By name of a torn file, the command that makes it again."""
        found = {}
        for name in self.torn:
            table = name.partition("/")[0]
            of_signals = table in STAGE_TABLES["signals"]
            found[name] = f"stp {'signals' if of_signals else 'run'} {quote(self.url)}"
            if name == SIGNALS_FILE:
                found[name] = f"stp signals {quote(self.url)} --again"
        return found

    @property
    def finished(self) -> bool:
        """Whether every unit is graded."""
        return self.stages["grade"].units == self.units


def campaign_status(url: str | Path) -> CampaignStatus:
    """Return how far a campaign is.

    Raises
    ------
    data.errors.MisuseError
        If the folder is not a campaign.
    data.errors.StoreError
        If it cannot be read.
    """
    store = Store(url)
    config, manifest = store.read_campaign()
    status = CampaignStatus(
        name=config.name, url=store.url, cells=manifest.cells, running=store.running()
    )
    settings = signal_settings(store, status.torn)
    for record in manifest.cells:
        if record.too_long:
            status.too_long[record.cell.folder] = _too_long(store, record)
        summary = read_summary(store, record, summary_mark(store, config, record))
        if summary is None:
            progress = cell_progress(store, config, record, settings)
        else:
            progress = CellProgress.model_validate_json(summary.progress)
        status.units += progress.units
        status.trajectories += progress.trajectories
        status.torn += progress.torn
        for stage, done in progress.stages.items():
            entry = status.stages[stage]
            entry.units += done.units
            entry.trajectories += done.trajectories
            entry.record.join(done.record)
        if settings is not None:
            status.signals[record.cell.folder] = progress.signals
        thinks = config.generation.mode == "thinking"
        status.shares.append(shares_of(record, Counter(progress.counts), thinks=thinks))
    return status


def cell_progress(
    store: Store, config: CampaignConfig, record: CellRecord, settings: SignalSettings | None
) -> CellProgress:
    """Return how far a cell is, from the footers of its shards.

    Parameters
    ----------
    store, config, record
        The campaign and the cell.
    settings
        How its signals are read; None if they are not.
    """
    progress, counts = CellProgress(), Counter[str]()
    for unit in store.plan(config, record):
        progress.units += 1
        progress.trajectories += unit.trajectories
        state = unit_state(store, unit, quiet=True)
        progress.torn += state.torn
        counts.update(unit_counts(store, unit, state))
        for stage, work in state.works.items():
            entry = progress.stages[stage]
            entry.units += 1
            entry.trajectories += unit.trajectories
            entry.record.add(work)
        signals = progress.signals
        signals.total += unit.trajectories
        signals.generated += unit.trajectories * state.generated
        if settings is not None and _signals_read(store, unit, state, settings, progress.torn):
            signals.trajectories += unit.trajectories
    progress.counts = dict(counts)
    return progress


def signal_settings(store: Store, torn: list[str]) -> SignalSettings | None:
    """Return how the campaign's signals are read; None if they are not, or nobody knows."""
    try:
        record = read_signals_record(store)
    except StoreError:
        torn.append(SIGNALS_FILE)
        return None
    return record.settings if record is not None else None


def _signals_read(
    store: Store, unit: Unit, state: UnitState, settings: SignalSettings, torn: list[str]
) -> bool:
    """Return whether a unit's signals are those of its trajectories now."""
    source = signal_source(unit, trajectories=state.digest, settings=settings)
    read = state.generated
    for table in STAGE_TABLES["signals"]:
        try:
            info = store.shard_info(table, unit.shard(table))
        except TornShardError:
            torn.append(unit.shard(table))
            info = None
        read = read and info is not None and info.source == source
    return read


def _too_long(store: Store, record: CellRecord) -> tuple[str, ...]:
    """Return the ids of a cell's questions that are not run; none if their shard is gone."""
    try:
        rows = read_questions(store, record.cell).select(["question_id", "fit"]).to_pylist()
    except StoreError:  # A run mends it; how far a campaign is can be said without.
        return ()
    return tuple(row["question_id"] for row in rows if row["fit"] == "too_long")
