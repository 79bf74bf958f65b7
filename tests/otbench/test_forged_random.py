"""Releases changed at random: refused, or the same numbers."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import StpError
from evaluator.otbench.cells import KEYS
from tests.effort import tries
from tests.otbench.forging import (
    added,
    digest_of,
    doubled,
    put,
    reseal,
    shuffled,
    without,
    write_raw,
    write_small,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a release, and its numbers."""
    folder = write_small(tmp_path_factory.mktemp("forged"))
    return folder, digest_of(folder)


MANIFESTS = tries(150, 50)

# Measured values: nothing else in a release says what they are.
_PLAUSIBLE = {
    *("tokens", "correct", "answers", "answer_hedged", "answer_tokens", "prompt_tokens"),
    *("end_logprob", "other_logprob", "end_exact", "entropy", "end_entropy", "answer_entropy"),
    *("trial_logprob", "trial_probability", "trial_tokens", "layer_2", "layer_5"),
    "original_correct",
}
_NASTY = (
    *(
        0,
        1,
        -1,
        2,
        3,
        100,
        127,
        -(2**31),
        2**31 - 1,
        0.5,
        float("nan"),
        float("inf"),
        -float("inf"),
    ),
    *("", "x", "test", "train", "../x", "model-1", "AIME", "a\nb\x00", None, [], [0], [0] * 4),
    *([None] * 4, [-1] * 4, [9] * 4, [1.0] * 6, [float("nan")] * 6, True, False),
)


def _changed_value(table, rng):
    column = str(rng.choice(table.schema.names))
    row = int(rng.integers(table.num_rows))
    kind = table.schema.field(column).type
    for nasty in rng.permutation(len(_NASTY)).tolist():
        try:
            return put(table, column, row, _NASTY[nasty]), column
        except (pa.ArrowException, TypeError, OverflowError, ValueError):
            continue
    raise AssertionError(f"nothing can be put into {kind}")


def _swapped(table, rng):
    column = str(rng.choice(table.schema.names))
    one, two = rng.integers(table.num_rows, size=2).tolist()
    values = table[column].to_pylist()
    forged = put(put(table, column, one, values[two]), column, two, values[one])
    return forged, column


def _changed_columns(table, rng):
    place = int(rng.integers(table.num_columns))
    column = table.schema.names[place]
    other = int(rng.integers(table.num_columns))
    renamed = list(table.schema.names)
    renamed[place] = renamed[other] if rng.random() < 0.5 else "x"
    forged = table.remove_column(place) if rng.random() < 0.5 else table.rename_columns(renamed)
    return forged, column


def _forge_randomly(folder, rng):
    """Change a table; return whether the numbers may be others, where it is not refused."""
    files = sorted(path for path in folder.rglob("*.parquet"))
    path = files[int(rng.integers(len(files)))]
    table = pq.read_table(path, partitioning=None)
    kind = rng.choice(["value", "value", "value", "swap", "columns", "rows"])
    column = ""
    if kind == "value":
        table, column = _changed_value(table, rng)
    elif kind == "swap":
        table, column = _swapped(table, rng)
    elif kind == "columns":
        table, column = _changed_columns(table, rng)
        column = ""
    else:
        row = int(rng.integers(table.num_rows - 1))
        table = [without, doubled, added][int(rng.integers(3))](table, row)
        if rng.random() < 0.3:
            table = shuffled(table, seed=row)
    pq.write_table(table, path)
    # Rows whose names changed places are rows whose values changed places.
    return column in _PLAUSIBLE or (kind == "swap" and column in KEYS)


def _forge_manifest_randomly(manifest, rng):
    """Change, move or take away something in the manifest; files and checksums stay right."""
    places = []

    def walk(inner, path):
        pairs = inner.items() if isinstance(inner, dict) else enumerate(inner)
        for key, value in pairs:
            places.append((inner, key))
            if isinstance(value, dict | list) and key != "settings":
                walk(value, (*path, key))

    walk(manifest, ())
    inner, key = places[int(rng.integers(len(places)))]
    if rng.random() < 0.3:
        del inner[key]
    else:
        inner[key] = [*_NASTY, {}, {"x": 1}, 10**30][int(rng.integers(len(_NASTY) + 3))]


def _outcome(folder, before):
    """Return ``"refused"``, ``"same"`` or ``"other"``."""
    try:
        found = digest_of(folder)
    except StpError as error:
        assert "\n" not in str(error)
        assert str(folder) in str(error)
        return "refused"
    return "same" if found == before else "other"


@pytest.mark.parametrize("seed", range(tries(4, 1)))
def test_tables_changed_at_random_are_refused_or_give_the_same_numbers(made, tmp_path, seed):
    rng, outcomes = np.random.default_rng(seed), []
    for number in range(40):
        folder = shutil.copytree(made[0], tmp_path / str(number))
        plausible = _forge_randomly(folder, rng)
        reseal(folder)
        outcomes.append(_outcome(folder, made[1]))
        assert plausible or outcomes[-1] != "other", number
    assert outcomes.count("refused") > 15
    assert outcomes.count("same") > 0


def test_manifests_changed_at_random_are_refused_or_give_the_same_numbers(made, tmp_path):
    rng, outcomes = np.random.default_rng(9), []
    folder = shutil.copytree(made[0], tmp_path / "copy")
    original = (folder / "manifest.json").read_bytes()
    for number in range(MANIFESTS):
        write_raw(folder, original)
        reseal(
            folder,
            change_files=lambda whole: _forge_manifest_randomly(whole, rng),
        )
        outcomes.append(_outcome(folder, made[1]))
        said = json.loads((folder / "manifest.json").read_text())
        if outcomes[-1] == "other":
            # Fewer signals or layers, in all cells of a model or in the whole release.
            assert [cell["layers"] for cell in said["cells"]] != [[2, 5]] * 4 or [
                cell["prompt_layers"] for cell in said["cells"]
            ] != [[2, 5]] * 4, number
    assert outcomes.count("refused") > MANIFESTS / 2
    assert outcomes.count("same") > 0
