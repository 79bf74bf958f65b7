"""A release's manifest: every file with its size and digests, so that a changed byte is found.

``manifest.json`` lists each file's SHA-256 and shorter digests of its blocks of 1 MiB, so that a
change is named down to the block. ``manifest.sha256`` holds the digest of the manifest itself,
which is the checksum of the whole release.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from data.errors import MisuseError, StoreError

MANIFEST = "manifest.json"
CHECKSUM = "manifest.sha256"
SCHEMA_VERSION = 1
_BLOCK = 1 << 20
_BLOCK_DIGITS = 16

Progress = Callable[[int, int], None]


class ChangedReleaseError(StoreError):
    """A file of a release is not what was written."""


def describe_file(path: Path) -> dict[str, Any]:
    """Return a file's entry in the manifest: bytes, SHA-256, digests of its blocks."""
    whole, blocks, size = hashlib.sha256(), [], 0
    for block in _blocks(path):
        whole.update(block)
        blocks.append(hashlib.sha256(block).hexdigest()[:_BLOCK_DIGITS])
        size += len(block)
    return {"bytes": size, "sha256": whole.hexdigest(), "blocks": blocks}


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
    (folder / MANIFEST).write_bytes(encoded)
    (folder / CHECKSUM).write_text(f"{checksum}  {MANIFEST}\n", encoding="utf-8")
    return checksum


def read_manifest(folder: Path) -> tuple[dict[str, Any], str]:
    """Return a release's manifest and its checksum, the manifest checked.

    Raises
    ------
    data.errors.MisuseError
        If the folder is no release, or one of a later schema.
    ChangedReleaseError
        If the manifest is not the one that was written.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise MisuseError(
            f"{folder}: no release ({MANIFEST} is missing); make one with "
            f"`stp release CAMPAIGN --out {folder}`"
        )
    if not (folder / CHECKSUM).is_file() and (folder / "campaign.toml").is_file():
        raise MisuseError(
            f"{folder}: a campaign, no release; freeze it first with "
            f"`stp release {folder} --out RELEASE`"
        )
    encoded = path.read_bytes()
    checksum = hashlib.sha256(encoded).hexdigest()
    try:
        written = (folder / CHECKSUM).read_text(encoding="utf-8").split()[0]
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise ChangedReleaseError(f"{folder / CHECKSUM}: missing or unreadable") from error
    if written != checksum:
        raise ChangedReleaseError(
            f"{path}: changed since it was written (its SHA-256 begins {checksum[:12]}, and "
            f"{CHECKSUM} says {written[:12]}); get the release anew"
        )
    content: dict[str, Any] = json.loads(encoded)
    if content["schema_version"] != SCHEMA_VERSION:
        raise MisuseError(
            f"{path}: schema version {content['schema_version']}, and this is {SCHEMA_VERSION}; "
            "read it with the version that wrote it"
        )
    return content, checksum


def verify(folder: Path, manifest: dict[str, Any], progress: Progress | None = None) -> None:
    """Check every file of a release against its manifest.

    Raises
    ------
    ChangedReleaseError
        Names the first file that is missing or changed, and where in it.
    """
    files: dict[str, dict[str, Any]] = manifest["files"]
    total, done = sum(entry["bytes"] for entry in files.values()), 0
    for name, entry in files.items():
        path = folder / name
        if not path.is_file():
            raise ChangedReleaseError(f"{path}: missing; get the release anew")
        found = describe_file(path)
        if found["sha256"] != entry["sha256"]:
            raise ChangedReleaseError(f"{path}: {_change(entry, found)}; get the release anew")
        done += entry["bytes"]
        if progress is not None:
            progress(done, total)


def _change(entry: dict[str, Any], found: dict[str, Any]) -> str:
    if found["bytes"] != entry["bytes"]:
        return f"changed: {found['bytes']:,} bytes, and {entry['bytes']:,} were written"
    for number, (then, now) in enumerate(zip(entry["blocks"], found["blocks"], strict=True)):
        if then != now:
            last = min((number + 1) * _BLOCK, entry["bytes"])
            return f"changed between bytes {number * _BLOCK:,} and {last:,}"
    return "changed"


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block
