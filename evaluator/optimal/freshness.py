"""Whether the graded rows of a run are still what its responses come to.

Beside the rows stands a digest of them, and of every file that they were made from. Rows that were
changed, or are older than the questions and responses, are not scored.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from data.errors import StoreError


def digests(folder: Path, files: Iterable[Path]) -> dict[str, str | None]:
    """Return the SHA-256 of files by their names in a folder; None where one is not there.

    Raises
    ------
    data.errors.StoreError
        If one cannot be read.
    """
    return {path.relative_to(folder).as_posix(): _digest(path) for path in files}


def changed_file(folder: Path, then: Mapping[str, str | None]) -> str | None:
    """Return a file that is no longer what it was; None if all are.

    Parameters
    ----------
    folder
        Where the files are.
    then
        From :func:`digests`.
    """
    return next((name for name, old in then.items() if _digest(folder / name) != old), None)


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
