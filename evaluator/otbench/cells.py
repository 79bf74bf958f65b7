"""The questions of a release, and the curves of its cells: read, and checked against each other.

A release says most things twice: a trajectory's row holds L(n), C(0) and C(n) of its positions, a
question's split and lot follow from the seed and its text. All of it must agree.

Axes: ``_q`` question, ``_s`` trajectory, ``_k`` position; of one cell, in the curves' order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from data.errors import MisuseError
from evaluator.otbench.checks import (
    changed,
    check_columns,
    check_range,
    check_rising,
    in_order,
    match_rows,
    names_of,
    numbers,
    question_numbers,
    read_columns,
    rising_order,
)
from evaluator.otbench.columns import columns_of, schema_of
from evaluator.otbench.integrity import MANIFEST, ReleasedCell, ReleaseManifest, shown
from evaluator.otbench.splits import SPLITS, divide, lot
from stp.curves import Curves
from stp.ragged import Array, IntArray, index_within, offsets_of, spread

KEYS = ("question_id", "trajectory", "position")
"""What a position is called within its cell."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Questions:
    """The questions of a release, by benchmark and id.

    Attributes
    ----------
    keys
        By question number, (benchmark, question id).
    number
        By benchmark and question id, the question number.
    group
        By benchmark, its reporting group.
    split_q, lot_q
        By question number, its place in :data:`evaluator.otbench.splits.SPLITS`, and its lot.
    """

    keys: tuple[tuple[str, str], ...]
    number: dict[str, dict[str, int]]
    group: dict[str, str]
    split_q: IntArray
    lot_q: npt.NDArray[np.float64]

    @property
    def ids(self) -> tuple[str, ...]:
        """By question number, its id."""
        return tuple(question_id for _, question_id in self.keys)

    def of(self, benchmark: str) -> IntArray:
        """Return the question numbers of a benchmark, rising."""
        return np.array(list(self.number[benchmark].values()), np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellRows:
    """A cell's trajectories, in order of question number and trajectory.

    Attributes
    ----------
    record
        What the manifest says of the cell.
    question_s, sample_s, steps_s, original_s
        Of every trajectory, its question number, which of the question's it is, n, and its
        original verdict.
    tokens_k, correct_k
        L(k) and C(k).
    order_k
        The rows of the cell's positions in this order; None: they lie so.
    """

    record: ReleasedCell
    question_s: IntArray
    sample_s: IntArray
    steps_s: IntArray
    original_s: Array
    tokens_k: IntArray
    correct_k: Array
    order_k: IntArray | None

    @property
    def owners(self) -> dict[str, str]:
        """What every row of its tables must say of the cell."""
        return {"model": self.record.model, "benchmark": self.record.benchmark}

    @property
    def keys_k(self) -> tuple[IntArray, IntArray, IntArray]:
        """Question number, trajectory and position of every position."""
        return _positions(self.question_s, self.sample_s, self.steps_s)


def check_tables(folder: Path, manifest: ReleaseManifest) -> None:
    """Refuse a release in which a table lacks a column or has another number of rows.

    Only footers are read.
    """
    for cell in manifest.cells:
        signals = bool(cell.signals)
        rows = {
            "trajectories": cell.trajectories,
            "positions": cell.positions,
            "prompts": cell.questions,
            "answers": None,
        }
        for table, count in rows.items():
            schema = schema_of(table, signals=signals and table == "positions")
            check_columns(folder / table / cell.file, schema, count)
        states = columns_of("prompts", (), cell.prompt_layers)
        check_columns(folder / "prompts" / cell.file, states)
        if cell.layers:
            states = columns_of("hidden", schema_of("hidden").names, cell.layers)
            check_columns(folder / "hidden" / cell.file, states, cell.positions)


def read_questions(folder: Path, manifest: ReleaseManifest) -> Questions:
    """Return the questions, in order of benchmark and id.

    Raises
    ------
    data.errors.MisuseError
        If a question is there twice, or a text is in two splits.
    evaluator.otbench.integrity.ChangedReleaseError
        If a split or lot is not what seed and text give, or the manifest says otherwise.
    """
    path = folder / "questions.parquet"
    counts = manifest.questions
    rows = counts.train + counts.validation + counts.test
    check_columns(path, schema_of("questions"))
    names = ("benchmark", "question_id", "group", "split", "prompt_sha256", "lot")
    table = read_columns(path, columns_of("questions", names), rows=rows)
    texts = {}
    for name in names[:-1]:
        codes, known = names_of(table, name)
        texts[name] = [known[code] for code in codes.tolist()]
    keys = list(zip(texts["benchmark"], texts["question_id"], strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    number: dict[str, dict[str, int]] = {}
    group: dict[str, str] = {}
    for row in order:
        benchmark, question_id = keys[row]
        of_benchmark = number.setdefault(benchmark, {})
        if question_id in of_benchmark:
            raise MisuseError(
                f"{path}: question {shown(question_id)} of {shown(benchmark)} is there twice; a "
                "question has one split"
            )
        of_benchmark[question_id] = sum(len(each) for each in number.values())
        if group.setdefault(benchmark, texts["group"][row]) != texts["group"][row]:
            raise changed(path, f"benchmark {shown(benchmark)} is in two groups")
    _check_benchmarks(folder, manifest, number)
    ordered = [keys[row] for row in order]
    splits = [texts["split"][row] for row in order]
    _check_splits(path, manifest, ordered, splits, [texts["prompt_sha256"][row] for row in order])
    lots = in_order(table["lot"].to_numpy(), np.array(order, np.int64))
    seed = manifest.splits.seed
    for key, value in zip(ordered, lots.tolist(), strict=True):
        if value != lot(seed, *key):
            raise changed(path, f"question {shown(key[1])}: its lot does not follow from its name")
    return Questions(
        keys=tuple(ordered),
        number=number,
        group=group,
        split_q=np.array([SPLITS.index(split) for split in splits], np.int64),
        lot_q=lots,
    )


def _check_benchmarks(
    folder: Path, manifest: ReleaseManifest, number: dict[str, dict[str, int]]
) -> None:
    for cell in manifest.cells:
        questions = len(number.get(cell.benchmark, {}))
        if cell.questions != questions:
            raise changed(
                folder / MANIFEST,
                f"{cell.questions:,} questions of {shown(cell.benchmark)}, and questions.parquet "
                f"has {questions:,}",
            )
    strange = number.keys() - {cell.benchmark for cell in manifest.cells}
    if strange:
        raise changed(
            folder / "questions.parquet",
            f"benchmark {shown(min(strange))} is not in {MANIFEST}",
        )


def _check_splits(
    path: Path,
    manifest: ReleaseManifest,
    keys: Sequence[tuple[str, str]],
    splits: Sequence[str],
    digests: Sequence[str],
) -> None:
    """Divide the questions again."""
    first: dict[str, int] = {}
    prompts: dict[str, list[str]] = {}
    for row, digest in enumerate(digests):
        other = first.setdefault(digest, row)
        if splits[other] != splits[row]:
            raise MisuseError(
                f"{path}: leak: question {shown(keys[row][1])} ({shown(splits[row])[1:-1]}) has "
                f"the same text as {shown(keys[other][1])} ({shown(splits[other])[1:-1]}); make "
                "the release again"
            )
        prompts.setdefault(keys[row][0], []).append(digest)
    again = [split for found in divide(prompts, manifest.splits.rule).values() for split in found]
    for key, split, ours in zip(keys, splits, again, strict=True):
        if split != ours:
            raise changed(
                path,
                f"question {shown(key[1])} of {shown(key[0])} is in split {shown(split)}; by the "
                f"seed and its text it is in {ours}",
            )
    for name in SPLITS:
        if splits.count(name) != getattr(manifest.questions, name):
            raise changed(
                path.with_name(MANIFEST),
                f"{getattr(manifest.questions, name):,} {name} questions, and {path.name} has "
                f"{splits.count(name):,}",
            )


def read_cell(folder: Path, probes: int, cell: ReleasedCell, questions: Questions) -> CellRows:
    """Return a cell's trajectories and their curves, the two tables checked against each other.

    Raises
    ------
    evaluator.otbench.integrity.ChangedReleaseError
        Names the file and what is wrong in it.
    """
    path = folder / "trajectories" / cell.file
    owners = {"model": cell.model, "benchmark": cell.benchmark}
    counts = ("steps", "full_tokens", "zero_correct", "full_correct", "probes", "original_correct")
    names = ("question_id", "trajectory", "split", *counts)
    table = read_columns(path, columns_of("trajectories", names), owners, cell.trajectories)
    question = question_numbers(path, table, questions.number[cell.benchmark])
    sample = numbers(path, table, "trajectory").astype(np.int64)
    order = rising_order((question, sample))
    question, sample = in_order(question, order), in_order(sample, order)
    check_rising(path, (question, sample), KEYS[:2], questions.ids)
    missing = np.setdiff1d(questions.of(cell.benchmark), question)
    if missing.size:
        raise changed(path, f"question {shown(questions.ids[missing[0]])} has no trajectory")
    codes, splits = names_of(table, "split")
    places = np.array([SPLITS.index(s) if s in SPLITS else -1 for s in splits], np.int64)
    ends = {name: in_order(numbers(path, table, name), order) for name in counts}
    for what, wrong in (
        ("split", in_order(places[codes], order) != questions.split_q[question]),
        ("probes", ends["probes"] != probes),
    ):
        if wrong.any():
            row = question[int(np.argmax(wrong))]
            raise changed(
                path,
                f"question {shown(questions.ids[row])}: its {what} is not the release's",
            )
    steps = ends["steps"].astype(np.int64)
    if int(steps.sum()) + steps.size != cell.positions:
        raise changed(
            path,
            f"its steps give {int(steps.sum()) + steps.size:,} positions, and there are "
            f"{cell.positions:,}",
        )
    expected = _positions(question, sample, steps)
    path = folder / "positions" / cell.file
    table = read_columns(
        path, columns_of("positions", (*KEYS, "tokens", "correct")), owners, cell.positions
    )
    keys = [question_numbers(path, table, questions.number[cell.benchmark])]
    keys += [numbers(path, table, name) for name in KEYS[1:]]
    order = match_rows(path, keys, expected, KEYS, questions.ids)
    tokens, correct = numbers(path, table, "tokens"), numbers(path, table, "correct")
    check_range(path, "correct", correct, most=probes)
    rows = CellRows(
        record=cell,
        question_s=question,
        sample_s=sample,
        steps_s=steps,
        original_s=ends["original_correct"],
        tokens_k=in_order(tokens, order),
        correct_k=in_order(correct, order),
        order_k=order,
    )
    _check_curves(path, rows, ends, questions)
    return rows


def _check_curves(path: Path, cell: CellRows, ends: dict[str, Array], questions: Questions) -> None:
    """Refuse curves that do not start at 0, fall, or end elsewhere than their trajectory's row."""
    offsets = offsets_of(cell.steps_s + 1)
    first, last = offsets[:-1], offsets[1:] - 1
    falls = np.diff(cell.tokens_k, prepend=0) < 0
    falls[first] = False
    for what, wrong in (
        ("L(0) is not 0", cell.tokens_k[first] != 0),
        ("tokens fall", np.add.reduceat(falls, first, dtype=np.int64) > 0),
        ("L(n) is not the one in trajectories", cell.tokens_k[last] != ends["full_tokens"]),
        ("C(0) is not the one in trajectories", cell.correct_k[first] != ends["zero_correct"]),
        ("C(n) is not the one in trajectories", cell.correct_k[last] != ends["full_correct"]),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            name = shown(questions.ids[cell.question_s[at]])
            raise changed(path, f"question {name}, trajectory {cell.sample_s[at]}: {what}")


def join_cells(
    models: Sequence[Sequence[CellRows]],
    probes: int,
    questions: Questions,
    groups: Sequence[str],
) -> Curves:
    """Return the curves of all cells, models one after the other."""
    cells = [cell for cells in models for cell in cells]
    place = [groups.index(questions.group[cell.record.benchmark]) for cell in cells]
    owner = [model for model, cells in enumerate(models) for _ in cells]
    counts = [cell.question_s.size for cell in cells]
    lengths = np.concatenate([cell.steps_s for cell in cells]) + 1
    return Curves(
        tokens=np.concatenate([cell.tokens_k for cell in cells]),
        correct=np.concatenate([cell.correct_k for cell in cells]),
        trajectory_offsets=offsets_of(lengths),
        question=np.concatenate([cell.question_s for cell in cells]),
        probes=probes,
        benchmark=np.repeat(np.array(place, np.int32), counts),
        model=np.repeat(np.array(owner, np.int32), counts),
        sample=np.concatenate([cell.sample_s for cell in cells]),
        original_correct=np.concatenate([cell.original_s for cell in cells]),
        question_names=questions.ids,
        benchmark_names=tuple(groups),
        model_names=tuple(cells[0].record.model for cells in models),
    )


def _positions(
    question_s: IntArray, sample_s: IntArray, steps_s: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    offsets = offsets_of(steps_s + 1)
    return spread(question_s, offsets), spread(sample_s, offsets), index_within(offsets)
