"""Files of a run's folder: written whole or not at all, by one process at a time."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from data.errors import MisuseError, StoreError


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
    with folder_lock(LocalFileSystem(), str(folder / "run.lock")):
        yield
