"""A campaign's folder: read and written so that what is there is whole or absent.

Layout::

    campaign.toml        what was asked, every setting written out
    manifest.json        what it is: hashes, versions, environment, work done
    tokenizer/MODEL/     files that turn ids into text, so that grading needs no model
    questions/MODEL/BENCHMARK.parquet
    trajectories/MODEL/BENCHMARK/000000.parquet     and likewise positions, probes, verdicts

A file is written under a temporary name, synced and renamed; on an object store a put is atomic by
itself. The place is an fsspec URL. This module knows nothing of engines and answers.
"""

import contextlib
import logging
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from data.errors import MisuseError, StoreError, StoreMismatchError, StpError
from data.files import plain_file
from stp.campaign.config import CampaignConfig, parse_config
from stp.campaign.growth import asks_for_more, whole_lot
from stp.campaign.lock import Part, folder_holder, folder_lock, part_lock, waiting_lock
from stp.campaign.manifest import CellRecord, Manifest, parse_manifest
from stp.campaign.tables import (
    ShardInfo,
    TornShardError,
    Work,
    content_digest,
    decode_shard,
    encode_shard,
    said_of_shard,
    shard_info,
)
from stp.campaign.units import STAGE_TABLES, Cell, TableName, Unit, plan_units, questions_shard
from stp.files import read_error, write_durably, write_error
from stp.records import differences

_LOG = logging.getLogger(__name__)

MANIFEST = "manifest.json"
CONFIG = "campaign.toml"
LOCK = "run.lock"
PREPARING = "prepare.lock"
_BATCH_ROWS = 4_096

_RELEASE_CHECKSUM = "manifest.sha256"
"""A release of OTBench has a manifest of its own, and beside it this file."""


class Store:
    """The folder of one campaign.

    Parameters
    ----------
    url
        A local path or any fsspec URL. Nothing is read or made yet.
    """

    def __init__(self, url: str | Path) -> None:
        scheme, separator, path = str(url).rpartition("://")
        self.url = scheme + separator + (path.rstrip("/") or path[:1])
        try:
            self._fs, self._root = fsspec.core.url_to_fs(self.url)
        # What a file system raises when it is opened is its own affair.
        except (ValueError, TypeError, ImportError, OSError) as error:
            raise MisuseError(
                f"{self.url}: cannot be used as a campaign's folder: {error}"
            ) from error
        self._local = isinstance(self._fs, LocalFileSystem)

    @property
    def folder(self) -> Path | None:
        """The folder where it lies on a disk here; None: it is elsewhere."""
        return Path(self._root) if self._local else None

    @property
    def argument(self) -> str:
        """The folder as it is typed in a shell."""
        return shlex.quote(self.url)

    # -- files ---------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _plain(self, name: str) -> str:
        """Return where a file is; one that has no end is an OSError."""
        path = self._path(name)
        return str(plain_file(Path(path))) if self._local else path

    def exists(self, name: str) -> bool:
        """Return whether a file is there."""
        with self._reaching():
            return bool(self._fs.exists(self._path(name)))

    def read_bytes(self, name: str) -> bytes:
        """Return a file's content.

        Raises
        ------
        data.errors.StoreError
            If it cannot be read.
        """
        try:
            return bytes(self._fs.cat_file(self._plain(name)))
        except OSError as error:
            raise StoreError(read_error(f"{self.url}/{name}", error)) from error

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file so that it is there whole, durably, or not at all.

        Raises
        ------
        data.errors.StoreError
            If the disk is full or refuses.
        """
        path = self._path(name)
        if self._local:
            write_durably(Path(path), content)
            return
        try:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(path, content)
        except OSError as error:
            raise StoreError(write_error(f"{self.url}/{name}", error)) from error

    def remove(self, name: str) -> None:
        """Remove a file that is there.

        Raises
        ------
        data.errors.StoreError
            If it cannot be removed.
        """
        try:
            self._fs.rm_file(self._path(name))
        except OSError as error:
            raise StoreError(write_error(f"{self.url}/{name}", error)) from error

    def files(self, folder: str) -> list[str]:
        """Return the names of all files below a folder, relative to the campaign, sorted."""
        with self._reaching():
            if not self._fs.exists(self._path(folder)):
                return []
            skip = len(self._root) + 1
            return sorted(str(path)[skip:] for path in self._fs.find(self._path(folder)))

    def stamps(self, folder: str) -> list[tuple[str, int, int]] | None:
        """Return name, size and time of writing (ns) of a folder's files, sorted.

        None if the campaign does not lie on a disk here; what others call a time is theirs.
        """
        if not self._local:
            return None
        try:
            with os.scandir(self._path(folder)) as entries:
                found = [(entry.name, entry.stat()) for entry in entries]
        except FileNotFoundError:
            return []
        return sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in found)

    def running(self) -> str | None:
        """Return who works on the folder now, in words; None if nobody does."""
        with self._reaching():
            return folder_holder(self._fs, self._path(LOCK))

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        """Say in our words what a remote store raises; stores share no base class for it."""
        try:
            yield
        except Exception as error:
            if self._local:
                raise
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise StoreError(f"{self.url}: the store cannot be reached: {reason}") from error

    @contextlib.contextmanager
    def lock(self, part: Part | None = None) -> Iterator[None]:
        """Hold the folder for one run, and clear what a killed one left half-written.

        Parameters
        ----------
        part
            Hold it beside other parts of the same count; what they are writing is left alone.

        Raises
        ------
        stp.campaign.lock.FolderInUseError
            If another run has it.
        """
        with self._refusals_leave_nothing(part), contextlib.ExitStack() as held:
            try:
                self._fs.makedirs(self._root, exist_ok=True)
                held.enter_context(
                    folder_lock(self._fs, self._path(LOCK))
                    if part is None
                    else part_lock(self._fs, self._root, LOCK, part)
                )
            except (FileExistsError, NotADirectoryError) as error:
                raise MisuseError(
                    f"{self.url}: a file is in the way; choose another folder"
                ) from error
            except OSError as error:
                raise StoreError(write_error(self.url, error)) from error
            # File systems that are for reading only, or know no such call.
            except (NotImplementedError, ValueError) as error:
                raise MisuseError(f"{self.url}: cannot be written: {error}") from error
            if self._local and part is None:
                for path in Path(self._root).rglob(".*.tmp"):
                    path.unlink(missing_ok=True)
            yield

    @contextlib.contextmanager
    def _refusals_leave_nothing(self, part: Part | None) -> Iterator[None]:
        """Remove a folder that was made for a campaign which was then refused.

        Parts share their folder with each other, so none of them removes it.
        """
        fresh = self._local and part is None and not self._fs.exists(self._root)
        try:
            yield
        except StpError:
            if fresh and not self.is_campaign():
                shutil.rmtree(self._root, ignore_errors=True)
            raise

    @contextlib.contextmanager
    def preparing(self, part: Part | None) -> Iterator[None]:
        """Hold back other parts while one of them makes or opens the campaign."""
        if part is None:
            yield
            return
        with waiting_lock(self._fs, self._path(PREPARING)):
            yield

    # -- the campaign --------------------------------------------------------------------------

    def is_campaign(self) -> bool:
        """Return whether the folder holds a campaign: its manifest is written last."""
        return self.exists(MANIFEST)

    def has_rows(self) -> bool:
        """Return whether a stage has written anything, whole or not."""
        tables = {table for written in STAGE_TABLES.values() for table in written}
        return any(self.files(table) for table in tables)

    def check_free(self) -> None:
        """Refuse a folder that is not a campaign and holds something else.

        Raises
        ------
        data.errors.MisuseError
            Naming one file found.
        """
        if not self._fs.exists(self._root) or self.is_campaign():
            return
        ours = {CONFIG, "questions", "tokenizer"}
        for path in self._fs.ls(self._root, detail=False):
            name = str(path).rstrip("/").rpartition("/")[2]
            if name not in ours and not name.endswith((".tmp", ".lock")):
                raise MisuseError(
                    f"{self.url}: the folder is not a campaign and is not empty (it holds {name}); "
                    f"choose a new folder, or put its {MANIFEST} back if it was lost"
                )

    def read_manifest(self) -> Manifest:
        """Return the manifest.

        Raises
        ------
        data.errors.MisuseError
            If the folder is not a campaign, or a release.
        data.errors.StoreError
            If the manifest is damaged.
        """
        if not self.is_campaign():
            raise MisuseError(
                f"{self.url}: no campaign here (no {MANIFEST}); start one with "
                "`stp run CONFIG.toml --out FOLDER`"
            )
        text = self.read_bytes(MANIFEST).decode("utf-8", errors="replace")
        try:
            return parse_manifest(text, path=f"{self.url}/{MANIFEST}")
        except StoreError as error:
            if not self.exists(_RELEASE_CHECKSUM):
                raise
            raise MisuseError(
                f"{self.url}: a release, no campaign; give the campaign that it was made from"
            ) from error

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest, whole."""
        self.write_bytes(MANIFEST, manifest.to_json().encode())

    def read_config(self) -> CampaignConfig:
        """Return what the campaign was asked to do."""
        text = self.read_bytes(CONFIG).decode("utf-8", errors="replace")
        return parse_config(text, source=f"{self.url}/{CONFIG}")

    def read_campaign(self) -> tuple[CampaignConfig, Manifest]:
        """Return what the campaign was asked to do, and its manifest, which agree.

        Raises
        ------
        data.errors.MisuseError
            If the folder is not a campaign.
        data.errors.StoreError
            If either is damaged, or ``campaign.toml`` was changed after the campaign began.
        """
        manifest = self.read_manifest()
        mend = (
            f"`stp run CONFIG.toml --out {self.argument}` with the campaign's own file writes it "
            "again"
        )
        try:
            config = self.read_config()
        except StpError as error:
            raise StoreError(f"{error}; {mend}") from error
        if config.content_hash() != manifest.config_hash:
            phrases = differences(manifest.settings, config.settings(), now=f"in {CONFIG}")
            raise StoreError(
                f"{self.url}/{CONFIG} was changed after the campaign began: {'; '.join(phrases)}; "
                f"change it back, or {mend}"
            )
        return config, manifest

    def write_config(self, config: CampaignConfig) -> None:
        """Write ``campaign.toml``."""
        self.write_bytes(CONFIG, config.to_toml().encode())

    def check_settings(self, config: CampaignConfig, manifest: Manifest) -> bool:
        """Refuse a configuration that would give other rows; return whether it asks for more.

        Raises
        ------
        data.errors.StoreMismatchError
            Naming the keys that differ, with both values.
        """
        if config.content_hash() == manifest.config_hash:
            return False
        if asks_for_more(config, manifest):
            return True
        phrases = differences(manifest.settings, config.settings())
        raise StoreMismatchError(
            f"{self.url} holds a campaign with another configuration: {'; '.join(phrases)}; "
            "give the run a folder of its own with --out (in its folder a campaign may grow by "
            "trajectories, probes and questions, and never shrink)"
        )

    def plan(self, config: CampaignConfig, record: CellRecord) -> list[Unit]:
        """Return the units of a cell.

        Raises
        ------
        data.errors.StoreError
            If the manifest says another number of questions than their shard has.
        """
        with contextlib.suppress(TornShardError):  # A run writes it again.
            asked = self.shard_info("questions", questions_shard(record.cell))
            if asked is not None and asked.rows != record.questions:
                raise StoreError(
                    f"{self.url}/{MANIFEST}: damaged: it says {record.questions:,} questions of "
                    f"{record.model} on {record.benchmark}, and the folder has {asked.rows:,}; "
                    "restore it from a copy, or, if the campaign was growing, run the same command "
                    "again"
                )
        units: list[Unit] = []
        for lot in record.lots or [whole_lot(config, record)]:
            probes = config.probing.probes
            units += plan_units(
                record.cell,
                questions_per_unit=lot.questions_per_unit,
                trajectories_per_unit=lot.trajectories_per_unit,
                questions=range(*lot.questions),
                trajectories=range(*lot.trajectories),
                first=len(units),
                campaign=lot.campaign,
                grown_probes=probes if probes != lot.probes else 0,
            )
        return sorted(units, key=lambda unit: (unit.question_start, unit.trajectory_start))

    # -- shards --------------------------------------------------------------------------------

    def write_shard(
        self, table: TableName, name: str, rows: pa.Table, *, source: str, work: Work | None = None
    ) -> str:
        """Write a shard and return the digest of its rows.

        Raises
        ------
        data.errors.StoreError
            If the disk is full or refuses.
        """
        digest = content_digest(rows)
        content = encode_shard(table, rows, digest=digest, source=source, work=work or Work())
        self.write_bytes(name, content)
        return digest

    def read_shard(self, table: TableName, name: str) -> pa.Table:
        """Return a shard's rows, checked.

        Raises
        ------
        data.errors.StoreError
            If it is absent.
        stp.campaign.tables.TornShardError
            If it is not what was written.
        """
        return self.read_checked(table, name)[0]

    def read_checked(self, table: TableName, name: str) -> tuple[pa.Table, ShardInfo]:
        """Return a shard's rows, checked, and what it says of itself."""
        buffer = pa.py_buffer(self.read_bytes(name))
        return decode_shard(table, pa.BufferReader(buffer), path=f"{self.url}/{name}")

    def read_columns(self, table: TableName, name: str, columns: Sequence[str]) -> pa.Table:
        """Return some columns of a shard, where reading all takes too long.

        Its footer is checked, and each page that has a checksum: pages of shards that were written
        before version 0.2.0 have none.

        Raises
        ------
        data.errors.StoreError
            If they cannot be read.
        stp.campaign.tables.TornShardError
            If the footer is not one of a shard of the table.
        """
        with self._opened(table, name) as file:
            return file.read(columns=list(columns))

    def read_batches(
        self, table: TableName, name: str, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a shard, some at a time, all columns or some.

        Checked, and refused, as in :meth:`read_columns`.
        """
        with self._opened(table, name) as file:
            yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)

    @contextlib.contextmanager
    def _opened(self, table: TableName, name: str) -> Iterator[pq.ParquetFile]:
        try:
            with self._fs.open(self._plain(name), "rb") as content:
                file = pq.ParquetFile(content, page_checksum_verification=True)
                said_of_shard(table, file.metadata, path=f"{self.url}/{name}")
                yield file
        except (pa.ArrowException, OSError) as error:
            raise StoreError(f"{self.url}/{name}: cannot be read: {error}") from error

    def shard_info(self, table: TableName, name: str) -> ShardInfo | None:
        """Return what a shard says of itself, from its footer, or None if it is absent.

        Raises
        ------
        stp.campaign.tables.TornShardError
            If its footer is not whole.
        """
        path, said = self._path(name), f"{self.url}/{name}"
        if not self._local and not self._fs.exists(path):
            return None
        try:
            # Thousands of footers: on a disk here fsspec's layers cost more than these.
            self._plain(name)
            with Path(path).open("rb") if self._local else self._fs.open(path, "rb") as file:
                return shard_info(table, file, path=said)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(read_error(f"{self.url}/{name}", error)) from error

    def verified_info(self, table: TableName, name: str) -> ShardInfo | None:
        """Return what a shard says of itself after all of it was read, or None if it is not there.

        A torn shard is set aside, and then it is not there.
        """
        if not self.exists(name):
            return None
        try:
            return self.read_checked(table, name)[1]
        except TornShardError:
            self.set_aside(name, "torn")
            return None

    def set_aside(self, name: str, why: Literal["torn", "outdated"]) -> str:
        """Rename a shard so that nothing reads it any more, and return its new name."""
        aside = f"{name}.{why}"
        number = 1
        while self.exists(aside):
            number += 1
            aside = f"{name}.{why}{number}"
        self._fs.mv(self._path(name), self._path(aside))
        _LOG.warning("%s/%s is %s; kept as %s and done again", self.url, name, why, aside)
        return aside


def read_questions(store: Store, cell: Cell) -> pa.Table:
    """Return the questions of a cell, checked."""
    return store.read_shard("questions", questions_shard(cell))
