"""Reading a release back: checked against its manifest, as curves and signals by split.

Rows of all tables are joined by their names, never by their places. What is read on loading is
checked on loading; a signal when it is asked for first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from baselines.measurements import Measurements
from baselines.signals import SIGNALS
from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.otbench.cells import (
    KEYS,
    CellRows,
    Questions,
    check_tables,
    join_cells,
    read_cell,
    read_questions,
)
from evaluator.otbench.checks import (
    changed,
    first_of_lists,
    in_order,
    list_values,
    match_rows,
    numbers,
    question_numbers,
    read_columns,
)
from evaluator.otbench.columns import columns_of, hidden_column
from evaluator.otbench.integrity import MANIFEST, ReleaseManifest, read_manifest, verify
from evaluator.otbench.splits import SPLITS
from stp.curves import Curves
from stp.ragged import Array, IntArray, gather, index_within, offsets_of, row_of

# Of the trial answer at k = 0: made here from other columns.
_AT_ZERO = {"short_answer_logprob": "trial_logprob", "short_answer_tokens": "trial_tokens"}
_ALWAYS = frozenset({"answer", "answer_hedged", "answer_tokens", "prompt_tokens"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """A release, verified.

    Attributes
    ----------
    folder
        Where it is.
    manifest
        Its manifest, checked.
    checksum
        SHA-256 of the manifest.
    curves
        All of it; ``benchmark`` is the reporting group. Trajectories in order of model, benchmark,
        question id and sample.
    question_ids
        By question number, (benchmark, question id).
    split_q
        By question number, its place in :data:`evaluator.otbench.splits.SPLITS`.
    lot_q
        By question number, its random number in [0, 1); see :func:`evaluator.otbench.splits.lot`.
    """

    folder: Path
    manifest: dict[str, Any]
    checksum: str
    curves: Curves
    question_ids: tuple[tuple[str, str], ...]
    split_q: IntArray
    lot_q: npt.NDArray[np.float64]
    _record: ReleaseManifest = field(repr=False)
    _questions: Questions = field(repr=False)
    _cells: tuple[tuple[CellRows, ...], ...] = field(repr=False)
    _cache: dict[tuple[str, str], Array] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.manifest["name"])

    def in_split(self, split: str) -> IntArray:
        """Return the question numbers of a split; int64."""
        return np.flatnonzero(self.split_q == SPLITS.index(split)).astype(np.int64)

    @property
    def signals(self) -> frozenset[str]:
        """Names of the signals that every cell has, as methods call them."""
        names = _ALWAYS | set(self._record.signals)
        if "trial_logprob" in names:
            names |= _AT_ZERO.keys()
        models = range(len(self._cells))
        if all(self._layers(model, "layers") for model in models):
            names |= {"hidden"}
        if all(self._layers(model, "prompt_layers") for model in models):
            names |= {"prompt_hidden"}
        return names & SIGNALS.keys()

    def lacking(self, needs: Iterable[str]) -> tuple[str, ...]:
        """Return the needed signals that the release does not hold."""
        return tuple(name for name in needs if name not in self.signals)

    def measurements(self, model: int, split: str, needs: Iterable[str] = ()) -> Measurements:
        """Return one model's curves and signals in a split.

        Parameters
        ----------
        model
            Its number in ``curves``.
        split
            ``"train"``, ``"validation"`` or ``"test"``.
        needs
            Which signals.

        Raises
        ------
        data.errors.MisuseError
            If the release lacks a signal.
        evaluator.otbench.integrity.ChangedReleaseError
            If a signal's rows or values are not those that there must be; names file and row.
        """
        needs = tuple(needs)
        missing = self.lacking(needs)
        if missing:
            raise MisuseError(
                f"{self.folder}: holds no {', '.join(missing)}; make the campaign's signals with "
                "`stp signals CAMPAIGN` and release it again"
            )
        mine = np.flatnonzero(self.curves.model == model)
        keep_s = mine[np.isin(self.curves.question[mine], self.in_split(split))]
        curves = self.curves.select(keep_s)
        rows_k, _ = gather(self.curves.trajectory_offsets, keep_s)
        place = np.unique(curves.question).astype(np.int64)
        by_position, by_question = {}, {}
        for name in needs:
            if SIGNALS[name].level == "position":
                by_position[name] = self._position_signal(model, name)[rows_k - self._start(model)]
            else:
                by_question[name] = self._question_signal(model, name)[place]
        return Measurements(
            curves=curves,
            position_signals=by_position,
            question_signals=by_question,
            layers=self._layers(model, "layers"),
            prompt_layers=self._layers(model, "prompt_layers"),
        )

    # -- signals of one model -------------------------------------------------------------------

    def _layers(self, model: int, kind: str) -> tuple[int, ...]:
        every = [set(getattr(cell.record, kind)) for cell in self._cells[model]]
        return tuple(sorted(set.intersection(*every)))

    def _start(self, model: int) -> int:
        """Return the first position of a model: its trajectories are side by side."""
        first = int(np.flatnonzero(self.curves.model == model)[0])
        return int(self.curves.trajectory_offsets[first])

    def _position_signal(self, model: int, name: str) -> Array:
        """Return a signal at all positions of a model, in the order of the curves."""
        # Hidden states are gigabytes where models are large: they are read when asked for.
        if name == "hidden":
            return self._hidden(model)
        key = (self.curves.model_names[model], name)
        if key not in self._cache:
            parts = [self._of_cell(cell, name) for cell in self._cells[model]]
            self._cache[key] = np.concatenate(parts)
        return self._cache[key]

    def _of_cell(self, cell: CellRows, name: str) -> Array:
        path = self.folder / "positions" / cell.record.file
        column = "answers" if name == "answer" else name
        table = read_columns(path, columns_of("positions", (column,)), rows=cell.record.positions)
        if name == "answer":
            first, greatest = first_of_lists(path, table, column, self.curves.probes)
            self._check_answers(path, cell, in_order(greatest, cell.order_k))
            return by_appearance(in_order(first, cell.order_k), cell.keys_k[2])
        values = numbers(path, table, column)
        if values.dtype.kind == "f" and np.isnan(values).all():
            raise changed(path, f"{name} was not measured, and {MANIFEST} says that it was")
        return in_order(values, cell.order_k)

    def _check_answers(self, path: Path, cell: CellRows, greatest_k: Array) -> None:
        """Refuse numbers of answers that there are not; a question's are 0, 1, 2, ..."""
        file = self.folder / "answers" / cell.record.file
        table = read_columns(file, columns_of("answers", ("question_id", "number")), cell.owners)
        question = self._numbers(file, table, cell)
        counts = np.bincount(question, minlength=len(self.question_ids))
        offsets = offsets_of(counts)
        expected = row_of(offsets), index_within(offsets)
        found = question, numbers(file, table, "number")
        match_rows(file, found, expected, ("question_id", "number"), self._questions.ids)
        question_k, sample_k, position_k = cell.keys_k
        beyond = greatest_k >= counts[question_k]
        if beyond.any():
            at = int(np.argmax(beyond))
            raise changed(
                path,
                f"question {self._questions.ids[question_k[at]]!r}, trajectory {sample_k[at]}, "
                f"position {position_k[at]}: answer {greatest_k[at]} is not in {file}",
            )

    def _hidden(self, model: int) -> Array:
        layers = self._layers(model, "layers")
        parts = []
        for cell in self._cells[model]:
            path = self.folder / "hidden" / cell.record.file
            schema = columns_of("hidden", KEYS, layers)
            table = read_columns(path, schema, cell.owners, cell.record.positions)
            keys = [self._numbers(path, table, cell)]
            keys += [numbers(path, table, name) for name in KEYS[1:]]
            order = match_rows(path, keys, cell.keys_k, KEYS, self._questions.ids)
            parts.append((path, table, order))
        return _stack(parts, layers)

    def _question_signal(self, model: int, name: str) -> Array:
        """Return a signal of all questions, by question number; zeros where a model has none."""
        key = (self.curves.model_names[model], name)
        if key not in self._cache:
            if name in _AT_ZERO:
                self._cache[key] = self._at_zero(model, _AT_ZERO[name])
            else:
                self._cache[key] = self._of_prompts(model, name)
        return self._cache[key]

    def _at_zero(self, model: int, name: str) -> Array:
        """Return a position signal at k = 0 of each question's first trajectory."""
        values = self._position_signal(model, name)
        mine = np.flatnonzero(self.curves.model == model)
        questions, first = np.unique(self.curves.question[mine], return_index=True)
        rows = self.curves.trajectory_offsets[mine[first]] - self._start(model)
        out = np.zeros(len(self.question_ids), values.dtype)
        out[questions] = values[rows]
        return out

    def _of_prompts(self, model: int, name: str) -> Array:
        layers = self._layers(model, "prompt_layers") if name == "prompt_hidden" else ()
        names = ("question_id",) if layers else ("question_id", name)
        parts, rows = [], []
        for cell in self._cells[model]:
            path = self.folder / "prompts" / cell.record.file
            schema = columns_of("prompts", names, layers)
            table = read_columns(path, schema, cell.owners, cell.record.questions)
            expected = self._questions.of(cell.record.benchmark)
            keys = [self._numbers(path, table, cell)]
            order = match_rows(path, keys, [expected], names[:1], self._questions.ids)
            parts.append((path, table, order))
            rows.append(expected)
        if layers:
            values = _stack(parts, layers)
        else:
            columns = (in_order(numbers(path, t, name), order) for path, t, order in parts)
            values = np.concatenate(list(columns))
        out = np.zeros((len(self.question_ids), *values.shape[1:]), values.dtype)
        out[np.concatenate(rows)] = values
        return out

    def _numbers(self, path: Path, table: pa.Table, cell: CellRows) -> IntArray:
        return question_numbers(path, table, self._questions.number[cell.record.benchmark])


def load_release(folder: str | Path, *, progress: Progress = NOBODY) -> Release:
    """Verify a release and read its curves.

    Parameters
    ----------
    folder
        The release.
    progress
        Told of the bytes checked, and when the reading begins.

    Raises
    ------
    data.errors.MisuseError
        If there is no release, or a question is in two splits.
    evaluator.otbench.integrity.ChangedReleaseError
        If a file is missing or changed, or holds impossible values; names it.
    """
    path = Path(folder).expanduser()
    manifest, checksum = read_manifest(path)
    record = verify(path, manifest, progress.stage("checking the release"))
    progress.stage("reading the release")
    check_tables(path, record)
    questions = read_questions(path, record)
    models: dict[str, list[CellRows]] = {}
    for cell in record.cells:
        rows = read_cell(path, record.probes, cell, questions)
        models.setdefault(cell.model, []).append(rows)
    # Question numbers rise with the benchmark's name, so that trajectories lie in their order.
    cells = tuple(
        tuple(sorted(found, key=lambda cell: cell.record.benchmark)) for found in models.values()
    )
    groups = dict.fromkeys(questions.group[cell.benchmark] for cell in record.cells)
    return Release(
        folder=path,
        manifest=manifest,
        checksum=checksum,
        curves=join_cells(cells, record.probes, questions, tuple(groups)),
        question_ids=questions.keys,
        split_q=questions.split_q,
        lot_q=questions.lot_q,
        _record=record,
        _questions=questions,
        _cells=cells,
    )


def by_appearance(answer_k: Array, position_k: Array) -> Array:
    """Return a trajectory's answers numbered 0, 1, 2, ... as they come; -1 stays.

    Stored numbers count over all of a question's probes: a small one is likely right, and says
    something of answers that are still to come.
    """
    import pandas as pd  # A live method that learns nothing does without.

    trajectory = np.cumsum(position_k == 0)
    given = answer_k >= 0
    codes, _ = pd.factorize(
        trajectory[given].astype(np.int64) * (int(answer_k.max(initial=0)) + 1) + answer_k[given]
    )
    # Codes rise from trajectory to trajectory: the least of each is its first answer's.
    least = np.full(int(trajectory.max(initial=0)) + 1, codes.size)
    np.minimum.at(least, trajectory[given], codes)
    numbers = np.full(answer_k.size, -1, np.int32)
    numbers[given] = codes - least[trajectory[given]]
    return numbers


def _stack(
    parts: Sequence[tuple[Path, pa.Table, IntArray | None]], layers: tuple[int, ...]
) -> Array:
    """Return the states of some layers, file after file; float16 ``(rows, layers, width)``."""
    out, start, total = np.empty((0, 0, 0)), 0, sum(table.num_rows for _, table, _ in parts)
    for path, table, order in parts:
        for place, layer in enumerate(layers):
            values = list_values(path, table, hidden_column(layer))
            if not np.isfinite(values).all():
                raise changed(path, f"{hidden_column(layer)} holds what is not a number")
            if not out.size:
                out = np.empty((total, len(layers), values.shape[1]), values.dtype)
            if values.shape[1] != out.shape[2]:
                raise changed(
                    path,
                    f"{hidden_column(layer)} has {values.shape[1]} entries a row, and other states "
                    f"of the model have {out.shape[2]}",
                )
            out[start : start + table.num_rows, place] = in_order(values, order)
        start += table.num_rows
    return out
