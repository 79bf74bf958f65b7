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
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from data.errors import MisuseError, StoreError
from data.files import plain_file

_LOG = logging.getLogger(__name__)


_SHARED_TRIES = 50
_SHARED_SECONDS = 0.1


class FolderInUseError(StoreError):
    """Another run works on the folder."""


@dataclass(frozen=True, slots=True)
class Part:
    """Part ``number`` of ``count`` of a campaign's units, counted from 1.

    Raises
    ------
    data.errors.MisuseError
        If there is no such part.

    Examples
    --------
    >>> Part.parse("2/8")
    Part(number=2, count=8)
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise MisuseError(
                f"there is no part {self.number} of {self.count}; parts are counted from 1, as in "
                "--shard 1/2 and --shard 2/2"
            )

    @classmethod
    def parse(cls, text: str) -> "Part":
        """Return the part that a text such as ``2/8`` names.

        Raises
        ------
        data.errors.MisuseError
            If it names none.
        """
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
        if match is None:
            raise MisuseError(f"--shard {text}: give its number and how many there are, as in 2/8")
        return cls(int(match[1]), int(match[2]))


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


def folder_holder(fs: Any, path: str) -> str | None:
    """Return who holds a campaign's lock file now, in words; None if no process does."""
    if not isinstance(fs, LocalFileSystem):
        text = fs.cat_file(path).decode(errors="replace") if fs.exists(path) else ""
        return _holder(text) if text and not _is_dead(text) else None
    import fcntl

    try:
        with plain_file(Path(path)).open(encoding="utf-8", errors="replace") as file:
            return None if _try_lock(file, fcntl.LOCK_SH) else _holder(file.read())
    except OSError:  # No run was ever here, or not on this machine.
        return None


@contextlib.contextmanager
def part_lock(fs: Any, folder: str, name: str, part: Part) -> Iterator[None]:
    """Hold a campaign's folder for one part: beside other parts of the same count.

    On an object store a part holds the whole folder.

    Parameters
    ----------
    fs, folder
        Where it is.
    name
        The folder's lock file, which a whole run holds alone.
    part
        Which one.

    Raises
    ------
    FolderInUseError
        If a whole run, this part, or a part of another count works there.
    """
    if not isinstance(fs, LocalFileSystem):
        with _file_lock(fs, f"{folder}/{name}"):
            yield
        return
    own = f"{folder}/part-{part.number}-of-{part.count}.lock"
    with _shared_lock(f"{folder}/{name}", part), _kernel_lock(own):
        yield


@contextlib.contextmanager
def waiting_lock(fs: Any, path: str) -> Iterator[None]:
    """Hold a lock file, waiting for its present holder; an object store has none."""
    if not isinstance(fs, LocalFileSystem):
        yield
        return
    import fcntl

    with Path(path).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _shared_lock(path: str, part: Part) -> Iterator[None]:
    """Hold a lock that excludes whole runs, and parts of another count."""
    import fcntl

    with Path(path).open("a+", encoding="utf-8", errors="replace") as file:
        if _try_lock(file, fcntl.LOCK_EX):
            _write(file, json.dumps({"parts": part.count}))
        # Parts start and end together: for a moment one of them may hold the lock alone.
        for _ in range(_SHARED_TRIES):
            if _try_lock(file, fcntl.LOCK_SH):
                break
            time.sleep(_SHARED_SECONDS)
        else:
            file.seek(0)
            raise FolderInUseError(
                f"{path}: {_holder(file.read())} works on this campaign; wait for it or stop it"
            )
        file.seek(0)
        others = file.read()
        if others != json.dumps({"parts": part.count}):
            raise FolderInUseError(
                f"{path}: others work on this campaign in another number of parts ({others}); use "
                "the same number, or a folder for each"
            )
        try:
            yield
        finally:
            if _try_lock(file, fcntl.LOCK_EX):
                _write(file, "")


def _try_lock(file: Any, kind: int) -> bool:
    import fcntl

    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


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
