"""Releases forged: tables and manifest changed, and consistent checksums written over them."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import StpError
from evaluator.otbench.integrity import write_manifest
from evaluator.otbench.load import load_release
from evaluator.otbench.splits import SPLITS
from tests.otbench.campaigns import campaign, released, with_signals

TABLES = ("trajectories", "positions", "answers", "prompts", "hidden")
CELL = "model-0--AIME.parquet"
OTHER = "model-1--AIME.parquet"


def write_small(root):
    """Write a release with signals and return its folder."""
    url = campaign(root / "campaign", questions=(8, 5), trajectories=2)
    with pytest.MonkeyPatch.context() as patch:
        with_signals(patch)
        return released(root / "release", url)


def digest_of(folder):
    """Return a digest of everything that a release gives: curves and all signals, by split."""
    release, found = load_release(folder), hashlib.sha256()
    curves = release.curves
    arrays = [
        *(curves.tokens, curves.correct, curves.trajectory_offsets, curves.question),
        *(curves.benchmark, curves.model, curves.sample, curves.original_correct),
        *(release.split_q, release.lot_q),
    ]
    names = (curves.question_names, curves.benchmark_names, curves.model_names)
    found.update(repr((names, release.question_ids, sorted(release.signals))).encode())
    for model in range(len(curves.model_names)):
        for split in SPLITS:
            data = release.measurements(model, split, sorted(release.signals))
            arrays += [data.curves.tokens, *(data[name] for name in sorted(release.signals))]
    for array in arrays:
        found.update(repr((array.shape, array.dtype)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def reseal(folder, change=lambda manifest: None, *, change_files=None):
    """Write consistent checksums over what lies in a folder, the manifest changed."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"], manifest["schema_version"]
    write_manifest(folder, change(manifest) or manifest)
    if change_files is not None:
        whole = json.loads((folder / "manifest.json").read_text())
        write_raw(folder, json.dumps(change_files(whole) or whole).encode())


def write_raw(folder, encoded):
    (folder / "manifest.json").write_bytes(encoded)
    checksum = hashlib.sha256(encoded).hexdigest()
    (folder / "manifest.sha256").write_text(f"{checksum}  manifest.json\n")


def forge(folder, name, change):
    """Rewrite one table."""
    path = folder / name
    pq.write_table(change(pq.read_table(path, partitioning=None)), path)


def put(table, column, row, value):
    """Return a table with one value replaced."""
    values = table[column].to_pylist()
    values[row] = value
    return with_values(table, column, pa.array(values, table.schema.field(column).type))


def with_values(table, column, values):
    return table.set_column(table.schema.get_field_index(column), column, values)


def every(table, column, function):
    values = [function(value) for value in table[column].to_pylist()]
    return with_values(table, column, pa.array(values, table.schema.field(column).type))


def rows(table, chosen):
    return table.take(pa.array(chosen))


def shuffled(table, seed=3):
    return rows(table, np.random.default_rng(seed).permutation(table.num_rows))


def without(table, row):
    return rows(table, [r for r in range(table.num_rows) if r != row])


def doubled(table, row):
    """Return a table in which a row took the next one's place."""
    return rows(table, [row if r == row + 1 else r for r in range(table.num_rows)])


def added(table, row):
    return rows(table, [*range(table.num_rows), row])


def first_of(table, column, value):
    return table[column].to_pylist().index(value)


def longest(table):
    """Return the rows of a table's longest trajectory."""
    last = int(np.argmax(table["position"].to_numpy()))
    n = table["position"].to_numpy()[last]
    return list(range(last - n, last + 1))


def refused(folder, message):
    """See that reading all of a release ends in one line that names a file of it."""
    with pytest.raises(StpError, match=message) as raised:
        digest_of(folder)
    said = str(raised.value)
    assert "\n" not in said
    assert said.startswith(str(folder))
    return said


def setting(*path, value):
    def change(manifest):
        inner = manifest
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


def lacking(*path):
    def change(manifest):
        inner = manifest
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]

    return change
