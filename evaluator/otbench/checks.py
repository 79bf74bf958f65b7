"""What the tables of a release hold, checked: columns, rows and values.

Checksums say that a file is the one that was written, not that it belongs here. A table is read
with the names of its rows; they are compared with the rows that there must be, so that rows in
another order are put in order, and missing, doubled or strange ones are named.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data.errors import one_line
from evaluator.otbench.columns import RANGES
from evaluator.otbench.integrity import ChangedReleaseError, shown
from stp.ragged import Array, IntArray

Owners = Mapping[str, str]
"""Columns that hold one name in all rows, as ``model``, with that name."""

_UNREADABLE = (OSError, ValueError, KeyError, pa.ArrowException)


def changed(path: Path, what: str) -> ChangedReleaseError:
    """Return the error that refuses a file."""
    return ChangedReleaseError(f"{path}: {what}; get the release again")


def check_columns(path: Path, schema: pa.Schema, rows: int | None = None) -> None:
    """Refuse a file that lacks a column or has another number of rows; reads its footer only.

    Parameters
    ----------
    path
        A Parquet file.
    schema
        The columns that must be there. Texts may be of any kind of text, lists of any kind of list.
    rows
        How many rows there must be, where that is known.

    Raises
    ------
    ChangedReleaseError
        Names the column, or both numbers.
    """
    try:
        with pq.ParquetFile(path) as file:
            found, count = file.schema_arrow, file.metadata.num_rows
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error
    _check_footer(path, found, count, schema, rows)


def read_columns(
    path: Path, schema: pa.Schema, owners: Owners | None = None, rows: int | None = None
) -> pa.Table:
    """Return columns of a file, without gaps; texts are dictionary-encoded.

    Parameters
    ----------
    path, schema, rows
        As for :func:`check_columns`.
    owners
        Columns that must hold one name in all rows; they are not returned.

    Raises
    ------
    ChangedReleaseError
        If a column is missing or of another type, a value is missing, or a row is another's.
    """
    owners = owners or {}
    every = pa.schema([*schema, *((name, pa.string()) for name in owners)])
    texts = [field.name for field in every if field.type == pa.string()]
    try:
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            _check_footer(path, file.schema_arrow, file.metadata.num_rows, every, rows)
            table = file.read(columns=every.names).unify_dictionaries()
            table.validate(full=True)
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error
    for name in every.names:
        if table[name].null_count:
            raise changed(path, f"column {name} has rows without a value")
    for name, owner in owners.items():
        for other in pc.unique(table[name]).to_pylist():
            if other != owner:
                raise changed(path, f"holds rows of {name} {shown(other)}, not {shown(owner)}")
    return table.select(schema.names)


def numbers(path: Path, table: pa.Table, name: str) -> Array:
    """Return a column of numbers or truth values, checked against its range.

    Raises
    ------
    ChangedReleaseError
        Names the first value that cannot be, and its row.
    """
    values: Array = table[name].to_numpy()
    check_range(path, name, values)
    return values


def check_range(path: Path, name: str, values: Array, *, most: float | None = None) -> None:
    """Refuse values outside the range of a column; ``most`` bounds them further."""
    allowed = RANGES.get(name)
    if allowed is None:
        return
    bad = np.zeros(values.shape, np.bool_)
    if allowed.least is not None:
        bad |= values < allowed.least
    for bound in (allowed.most, most):
        if bound is not None:
            bad |= values > bound
    if values.dtype.kind == "f" and not allowed.optional:
        bad |= np.isnan(values)
    if bad.any():
        row = int(np.argmax(bad.reshape(values.shape[0], -1).any(axis=1)))
        value = values[row].reshape(-1)[bad[row].reshape(-1)][0]
        raise changed(path, f"row {row:,}: {name} cannot be {value}")


def names_of(table: pa.Table, name: str) -> tuple[IntArray, list[str]]:
    """Return a column of texts as numbers and the texts behind them; int64 ``(rows,)``."""
    column = table[name].combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.indices.to_numpy().astype(np.int64), column.dictionary.to_pylist()


def question_numbers(path: Path, table: pa.Table, known: Mapping[str, int]) -> IntArray:
    """Return the question number of every row; int64 ``(rows,)``.

    Raises
    ------
    ChangedReleaseError
        If a question is not among those known.
    """
    codes, texts = names_of(table, "question_id")
    number = np.array([known.get(text, -1) for text in texts], np.int64)
    rows: IntArray = number[codes] if codes.size else np.empty(0, np.int64)
    if rows.size and rows.min() < 0:
        text = texts[int(codes[np.argmin(rows)])]
        raise changed(path, f"question {shown(text)} is not in questions.parquet")
    return rows


def rising_order(keys: Sequence[IntArray]) -> IntArray | None:
    """Return the rows' order by their keys, the first key first; None: they are in it."""
    tied = np.ones(max(keys[0].size - 1, 0), np.bool_)
    falls = np.zeros(tied.size, np.bool_)
    for key in keys:
        falls |= tied & (key[1:] < key[:-1])
        tied &= key[1:] == key[:-1]
    return np.lexsort(tuple(reversed(keys))).astype(np.int64) if falls.any() else None


def in_order(values: Array, order: IntArray | None) -> Array:
    """Return values in an order; the same array where they are in it."""
    return values if order is None else values[order]


def match_rows(
    path: Path,
    keys: Sequence[IntArray],
    expected: Sequence[IntArray],
    names: Sequence[str],
    texts: Sequence[str],
) -> IntArray | None:
    """Return the order that puts a file's rows beside those that there must be.

    Parameters
    ----------
    path
        The file.
    keys
        Its rows' keys, question numbers first.
    expected
        The keys that there must be, each once, in their order.
    names
        What the keys are called.
    texts
        By question number, the question's id.

    Returns
    -------
    numpy.ndarray or None
        int64 ``(rows,)``; None: they lie so already.

    Raises
    ------
    ChangedReleaseError
        Names a row that is missing, there twice, or strange.
    """
    order = rising_order(keys)
    found = [in_order(key, order) for key in keys]
    rows = min(found[0].size, expected[0].size)
    differs = np.zeros(rows, np.bool_)
    for here, there in zip(found, expected, strict=True):
        differs |= here[:rows] != there[:rows]
    if differs.any() or found[0].size != expected[0].size:
        at = int(np.argmax(differs)) if differs.any() else rows
        raise changed(path, _difference(found, expected, at, names, texts))
    return order


def check_rising(
    path: Path, keys: Sequence[IntArray], names: Sequence[str], texts: Sequence[str]
) -> None:
    """Refuse a file whose rows, in order, have the same keys twice."""
    same = np.ones(max(keys[0].size - 1, 0), np.bool_)
    for key in keys:
        same &= key[1:] == key[:-1]
    if same.any():
        row = _named([int(key[np.argmax(same)]) for key in keys], names, texts)
        raise changed(path, f"{row} is there twice")


def first_of_lists(path: Path, table: pa.Table, name: str, width: int) -> tuple[Array, Array]:
    """Return the first and the greatest entry of every list, all of one length, in their range."""
    values = list_values(path, table, name)
    if values.shape[1] != width:
        raise changed(path, f"{name} has {values.shape[1]} entries a row, and must have {width}")
    check_range(path, name, values)
    return values[:, 0], values.max(axis=1)


def list_values(path: Path, table: pa.Table, name: str) -> Array:
    """Return a column of lists of one length as ``(rows, length)``.

    Raises
    ------
    ChangedReleaseError
        If lengths differ or are 0, or an entry is missing.
    """
    lengths = pc.min_max(pc.list_value_length(table[name])).as_py()
    width = lengths["max"] or 0
    if lengths["min"] != width or (table.num_rows and not width):
        raise changed(
            path, f"{name} has between {lengths['min']} and {width} entries a row, not one number"
        )
    parts = [chunk.flatten() for chunk in table[name].chunks]
    if any(part.null_count for part in parts):
        raise changed(path, f"column {name} has entries without a value")
    values = [part.to_numpy(zero_copy_only=False).reshape(-1, width) for part in parts]
    return values[0] if len(values) == 1 else np.concatenate(values)


def _check_footer(
    path: Path, found: pa.Schema, count: int, schema: pa.Schema, rows: int | None
) -> None:
    for wanted in schema:
        places = found.get_all_field_indices(wanted.name)
        if len(places) != 1:
            often = "there twice" if places else "missing"
            raise changed(path, f"column {wanted.name} is {often}")
        kind = found.field(places[0]).type
        if not _fits(kind, wanted.type):
            raise changed(path, f"column {wanted.name} is of type {kind}, not {wanted.type}")
    if rows is not None and count != rows:
        raise changed(path, f"{count:,} rows, and there must be {rows:,}")


def _difference(
    found: Sequence[IntArray],
    expected: Sequence[IntArray],
    at: int,
    names: Sequence[str],
    texts: Sequence[str],
) -> str:
    here = [int(key[at]) for key in found] if at < found[0].size else None
    there = [int(key[at]) for key in expected] if at < expected[0].size else None
    if here is None or (there is not None and here > there):
        return f"{_named(there or [], names, texts)} is missing"
    if at and here == [int(key[at - 1]) for key in found]:
        return f"{_named(here, names, texts)} is there twice"
    return f"{_named(here, names, texts)} does not belong there"


def _named(key: Iterable[int], names: Sequence[str], texts: Sequence[str]) -> str:
    question, *further = key
    more = [f"{name} {value}" for name, value in zip(names[1:], further, strict=True)]
    return ", ".join([f"question {shown(texts[question])}", *more])


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    if wanted == pa.string():
        if pa.types.is_dictionary(found):
            found = found.value_type
        return bool(
            pa.types.is_string(found)
            or pa.types.is_large_string(found)
            or pa.types.is_string_view(found)
        )
    if pa.types.is_list(wanted):
        lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        return any(is_list(found) for is_list in lists) and found.value_type == wanted.value_type
    return bool(found == wanted)


def _unreadable(path: Path, error: BaseException) -> ChangedReleaseError:
    return changed(path, f"cannot be read as a table ({one_line(error)[:120]})")
