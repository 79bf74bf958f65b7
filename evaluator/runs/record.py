"""The record of a run: what was asked of whom, written down before anything is asked.

A folder holds one run. Continuing it needs the same questions, settings and models; each kind of
run says what may grow (more seeds, more subsets).
"""

import platform
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from data.errors import MisuseError, StoreError, StoreMismatchError
from evaluator.answers import CHECKER_VERSION
from evaluator.runs.folder import check_free
from stp.asking import ResponseStore
from stp.asking.base import Description, identity
from stp.files import json_bytes, read_json, write_durably
from stp.records import differences, package_versions

RECORD: Final = "run.json"
SCHEMA: Final = 2
_BEFORE: Final = ("plan.json", "recipe.json")
"""Records of runs of version 0.1, beside ``run.json`` of schema 1."""
_PACKAGES: Final = ("stp-engine", "transformers", "torch", "vllm", "inspect_ai", "reasoning-gym")


def _versions() -> dict[str, str | None]:
    return {**dict.fromkeys(_PACKAGES), **package_versions(_PACKAGES)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a run's folder says of it.

    Attributes
    ----------
    kind
        Which command's run it is, such as ``"stp think run"``.
    name
        What the run is called in tables.
    asked
        Questions and settings, as plain values.
    models
        What each model says of itself, by what it does in the run.
    attributes
        Facts about the model that do not affect what is asked.
    versions, checker, python, platform
        What the run was begun with.
    started, finished
        Times; ``finished`` is None until everything was asked.
    """

    kind: str
    name: str
    asked: Mapping[str, Any]
    models: Mapping[str, Description]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str | None] = field(default_factory=_versions)
    checker: str = CHECKER_VERSION
    python: str = field(default_factory=platform.python_version)
    platform: str = field(default_factory=platform.platform)
    started: str = field(default_factory=_now)
    finished: str | None = None


def write_record(folder: Path, record: RunRecord) -> None:
    """Write a run's record.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written.
    """
    values = {"schema": SCHEMA, **asdict(record)}
    write_durably(folder / RECORD, json_bytes(values, indent=2) + b"\n")


def finish_run(folder: Path, record: RunRecord) -> RunRecord:
    """Write down that everything was asked, and return the record that says so."""
    finished = replace(record, finished=_now())
    write_record(folder, finished)
    return finished


def read_record(folder: Path, kind: str) -> RunRecord:
    """Return the record of a run of one kind.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder, or one of another kind or version.
    data.errors.StoreError
        If the record is damaged.
    """
    path = folder / RECORD
    try:
        values = read_json(path)
    except FileNotFoundError as error:
        for name in _BEFORE:
            if (folder / name).exists():
                raise MisuseError(_outdated(folder, name)) from error
        raise MisuseError(f"{folder}: no run here (no {RECORD}); start one with {kind}") from error
    if values.get("schema") == 1:
        raise MisuseError(_outdated(folder, RECORD))
    try:
        found = values.pop("kind")
        if values.pop("schema") != SCHEMA:
            raise MisuseError(
                f"{path}: was written by a later version of this project; read it with that one"
            )
        record = RunRecord(kind=kind, **values)
        for part in ("asked", "models", "attributes"):
            _check(isinstance(getattr(record, part), dict), part)
        _check(isinstance(record.name, str), "name")
        _check(all(isinstance(each, dict) for each in record.models.values()), "models")
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path}: is not a record of a run ({error})") from error
    if found != kind:
        raise MisuseError(f"{folder}: holds a run of {found}, not of {kind}; name another folder")
    return record


def _outdated(folder: Path, name: str) -> str:
    return (
        f"{folder}: holds a run of an earlier version of this project ({name}); read it with that "
        "version, or ask again into a new folder"
    )


def _check(fits: bool, part: str) -> None:
    if not fits:
        raise TypeError(f"{part} is of another type")


def check_folder(folder: Path, kind: str, *, begun: Collection[str] = ()) -> RunRecord | None:
    """Return the record of a folder's run, None if it is free for one; writes nothing.

    Parameters
    ----------
    folder
        Where a run is to be begun or continued.
    kind
        Which.
    begun
        Files that may be there before the record.

    Raises
    ------
    data.errors.MisuseError
        If it holds something else.
    data.errors.StoreError
        If it cannot be read.
    """
    if (folder / RECORD).exists():
        return read_record(folder, kind)
    check_free(folder, f"run of {kind}", begun=begun)
    return None


def begin_run(
    folder: Path,
    record: RunRecord,
    *,
    replies: Iterable[Path],
    free: Collection[str] = (),
    growing: Collection[str] = (),
) -> RunRecord:
    """Write down what will be asked of whom, or see that it is what was asked before.

    Parameters
    ----------
    folder
        The run's, locked.
    record
        The run that is wanted.
    replies
        Files of responses. While no question has one, another run may take its place: a name or
        an address is corrected in its folder.
    free
        Keys of ``asked`` that may be other ones than before.
    growing
        Keys of numbers in ``asked`` that may be greater than before, never less: what was asked
        with fewer is the beginning of what is asked with more.

    Returns
    -------
    RunRecord
        As it is written now. It keeps when and with what the run was begun, and the models that
        are not asked this time.

    Raises
    ------
    data.errors.StoreMismatchError
        If the folder holds responses to other questions, under other settings, or of other models.
    data.errors.StoreError
        If a file cannot be read or written.
    """
    stored = read_record(folder, record.kind) if (folder / RECORD).exists() else None
    if stored is not None and _answered(replies):
        for key in growing:
            if record.asked[key] < stored.asked.get(key, 0):
                raise StoreMismatchError(
                    f"{folder}: the run has {stored.asked[key]} {key}, and {record.asked[key]} are "
                    f"asked for; a run may grow and not shrink: ask for {stored.asked[key]} or "
                    "more, or choose another folder"
                )
        found = differences(stored.asked, record.asked, free=[*free, *growing])
        for role, model in record.models.items():
            if role in stored.models:
                before, now = ({role: identity(each)} for each in (stored.models[role], model))
                found += differences(before, now)
        if found:
            raise StoreMismatchError(
                f"{folder} holds a run with another configuration: {'; '.join(found[:3])}; choose "
                "another folder, or ask as before to continue"
            )
        record = replace(
            stored,
            name=record.name,
            asked=record.asked,
            models={**stored.models, **record.models},
            attributes={**stored.attributes, **record.attributes},
        )
    write_record(folder, record)
    return record


def _answered(replies: Iterable[Path]) -> bool:
    return any(
        response.error is None
        for path in replies
        for response in ResponseStore(path).read().values()
    )
