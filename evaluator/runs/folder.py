"""The folder of a run: free for a new one, and held by one process at a time."""

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from data.errors import MisuseError, StoreError
from stp.files import read_error

_LOCK: Final = "run.lock"


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
        raise StoreError(read_error(str(folder), error)) from error
    for name in names:
        if name not in {_LOCK, *begun} and not (name.startswith(".") and name.endswith(".tmp")):
            raise MisuseError(
                f"{folder}: is not a {what} and is not empty (it holds {name}); choose a new folder"
            )


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make a run's folder if there is none, and hold it as a campaign's is held.

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
