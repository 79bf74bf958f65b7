"""What lies beside a row in its folder: ``KIND/LABEL.npz``, arrays with the row's digest."""

import contextlib
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import StoreError
from evaluator.otbench.row import Row
from stp.files import write_durably


def file_beside(folder: Path, kind: str, label: str) -> Path:
    """Return where arrays of a kind lie that belong to the row of a label."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", label)[:60].strip("-")
    return folder / kind / f"{readable}-{hashlib.sha256(label.encode()).hexdigest()[:8]}.npz"


def write_beside(folder: Path, kind: str, row: Row, arrays: Mapping[str, Any]) -> None:
    """Write arrays beside a row.

    Raises
    ------
    data.errors.StoreError
        If they cannot be written.
    """
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays, digest=row.digest)
    write_durably(file_beside(folder, kind, row.label), content.getvalue())


@contextlib.contextmanager
def opened_beside(row: Row, kind: str, *, options: str = "") -> Iterator[Mapping[str, Any] | None]:
    """Open the arrays beside a read row; None if there are none, or none of this very row.

    What is read and checked inside the block belongs to reading: an array that is missing, or that
    the reader refuses with ValueError, is one of a torn file.

    Parameters
    ----------
    row
        As it was read from its file.
    kind
        Name of the folder.
    options
        With which the run has to be made again.

    Raises
    ------
    data.errors.StoreError
        If the file is torn.
    """
    path = file_beside(Path(row.file or "").parent, kind, row.label)
    if not path.is_file():
        yield None
        return
    try:
        with np.load(path, allow_pickle=False) as stored:
            yield stored if str(stored["digest"]) == row.digest else None
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StoreError(f"{path}: torn or changed; run {row.label} again{options}") from error
