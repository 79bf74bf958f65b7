"""Graded rows of a run on disk, and whether they still fit its responses.

Beside the rows of ``graded.jsonl`` stands in ``grading.json`` what they were made from: the version
of the checker, what was asked, and a digest of the rows and of every file behind them. Rows that
were changed, or are older than what they were made from, are not read: no number ever comes from
them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from data.errors import MisuseError, StoreError
from data.files import plain_file
from evaluator.answers import CHECKER_VERSION
from stp.files import json_bytes, json_lines, read_error, read_json, read_json_lines, write_durably

GRADED: Final = "graded.jsonl"
GRADING: Final = "grading.json"


class StaleGradesError(MisuseError):
    """Graded rows do not, or no longer, fit a run's responses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedFrom:
    """What graded rows are made from.

    Attributes
    ----------
    folder
        The run's.
    asked
        The part of what was asked that rows depend on, as plain values.
    files
        Names of the files that rows are made from. One that is not there has no digest.
    again
        The command that grades again.
    """

    folder: Path
    asked: Mapping[str, Any]
    files: tuple[str, ...]
    again: str

    def digests(self) -> dict[str, str | None]:
        """Return what the rows would be made from now."""
        return {
            "checker": CHECKER_VERSION,
            **{name: file_digest(self.folder / name) for name in (GRADED, *self.files)},
            "asked": hashlib.sha256(json_bytes(dict(self.asked))).hexdigest(),
        }


def write_graded(
    source: GradedFrom, rows: Iterable[Mapping[str, Any]], notes: Mapping[str, Any] | None = None
) -> None:
    """Write graded rows, what they were made from, and notes on how.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written, or a file that they are from cannot be read.
    """
    write_durably(source.folder / GRADED, json_lines(rows))
    values = {"made_from": source.digests(), "notes": dict(notes or {})}
    write_durably(source.folder / GRADING, json_bytes(values, indent=2) + b"\n")


def read_graded(source: GradedFrom) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return graded rows and the notes on how they were made.

    Raises
    ------
    data.errors.MisuseError
        If the run is not graded.
    StaleGradesError
        If the rows have to be made again; says why.
    data.errors.StoreError
        If a file cannot be read.
    """
    path = source.folder / GRADED
    if not path.exists():
        raise MisuseError(f"{source.folder}: is not graded; `{source.again}` does it")
    why, notes = _why_stale(source)
    if why is not None:
        raise StaleGradesError(f"{source.folder}/{why}; `{source.again}` grades it again")
    return read_json_lines(path), notes


def _why_stale(source: GradedFrom) -> tuple[str | None, dict[str, Any]]:
    try:
        values = read_json(source.folder / GRADING)
    except FileNotFoundError:
        return f"{GRADING}: is not there, and nothing says what the rows are made from", {}
    except StoreError:
        return f"{GRADING}: cannot be read", {}
    then, notes, now = values.get("made_from"), values.get("notes"), source.digests()
    if not isinstance(then, dict) or not isinstance(notes, dict) or then.keys() != now.keys():
        return f"{GRADING}: does not say what this version's rows are made from", {}
    key = next((key for key in now if then[key] != now[key]), None)
    reasons = {
        None: None,
        "checker": f"{GRADED}: another version of the answer checker made it",
        "asked": f"{GRADED}: something else was asked when the run was graded",
        GRADED: f"{GRADED}: is not as it was written",
    }
    return reasons.get(key, f"{key}: has changed since the run was graded"), notes


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if it is not there.

    Raises
    ------
    data.errors.StoreError
        If it cannot be read.
    """
    try:
        with plain_file(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(read_error(str(path), error)) from error
