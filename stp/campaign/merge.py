"""Parts of one campaign, run into folders of their own, put together into one folder.

Every shard is read whole and checked against its own digest before it is written again; what two
folders both have must be the same rows. The result is the folder of a run that was never divided.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from data.errors import MisuseError, StoreError, StoreMismatchError
from data.progress import NOBODY, Progress
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import Manifest
from stp.campaign.signal_record import SIGNALS_FILE, read_signals_record
from stp.campaign.status import campaign_status
from stp.campaign.store import Store
from stp.campaign.sum_up import sum_up
from stp.campaign.units import STAGE_TABLES, STAGES, Stage, TableName, Unit, questions_shard
from stp.records import differences

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What is in the merged folder.

    Attributes
    ----------
    shards
        Shards written.
    units
        Units of the campaign.
    missing
        Units that lack a stage, by stage.
    """

    shards: int
    units: int
    missing: dict[Stage, int]

    @property
    def complete(self) -> bool:
        """Whether every unit is generated, probed and graded."""
        return not any(self.missing.values())


def merge_campaigns(
    urls: Sequence[str | Path],
    out: str | Path,
    *,
    progress: Progress = NOBODY,
) -> MergeResult:
    """Put parts of a campaign together.

    Parameters
    ----------
    urls
        Their folders.
    out
        The merged folder: new, empty, or one of the same campaign.
    progress
        Called with (shards looked at, all shards).

    Raises
    ------
    data.errors.MisuseError
        If a folder is not a campaign, or none is given.
    data.errors.StoreMismatchError
        If they are not parts of one campaign, or two of them have different rows of one unit; the
        message names what differs.
    data.errors.StoreError
        If a shard is damaged.
    """
    if not urls:
        raise MisuseError("no folder was given; name those of the parts")
    sources = [Store(url) for url in urls]
    campaigns = [(store, *store.read_campaign()) for store in sources]
    first, config, manifest = campaigns[0]
    for store, _, other in campaigns[1:]:
        _check_same(first, manifest, store, other, advice=_PARTS)
    _check_signals(sources)
    if config.probing.plan == "adaptive":
        raise MisuseError(
            f"{first.url}: an adaptive campaign is run whole, and its rounds of more probes cannot "
            "be merged; copy the folder instead"
        )
    target = Store(out)
    if target.url in {store.url for store in sources}:
        raise MisuseError(f"{target.url} is one of the parts; merge into another folder")
    with target.lock():
        target.check_free()
        if target.is_campaign():
            _, stored = target.read_campaign()
            _check_same(first, manifest, target, stored, advice=_TARGET)
        else:
            _begin(target, first, config, manifest)
        written = _copy_shards(target, campaigns, progress)
        result = _finish(target, manifest, [other for _, _, other in campaigns], written)
        sum_up(target, config, target.read_manifest())
        return result


_PARTS = "merge folders into which one campaign was run, in parts (`stp run ... --shard I/N`)"
_TARGET = "merge into a new folder"


def _check_same(
    first: Store, manifest: Manifest, store: Store, other: Manifest, *, advice: str
) -> None:
    """Refuse folders that are not parts of one campaign; ``advice`` says what to do instead."""
    if manifest.config_hash != other.config_hash:
        phrases = differences(
            other.settings, manifest.settings, before="in the one", now="in the other"
        )
        raise StoreMismatchError(
            f"{store.url} and {first.url} are of different campaigns: {'; '.join(phrases)}; "
            f"{advice}"
        )
    for record in manifest.models:
        found = other.model_record(record.name)
        if (what := record.difference(found)) is not None:
            raise StoreMismatchError(
                f"{store.url} was made with another {record.name!r} than {first.url}: its "
                f"{what} differs; {advice}"
            )
        if record.engine and found.engine and record.engine != found.engine:
            _LOG.warning(
                "%s ran differently in %s than in %s: %s, and %s",
                record.name,
                store.url,
                first.url,
                found.engine,
                record.engine,
            )
    if [cell.model_dump() for cell in manifest.cells] != [
        cell.model_dump() for cell in other.cells
    ]:
        raise StoreMismatchError(f"{store.url} asks other questions than {first.url}; {advice}")


def _check_signals(sources: Sequence[Store]) -> None:
    """Refuse parts whose signals were read with different settings."""
    found = {
        store.url: record.settings.model_dump_json()
        for store in sources
        if (record := read_signals_record(store)) is not None
    }
    for url, settings in found.items():
        first, wanted = next(iter(found.items()))
        if settings != wanted:
            raise StoreMismatchError(
                f"{first} and {url} hold signals with different settings: {wanted} and {settings}; "
                f"`stp signals {quote(url)} --again`, with the options of the first, reads them "
                "again"
            )


def _begin(target: Store, first: Store, config: CampaignConfig, manifest: Manifest) -> None:
    """Make the merged folder's campaign, without rows."""
    target.write_config(config)
    for name in first.files("tokenizer"):
        target.write_bytes(name, first.read_bytes(name))
    for record in manifest.cells:
        name = questions_shard(record.cell)
        first.read_shard("questions", name)
        target.write_bytes(name, first.read_bytes(name))
    target.write_manifest(manifest)


def _copy_shards(
    target: Store,
    campaigns: Sequence[tuple[Store, CampaignConfig, Manifest]],
    progress: Progress,
) -> int:
    """Copy every unit's shards; return how many were written."""
    _, config, manifest = campaigns[0]
    units = [unit for cell in manifest.cells for unit in target.plan(config, cell)]
    tables = [table for written in STAGE_TABLES.values() for table in written]
    total = len(units) * len(tables)
    looked = written = 0
    for unit in units:
        for table in tables:
            written += _copy_shard(target, [store for store, _, _ in campaigns], unit, table)
            looked += 1
            progress(looked, total)
    for store, _, _ in campaigns:
        if store.exists(SIGNALS_FILE) and not target.exists(SIGNALS_FILE):
            target.write_bytes(SIGNALS_FILE, store.read_bytes(SIGNALS_FILE))
    return written


def _copy_shard(target: Store, sources: Sequence[Store], unit: Unit, table: TableName) -> int:
    """Copy a unit's shard of a table from the first folder that has it; return 1 if it was."""
    name = unit.shard(table)
    digests = {
        store.url: store.read_checked(table, name)[1].digest
        for store in (target, *sources)
        if store.exists(name)
    }
    for url, digest in digests.items():
        first, wanted = next(iter(digests.items()))
        if digest != wanted:
            raise StoreMismatchError(
                f"{first} and {url} have different rows in {name}; remove the wrong file"
            )
    if not digests or target.url in digests:
        return 0
    source = next(store for store in sources if store.url in digests)
    target.write_bytes(name, source.read_bytes(name))
    return 1


def _finish(
    target: Store, manifest: Manifest, others: Sequence[Manifest], written: int
) -> MergeResult:
    """Write the merged manifest: engines from whoever knows them, the work of all shards."""
    for record in manifest.models:
        engines = [other.model_record(record.name).engine for other in others]
        record.engine = next((engine for engine in engines if engine), {})
    versions = {other.checker_version for other in others if other.checker_version}
    manifest.checker_version = max(versions, key=_as_numbers, default=None)
    status = campaign_status(target.url)
    if status.torn:
        raise StoreError(f"{target.url}/{status.torn[0]}: torn while it was merged; merge again")
    manifest.stages = {stage: status.stages[stage].record for stage in STAGES}
    target.write_manifest(manifest)
    missing = {stage: status.units - status.stages[stage].units for stage in STAGES}
    return MergeResult(shards=written, units=status.units, missing=missing)


def _as_numbers(version: str) -> tuple[int, ...]:
    """Return a checker's version for comparing: 1.10 comes after 1.9."""
    return tuple(int(part) for part in version.split("."))
