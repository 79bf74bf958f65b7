"""One run at a time on a campaign's folder.

On a local or network file system the kernel holds the lock (``flock``): it ends with its process,
however that dies. The file's text only says who holds it. On an object store there is no such
lock; there the file itself is the lock, and one that a dead process of this host left is taken
over.
"""

import contextlib
import json
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from data.errors import StoreError

_LOG = logging.getLogger(__name__)


class FolderInUseError(StoreError):
    """Another run works on the folder."""


@contextlib.contextmanager
def folder_lock(fs: Any, path: str) -> Iterator[None]:
    """Hold the lock file ``path`` of a campaign's folder.

    Raises
    ------
    FolderInUseError
        If another run holds it; the message says which.
    """
    with _kernel_lock(path) if isinstance(fs, LocalFileSystem) else _file_lock(fs, path):
        yield


def _me() -> str:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname()})


def _holder(text: str) -> str:
    try:
        values = json.loads(text)
        return f"process {values['pid']} on {values['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"


@contextlib.contextmanager
def _kernel_lock(path: str) -> Iterator[None]:
    # Imported here because Windows has none; there the rest of the package still works.
    import fcntl

    with Path(path).open("a+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise FolderInUseError(
                f"{path}: {_holder(file.read())} works on this campaign; wait for it or stop it"
            ) from error
        file.seek(0)
        left = file.read()
        if left:
            _LOG.warning(
                "%s: taking over from %s, which ended without closing", path, _holder(left)
            )
        _write(file, _me())
        try:
            yield
        finally:
            # The file stays, empty: removing it would let two others lock two different files.
            _write(file, "")


def _write(file: Any, text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()


@contextlib.contextmanager
def _file_lock(fs: Any, path: str) -> Iterator[None]:
    if fs.exists(path):
        text = fs.cat_file(path).decode(errors="replace")
        if not _is_dead(text):
            raise FolderInUseError(
                f"{path}: {_holder(text)} works on this campaign; wait for it, or remove this file "
                "if it is gone"
            )
        _LOG.warning("%s: taking over from %s, which ended without closing", path, _holder(text))
    fs.pipe_file(path, _me().encode())
    try:
        yield
    finally:
        fs.rm_file(path)


def _is_dead(text: str) -> bool:
    """Return whether the holder was a process of this host that no longer runs."""
    try:
        values = json.loads(text)
        if values["host"] != socket.gethostname():
            return False
        os.kill(int(values["pid"]), 0)
    except ProcessLookupError:
        return True
    except (ValueError, KeyError, TypeError, PermissionError):
        return False
    return False
