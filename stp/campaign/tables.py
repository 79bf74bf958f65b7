"""The store's tables, and shards of them as bytes that can be checked for being whole.

Token ids are stored; text is derived. A shard carries in its Parquet metadata how many rows it
has, a digest of its content, the digests of the shards that it was made from, and the work that
it took. So a shard can be trusted, or found torn or out of date, by itself.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data import Question
from data.errors import StoreError
from stp.campaign.units import STAGE_TABLES, TableName, Unit
from stp.engines.base import Usage

SCHEMA_VERSION = 1

ORIGINAL = -1
"""The position under which the verdict on a trajectory's own answer is stored."""

_TEXT = pa.string()
_IDS = pa.list_(pa.int32())
_CELL = [("model", _TEXT), ("benchmark", _TEXT), ("question", pa.int32())]
_POSITION = [*_CELL, ("trajectory", pa.int32()), ("position", pa.int32())]
# `answer_limit` below probing.answer_tokens marks an answer that the context shortened.
_PROBES = pa.schema(
    [
        *_POSITION,
        ("sample", pa.int32()),
        ("seed", pa.int64()),
        ("answer_ids", _IDS),
        ("finish", _TEXT),
        ("answer_limit", pa.int32()),
    ]
)
# Position -1 is the trajectory's own original answer.
_VERDICTS = pa.schema(
    [
        *_POSITION,
        ("sample", pa.int32()),
        ("right", pa.bool_()),
        ("answer", _TEXT),
        ("reason", _TEXT),
    ]
)

SCHEMAS: dict[TableName, pa.Schema] = {
    # `fit`: "whole", "shortened" (the context leaves less room than was asked for), "too_long"
    # (the prompt leaves no room for an answer; nothing of it is run). `thinking_limit` is what
    # the question really gets.
    "questions": pa.schema(
        [
            *_CELL,
            ("question_id", _TEXT),
            ("prompt", _TEXT),
            ("reference", _TEXT),
            ("answer_kind", _TEXT),
            ("choices", pa.list_(_TEXT)),
            ("prompt_ids", _IDS),
            ("fit", _TEXT),
            ("thinking_limit", pa.int32()),
        ]
    ),
    # `thinking_finish`: "end" (the model closed its thinking), "limit", "stop" (it ended its output
    # without closing), or "off" (it was not to think). `answer_finish`: "stop", "length", or "none"
    # (no answer phase).
    "trajectories": pa.schema(
        [
            *_CELL,
            ("trajectory", pa.int32()),
            ("seed", pa.int64()),
            ("thinking_ids", _IDS),
            ("thinking_finish", _TEXT),
            ("answer_ids", _IDS),
            ("answer_finish", _TEXT),
            ("answer_limit", pa.int32()),
        ]
    ),
    "positions": pa.schema([*_POSITION, ("tokens", pa.int64())]),
    "probes": _PROBES,
    "verdicts": _VERDICTS,
    # Of one round of more probes at chosen positions; samples continue counting where those before
    # ended.
    "more_probes": _PROBES,
    "more_verdicts": _VERDICTS,
    # A row per question; the hidden states are those at the last prompt token.
    "prompt_signals": pa.schema(_CELL),
    # A row per position, as in `positions`. What was not measured is NaN, or an empty list.
    "signals": pa.schema(
        [
            *_POSITION,
            ("end_logprob", pa.float32()),
            ("other_logprob", pa.float32()),
            ("other_id", pa.int32()),
            ("entropy", pa.float32()),
            ("end_entropy", pa.float32()),
            ("answer_entropy", pa.float32()),
            ("trial_ids", _IDS),
            ("trial_logprobs", pa.list_(pa.float32())),
        ]
    ),
}

_COUNTS = b"stp.counts"
"""Where a table's metadata hold the counts of :mod:`stp.campaign.row_counts`."""

_HIDDEN = re.compile(r"hidden_\d+")
_WITH_HIDDEN = STAGE_TABLES["signals"]
"""Tables that have a further column of hidden states for each layer asked for."""


_PROBES = " probes "


class TornShardError(StoreError):
    """A shard's file is not what was written: cut off, overwritten, or of another kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a unit took in one stage. ``seconds`` is wall-clock time."""

    usage: Usage = field(default_factory=Usage)
    samples: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardInfo:
    """What a shard says of itself.

    Attributes
    ----------
    rows
        Number of rows.
    digest
        SHA-256 of its content.
    source
        Digest of what it was made from.
    work
        What it took.
    counts
        How many of its rows are of which kind; None if nobody counted.
    """

    rows: int
    digest: str
    source: str
    work: Work
    counts: dict[str, int] | None = None


def make_table(name: TableName, columns: dict[str, list[Any]]) -> pa.Table:
    """Return a table of the given kind from lists, one per column."""
    schema = SCHEMAS[name]
    return pa.table({field.name: columns[field.name] for field in schema}, schema=schema)


def with_counts(table: pa.Table, counts: Mapping[str, int]) -> pa.Table:
    """Return a table that takes counts of its rows along into its shard."""
    return table.replace_schema_metadata({_COUNTS: json.dumps(dict(counts))})


def hidden_column(layer: int) -> str:
    """Return the name of the column with a layer's hidden states."""
    return f"hidden_{layer}"


def with_hidden(table: pa.Table, hidden: Mapping[int, npt.NDArray[np.float16]]) -> pa.Table:
    """Return a table with a column of hidden states, float16 ``(rows, width)``, for each layer."""
    for layer in sorted(hidden):
        states = np.ascontiguousarray(hidden[layer], np.float16)
        values = pa.FixedSizeListArray.from_arrays(pa.array(states.ravel()), states.shape[1])
        table = table.append_column(hidden_column(layer), values)
    return table


def hidden_of(table: pa.Table) -> dict[int, npt.NDArray[np.float16]]:
    """Return the hidden states of a table by layer; float16 ``(rows, width)``."""
    found = {}
    for name in table.column_names:
        if _HIDDEN.fullmatch(name):
            width = table.schema.field(name).type.list_size
            flat = pc.list_flatten(table[name]).to_numpy()
            found[int(name.rpartition("_")[2])] = flat.reshape(-1, width)
    return found


def question_of(row: Mapping[str, Any]) -> Question:
    """Return the question of a ``questions`` row."""
    return Question(
        id=row["question_id"],
        prompt=row["prompt"],
        reference=row["reference"],
        answer_kind=row["answer_kind"],
        choices=tuple(row["choices"]),
    )


def encode_shard(
    name: TableName, table: pa.Table, *, digest: str, source: str, work: Work
) -> bytes:
    """Return a table as Parquet bytes that can be checked by :func:`decode_shard`.

    ``digest`` is the table's :func:`content_digest`.
    """
    metadata = {
        "stp.schema": str(SCHEMA_VERSION),
        "stp.table": name,
        "stp.rows": str(table.num_rows),
        "stp.digest": digest,
        "stp.source": source,
        "stp.work": json.dumps(
            {
                "prefill_tokens": work.usage.prefill_tokens,
                "prefill_least_tokens": work.usage.prefill_least_tokens,
                "prefill_block_least_tokens": work.usage.prefill_block_least_tokens,
                "generated_tokens": work.usage.generated_tokens,
                "samples": work.samples,
                "seconds": work.seconds,
            },
            allow_nan=False,
        ),
        **{_COUNTS.decode(): text for text in _kept_counts(table.schema)},
    }
    sink = BytesIO()
    # Where only some columns are read, a digest of the rows says nothing; these do.
    pq.write_table(
        table.replace_schema_metadata(metadata), sink, compression="zstd", write_page_checksum=True
    )
    return sink.getvalue()


def counts_of(table: pa.Table) -> dict[str, int]:
    """Return the counts that a table takes along; empty if nobody counted."""
    return {
        key: value for text in _kept_counts(table.schema) for key, value in json.loads(text).items()
    }


def _kept_counts(schema: pa.Schema) -> list[str]:
    """Return the counts that a table takes along, as text; none if nobody counted."""
    text = (schema.metadata or {}).get(_COUNTS)
    return [] if text is None else [text.decode()]


def decode_shard(name: TableName, content: Any, *, path: str) -> tuple[pa.Table, ShardInfo]:
    """Read a whole shard and check it against its own digest.

    Parameters
    ----------
    name
        The table it must belong to.
    content
        A file object or a pyarrow buffer.
    path
        What errors call it.

    Raises
    ------
    TornShardError
        If the file is cut off, damaged, or not of this table.
    """
    info, file = _open(name, content, path)
    try:
        table = file.read()
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        raise TornShardError(_torn(name, path, "its rows cannot be read")) from error
    table = table.replace_schema_metadata(None)
    if content_digest(table) != info.digest:
        raise TornShardError(_torn(name, path, "its rows are not the ones that were written"))
    return table, info


def shard_info(name: TableName, content: Any, *, path: str) -> ShardInfo:
    """Return what a shard says of itself, from its footer alone.

    Raises
    ------
    TornShardError
        If the footer is missing, or not of this table.
    """
    try:
        metadata = pq.read_metadata(content)
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        raise TornShardError(_torn(name, path, "it is cut off or no Parquet file")) from error
    return said_of_shard(name, metadata, path=path)


def content_digest(table: pa.Table) -> str:
    """Return the SHA-256 of a table's rows: equal for equal rows, whatever their storage."""
    digest = hashlib.sha256()
    for column in table.schema.names:
        digest.update(column.encode() + b"\0")
        _hash_values(digest, table[column])
    return digest.hexdigest()


def numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of numbers, or of truth values as 0 and 1; none of them may be missing.

    The library's own way loads pandas, half a second for whoever asks for a line.
    """
    empty = np.empty(0, column.type.to_pandas_dtype())
    return np.concatenate(list(_parts(column)) or [empty])


def _parts(column: pa.ChunkedArray) -> Iterator[npt.NDArray[Any]]:
    """Yield the numbers of a column as they lie there, chunk after chunk, without a copy."""
    for chunk in column.chunks:
        plain = chunk.cast(pa.uint8()) if pa.types.is_boolean(chunk.type) else chunk
        dtype = np.dtype(plain.type.to_pandas_dtype())
        if len(plain):
            values = plain.buffers()[1]
            start = plain.offset * dtype.itemsize
            yield np.frombuffer(values, dtype, count=len(plain), offset=start)


def trajectory_source(unit: Unit) -> str:
    """Return what a unit's trajectories are made from: the campaign, and which unit it is."""
    return f"{unit.campaign} unit {unit.number}"


def probe_source(unit: Unit, *, trajectories: str) -> str:
    """Return what a unit's positions and probes are made from: the campaign, and a digest.

    Where the campaign has grown by probes, their number is part of it.
    """
    more = f"{_PROBES}{unit.grown_probes}" if unit.grown_probes else ""
    return f"{unit.campaign} {trajectories}{more}"


def of_fewer_probes(source: str, wanted: str) -> bool:
    """Return whether probes of a source are the first of those of another one."""
    return source != wanted and source.partition(_PROBES)[0] == wanted.partition(_PROBES)[0]


def round_source(probes: str, number: int) -> str:
    """Return what a round of more probes is made from: the first pass's digest, and the number."""
    return f"{probes} round {number}"


def verdict_source(*, trajectories: str, probes: str, checker_version: str) -> str:
    """Return what verdicts are made from: two digests, and the checker's version last."""
    return f"{trajectories} {probes} {checker_version}"


def _hash_values(digest: "hashlib._Hash", values: pa.ChunkedArray) -> None:
    """Feed values and lengths; never Arrow's own buffers, whose padding may differ."""
    digest.update(f"{len(values)} {values.null_count};".encode())
    if values.null_count:
        digest.update(numbers(pc.is_null(values)).tobytes())
        values = values.drop_null()
    if pa.types.is_fixed_size_list(values.type):
        digest.update(f"{values.type.list_size};".encode())
        _hash_values(digest, pc.list_flatten(values))
    elif pa.types.is_list(values.type):
        digest.update(numbers(pc.list_value_length(values)).tobytes())
        _hash_values(digest, pc.list_flatten(values))
    elif pa.types.is_string(values.type):
        digest.update(numbers(pc.binary_length(values)).tobytes())
        for chunk in values.chunks:
            # The texts lie one after the other between the first one's start and the last one's
            # end: of a large table every further copy counts.
            _, ends, text = chunk.buffers()
            if len(chunk) and text is not None:
                places = np.frombuffer(ends, np.int32, len(chunk) + 1, offset=4 * chunk.offset)
                digest.update(memoryview(text)[int(places[0]) : int(places[-1])])
    else:
        for part in _parts(values):
            digest.update(part.data)


def _open(name: TableName, content: Any, path: str) -> tuple[ShardInfo, pq.ParquetFile]:
    try:
        file = pq.ParquetFile(content)
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        raise TornShardError(_torn(name, path, "it is cut off or no Parquet file")) from error
    return said_of_shard(name, file.metadata, path=path), file


def said_of_shard(name: TableName, metadata: pq.FileMetaData, *, path: str) -> ShardInfo:
    """Return what a shard's footer says of it, checked; as :func:`shard_info`."""
    try:
        raw = {k.decode(): v.decode() for k, v in (metadata.metadata or {}).items()}
        version, rows = int(raw["stp.schema"]), int(raw["stp.rows"])
        info = ShardInfo(
            rows=rows,
            digest=raw["stp.digest"],
            source=raw["stp.source"],
            work=_work(raw["stp.work"]),
            counts=json.loads(raw[_COUNTS.decode()]) if _COUNTS.decode() in raw else None,
        )
    except (KeyError, ValueError, TypeError) as error:
        raise TornShardError(_torn(name, path, f"it is not a shard of {name}")) from error
    if version != SCHEMA_VERSION:
        raise StoreError(
            f"{path}: written with schema version {version}, and this is {SCHEMA_VERSION}; "
            "read it with the release that wrote it"
        )
    schema = metadata.schema.to_arrow_schema().remove_metadata()
    if raw.get("stp.table") != name or not _fits(name, schema):
        raise TornShardError(_torn(name, path, f"it is not a shard of {name}"))
    if metadata.num_rows != rows:
        raise TornShardError(_torn(name, path, "its rows are not the ones that were written"))
    return info


def _fits(name: TableName, schema: pa.Schema) -> bool:
    """Return whether a schema is the table's, hidden states apart."""
    known = SCHEMAS[name]
    further = schema.names[len(known) :] if name in _WITH_HIDDEN else []
    return pa.schema([schema.field(i) for i in range(len(schema) - len(further))]).equals(
        known
    ) and all(
        _HIDDEN.fullmatch(column) and pa.types.is_fixed_size_list(schema.field(column).type)
        for column in further
    )


def _work(text: str) -> Work:
    values = json.loads(text)
    usage = Usage(
        prefill_tokens=values["prefill_tokens"],
        prefill_least_tokens=values["prefill_least_tokens"],
        # Shards of the first release know nothing of blocks.
        prefill_block_least_tokens=values.get(
            "prefill_block_least_tokens", values["prefill_least_tokens"]
        ),
        generated_tokens=values["generated_tokens"],
    )
    return Work(usage=usage, samples=values["samples"], seconds=values["seconds"])


def _torn(name: TableName, path: str, what: str) -> str:
    command = "stp signals" if name in STAGE_TABLES["signals"] else "stp run"
    return f"{path}: torn shard: {what}; `{command}` on this campaign sets it aside and redoes it"
