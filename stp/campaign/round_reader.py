"""What rounds of more probes found, as counts beside a unit's positions."""

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from data.errors import StoreError
from stp.campaign.store import Store
from stp.campaign.tables import round_source
from stp.campaign.units import Unit
from stp.ragged import IntArray


def round_counts(
    store: Store, unit: Unit, positions: pa.Table, rounds: int
) -> tuple[IntArray, IntArray, int]:
    """Return a unit's answers and right answers of all rounds, and how many rounds are there.

    Parameters
    ----------
    store
        The campaign.
    unit, positions
        Its unit, and the unit's ``positions`` rows.
    rounds
        Rounds to read at most; reading ends before the first one that is not graded.

    Returns
    -------
    tuple
        Int64 ``(positions,)`` twice, and the number of rounds read.

    Raises
    ------
    data.errors.StoreError
        If a round's rows are not those of the unit's positions.
    """
    probes = np.zeros(positions.num_rows, np.int64)
    right = np.zeros(positions.num_rows, np.int64)
    if not rounds:
        return probes, right, 0
    place = {key: row for row, key in enumerate(_keys(positions))}
    numbers = list(itertools.islice(_graded(store, unit), rounds))
    for number in numbers:
        graded = unit.round_shard("more_verdicts", number)
        rows = store.read_shard("more_verdicts", graded)
        try:
            at = np.array([place[key] for key in _keys(rows)], np.int64)
        except KeyError as error:
            raise StoreError(
                f"{store.url}/{graded}: question, trajectory and position {error} are not among "
                "the "
                "unit's; remove the file and run again"
            ) from error
        np.add.at(probes, at, 1)
        np.add.at(right, at, rows["right"].to_numpy(zero_copy_only=False).astype(np.int64))
    return probes, right, len(numbers)


def graded_rounds(store: Store, unit: Unit) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the probes and the verdicts of a unit's rounds, up to the first one not graded."""
    for number in _graded(store, unit):
        yield (
            store.read_shard("more_probes", unit.round_shard("more_probes", number)),
            store.read_shard("more_verdicts", unit.round_shard("more_verdicts", number)),
        )


def _graded(store: Store, unit: Unit) -> Iterator[int]:
    """Yield the numbers of a unit's rounds, from 1 up to the first one that is not graded."""
    first = store.shard_info("probes", unit.shard("probes"))
    for number in itertools.count(1):
        info = store.shard_info("more_probes", unit.round_shard("more_probes", number))
        if info is None or first is None or info.source != round_source(first.digest, number):
            return
        verdicts = store.shard_info("more_verdicts", unit.round_shard("more_verdicts", number))
        if verdicts is None or not verdicts.source.startswith(f"{info.digest} "):
            return
        yield number


def _keys(rows: pa.Table) -> list[tuple[int, int, int]]:
    names = ("question", "trajectory", "position")
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))
