"""Reading a release back: checked against its manifest, as curves and signals by split."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from baselines.measurements import Measurements
from baselines.signals import SIGNALS
from data.errors import MisuseError, StoreError
from evaluator.otbench.columns import hidden_column
from evaluator.otbench.integrity import Progress, read_manifest, verify
from evaluator.otbench.splits import SPLITS
from stp.curves import Curves, IntArray

Array = npt.NDArray[Any]
# Of the first probe, and of the trial answer at k = 0: made here from other columns.
_DERIVED = {
    "answer": "answers",
    "short_answer_logprob": "trial_logprob",
    "short_answer_tokens": "trial_tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """A release, verified.

    Attributes
    ----------
    folder
        Where it is.
    manifest
        Its manifest.
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
        By question number, its lot in [0, 1).
    """

    folder: Path
    manifest: dict[str, Any]
    checksum: str
    curves: Curves
    question_ids: tuple[tuple[str, str], ...]
    split_q: IntArray
    lot_q: npt.NDArray[np.float64]
    _rows: dict[str, IntArray] = field(repr=False)
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
        cells = self.manifest["cells"]
        names = set(self.manifest["signals"]) | {"answer", "answer_hedged", "answer_tokens"}
        names |= {"prompt_tokens"}
        if "trial_logprob" in names:
            names |= {"short_answer_logprob", "short_answer_tokens"}
        if all(cell["layers"] for cell in cells):
            names.add("hidden")
        if all(cell["prompt_layers"] for cell in cells):
            names.add("prompt_hidden")
        return frozenset(names)

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
        """
        needs = tuple(needs)
        missing = self.lacking(needs)
        if missing:
            raise MisuseError(
                f"{self.folder}: holds no {', '.join(missing)}; make the campaign's signals with "
                "`stp signals CAMPAIGN` and release it anew"
            )
        mine = np.flatnonzero(self.curves.model == model)
        keep_s = mine[np.isin(self.curves.question[mine], self.in_split(split))]
        curves = self.curves.select(keep_s)
        rows_k = _positions(self.curves, keep_s)
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

    def _cells(self, model: int) -> list[dict[str, Any]]:
        name = self.curves.model_names[model]
        return [cell for cell in self.manifest["cells"] if cell["model"] == name]

    def _layers(self, model: int, kind: str) -> tuple[int, ...]:
        shared = set.intersection(*(set(cell[kind]) for cell in self._cells(model)))
        return tuple(sorted(shared))

    def _start(self, model: int) -> int:
        """Return the first position of a model: its trajectories are side by side."""
        first = int(np.flatnonzero(self.curves.model == model)[0])
        return int(self.curves.trajectory_offsets[first])

    def _position_signal(self, model: int, name: str) -> Array:
        """Return a signal at all positions of a model, in the order of the curves."""
        key = (self.curves.model_names[model], name)
        if key in self._cache:
            return self._cache[key]
        parts = []
        for cell in self._cells(model):
            if name == "hidden":
                layers = self._layers(model, "layers")
                part = _stack(self._read("hidden", cell, layers), layers)
            else:
                column = _DERIVED.get(name, name)
                table = self._read("positions", cell, (), (column,))
                part = _first_probe(table) if name == "answer" else table[column].to_numpy()
            parts.append(part)
        values: Array = np.concatenate(parts)[self._rows[key[0]]]
        # Hidden states are gigabytes where models are large: they are read when asked for.
        if name != "hidden":
            self._cache[key] = values
        return values

    def _question_signal(self, model: int, name: str) -> Array:
        """Return a signal of all questions, by question number; zeros where a model has none."""
        key = (self.curves.model_names[model], name)
        if key not in self._cache:
            if name in _DERIVED:
                self._cache[key] = self._at_zero(model, _DERIVED[name])
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
        number = {key: q for q, key in enumerate(self.question_ids)}
        layers = self._layers(model, "prompt_layers") if name == "prompt_hidden" else ()
        out: Array | None = None
        for cell in self._cells(model):
            columns = ("question_id", *(() if layers else (name,)))
            table = self._read("prompts", cell, layers, columns)
            values = _stack(table, layers) if layers else table[name].to_numpy()
            if out is None:
                out = np.zeros((len(self.question_ids), *values.shape[1:]), values.dtype)
            rows = [number[cell["benchmark"], name_] for name_ in table["question_id"].to_pylist()]
            out[rows] = values
        if out is None:
            raise StoreError(f"{self.folder}: no cell of {self.curves.model_names[model]}")
        return out

    def _read(
        self,
        table: str,
        cell: dict[str, Any],
        layers: Iterable[int],
        columns: Iterable[str] = (),
    ) -> pa.Table:
        wanted = [*columns, *(hidden_column(layer) for layer in layers)]
        return pq.read_table(self.folder / table / cell["file"], columns=wanted)


def load_release(folder: str | Path, *, progress: Progress | None = None) -> Release:
    """Verify a release and read its curves.

    Parameters
    ----------
    folder
        The release.
    progress
        Called with bytes checked and all bytes.

    Raises
    ------
    data.errors.MisuseError
        If there is no release, or a question is in two splits.
    evaluator.otbench.integrity.ChangedReleaseError
        If a file is missing or changed; names it.
    """
    path = Path(folder).expanduser()
    manifest, checksum = read_manifest(path)
    verify(path, manifest, progress)
    questions = pq.read_table(path / "questions.parquet").to_pylist()
    number: dict[tuple[str, str], int] = {}
    for row in questions:
        key = (row["benchmark"], row["question_id"])
        if key in number:
            raise MisuseError(
                f"{path / 'questions.parquet'}: question {key[1]!r} of {key[0]} is there twice; a "
                "question has one split"
            )
        number[key] = len(number)
    curves, rows = _curves(path, manifest, questions, number)
    return Release(
        folder=path,
        manifest=manifest,
        checksum=checksum,
        curves=curves,
        question_ids=tuple(number),
        split_q=np.array([SPLITS.index(row["split"]) for row in questions], np.int64),
        lot_q=np.array([row["lot"] for row in questions], np.float64),
        _rows=rows,
    )


def _curves(
    path: Path,
    manifest: dict[str, Any],
    questions: list[dict[str, Any]],
    number: dict[tuple[str, str], int],
) -> tuple[Curves, dict[str, IntArray]]:
    """Return all curves, and for each model the order of its files' positions in them."""
    models = tuple(dict.fromkeys(cell["model"] for cell in manifest["cells"]))
    group_of = {row["benchmark"]: row["group"] for row in questions}
    groups = tuple(dict.fromkeys(group_of[cell["benchmark"]] for cell in manifest["cells"]))
    parts: list[dict[str, Array]] = []
    rows: dict[str, IntArray] = {}
    names = ("question_id", "trajectory", "position", "tokens", "correct")
    for model in models:
        mine = []
        for cell in manifest["cells"]:
            if cell["model"] != model:
                continue
            table = pq.read_table(path / "positions" / cell["file"], columns=list(names))
            ids = pa.compute.dictionary_encode(table["question_id"].combine_chunks())
            known = [number[cell["benchmark"], name] for name in ids.dictionary.to_pylist()]
            part = {name: table[name].to_numpy() for name in names[1:]}
            part["question"] = np.array(known, np.int64)[ids.indices.to_numpy()]
            part["benchmark"] = np.full(table.num_rows, groups.index(group_of[cell["benchmark"]]))
            mine.append(part)
        joined = {name: np.concatenate([part[name] for part in mine]) for name in mine[0]}
        order = np.lexsort((joined["position"], joined["trajectory"], joined["question"]))
        rows[model] = order.astype(np.int64)
        parts.append({name: values[order] for name, values in joined.items()})
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    first = np.flatnonzero(columns["position"] == 0)
    counts = [int((part["position"] == 0).sum()) for part in parts]
    originals = _originals(path, manifest, models, number)
    return (
        Curves(
            tokens=columns["tokens"],
            correct=columns["correct"],
            trajectory_offsets=np.append(first, columns["tokens"].size),
            question=columns["question"][first].astype(np.int32),
            probes=manifest["probes"],
            benchmark=columns["benchmark"][first].astype(np.int32),
            model=np.repeat(np.arange(len(models), dtype=np.int32), counts),
            sample=columns["trajectory"][first],
            original_correct=originals,
            question_names=tuple(name for _, name in number),
            benchmark_names=groups,
            model_names=models,
        ),
        rows,
    )


def _originals(
    path: Path,
    manifest: dict[str, Any],
    models: tuple[str, ...],
    number: dict[tuple[str, str], int],
) -> npt.NDArray[np.int8]:
    """Return the original verdicts in the order of the curves."""
    rows = []
    for cell in manifest["cells"]:
        table = pq.read_table(
            path / "trajectories" / cell["file"],
            columns=["question_id", "trajectory", "original_correct"],
        )
        model = models.index(cell["model"])
        for row in table.to_pylist():
            question = number[cell["benchmark"], row["question_id"]]
            rows.append((model, question, row["trajectory"], row["original_correct"]))
    rows.sort()
    return np.array([row[3] for row in rows], np.int8)


def _positions(curves: Curves, keep_s: IntArray) -> IntArray:
    starts = curves.trajectory_offsets[keep_s]
    lengths = curves.trajectory_offsets[keep_s + 1] - starts
    ends = np.cumsum(lengths)
    rows = np.arange(int(lengths.sum())) + np.repeat(starts - (ends - lengths), lengths)
    return np.asarray(rows, np.int64)


def _first_probe(table: pa.Table) -> Array:
    lists = table["answers"].combine_chunks()
    offsets = lists.offsets.to_numpy()
    return np.asarray(lists.values.to_numpy()[offsets[:-1]], np.int32)


def _stack(table: pa.Table, layers: tuple[int, ...]) -> Array:
    """Return the states of some layers; float16 ``(rows, layers, width)``."""
    columns = []
    for layer in layers:
        lists = table[hidden_column(layer)].combine_chunks()
        columns.append(lists.flatten().to_numpy().reshape(table.num_rows, -1))
    return np.stack(columns, axis=1)
