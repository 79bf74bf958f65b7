"""Files that are whole or not there: the one writer of what must not be lost, and strict JSON.

A file is written under a temporary name, flushed and renamed, and its folder is flushed: after a
power failure it is the old one or the new one. JSON is written so that any reader takes it, and
read so that whatever comes back can be written again.
"""

import contextlib
import errno
import json
import math
import os
import socket
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from data.errors import StoreError

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_durably(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; when this returns it is on the disk.

    Its folder is made if there is none.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written; what was there before is untouched.
    """
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise StoreError(write_error(str(path), error)) from error
        raise


def check_writable(path: Path) -> Path:
    """Refuse a place that could not be written in the end, before anything is computed for it.

    Parameters
    ----------
    path
        A file or folder that is to be made or added to. Nothing is left there.

    Returns
    -------
    Path
        The same.

    Raises
    ------
    data.errors.StoreError
        If a file cannot be made in it, or in the nearest folder above that is there.
    """
    try:
        folder = path
        while not folder.is_dir() and folder != folder.parent:
            if folder != path and folder.exists():
                raise NotADirectoryError(errno.ENOTDIR, f"{folder} is no folder")
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder):
            return path
    # A name that no file system has.
    except ValueError as error:
        raise StoreError(f"{path}: cannot be written: {error}") from error
    except OSError as error:
        raise StoreError(write_error(str(path), error)) from error


def sync_folder(folder: Path) -> None:
    """Flush the names that a folder holds.

    Raises
    ------
    OSError
        If the disk refuses.
    """
    if os.name != "posix":  # Elsewhere a folder cannot be opened, and a rename is durable.
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_error(where: str, error: OSError) -> str:
    """Say that a file cannot be read, and why."""
    return f"{where}: cannot be read: {error.strerror or 'no such file'}"


def write_error(where: str, error: OSError) -> str:
    """Say that a file cannot be written, and why."""
    if error.errno in _FULL:
        return (
            f"{where}: the disk is full; what was finished is kept: make room, then run the same "
            "command again"
        )
    return f"{where}: cannot be written: {error.strerror or error}"


def json_bytes(value: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """Return an object as the bytes of JSON that any reader takes: no NaN, no half characters.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return objects as JSON, one a line."""
    return b"".join(json_bytes(row) + b"\n" for row in rows)


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds.

    Raises
    ------
    FileNotFoundError
        If there is no file: what that means, whoever asks for it has to say.
    data.errors.StoreError
        If it cannot be read, or holds no such object; see :func:`json_object`.
    """
    return json_object(_content(path), str(path))


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects that a file holds, one a line.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    data.errors.StoreError
        If it cannot be read, or a line holds no such object; names the line.
    """
    # Not splitlines(): U+2028 and its kind may stand in what a model wrote.
    return [
        json_object(line, f"{path}, line {number}")
        for number, line in enumerate(_content(path).split(b"\n"), start=1)
        if line
    ]


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
        If it is not UTF-8, not JSON, not an object, nested too deeply, or holds a number that is
        not finite or half of a character.

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


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(read_error(str(path), error)) from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a number")
    return number
