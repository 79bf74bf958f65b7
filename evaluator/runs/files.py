"""Files of a run's folder: written whole, by one process at a time, and read or refused."""

import contextlib
import json
import math
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from data.errors import MisuseError, StoreError

_LOCK: Final = "run.lock"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and make its folder where there is none.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written; what was there before is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds.

    Raises
    ------
    FileNotFoundError
        If there is no file: what that means, whoever asks for it has to say.
    data.errors.StoreError
        If it cannot be read, or holds no such object; see :func:`json_object`.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    return json_object(content, str(path))


def json_object(content: bytes, where: str) -> dict[str, Any]:
    """Return a JSON object from its bytes; whatever comes back can be written again.

    Parameters
    ----------
    content
        The object as UTF-8, and nothing beside it.
    where
        Names it in errors: a file, or a line of one.

    Raises
    ------
    data.errors.StoreError
        If it is no UTF-8, no JSON, no object, nested without end, or holds a number that is not
        finite or half of a character.

    Examples
    --------
    >>> json_object(b'{"a": [1, 2.5]}', "values.json")
    {'a': [1, 2.5]}
    """
    try:
        values = json.loads(content.decode(), parse_constant=_finite, parse_float=_finite)
        # Only an escape can stand for half of a character.
        if b"\\u" in content:
            json.dumps(values, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where}: cannot be read ({error})") from error
    if not isinstance(values, dict):
        raise StoreError(f"{where}: cannot be read (it holds no JSON object)")
    return values


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number")
    return number


def check_free(folder: Path, what: str, *, begun: Collection[str] = ()) -> None:
    """Refuse a folder that is not there for a new run; writes nothing.

    Parameters
    ----------
    folder
        One without the file that tells a run of this kind.
    what
        The kind, in words.
    begun
        Files that a run of this kind writes before that one.

    Raises
    ------
    data.errors.MisuseError
        If it holds anything but what a stopped beginning leaves there; names one file of it.
    data.errors.StoreError
        If it cannot be read.
    """
    if not folder.is_dir():
        return
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read: {error.strerror}") from error
    for name in names:
        if name not in {_LOCK, *begun} and not (name.startswith(".") and name.endswith(".tmp")):
            raise MisuseError(
                f"{folder}: is no {what} and is not empty (it holds {name}); choose a new folder"
            )


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make a run's folder where there is none, and hold it as a campaign's is held.

    Raises
    ------
    data.errors.MisuseError
        If a file is in its place.
    data.errors.StoreError
        If it cannot be made, or another process works in it.
    """
    from fsspec.implementations.local import LocalFileSystem

    from stp.campaign.lock import folder_lock

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise MisuseError(f"{folder}: a file is in the way; choose another folder") from error
    except OSError as error:
        raise StoreError(f"{folder}: cannot be made: {error.strerror}") from error
    with folder_lock(LocalFileSystem(), str(folder / _LOCK)):
        yield
