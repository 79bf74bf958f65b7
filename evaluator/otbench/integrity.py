"""A release's manifest: every file with its size and digests, so that a changed byte is found.

``manifest.json`` lists each file's size and SHA-256. ``manifest.sha256`` holds the digest of the
manifest itself,
which is the checksum of the whole release. Whoever can write files can write checksums: what the
manifest says is checked here as well, and what the tables hold in :mod:`evaluator.otbench.checks`.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from data.errors import MisuseError, StoreError
from data.progress import NOBODY, Progress
from evaluator.otbench.columns import SIGNAL_COLUMNS
from evaluator.otbench.splits import SplitRule
from evaluator.present.names import visible
from stp.files import write_durably

MANIFEST = "manifest.json"
CHECKSUM = "manifest.sha256"
SCHEMA_VERSION = 1
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
# Without an exponent: 1e999999999 is a fraction as well, of a thousand million digits.
_FRACTION = re.compile(r"[0-9]{1,18}(/[0-9]{1,18})?")

_Model = TypeVar("_Model", bound="_Record")


class ChangedReleaseError(StoreError):
    """A file of a release is not what was written."""


def _inside(name: str) -> str:
    parts = name.split("/")
    if not all(_PLAIN.fullmatch(part) and part.strip(".") for part in parts):
        raise ValueError(f"{shown(name)} is not a file within the release")
    return name


def _table_file(name: str) -> str:
    if not _PLAIN.fullmatch(name) or not name.endswith(".parquet"):
        raise ValueError(f"{shown(name)} is not a plain name of a Parquet file")
    return name


def _fraction(text: str) -> str:
    if not _FRACTION.fullmatch(text) or not int(text.partition("/")[2] or 1):
        raise ValueError(f"{shown(text)} is not a fraction")
    return text


def _distinct(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise ValueError("something is there twice")
    return values


def _known(names: list[str]) -> list[str]:
    strange = set(names) - {name for name, _, _ in SIGNAL_COLUMNS}
    if strange:
        raise ValueError(f"{shown(min(strange))} is not a signal")
    return _distinct(names)


_Count = Annotated[int, Field(ge=0)]
_Some = Annotated[int, Field(ge=1)]
_Fraction = Annotated[str, AfterValidator(_fraction)]
_Layers = Annotated[list[_Count], AfterValidator(_distinct)]
_Signals = Annotated[list[str], AfterValidator(_known)]


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class FileRecord(_Record):
    """A file: its bytes and its SHA-256."""

    bytes: _Count
    sha256: str


class ReleasedCell(_Record):
    """A model on a benchmark: its file's name in every table's folder, and what is in them."""

    model: str
    benchmark: str
    file: Annotated[str, AfterValidator(_table_file)]
    trajectories: _Some
    positions: _Some
    questions: _Some
    signals: _Signals
    layers: _Layers
    prompt_layers: _Layers


class QuestionCounts(_Record):
    """Questions by split."""

    train: _Count
    validation: _Count
    test: _Count


class SplitRecord(_Record):
    """How questions were divided."""

    train: _Fraction
    validation: _Fraction
    seed: int
    stratified_by: Literal["benchmark"]

    @property
    def rule(self) -> SplitRule:
        """The rule itself; :class:`data.errors.MisuseError` if it leaves no test questions."""
        return SplitRule(
            train=Fraction(self.train), validation=Fraction(self.validation), seed=self.seed
        )


class _Sealed(_Record):
    files: dict[Annotated[str, AfterValidator(_inside)], FileRecord]


class ReleaseManifest(_Sealed):
    """The content of ``manifest.json``, as far as anything here reads it."""

    name: str
    probes: _Some
    questions: QuestionCounts
    trajectories: _Count
    positions: _Count
    splits: SplitRecord
    signals: _Signals
    notes: list[str]
    cells: Annotated[list[ReleasedCell], Field(min_length=1)]
    campaigns: list[dict[str, Any]]
    packages: dict[str, str]

    @model_validator(mode="after")
    def _check_together(self) -> "ReleaseManifest":
        cells = self.cells
        for what, values in (
            ("a model on a benchmark", [(cell.model, cell.benchmark) for cell in cells]),
            ("a file", [cell.file for cell in cells]),
        ):
            if len(set(values)) < len(values):
                raise ValueError(f"cells: {what} is there twice")
        for name in ("trajectories", "positions"):
            found = sum(getattr(cell, name) for cell in cells)
            if found != getattr(self, name):
                raise ValueError(f"{name}: {getattr(self, name):,}, and the cells have {found:,}")
        shared = set.intersection(*(set(cell.signals) for cell in cells))
        if set(self.signals) != shared:
            raise ValueError("signals: not those that all cells have")
        missing = [name for name in self.tables() if name not in self.files]
        if missing:
            raise ValueError(f"files: {missing[0]} is not among them")
        return self

    def tables(self) -> Iterator[str]:
        """Yield the files of all tables."""
        yield "questions.parquet"
        for cell in self.cells:
            for table in ("trajectories", "positions", "answers", "prompts"):
                yield f"{table}/{cell.file}"
            if cell.layers:
                yield f"hidden/{cell.file}"


def shown(text: object) -> str:
    """Return an untrusted text in a form that fits into a one-line message."""
    return repr(visible(str(text), 80))


def describe_file(path: Path) -> dict[str, Any]:
    """Return a file's entry in the manifest: bytes and SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def write_manifest(folder: Path, content: dict[str, Any]) -> str:
    """Write the manifest over all files of a folder, and return the release's checksum.

    Parameters
    ----------
    folder
        With all files of the release in it.
    content
        What the manifest says besides its files.
    """
    files = {
        path.relative_to(folder).as_posix(): describe_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (MANIFEST, CHECKSUM)
    }
    text = json.dumps(
        {"schema_version": SCHEMA_VERSION, **content, "files": files},
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )
    encoded = (text + "\n").encode()
    checksum = hashlib.sha256(encoded).hexdigest()
    write_durably(folder / MANIFEST, encoded)
    write_durably(folder / CHECKSUM, f"{checksum}  {MANIFEST}\n".encode())
    return checksum


def read_manifest(folder: Path) -> tuple[dict[str, Any], str]:
    """Return a release's manifest and its checksum, the manifest checked.

    Raises
    ------
    data.errors.MisuseError
        If the folder is not a release, or one of a later schema.
    ChangedReleaseError
        If the manifest is not the one that was written.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise MisuseError(
            f"{folder}: no release ({MANIFEST} is missing); make one with "
            f"`stp release CAMPAIGN --out {quote(str(folder))}`"
        )
    if not (folder / CHECKSUM).is_file() and (folder / "campaign.toml").is_file():
        raise MisuseError(
            f"{folder}: a campaign, no release; freeze it first with "
            f"`stp release {quote(str(folder))} --out RELEASE`"
        )
    try:
        encoded = path.read_bytes()
    except OSError as error:
        raise ChangedReleaseError(f"{path}: cannot be read: {error.strerror}") from error
    checksum = hashlib.sha256(encoded).hexdigest()
    try:
        written = (folder / CHECKSUM).read_text(encoding="utf-8").split()[0]
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise ChangedReleaseError(f"{folder / CHECKSUM}: missing or unreadable") from error
    if written != checksum:
        raise ChangedReleaseError(
            f"{path}: changed since it was written (its SHA-256 begins {checksum[:12]}, and "
            f"{CHECKSUM} says {shown(written[:12])}); get the release again"
        )
    try:
        content = json.loads(encoded)
        # Half of a surrogate pair can be read, and never be written again.
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ChangedReleaseError(f"{path}: no JSON in UTF-8; get the release again") from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(version, int):
        raise ChangedReleaseError(
            f"{path}: no manifest of a release (schema_version is missing); get the release again"
        )
    if version != SCHEMA_VERSION:
        raise MisuseError(
            f"{path}: schema version {version}, and this is {SCHEMA_VERSION}; "
            "read it with the version that wrote it"
        )
    _validated(_Sealed, path, content)
    return content, checksum


def verify(folder: Path, manifest: dict[str, Any], progress: Progress = NOBODY) -> ReleaseManifest:
    """Check every file of a release against its manifest, and what the manifest says.

    Returns
    -------
    ReleaseManifest
        The manifest, typed.

    Raises
    ------
    ChangedReleaseError
        Names the first file that is missing or changed, or what in the manifest is missing or
        impossible.
    """
    files: dict[str, dict[str, Any]] = manifest["files"]
    total, done = sum(entry["bytes"] for entry in files.values()), 0
    for name, entry in files.items():
        path = folder / name
        try:
            found = describe_file(path) if path.is_file() else None
        except OSError as error:
            raise ChangedReleaseError(f"{path}: cannot be read: {error.strerror}") from error
        if found is None:
            raise ChangedReleaseError(f"{path}: missing; get the release again")
        if any(found[key] != entry[key] for key in found):
            raise ChangedReleaseError(
                f"{path}: changed since it was written ({found['bytes']:,} bytes; "
                f"{entry['bytes']:,} were written); get the release again"
            )
        done += entry["bytes"]
        progress(done, total)
    checked = _validated(ReleaseManifest, folder / MANIFEST, manifest)
    try:
        _ = checked.splits.rule
    except MisuseError as error:
        raise ChangedReleaseError(f"{folder / MANIFEST}: {error}; get the release again") from error
    return checked


def _validated(kind: type[_Model], path: Path, content: dict[str, Any]) -> _Model:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise ChangedReleaseError(f"{path}: {first_error(error)}; get the release again") from error


def first_error(error: ValidationError) -> str:
    """Return the first of the things that are wrong with a value, in a line."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(visible(str(part), 80) for part in first["loc"] if part != "[key]")
    said = first["msg"].removeprefix("Value error, ")
    return " ".join(f"{place}: {said}".removeprefix(": ").split())
