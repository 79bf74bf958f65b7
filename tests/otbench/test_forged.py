"""Releases whose tables were forged, and whose checksums were written again to match."""

import functools
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import MisuseError
from evaluator.otbench.columns import RANGES
from evaluator.otbench.integrity import ChangedReleaseError
from evaluator.otbench.load import load_release
from tests.otbench.forging import (
    CELL,
    OTHER,
    TABLES,
    added,
    digest_of,
    doubled,
    every,
    first_of,
    forge,
    longest,
    put,
    refused,
    reseal,
    setting,
    shuffled,
    with_values,
    without,
    write_small,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a release, and its numbers."""
    folder = write_small(tmp_path_factory.mktemp("forged"))
    return folder, digest_of(folder)


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made[0], tmp_path / "copy")


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


FORGED_TABLES = {
    # file: what happens to it: (how, what the error must say)
    f"hidden/{CELL}": {
        "a row of hidden states is gone": (lambda t: without(t, 5), "rows, and there must be"),
        "a row of hidden states stands for two": (
            lambda t: doubled(t, 5),
            r"position \d+ is there twice",
        ),
        "hidden states of another model": (
            lambda t: every(t, "model", lambda v: "model-1"),
            "holds rows of model 'model-1', not 'model-0'",
        ),
        "hidden states are narrower in one row": (
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
            lambda t: with_values(
                t,
                "layer_5",
                pa.array([v[:5] for v in t["layer_5"].to_pylist()], pa.list_(pa.float16())),
            ),
            "layer_5 has 5 entries a row, and other states of the model have 6",
        ),
        "hidden states are empty": (
            lambda t: with_values(
                t, "layer_2", pa.array([[]] * t.num_rows, pa.list_(pa.float16()))
            ),
            "layer_2 has between 0 and 0 entries a row",
        ),
        "a hidden state has a gap": (
            lambda t: put(t, "layer_2", 1, [None, *[np.float16(0)] * 5]),
            "column layer_2 has entries without a value",
        ),
        "a layer is gone": (lambda t: t.drop_columns(["layer_5"]), "column layer_5 is missing"),
        "a layer is there twice": (
            lambda t: t.append_column("layer_5", t["layer_2"]),
            "column layer_5 is there twice",
        ),
        "a layer is of texts": (
            lambda t: with_values(t, "layer_2", pa.array(["x"] * t.num_rows)),
            "column layer_2 is of type string",
        ),
    },
    f"positions/{CELL}": {
        "a position is gone": (lambda t: without(t, 2), "rows, and there must be"),
        "a position stands for two": (lambda t: doubled(t, 2), "is there twice|is missing"),
        "position 0 is gone": (
            lambda t: every(t, "position", lambda v: v + 1),
            "position 0 is missing",
        ),
        "positions have a gap": (
            lambda t: put(t, "position", longest(t)[-1], len(longest(t)) + 1),
            "is missing",
        ),
        "a position is negative": (
            lambda t: put(t, "position", 0, -1),
            "row 0: position cannot be -1",
        ),
        "a question is unknown": (
            lambda t: put(t, "question_id", 0, "nobody\nknows"),
            "question 'nobody.nknows' is not in questions.parquet",
        ),
        "more right probes than probes": (
            lambda t: put(t, "correct", longest(t)[1], 5),
            "correct cannot be 5",
        ),
        "fewer right probes than none": (
            lambda t: put(t, "correct", longest(t)[1], -1),
            "correct cannot be -1",
        ),
        "tokens do not start at 0": (
            lambda t: put(t, "tokens", longest(t)[0], 1),
            r"trajectory \d: L\(0\) is not 0",
        ),
        "tokens fall": (
            lambda t: put(t, "tokens", longest(t)[1], 10**6),
            r"trajectory \d: tokens fall",
        ),
        "tokens are negative": (
            lambda t: put(t, "tokens", longest(t)[1], -7),
            "tokens cannot be -7",
        ),
        "a trajectory ends later than its row says": (
            lambda t: put(t, "tokens", longest(t)[-1], 10**6),
            r"L\(n\) is not the one in trajectories",
        ),
        "a trajectory's last probes are others than its row says": (
            lambda t: put(
                t, "correct", longest(t)[-1], (t["correct"][longest(t)[-1]].as_py() + 1) % 5
            ),
            r"C\(n\) is not the one in trajectories",
        ),
        "an answer costs less than nothing": (
            lambda t: put(t, "answer_tokens", 3, -3),
            "row 3: answer_tokens cannot be -3",
        ),
        "a trial answer costs less than nothing": (
            lambda t: put(t, "trial_tokens", 4, -(2**31)),
            "row 4: trial_tokens cannot be -2147483648",
        ),
        "a log-probability is above 0": (
            lambda t: put(t, "end_logprob", 4, 0.5),
            "row 4: end_logprob cannot be 0.5",
        ),
        "an entropy is not a number": (
            lambda t: put(t, "entropy", 4, float("nan")),
            "row 4: entropy cannot be nan",
        ),
        "a signal was measured nowhere": (
            lambda t: every(t, "trial_logprob", lambda v: float("nan")),
            "trial_logprob was not measured, and manifest.json says that it was",
        ),
        "a signal has a gap": (
            lambda t: put(t, "end_entropy", 4, None),
            "column end_entropy has rows without a value",
        ),
        "a signal is of another type": (
            lambda t: with_values(t, "entropy", t["entropy"].cast(pa.float64())),
            "column entropy is of type double, not float",
        ),
        "a signal is gone": (
            lambda t: t.drop_columns(["answer_tokens"]),
            "column answer_tokens is missing",
        ),
        "a position has fewer answers than probes": (
            lambda t: every(t, "answers", lambda v: v[:-1]),
            "answers has 3 entries a row, and must have 4",
        ),
        "a position has no answers": (
            lambda t: put(t, "answers", 0, []),
            "answers has between 0 and 4 entries a row",
        ),
        "an answer's number is none": (
            lambda t: put(t, "answers", 6, [0, -2, 0, 0]),
            "row 6: answers cannot be -2",
        ),
        "an answer's number is nobody's": (
            lambda t: put(t, "answers", 6, [0, 9, 0, 0]),
            "answer 9 is not in",
        ),
    },
    f"answers/{CELL}": {
        "an answer is gone": (
            lambda t: without(t, first_of(t, "number", 0)),
            "number 0 is missing|number 1 does not belong there|is not in",
        ),
        "an answer is there twice": (lambda t: added(t, 0), "number 0 is there twice"),
    },
    f"prompts/{CELL}": {
        "a question has no prompt": (lambda t: without(t, 0), "7 rows, and there must be 8"),
        "a prompt stands for two": (lambda t: doubled(t, 0), "is there twice|is missing"),
        "a prompt has less than no tokens": (
            lambda t: put(t, "prompt_tokens", 0, -1),
            "prompt_tokens cannot be -1",
        ),
    },
    f"trajectories/{CELL}": {
        "a trajectory's row is gone": (lambda t: without(t, 1), "15 rows, and there must be 16"),
        "a trajectory's row stands for two": (
            lambda t: doubled(t, 0),
            "trajectory 0 is there twice",
        ),
        "a trajectory has another split": (
            lambda t: put(t, "split", first_of(t, "split", "train"), "test"),
            "its split is not the release's",
        ),
        "a trajectory has an unknown split": (
            lambda t: put(t, "split", 0, "exam"),
            "its split is not the release's",
        ),
        "a trajectory has other probes": (
            lambda t: put(t, "probes", 0, 3),
            "its probes is not the release's",
        ),
        "a trajectory has other steps": (lambda t: put(t, "steps", 0, 2**31 - 1), "its steps give"),
        "a verdict is neither": (
            lambda t: put(t, "original_correct", 0, 2),
            "original_correct cannot be 2",
        ),
        "a question has no trajectory": (
            lambda t: every(t, "question_id", lambda v: t["question_id"][0].as_py()),
            "is there twice",
        ),
    },
    "questions.parquet": {
        "a question moves to the test questions": (
            lambda t: put(t, "split", first_of(t, "split", "train"), "test"),
            "is in split 'test'; by the seed and its text it is in train",
        ),
        "a split is unknown": (lambda t: put(t, "split", 0, "exam"), "is in split 'exam'"),
        "a question is there twice": (
            lambda t: doubled(t, 0),
            "is there twice; a question has one split",
        ),
        "a question is gone": (lambda t: without(t, 3), "12 rows, and there must be 13"),
        "a lot is another": (
            lambda t: put(t, "lot", 0, 0.5),
            "its lot does not follow from its name",
        ),
        "a lot is not a number": (
            lambda t: put(t, "lot", 0, float("nan")),
            "its lot does not follow from its name",
        ),
        "a benchmark is in two groups": (
            lambda t: put(t, "group", 0, "other"),
            "benchmark 'AIME' is in two groups",
        ),
        "a question is of a benchmark that nobody ran": (
            lambda t: put(t, "benchmark", 0, "GPQA"),
            "8 questions of 'AIME', and questions.parquet has 7",
        ),
        "questions have no group": (lambda t: t.drop_columns(["group"]), "column group is missing"),
        "questions are numbers": (
            lambda t: with_values(t, "question_id", pa.array(range(t.num_rows))),
            "column question_id is of type int64, not string",
        ),
    },
}


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file, found in FORGED_TABLES.items() for name in found]
)
def test_a_forged_table_is_refused_and_named(copy, file, name):
    change, message = FORGED_TABLES[file][name]
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
