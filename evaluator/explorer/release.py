"""A release's pieces: the same cells and curves as a campaign's, without texts of thinking."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from data.progress import NOBODY, Progress
from evaluator.explorer.cells import ShownCell, cell_table
from evaluator.explorer.measured import MeasuredSource
from evaluator.explorer.source import Piece
from evaluator.explorer.texts import ANSWERS_SHOWN, SIGNALS
from evaluator.otbench.checks import read_columns
from evaluator.otbench.columns import columns_of
from evaluator.otbench.load import load_release
from evaluator.present.names import visible
from stp.curves import Curves, IntArray

_UNKNOWN_END = 4
"""Follows the codes of a campaign: a release does not say why thinking ended."""


class ReleaseSource(MeasuredSource):
    """A release as pieces.

    Raises
    ------
    data.errors.StpError
        If it is damaged or leaks.
    """

    kind = "release"

    def __init__(self, folder: Path, *, progress: Progress = NOBODY) -> None:
        self.folder, self._release = folder, load_release(folder, progress=progress)
        self._records = self._release.manifest["cells"]
        self._answers: dict[int, tuple[pa.Table, pa.Table]] = {}
        super().__init__(
            [
                (cell["model"], cell["benchmark"], cell["questions"], cell["trajectories"])
                for cell in self._records
            ]
        )

    def index(self) -> Piece:
        """Return the release's name, cells, and what it was made from."""
        manifest = self._release.manifest
        counts = manifest["questions"]
        said = [
            ("Checksum", self._release.checksum),
            ("Questions", ", ".join(f"{name} {count:,}" for name, count in counts.items())),
            ("Signals", ", ".join(sorted(self._release.signals))),
            *(("Note", str(note)) for note in manifest.get("notes", ())),
        ]
        return {
            "kind": self.kind,
            "name": visible(self._release.name),
            "folder": visible(str(self.folder)),
            "probes": self._release.curves.probes,
            "cells": self.cell_list(),
            "settings": [[name, visible(text, 400)] for name, text in said],
        }

    def _rows_of(self, cell: int) -> IntArray:
        """Return the rows of a cell in the release's curves."""
        curves, record = self._release.curves, self._records[cell]
        model = curves.model_names.index(record["model"])
        rows = np.flatnonzero(curves.model == model)
        return rows[np.isin(curves.question[rows], self._question_numbers(cell))].astype(np.int64)

    def _question_numbers(self, cell: int) -> IntArray:
        benchmark = self._records[cell]["benchmark"]
        keys = self._release.question_ids
        return np.array([q for q, (of, _) in enumerate(keys) if of == benchmark], np.int64)

    def read_curves(self, cell: int) -> Curves:
        """Return a cell's curves."""
        return self._release.curves.select(self._rows_of(cell))

    def read_table(self, cell: int) -> ShownCell:
        """Return a cell's rows."""
        curves = self.read_curves(cell)
        finish = np.full(curves.trajectories, _UNKNOWN_END)
        found = cell_table(curves, finish, np.zeros(curves.trajectories, np.int64), 0)
        # Numbered within the cell, as a campaign's are.
        places = np.searchsorted(self._question_numbers(cell), curves.question)
        found.columns["q"] = places.astype("<i4")
        return found

    def read_questions(self, cell: int) -> list[tuple[str, str, str, str]]:
        """Return the ids of a cell's questions; a release holds no text of them."""
        keys, splits = self._release.question_ids, self._release.split_q
        names = ("train", "validation", "test")
        return [
            (keys[q][1], "", "", names[int(splits[q])])
            for q in self._question_numbers(cell).tolist()
        ]

    def read_trajectory(self, cell: int, row: int) -> Piece:
        """Return a trajectory: its curve and the answers at every position, without verdicts."""
        columns = self.table(cell).columns
        question, _, _, split = self._questions(cell)[int(columns["q"][row])]
        sample = int(columns["s"][row])
        positions, answers = self._tables_of(cell)
        mine = positions.filter(
            (pc.field("question_id") == question) & (pc.field("trajectory") == sample)
        ).sort_by("position")
        texts = dict(
            zip(
                *(
                    answers.filter(pc.field("question_id") == question)[name].to_pylist()
                    for name in ("number", "answer")
                ),
                strict=True,
            )
        )
        return {
            "id": visible(question, 160),
            "prompt": "",
            "reference": "",
            "split": split,
            "sample": sample,
            "question": int(columns["q"][row]),
            "probes": self._release.curves.probes,
            "tokens": mine["tokens"].to_pylist(),
            "correct": mine["correct"].to_pylist(),
            "steps": None,
            "answers": [_counted(numbers, texts) for numbers in mine["answers"].to_pylist()],
            "finish": "",
            "own": {"right": int(columns["own"][row])},
            "signals": {
                name: [
                    round(value, 4) if value is not None and np.isfinite(value) else None
                    for value in mine[name].to_pylist()
                ]
                for name in SIGNALS
                if name in mine.schema.names
            },
        }

    def _tables_of(self, cell: int) -> tuple[pa.Table, pa.Table]:
        """Return positions and answers of a cell, read when its first trajectory is looked at."""
        with self._lock:
            if cell not in self._answers:
                record = self._records[cell]
                owners = {"model": record["model"], "benchmark": record["benchmark"]}
                names = ["question_id", "trajectory", "position", "tokens", "correct", "answers"]
                names += [name for name in SIGNALS if name in record["signals"]]
                positions = read_columns(
                    self.folder / "positions" / record["file"],
                    columns_of("positions", names),
                    owners,
                    record["positions"],
                )
                answers = read_columns(
                    self.folder / "answers" / record["file"],
                    columns_of("answers", ("question_id", "number", "answer")),
                    owners,
                )
                self._answers = {cell: (positions, answers)}
            return self._answers[cell]


def _counted(numbers: list[int], texts: dict[int, str]) -> list[list[object]]:
    """Return [answer, None, count, reply, reason] rows, most frequent first."""
    ordered = Counter(numbers).most_common()
    shown: list[list[object]] = [
        [None if number < 0 else visible(texts.get(number, ""), 200), None, count, "", ""]
        for number, count in ordered[:ANSWERS_SHOWN]
    ]
    rest = [count for _, count in ordered[ANSWERS_SHOWN:]]
    if rest:
        shown.append([f"{len(rest)} further answers", None, sum(rest), "", ""])
    return shown
