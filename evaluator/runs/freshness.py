"""Whether what was made is still what its sources come to: digests of files, and what differs.

Beside graded rows stands a record of all that they were made from. Each benchmark says what is in
its record, and what follows if a record made now is another one.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.errors import StoreError


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None where it is not there.

    Raises
    ------
    data.errors.StoreError
        If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return the first entry in which two records differ; None if they are the same.

    An entry that only one of them has differs: nothing is known of it.

    Examples
    --------
    >>> difference({"a": 1}, {"a": 1, "b": None}), difference({"a": 1, "b": 2}, {"a": 1})
    ('b', 'b')
    """
    return next(
        (
            key
            for key in {**now, **then}
            if key not in then or key not in now or then[key] != now[key]
        ),
        None,
    )
