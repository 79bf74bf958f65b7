"""What a campaign asks may not change: questions are compared by content when it continues.

A corrected reference, another question, another order or a missing file would leave rows and
verdicts of two different campaigns in one folder, and nothing in the figures would show it. So the
questions are read and made into prompts again at every start, and the first that differs is named.
References alone may change, on request: a campaign keeps the new ones, and from where they came.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from data import get_benchmark
from data.custom import final_answer
from data.errors import MisuseError, StoreError, StoreMismatchError
from data.files import read_rows, text_of
from stp.campaign.manifest import CellRecord, Manifest, MendingRecord
from stp.campaign.references import check_references
from stp.campaign.store import Store, read_questions
from stp.campaign.tables import TornShardError, content_digest, question_of
from stp.campaign.units import questions_shard

_LOG = logging.getLogger(__name__)

_ID_COLUMNS = ("id", "question_id")
_ANSWER_COLUMNS = ("answer", "reference", "gold")

_FIELDS = {
    "prompt": "text",
    "reference": "reference",
    "answer_kind": "answer kind",
    "choices": "options",
    "prompt_ids": "prompt (the benchmark's instruction, or how the model is prompted)",
    "fit": "room in the context",
    "thinking_limit": "room for thinking",
}
"""What is compared of a question, and what it is called."""


def check_questions(store: Store, record: CellRecord, rows: pa.Table) -> None:
    """Refuse questions that are not those of a cell; write them again where its shard is gone.

    Parameters
    ----------
    store
        The campaign.
    record
        The cell.
    rows
        The ``questions`` rows as they would be made now.

    Raises
    ------
    data.errors.StoreMismatchError
        Naming the first question that differs, and what of it.
    """
    stored = _stored(store, record)
    # The file may still hold the references from before their correction.
    if content_digest(rows) in (record.digest, record.shard_digest):
        if stored is None:
            mended = with_references(rows, record.references)
            store.write_shard("questions", questions_shard(record.cell), mended, source="")
        return
    what = "they cannot be compared one by one, since the folder's copy is gone"
    if stored is not None:
        what = first_difference(stored.to_pylist(), rows.to_pylist())
    raise StoreMismatchError(
        f"{store.url}: the questions of {record.benchmark} are no longer those of this campaign: "
        f"{what}; restore the question file, or start a campaign in another folder (a corrected "
        f"reference is accepted by `stp grade {store.argument} --again --references FILE`)"
    )


def first_difference(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str:
    """Return in words where two lists of ``questions`` rows differ first."""
    ids_before = [row["question_id"] for row in before]
    ids_now = [row["question_id"] for row in now]
    for number, (was, is_now) in enumerate(zip(before, now, strict=False), start=1):
        if was["question_id"] != is_now["question_id"]:
            same = sorted(ids_before) == sorted(ids_now)
            return (
                f"{'in another order: ' if same else ''}question {number} was "
                f"{was['question_id']!r} and is {is_now['question_id']!r} now"
            )
        for field, name in _FIELDS.items():
            if was[field] != is_now[field]:
                values = ""
                if field != "prompt_ids":
                    values = f": {was[field]!r:.80} before, {is_now[field]!r:.80} now"
                return f"the {name} of {was['question_id']!r} differs{values}"
    return f"{len(before):,} questions before, {len(now):,} now"


def with_references(rows: pa.Table, references: Mapping[str, str]) -> pa.Table:
    """Return ``questions`` rows with other references, by question id."""
    if not references:
        return rows
    ids, now = rows["question_id"].to_pylist(), rows["reference"].to_pylist()
    texts = [references.get(name, text) for name, text in zip(ids, now, strict=True)]
    place = rows.schema.get_field_index("reference")
    return rows.set_column(place, "reference", pa.array(texts, pa.string()))


def campaign_questions(store: Store, record: CellRecord) -> pa.Table:
    """Return the questions of a cell as its answers are to be graded.

    Raises
    ------
    data.errors.StoreError
        If the folder's copy is not what the manifest says: a correction was interrupted.
    """
    rows, info = store.read_checked("questions", questions_shard(record.cell))
    if info.digest != record.shard_digest:
        raise StoreError(
            f"{store.url}: the references of {record.model} on {record.benchmark} were being "
            "corrected when a run was stopped; run the same `stp grade --again --references FILE`"
        )
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """How many references were corrected, by benchmark."""

    changed: dict[str, int]


def mend_references(
    store: Store, manifest: Manifest, path: Path, *, benchmark: str | None = None
) -> Mended:
    """Take new references into a campaign; the caller holds its lock and grades everything again.

    Parameters
    ----------
    store, manifest
        The campaign. The manifest is changed and written.
    path
        A benchmark's TOML file, or a question file (JSONL, JSON, CSV, Parquet) with the columns
        ``id`` and ``answer``. Questions that the campaign does not have are ignored.
    benchmark
        Whose references they are. Left out: that of the TOML file, or the campaign's only one.

    Raises
    ------
    data.errors.MisuseError
        If the file cannot be used, or none of its ids is a question of the campaign.
    """
    found, name = _read_references(path)
    names = sorted({record.benchmark for record in manifest.cells})
    wanted = benchmark or name or (names[0] if len(names) == 1 else None)
    if wanted is None:
        raise MisuseError(
            f"{path}: the campaign has the benchmarks {', '.join(names)}; say whose references "
            "these are with --benchmark"
        )
    changed: dict[str, int] = {}
    tables = {}
    for record in manifest.cells_of(None, wanted):
        rows = with_references(read_questions(store, record.cell), record.references)
        ids = set(rows["question_id"].to_pylist())
        if not ids & found.keys():
            raise MisuseError(
                f"{path}: none of its ids is a question of {wanted}, such as {min(ids)!r}"
            )
        mended = with_references(rows, found)
        old, new = (table["reference"].to_pylist() for table in (rows, mended))
        other = {
            row["question_id"]: row["reference"]
            for row, was in zip(mended.to_pylist(), old, strict=True)
            if row["reference"] != was
        }
        check_references(wanted, [question_of(row) for row in mended.to_pylist()])
        changed[wanted] = sum(was != is_now for was, is_now in zip(old, new, strict=True))
        record.references = {**record.references, **other}
        record.mended_digest = content_digest(mended)
        record.mendings.append(
            MendingRecord(
                file=path.name,
                sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
                changed=sorted(other),
                at=datetime.now(UTC).isoformat(timespec="seconds"),
            )
        )
        tables[questions_shard(record.cell)] = mended
    # The manifest first: a copy that does not fit it is noticed, and repaired by the same command.
    store.write_manifest(manifest)
    for shard, table in tables.items():
        store.write_shard("questions", shard, table, source="")
    return Mended(changed=changed)


def warn_of_mended_files(store: Store, manifest: Manifest, benchmarks: Sequence[str]) -> None:
    """Say which of the user's question files hold other references than the campaign has.

    Parameters
    ----------
    store, manifest
        The campaign.
    benchmarks
        The TOML files of its benchmarks; others are not looked at, nor files that are gone.
    """
    for path in benchmarks:
        if not path.endswith(".toml") or not Path(path).is_file():
            continue
        now, name = _read_references(Path(path))
        for record in manifest.cells:
            if record.benchmark != name:
                continue
            rows = read_questions(store, record.cell).to_pylist()
            other = [
                row["question_id"]
                for row in rows
                if now.get(row["question_id"], row["reference"]) != row["reference"]
            ]
            if other:
                _LOG.warning(
                    "%s has other references than this campaign for %d questions, such as %s; the "
                    "campaign's count, unless `--references %s` takes these",
                    path,
                    len(other),
                    other[0],
                    path,
                )
                break


def _read_references(path: Path) -> tuple[dict[str, str], str | None]:
    """Return references by question id, and the benchmark's name where the file says it."""
    if path.suffix == ".toml":
        benchmark = get_benchmark(str(path))
        return {item.id: item.reference for item in benchmark.load()}, benchmark.name
    found: dict[str, str] = {}
    for number, row in enumerate(read_rows(path), start=1):
        where = f"{path}, row {number}"
        named = next((name for name in _ID_COLUMNS if name in row), _ID_COLUMNS[0])
        answer = next((name for name in _ANSWER_COLUMNS if name in row), _ANSWER_COLUMNS[0])
        question = text_of(row, named, where)
        if question in found:
            raise MisuseError(f"{where}: the id {question!r} stands there twice")
        found[question] = final_answer(text_of(row, answer, where))
    if not found:
        raise MisuseError(f"{path}: no references")
    return found, None


def _stored(store: Store, record: CellRecord) -> pa.Table | None:
    """Return the folder's copy of a cell's questions; None if it is gone, torn or another."""
    name = questions_shard(record.cell)
    try:
        if not store.exists(name):
            return None
        rows, info = store.read_checked("questions", name)
    except TornShardError:
        store.set_aside(name, "torn")
        return None
    return rows if info.digest == record.shard_digest else None
