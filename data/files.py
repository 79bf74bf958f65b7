"""Rows of a question file: JSONL, JSON, Parquet or CSV, each row a mapping of column to value.

Knows file formats and nothing of questions. Every error names the file, and the line where there
is one.
"""

import csv
import errno
import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from data.errors import MisuseError

RawRow = Mapping[str, object]
"""One row of a file: column name to value."""

SUFFIXES = (".jsonl", ".parquet", ".json", ".csv")
"""File name endings that :func:`read_rows` knows."""


def read_rows(path: Path) -> list[RawRow]:
    """Return the rows of a file, in its order.

    Parameters
    ----------
    path
        A file whose name ends in one of :data:`SUFFIXES`.

    Raises
    ------
    data.errors.MisuseError
        If the file is missing, of an unknown kind, or damaged; the message names file and line.
    """
    try:
        there = path.is_file()
    except OSError:  # A name longer than the system has.
        there = False
    if not there:
        raise MisuseError(f"{path!s:.200}: no such file")
    readers = {
        ".jsonl": _read_jsonl,
        ".json": _read_json,
        ".parquet": _read_parquet,
        ".csv": _read_csv,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise MisuseError(f"{path}: unknown kind of file; expected one of {', '.join(SUFFIXES)}")
    return reader(path)


def value_of(row: RawRow, column: str, where: str) -> object:
    """Return a column's value.

    Raises
    ------
    data.errors.MisuseError
        If there is no such column; the message names those there are.
    """
    if column not in row:
        raise MisuseError(f"{where}: no column {column!r}; there are {', '.join(map(repr, row))}")
    return row[column]


def text_of(row: RawRow, column: str, where: str) -> str:
    """Return a column's value as text, outer white space removed.

    Parameters
    ----------
    row
        One row.
    column
        Its column.
    where
        File and row, for the message.

    Raises
    ------
    data.errors.MisuseError
        If the column is missing (the message names those there are), empty or no plain value.
    """
    value = value_of(row, column, where)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise MisuseError(f"{where}: column {column!r} is empty")
    if isinstance(value, float) and math.isinf(value):
        raise MisuseError(f"{where}: column {column!r} holds {value}, which is not a number")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise MisuseError(f"{where}: column {column!r} holds a {type(value).__name__}, not text")
    text = str(value).strip()
    if not text:
        raise MisuseError(f"{where}: column {column!r} is empty")
    return text


def _read_jsonl(path: Path) -> list[RawRow]:
    rows: list[RawRow] = []
    # Not str.splitlines(): U+2028 and its kind may stand unescaped inside a JSON string.
    with _open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            rows.append(_as_row(_parse_json(line, f"{path}, line {number}"), path, number))
    return rows


def _read_json(path: Path) -> list[RawRow]:
    with _open_text(path) as file:
        values = _parse_json(file.read(), str(path))
    if not isinstance(values, list):
        raise MisuseError(f"{path}: expected a JSON list of objects")
    return [_as_row(value, path, number) for number, value in enumerate(values, start=1)]


def _read_parquet(path: Path) -> list[RawRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: list[RawRow] = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise MisuseError(f"{path}: not a readable Parquet file ({error})") from error
    return rows


def _read_csv(path: Path) -> list[RawRow]:
    # The default limit of 128 KiB a field is too small for explanations in real files.
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with _open_text(path) as file:
        reader = csv.DictReader(file)
        names = list(reader.fieldnames or [])
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise MisuseError(
                f"{path}: two columns are called {twice[0]!r}, and only one could be read; give "
                "each its own name"
            )
        rows: list[RawRow] = []
        for row in reader:
            if None in row or None in row.values():
                raise MisuseError(
                    f"{path}, line {reader.line_num}: expected {len(reader.fieldnames or [])} "
                    "fields as in the first line"
                )
            rows.append(row)
    return rows


def plain_file(path: Path) -> Path:
    """Return a path whose content has an end: a pipe may give nothing, and a device gives for ever.

    Raises
    ------
    OSError
        If it is neither a file nor a folder, nor missing.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    return path


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    """Open UTF-8 text (a byte order mark is skipped), with our errors where it cannot be read."""
    try:
        with plain_file(path).open(encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise MisuseError(f"{path}: not UTF-8 text ({error})") from error
    except csv.Error as error:
        raise MisuseError(f"{path}: not a readable CSV file ({error})") from error
    except OSError as error:
        raise MisuseError(f"{path}: cannot be read: {error.strerror}") from error


def _parse_json(text: str, where: str) -> object:
    try:
        return json.loads(text)
    # Also a number of thousands of digits, and lists in lists without end.
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"{where}: not valid JSON ({error})") from error


def _as_row(value: object, path: Path, number: int) -> RawRow:
    if not isinstance(value, dict):
        raise MisuseError(f"{path}, row {number}: expected an object, found {value!r:.40}")
    return value
