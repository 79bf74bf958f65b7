"""Graded rows on disk, and whether they are still what the responses come to.

Grading 42,000 long responses takes minutes, so its rows are kept, and beside them in
``grading.json`` what they were made from and a digest of what was written. Rows that were changed,
or are older than their responses or the parser, are not read: a number never comes from them.
"""

import hashlib
import logging
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from data.errors import MisuseError, StoreError
from evaluator.answers import CHECKER_VERSION
from evaluator.runs.freshness import difference, file_digest
from evaluator.thinkbench.config import ThinkConfig
from evaluator.thinkbench.grade import Graded, graded_from_json, graded_to_json
from stp.files import json_bytes, json_object, read_json, write_durably

_LOG = logging.getLogger(__name__)

GRADED: Final = "graded.jsonl"
GRADING: Final = "grading.json"

_REASONS: Final = {
    "checker": "another version of the parser made it",
    "questions_hash": "it was made for other questions",
    "responses_sha256": "the responses have changed since",
    "graded_sha256": "it is not as it was written",
}


def write_graded(
    folder: Path, graded: Sequence[Graded], responses: Path, config: ThinkConfig
) -> None:
    """Write a run's graded rows, and what they were made from.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written, or the responses cannot be read.
    """
    content = b"".join(json_bytes(graded_to_json(row)) + b"\n" for row in graded)
    write_durably(folder / GRADED, content)
    made_from = _made_from(responses, config, hashlib.sha256(content).hexdigest())
    write_durably(folder / GRADING, json_bytes(made_from, indent=2))


def read_graded(folder: Path, responses: Path, config: ThinkConfig) -> list[Graded] | None:
    """Return a run's graded rows; None, and a warning, if they have to be made anew.

    Raises
    ------
    data.errors.MisuseError
        If the run was never graded.
    data.errors.StoreError
        If a file cannot be read.
    """
    path = folder / GRADED
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise MisuseError(f"{folder}: this run has not been graded; run it to its end") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    stale = _why_stale(folder, _made_from(responses, config, hashlib.sha256(content).hexdigest()))
    if stale is not None:
        again = f"stp think grade {shlex.quote(str(folder))}"
        _LOG.warning("%s: %s; graded anew, and `%s` keeps that", path, stale, again)
        return None
    # Not splitlines(): U+2028 and its kind may stand in what a model wrote.
    rows = (json_object(line, str(path)) for line in content.split(b"\n") if line)
    return graded_from_json(rows, str(path))


def _why_stale(folder: Path, now: Mapping[str, Any]) -> str | None:
    try:
        written = read_json(folder / GRADING)
    except FileNotFoundError:
        return "nothing says what it was made from"
    except StoreError:
        return f"{GRADING} beside it cannot be read"
    key = difference(written, now)
    return None if key is None else _REASONS.get(key, "another version of this project made it")


def _made_from(responses: Path, config: ThinkConfig, graded_sha256: str) -> dict[str, Any]:
    digest = file_digest(responses)
    if digest is None:
        raise StoreError(f"{responses}: is not there, and all else is made from it")
    return {
        "checker": CHECKER_VERSION,
        "questions_hash": config.questions_hash(),
        "responses_sha256": digest,
        "graded_sha256": graded_sha256,
    }
