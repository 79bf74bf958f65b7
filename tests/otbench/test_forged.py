"""Releases whose files were forged and whose checksums were written again to match."""

import functools
import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import MisuseError, StpError
from evaluator.otbench.cells import KEYS
from evaluator.otbench.columns import RANGES
from evaluator.otbench.hub import push_release
from evaluator.otbench.integrity import ChangedReleaseError, write_manifest
from evaluator.otbench.load import load_release
from evaluator.otbench.splits import SPLITS
from tests.otbench.campaigns import campaign, released, with_signals

TABLES = ("trajectories", "positions", "answers", "prompts", "hidden")
CELL = "model-0--AIME.parquet"
OTHER = "model-1--AIME.parquet"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a release, and its numbers."""
    root = tmp_path_factory.mktemp("forged")
    url = campaign(root / "campaign", questions=(8, 5), trajectories=2)
    with pytest.MonkeyPatch.context() as patch:
        with_signals(patch)
        folder = released(root / "release", url)
    return folder, digest_of(folder)


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made[0], tmp_path / "copy")


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


# -- rows in another order, and files written by others: the same numbers -------------------------


@pytest.mark.parametrize("table", [*TABLES, "questions"])
def test_rows_in_another_order_give_the_same_numbers(made, copy, table):
    names = ["questions.parquet"] if table == "questions" else [f"{table}/{CELL}"]
    for name in names:
        forge(copy, name, shuffled)
    reseal(copy)
    assert digest_of(copy) == made[1]


def test_all_rows_in_other_orders_give_the_same_numbers(made, copy):
    for seed, path in enumerate(sorted(copy.rglob("*.parquet"))):
        forge(copy, path.relative_to(copy), functools.partial(shuffled, seed=seed))
    reseal(copy)
    assert digest_of(copy) == made[1]


def test_tables_that_pandas_wrote_again_give_the_same_numbers(made, copy):
    for path in sorted(copy.rglob("*.parquet")):
        table = pq.read_table(path, partitioning=None)
        # What pandas does not keep: NaN, which it writes as a gap, and half floats.
        if not any(pa.types.is_fixed_size_list(field.type) for field in table.schema):
            table.to_pandas().to_parquet(path, index=False, row_group_size=7)
    reseal(copy)
    assert digest_of(copy) == made[1]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_other_kinds_of_text_and_lists_and_row_groups_give_the_same_numbers(made, copy, kind):
    for path in copy.rglob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        for field in table.schema:
            if field.type == pa.string():
                table = with_values(table, field.name, table[field.name].cast(kind))
            elif pa.types.is_fixed_size_list(field.type):
                lists = pa.array(table[field.name].to_pylist(), pa.list_(pa.float16()))
                table = with_values(table, field.name, lists)
        pq.write_table(table, path, row_group_size=5)
    reseal(copy)
    assert digest_of(copy) == made[1]


# -- forged tables: refused ------------------------------------------------------------------------

FORGED_TABLES = {
    # name: (file, what happens to it, what the error must say)
    "a row of hidden states is gone": (
        *(f"hidden/{CELL}", lambda t: without(t, 5)),
        "rows, and there must be",
    ),
    "a row of hidden states stands for two": (
        *(f"hidden/{CELL}", lambda t: doubled(t, 5)),
        r"position \d+ is there twice",
    ),
    "hidden states of another model": (
        *(f"hidden/{CELL}", lambda t: every(t, "model", lambda v: "model-1")),
        "holds rows of model 'model-1', not 'model-0'",
    ),
    "hidden states are narrower in one row": (
        f"hidden/{CELL}",
        lambda t: with_values(
            t,
            "layer_2",
            pa.array([v[: 6 - (not r)] for r, v in enumerate(t["layer_2"].to_pylist())]).cast(
                pa.list_(pa.float16())
            ),
        ),
        "layer_2 has between 5 and 6 entries a row",
    ),
    "hidden states are narrower in one cell": (
        f"hidden/{CELL}",
        lambda t: with_values(
            t,
            "layer_5",
            pa.array([v[:5] for v in t["layer_5"].to_pylist()], pa.list_(pa.float16())),
        ),
        "layer_5 has 5 entries a row, and other states of the model have 6",
    ),
    "hidden states are empty": (
        f"hidden/{CELL}",
        lambda t: with_values(t, "layer_2", pa.array([[]] * t.num_rows, pa.list_(pa.float16()))),
        "layer_2 has between 0 and 0 entries a row",
    ),
    "a hidden state has a gap": (
        f"hidden/{CELL}",
        lambda t: put(t, "layer_2", 1, [None, *[np.float16(0)] * 5]),
        "column layer_2 has entries without a value",
    ),
    "a layer is gone": (
        *(f"hidden/{CELL}", lambda t: t.drop_columns(["layer_5"])),
        "column layer_5 is missing",
    ),
    "a layer is there twice": (
        *(f"hidden/{CELL}", lambda t: t.append_column("layer_5", t["layer_2"])),
        "column layer_5 is there twice",
    ),
    "a layer is of texts": (
        f"hidden/{CELL}",
        lambda t: with_values(t, "layer_2", pa.array(["x"] * t.num_rows)),
        "column layer_2 is of type string",
    ),
    "a position is gone": (
        *(f"positions/{CELL}", lambda t: without(t, 2)),
        "rows, and there must be",
    ),
    "a position stands for two": (
        *(f"positions/{CELL}", lambda t: doubled(t, 2)),
        "is there twice|is missing",
    ),
    "position 0 is gone": (
        *(f"positions/{CELL}", lambda t: every(t, "position", lambda v: v + 1)),
        "position 0 is missing",
    ),
    "positions have a gap": (
        f"positions/{CELL}",
        lambda t: put(t, "position", longest(t)[-1], len(longest(t)) + 1),
        "is missing",
    ),
    "a position is negative": (
        *(f"positions/{CELL}", lambda t: put(t, "position", 0, -1)),
        "row 0: position cannot be -1",
    ),
    "a question is unknown": (
        *(f"positions/{CELL}", lambda t: put(t, "question_id", 0, "nobody\nknows")),
        "question 'nobody.nknows' is not in questions.parquet",
    ),
    "more right probes than probes": (
        *(f"positions/{CELL}", lambda t: put(t, "correct", longest(t)[1], 5)),
        "correct cannot be 5",
    ),
    "fewer right probes than none": (
        *(f"positions/{CELL}", lambda t: put(t, "correct", longest(t)[1], -1)),
        "correct cannot be -1",
    ),
    "tokens do not start at 0": (
        *(f"positions/{CELL}", lambda t: put(t, "tokens", longest(t)[0], 1)),
        r"trajectory \d: L\(0\) is not 0",
    ),
    "tokens fall": (
        *(f"positions/{CELL}", lambda t: put(t, "tokens", longest(t)[1], 10**6)),
        r"trajectory \d: tokens fall",
    ),
    "tokens are negative": (
        *(f"positions/{CELL}", lambda t: put(t, "tokens", longest(t)[1], -7)),
        "tokens cannot be -7",
    ),
    "a trajectory ends later than its row says": (
        *(f"positions/{CELL}", lambda t: put(t, "tokens", longest(t)[-1], 10**6)),
        r"L\(n\) is not the one in trajectories",
    ),
    "a trajectory's last probes are others than its row says": (
        f"positions/{CELL}",
        lambda t: put(t, "correct", longest(t)[-1], (t["correct"][longest(t)[-1]].as_py() + 1) % 5),
        r"C\(n\) is not the one in trajectories",
    ),
    "an answer costs less than nothing": (
        *(f"positions/{CELL}", lambda t: put(t, "answer_tokens", 3, -3)),
        "row 3: answer_tokens cannot be -3",
    ),
    "a trial answer costs less than nothing": (
        *(f"positions/{CELL}", lambda t: put(t, "trial_tokens", 4, -(2**31))),
        "row 4: trial_tokens cannot be -2147483648",
    ),
    "a log-probability is above 0": (
        *(f"positions/{CELL}", lambda t: put(t, "end_logprob", 4, 0.5)),
        "row 4: end_logprob cannot be 0.5",
    ),
    "an entropy is no number": (
        *(f"positions/{CELL}", lambda t: put(t, "entropy", 4, float("nan"))),
        "row 4: entropy cannot be nan",
    ),
    "a signal was measured nowhere": (
        *(f"positions/{CELL}", lambda t: every(t, "trial_logprob", lambda v: float("nan"))),
        "trial_logprob was not measured, and manifest.json says that it was",
    ),
    "a signal has a gap": (
        *(f"positions/{CELL}", lambda t: put(t, "end_entropy", 4, None)),
        "column end_entropy has rows without a value",
    ),
    "a signal is of another type": (
        f"positions/{CELL}",
        lambda t: with_values(t, "entropy", t["entropy"].cast(pa.float64())),
        "column entropy is of type double, not float",
    ),
    "a signal is gone": (
        *(f"positions/{CELL}", lambda t: t.drop_columns(["answer_tokens"])),
        "column answer_tokens is missing",
    ),
    "a position has fewer answers than probes": (
        *(f"positions/{CELL}", lambda t: every(t, "answers", lambda v: v[:-1])),
        "answers has 3 entries a row, and must have 4",
    ),
    "a position has no answers": (
        *(f"positions/{CELL}", lambda t: put(t, "answers", 0, [])),
        "answers has between 0 and 4 entries a row",
    ),
    "an answer's number is none": (
        *(f"positions/{CELL}", lambda t: put(t, "answers", 6, [0, -2, 0, 0])),
        "row 6: answers cannot be -2",
    ),
    "an answer's number is nobody's": (
        *(f"positions/{CELL}", lambda t: put(t, "answers", 6, [0, 9, 0, 0])),
        "answer 9 is not in",
    ),
    "an answer is gone": (
        *(f"answers/{CELL}", lambda t: without(t, first_of(t, "number", 0))),
        "number 0 is missing|number 1 does not belong there|is not in",
    ),
    "an answer is there twice": (
        *(f"answers/{CELL}", lambda t: added(t, 0)),
        "number 0 is there twice",
    ),
    "a question has no prompt": (
        *(f"prompts/{CELL}", lambda t: without(t, 0)),
        "7 rows, and there must be 8",
    ),
    "a prompt stands for two": (
        *(f"prompts/{CELL}", lambda t: doubled(t, 0)),
        "is there twice|is missing",
    ),
    "a prompt has less than no tokens": (
        *(f"prompts/{CELL}", lambda t: put(t, "prompt_tokens", 0, -1)),
        "prompt_tokens cannot be -1",
    ),
    "a trajectory's row is gone": (
        *(f"trajectories/{CELL}", lambda t: without(t, 1)),
        "15 rows, and there must be 16",
    ),
    "a trajectory's row stands for two": (
        *(f"trajectories/{CELL}", lambda t: doubled(t, 0)),
        "trajectory 0 is there twice",
    ),
    "a trajectory has another split": (
        f"trajectories/{CELL}",
        lambda t: put(t, "split", first_of(t, "split", "train"), "test"),
        "its split is not the release's",
    ),
    "a trajectory has an unknown split": (
        *(f"trajectories/{CELL}", lambda t: put(t, "split", 0, "exam")),
        "its split is not the release's",
    ),
    "a trajectory has other probes": (
        *(f"trajectories/{CELL}", lambda t: put(t, "probes", 0, 3)),
        "its probes is not the release's",
    ),
    "a trajectory has other steps": (
        *(f"trajectories/{CELL}", lambda t: put(t, "steps", 0, 2**31 - 1)),
        "its steps give",
    ),
    "a verdict is neither": (
        *(f"trajectories/{CELL}", lambda t: put(t, "original_correct", 0, 2)),
        "original_correct cannot be 2",
    ),
    "a question has no trajectory": (
        f"trajectories/{CELL}",
        lambda t: every(t, "question_id", lambda v: t["question_id"][0].as_py()),
        "is there twice",
    ),
    "a question moves to the test questions": (
        "questions.parquet",
        lambda t: put(t, "split", first_of(t, "split", "train"), "test"),
        "is in split 'test'; by the seed and its text it is in train",
    ),
    "a split is unknown": (
        *("questions.parquet", lambda t: put(t, "split", 0, "exam")),
        "is in split 'exam'",
    ),
    "a question is there twice": (
        *("questions.parquet", lambda t: doubled(t, 0)),
        "is there twice; a question has one split",
    ),
    "a question is gone": (
        *("questions.parquet", lambda t: without(t, 3)),
        "12 rows, and there must be 13",
    ),
    "a lot is another": (
        *("questions.parquet", lambda t: put(t, "lot", 0, 0.5)),
        "its lot is not the one of its name",
    ),
    "a lot is no number": (
        *("questions.parquet", lambda t: put(t, "lot", 0, float("nan"))),
        "its lot is not the one of its name",
    ),
    "a benchmark is in two groups": (
        *("questions.parquet", lambda t: put(t, "group", 0, "other")),
        "benchmark 'AIME' is in two groups",
    ),
    "a question is of a benchmark that nobody ran": (
        *("questions.parquet", lambda t: put(t, "benchmark", 0, "GPQA")),
        "8 questions of 'AIME', and questions.parquet has 7",
    ),
    "questions have no group": (
        *("questions.parquet", lambda t: t.drop_columns(["group"])),
        "column group is missing",
    ),
    "questions are numbers": (
        "questions.parquet",
        lambda t: with_values(t, "question_id", pa.array(range(t.num_rows))),
        "column question_id is of type int64, not string",
    ),
}


def refused(folder, message):
    """See that reading all of a release ends in one line that names a file of it."""
    with pytest.raises(StpError, match=message) as raised:
        digest_of(folder)
    said = str(raised.value)
    assert "\n" not in said
    assert said.startswith(str(folder))
    return said


@pytest.mark.parametrize("name", FORGED_TABLES)
def test_a_forged_table_is_refused_and_named(copy, name):
    file, change, message = FORGED_TABLES[name]
    forge(copy, file, change)
    reseal(copy)
    said = refused(copy, message)
    assert file in said or "manifest.json" in said


def test_a_file_that_is_no_table_is_refused(copy):
    for content in (b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"):
        (copy / "positions" / CELL).write_bytes(content)
        reseal(copy)
        refused(copy, f"{CELL}: cannot be read as a table")


@pytest.mark.parametrize("table", TABLES)
def test_cells_whose_files_changed_places_are_refused(copy, table):
    ours, theirs = copy / table / CELL, copy / table / OTHER
    ours.rename(copy / "aside")
    theirs.rename(ours)
    (copy / "aside").rename(theirs)
    reseal(copy)
    refused(copy, "holds rows of model 'model-1', not 'model-0'|rows, and there must be")


def test_a_trajectory_cut_short_in_all_counts_is_refused(copy):
    """Its last position is taken away, and the manifest counts one less."""
    table = pq.read_table(copy / "positions" / CELL)
    last = longest(table)[-1]
    for name in ("positions", "hidden"):
        forge(copy, f"{name}/{CELL}", lambda t: without(t, last))

    def fewer(manifest):
        manifest["positions"] -= 1
        manifest["cells"][0]["positions"] -= 1

    reseal(copy, fewer)
    refused(copy, "its steps give")


def test_a_question_taken_from_all_tables_of_a_cell_is_refused(copy):
    gone = pq.read_table(copy / "prompts" / CELL)["question_id"][0].as_py()
    counts = {}
    for name in TABLES:

        def keep(table):
            left = table.filter(pa.compute.field("question_id") != gone)
            counts[name] = table.num_rows - left.num_rows  # noqa: B023
            return left

        forge(copy, f"{name}/{CELL}", keep)

    def fewer(manifest):
        for key in ("trajectories", "positions"):
            manifest[key] -= counts[key]
            manifest["cells"][0][key] -= counts[key]
        manifest["cells"][0]["questions"] -= 1

    reseal(copy, fewer)
    refused(copy, "7 questions of 'AIME', and questions.parquet has 8")


# -- forged manifests ------------------------------------------------------------------------------


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


FORGED_MANIFESTS = {
    "no cells": (lacking("cells"), "cells: Field required"),
    "empty cells": (setting("cells", value=[]), "cells: List should have at least 1 item"),
    "cells as a text": (setting("cells", value="all"), "cells: Input should be a valid list"),
    "a cell twice": (lambda m: m["cells"].append(m["cells"][0]), "there twice"),
    "a file outside": (
        setting("cells", 0, "file", value="../x.parquet"),
        "cells.0.file: '../x.parquet' is no plain name of a Parquet file",
    ),
    "an absolute file": (
        setting("cells", 0, "file", value="/etc/x.parquet"),
        "cells.0.file: '/etc/x.parquet' is no plain name of a Parquet file",
    ),
    "a file that holds a line break": (
        setting("cells", 0, "file", value="x\n.parquet"),
        "is no plain name",
    ),
    "a file that is not there": (
        setting("cells", 0, "file", value="x.parquet"),
        "files: trajectories/x.parquet is not among them",
    ),
    "a file of another cell": (
        lambda m: m["cells"][0].update(file=m["cells"][1]["file"]),
        "cells: a file is there twice",
    ),
    "files that changed places": (
        lambda m: (
            [
                cell.update(file=file)
                for cell, file in zip(
                    m["cells"], [m["cells"][i]["file"] for i in (2, 1, 0, 3)], strict=True
                )
            ]
            and None
        ),
        "holds rows of model|rows, and there must be",
    ),
    "another model": (
        setting("cells", 0, "model", value="gpt"),
        "holds rows of model 'model-0', not 'gpt'",
    ),
    "another benchmark": (
        setting("cells", 0, "benchmark", value="GPQA"),
        "8 questions of 'GPQA', and questions.parquet has 0",
    ),
    "fewer trajectories": (
        setting("trajectories", value=3),
        "trajectories: 3, and the cells have 52",
    ),
    "positions as a fraction": (
        setting("positions", value=2.5),
        "positions: Input should be a valid integer",
    ),
    "no probes": (setting("probes", value=0), "probes: Input should be greater than or equal to 1"),
    "true probes": (setting("probes", value=True), "probes: Input should be a valid integer"),
    "other probes": (setting("probes", value=7), "its probes is not the release's"),
    "probes missing": (lacking("probes"), "probes: Field required"),
    "no name": (lacking("name"), "name: Field required"),
    "a name that is null": (setting("name", value=None), "name: Input should be a valid string"),
    "a name that cannot be written": (setting("name", value="\ud800"), "no JSON in UTF-8"),
    "notes that are numbers": (setting("notes", value=[1]), "notes.0: Input should be a valid"),
    "no test questions": (lacking("questions", "test"), "questions.test: Field required"),
    "other questions": (
        lambda m: m["questions"].update(train=m["questions"]["train"] + 1, test=2),
        "train questions, and questions.parquet has|rows, and there must be",
    ),
    "questions moved between splits": (
        lambda m: m["questions"].update(
            train=m["questions"]["train"] - 1, test=m["questions"]["test"] + 1
        ),
        "train questions, and questions.parquet has",
    ),
    "another seed": (setting("splits", "seed", value=1), "by the seed and its text it is in"),
    "a huge fraction": (
        setting("splits", "train", value="1e999999999"),
        "splits.train: '1e999999999' is no fraction",
    ),
    "a fraction of nothing": (setting("splits", "train", value="1/0"), "'1/0' is no fraction"),
    "no test fraction": (
        setting("splits", "train", value="1"),
        "must leave test questions",
    ),
    "other strata": (setting("splits", "stratified_by", value="x"), "splits.stratified_by: "),
    "an unknown signal": (
        lambda m: m["signals"].append("clairvoyance"),
        "signals.*'clairvoyance' is no signal",
    ),
    "fewer signals than there are": (
        lambda m: m["signals"].remove("entropy"),
        "signals: not those that all cells have",
    ),
    "a layer that is not there": (
        lambda m: m["cells"][0]["layers"].append(7),
        "column layer_7 is missing",
    ),
    "a layer twice": (lambda m: m["cells"][0]["layers"].append(2), "is there twice"),
    "a layer as a text": (setting("cells", 0, "layers", value=["2"]), "cells.0.layers.0: "),
    "a prompt's layer that is not there": (
        setting("cells", 0, "prompt_layers", value=[2, 5, 9]),
        "column layer_9 is missing",
    ),
    "campaigns as a number": (setting("campaigns", value=3), "campaigns: "),
    "packages missing": (lacking("packages"), "packages: Field required"),
}


@pytest.mark.parametrize("name", FORGED_MANIFESTS)
def test_a_forged_manifest_is_refused_and_says_where(copy, name):
    change, message = FORGED_MANIFESTS[name]
    reseal(copy, change_files=change)
    refused(copy, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lacking("files"), "files: Field required"),
        (setting("files", value=[]), "files: "),
        (setting("files", value={}), "files: questions.parquet is not among them"),
        (lacking("files", "questions.parquet"), "files: questions.parquet is not among them"),
        (lacking("files", f"hidden/{CELL}"), f"files: hidden/{CELL} is not among them"),
        (setting("files", "../x", value={}), "'../x' is no file within the release"),
        (setting("files", "/etc/passwd", value={}), "is no file within the release"),
        (setting("files", "a\0b", value={}), "is no file within the release"),
        (setting("files", "", value={}), "'' is no file within the release"),
        (setting("files", "README.md", value=3), "files.README.md: "),
        (lacking("files", "README.md", "sha256"), "files.README.md.sha256: Field required"),
        (setting("files", "README.md", "bytes", value=-1), "files.README.md.bytes: "),
        (setting("files", "README.md", "bytes", value=1), "and 1 were written"),
        (setting("files", "README.md", "blocks", value=[]), "README.md: changed"),
        (setting("files", "README.md", "sha256", value="0"), "README.md: changed"),
        (lambda m: m["files"].update({"x" * 5000: m["files"]["README.md"]}), "cannot be read"),
        (lacking("schema_version"), "schema_version is missing"),
        (setting("schema_version", value="1"), "schema_version is missing"),
        (setting("schema_version", value=2), "read it with the version that wrote it"),
    ],
)
def test_a_manifest_with_forged_files_is_refused(copy, change, message):
    reseal(copy, change_files=change)
    refused(copy, message)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"3", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b"{}"]
)
def test_a_manifest_that_is_none_is_refused(copy, content):
    write_raw(copy, content)
    refused(copy, "manifest.json: no JSON|manifest.json: no manifest of a release")


def test_a_forged_release_is_not_sent_to_the_hub(copy, monkeypatch):
    pytest.importorskip("huggingface_hub")
    reseal(copy, change_files=lacking("name"))
    with pytest.raises(ChangedReleaseError, match="name: Field required"):
        push_release(copy, "somebody/something")


def test_signals_that_nobody_asks_for_are_not_read(copy, monkeypatch):
    forge(copy, f"positions/{CELL}", lambda t: put(t, "entropy", 4, float("nan")))
    forge(copy, f"hidden/{CELL}", lambda t: doubled(t, 5))
    reseal(copy)
    release = load_release(copy)
    release.measurements(0, "test", ("end_logprob", "answer"))
    with pytest.raises(ChangedReleaseError, match="entropy cannot be nan"):
        release.measurements(0, "test", ("entropy",))
    with pytest.raises(ChangedReleaseError, match=r"is there twice|is missing"):
        release.measurements(0, "test", ("hidden",))


def test_cells_without_a_common_layer_have_no_hidden_states(copy):
    reseal(copy, setting("cells", 0, "layers", value=[2]))
    release = load_release(copy)
    assert release.measurements(0, "test", ("hidden",)).layers == (2,)
    other = {cell["benchmark"]: place for place, cell in enumerate(release.manifest["cells"][:2])}
    reseal(copy, setting("cells", other["MATH"], "layers", value=[5]))
    release = load_release(copy)
    assert "hidden" not in release.signals
    with pytest.raises(MisuseError, match="holds no hidden"):
        release.measurements(0, "test", ("hidden",))


def test_a_column_that_is_no_signal_is_not_one(made):
    with pytest.raises(MisuseError, match="holds no other_id"):
        load_release(made[0]).measurements(0, "test", ("other_id",))


def test_ranges_are_of_columns_that_there_are(made):
    there = {name for path in made[0].rglob("*.parquet") for name in pq.read_schema(path).names}
    assert set(RANGES) <= there


# -- changes at random -----------------------------------------------------------------------------

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


@pytest.mark.parametrize("seed", range(4))
def test_tables_changed_at_random_are_refused_or_give_the_same_numbers(made, tmp_path, seed):
    rng, outcomes = np.random.default_rng(seed), []
    for number in range(50):
        folder = shutil.copytree(made[0], tmp_path / str(number))
        plausible = _forge_randomly(folder, rng)
        reseal(folder)
        outcomes.append(_outcome(folder, made[1]))
        assert plausible or outcomes[-1] != "other", number
    assert outcomes.count("refused") > 20
    assert outcomes.count("same") > 0


def test_manifests_changed_at_random_are_refused_or_give_the_same_numbers(made, tmp_path):
    rng, outcomes = np.random.default_rng(9), []
    folder = shutil.copytree(made[0], tmp_path / "copy")
    original = (folder / "manifest.json").read_bytes()
    for number in range(200):
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
    assert outcomes.count("refused") > 100
    assert outcomes.count("same") > 0
