"""The rows of a cell in columns: as small as their numbers allow, and kept once they were read.

Reading a campaign's counts takes all of its verdicts. What rows are sorted and filtered by is a
hundredth of that: it is kept in the user's cache, never in the campaign's folder, and made again
when a shard has another size or time.
"""

import base64
import hashlib
import io
import json
import logging
import math
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from data.errors import StoreError
from evaluator.explorer.source import Piece
from stp.curves import Curves, IntArray
from stp.files import json_bytes, write_durably

_LOG = logging.getLogger(__name__)
_FORMAT = 1
"""Of kept files; a change of the columns or their meaning needs another."""
_WHOLE = tuple(np.dtype(f"<{code}") for code in ("u1", "i1", "u2", "i2", "i4"))

ShownColumns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownCell:
    """What is known of a cell's graded trajectories, a row each.

    Attributes
    ----------
    columns
        Whole numbers ``(trajectories,)`` by name, as :func:`columns_of` names them; empty if
        nothing is graded.
    unit
        Place of the unit that holds each row; int64 ``(trajectories,)``.
    means
        The cell's figures by name; None if nothing is graded.
    missing
        Trajectories that are not graded yet.
    """

    columns: ShownColumns
    unit: IntArray
    means: dict[str, float | None] | None
    missing: int

    @property
    def count(self) -> int:
        """How many rows it has."""
        return int(self.unit.size)

    def piece(self) -> Piece:
        """Return the columns as the page reads them: type and bytes, in base64."""
        return {
            "missing": self.missing,
            "count": self.count,
            "columns": {name: packed(values) for name, values in self.columns.items()},
        }


def cell_table(curves: Curves, finish: IntArray, unit: IntArray, missing: int) -> ShownCell:
    """Return the table of a cell's curves; ``finish`` says why each one's thinking ended."""
    from evaluator.analysis.overthinking import STATISTICS, per_trajectory, summarise

    overall = summarise(per_trajectory(curves)).overall
    return ShownCell(
        columns=columns_of(curves, finish),
        unit=unit,
        means={
            name: None if math.isnan(overall[name]) else round(float(overall[name]), 6)
            for name in STATISTICS
        },
        missing=missing,
    )


def columns_of(curves: Curves, finish: IntArray) -> ShownColumns:
    """Return what rows are sorted and filtered by: whole numbers of the least type that holds them.

    ``q`` question, ``s`` sample, ``n`` steps, ``L`` thinking tokens, ``k`` k*, ``kt`` L(k*),
    ``c0``, ``cn``, ``cb`` right probes without thinking, with all of it, and at k*, ``fall`` and
    ``fk`` the largest fall in probes and its step, ``flat``, ``up`` (never falls), ``end`` (a code
    of why thinking ended), ``own`` (1, 0, or -1 if it is not known).
    """
    from evaluator.analysis.falls import largest_falls

    falls = largest_falls(curves)
    best = curves.correct[curves.rows_at(curves.k_star_s)]
    least = -np.maximum.reduceat(-curves.correct.astype(np.int64), curves.trajectory_offsets[:-1])
    made: ShownColumns = {
        "q": curves.question,
        "s": curves.sample,
        "n": np.diff(curves.trajectory_offsets) - 1,
        "L": curves.full_tokens_s,
        "k": curves.k_star_s,
        "kt": curves.tokens[curves.rows_at(curves.k_star_s)],
        "c0": curves.zero_correct_s,
        "cn": curves.full_correct_s,
        "cb": best,
        "fall": falls.probes,
        "fk": falls.step,
        "flat": least == best,
        "up": falls.probes == 0,
        "end": finish,
        "own": curves.original_correct,
    }
    return {name: _smallest(values.astype(np.int64)) for name, values in made.items()}


def _smallest(values: IntArray) -> npt.NDArray[Any]:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kind = next(k for k in _WHOLE if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
    return values.astype(kind)


def packed(values: npt.NDArray[Any]) -> list[str]:
    """Return a column as its type and its bytes in base64; least significant bytes first.

    Examples
    --------
    >>> packed(np.array([1, 2], "<u2"))
    ['u2', 'AQACAA==']
    """
    return [values.dtype.str[1:], base64.b64encode(values.tobytes()).decode()]


# -- kept tables ---------------------------------------------------------------------------------


def state_of(files: Iterable[Path]) -> str:
    """Return a digest of files by name, size and time of change; a file that is missing counts."""
    said: list[Any] = [_FORMAT]
    for path in files:
        try:
            found = path.stat()
            said.append([path.name, found.st_size, found.st_mtime_ns])
        except OSError:
            said.append([path.name, None])
    return hashlib.sha256(json_bytes({"files": said})).hexdigest()


def kept_path(folder: Path, cell: str) -> Path | None:
    """Return where a cell's table is kept; None for a user without a home."""
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        caches = Path(named) if named else Path.home() / ".cache"
    except RuntimeError:
        return None
    place = hashlib.sha256(f"{folder.resolve()}\n{cell}".encode()).hexdigest()[:32]
    return caches / "stp-engine" / "explorer" / f"{place}.npz"


def read_kept(path: Path, state: str) -> ShownCell | None:
    """Return a kept table; None if there is none, or it is of another state, or cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            columns = {name: kept[name] for name in kept.files}
        said = json.loads(str(columns.pop("said")))
        if said["state"] != state:
            return None
        unit = columns.pop("unit")
        return ShownCell(
            columns=columns, unit=unit, means=said["means"], missing=int(said["missing"])
        )
    except (OSError, EOFError, zipfile.BadZipFile, KeyError, TypeError, ValueError):
        return None


def keep(path: Path, state: str, table: ShownCell) -> None:
    """Keep a table. Where the cache cannot be written, it is read from the campaign each time."""
    said = json.dumps({"state": state, "means": table.means, "missing": table.missing})
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, said=said, unit=table.unit, **table.columns)
    try:
        write_durably(path, content.getvalue())
    except StoreError as error:
        _LOG.info("not kept: %s", error)
