"""What a cell's shards say, summed up in one file, so that thousands need not be opened again.

``summaries/MODEL/BENCHMARK.parquet`` has a row for every question, with the counts that a list of
questions shows, and says in its metadata how far the cell is. It is written when a run ends, and
holds for the shards that were there then: each by its name, size and time of writing. If one of
these differs, the summary is out of date, and the shards themselves are read.
"""

import hashlib
import json
from dataclasses import dataclass, fields
from io import BytesIO
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import StoreError
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import CellRecord, text_hash
from stp.campaign.store import Store
from stp.campaign.tables import numbers
from stp.campaign.units import STAGE_TABLES, STAGES, Stage

_VERSION: Final = 1
_SETTINGS: Final = "signals.json"
_STAGES: Final[tuple[Stage, ...]] = (*STAGES, "signals")

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsByQuestion:
    """Counts by question of a cell, each int64 ``(questions,)``.

    Attributes
    ----------
    trajectories, graded
        Trajectories that are there, and those of them whose own answers are graded.
    original
        Right original answers.
    zero, full, best
        Right probes at k = 0, at k = n, and at each trajectory's best position.
    """

    trajectories: Counts
    graded: Counts
    original: Counts
    zero: Counts
    full: Counts
    best: Counts

    @classmethod
    def none(cls, questions: int) -> "CountsByQuestion":
        """Return counts of which nothing is counted yet."""
        return cls(**{field.name: np.zeros(questions, np.int64) for field in fields(cls)})


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """A cell summed up: how far it is, as JSON, and its questions' counts."""

    progress: str
    counts: CountsByQuestion


def summary_mark(store: Store, config: CampaignConfig, record: CellRecord) -> str | None:
    """Return a digest of what a cell's summary is made from; None if none can be kept.

    It covers what was asked, and of every shard its name, size and time of writing.
    """
    folder = record.cell.folder
    tables = [table for stage in _STAGES for table in STAGE_TABLES[stage]]
    stamps = [store.stamps(f"{table}/{folder}") for table in tables]
    stamps.append(store.stamps(f"questions/{folder.partition('/')[0]}"))
    if None in stamps:
        return None
    settings = store.read_bytes(_SETTINGS).hex() if store.exists(_SETTINGS) else ""
    asked = [_VERSION, config.content_hash(), record.model_dump_json(), settings]
    return text_hash(json.dumps([asked, stamps]))


def read_summary(store: Store, record: CellRecord, mark: str | None) -> CellSummary | None:
    """Return a cell's summary; None if there is none for these shards, or it is damaged."""
    if mark is None or not store.exists(_path(record)):
        return None
    try:
        table = pq.ParquetFile(pa.BufferReader(store.read_bytes(_path(record)))).read()
        said = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
        counts = CountsByQuestion(
            **{field.name: numbers(table[field.name]) for field in fields(CountsByQuestion)}
        )
        summary = CellSummary(progress=said["stp.progress"], counts=counts)
    except (pa.ArrowException, StoreError, ValueError, KeyError):
        return None
    whole = said.get("stp.mark") == mark and said.get("stp.digest") == _digest(summary)
    return summary if whole and table.num_rows == record.questions else None


def write_summary(store: Store, record: CellRecord, mark: str, summary: CellSummary) -> None:
    """Keep a cell's summary for the shards that a mark stands for."""
    columns = {
        field.name: getattr(summary.counts, field.name) for field in fields(CountsByQuestion)
    }
    metadata = {
        "stp.mark": mark,
        "stp.digest": _digest(summary),
        "stp.progress": summary.progress,
    }
    sink = BytesIO()
    table = pa.table(columns).replace_schema_metadata(metadata)
    pq.write_table(table, sink, compression="zstd")
    store.write_bytes(_path(record), sink.getvalue())


def _path(record: CellRecord) -> str:
    return f"summaries/{record.cell.folder}.parquet"


def _digest(summary: CellSummary) -> str:
    digest = hashlib.sha256(summary.progress.encode())
    for field in fields(CountsByQuestion):
        digest.update(getattr(summary.counts, field.name).astype(np.int64).tobytes())
    return digest.hexdigest()
