"""A campaign's pieces: its cells, the rows of each, and every trajectory.

Numbers are read of a cell when it is looked at; texts are read and decoded of one trajectory at a
time.
"""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.explorer.cells import ShownCell, cell_table, keep, kept_path, read_kept, state_of
from evaluator.explorer.measured import MeasuredSource
from evaluator.explorer.source import Piece
from evaluator.explorer.texts import UnitTexts, unit_texts
from evaluator.present.names import visible
from evaluator.report.record import provenance_of, settings_of
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import CellRecord, Manifest
from stp.campaign.store import Store
from stp.campaign.tables import ORIGINAL
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import STAGE_TABLES, STAGES, Unit, questions_shard
from stp.curves import Curves
from stp.ragged import IntArray, offsets_of

FINISHES = ("end", "limit", "stop", "off")
"""Why thinking ended, by the code that rows have for it."""
_UNITS_KEPT = 3
_TABLES = tuple(table for stage in STAGES for table in STAGE_TABLES[stage])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradedCell:
    """A cell as far as it is graded.

    Attributes
    ----------
    curves
        Its curves; a trajectory's question is its place in the cell. None: nothing is graded.
    finish
        Why thinking ended, as in :data:`FINISHES`; int64 ``(trajectories,)``.
    unit
        Place of the unit that holds each trajectory; int64 ``(trajectories,)``.
    """

    curves: Curves | None
    finish: IntArray
    unit: IntArray


class CampaignSource(MeasuredSource):
    """A campaign as pieces.

    Raises
    ------
    data.errors.MisuseError
        If the folder is not a campaign.
    data.errors.StoreError
        If it cannot be read.
    """

    kind = "campaign"

    def __init__(self, url: str | Path) -> None:
        self.store = Store(url)
        self.config, self.manifest = self.store.read_campaign()
        super().__init__(
            [
                (record.model, record.benchmark, record.questions, self._expected(record))
                for record in self.manifest.cells
            ]
        )
        self._plans: dict[int, list[Unit]] = {}
        self._tokenizers: dict[str, StoredTokenizer] = {}
        self._units: OrderedDict[tuple[int, int], UnitTexts] = OrderedDict()

    def index(self) -> Piece:
        """Return the campaign's name, cells and settings."""
        return {
            "kind": self.kind,
            "name": visible(self.config.name),
            "folder": visible(self.store.url),
            "probes": self.config.probing.everywhere,
            "cells": self.cell_list(),
            "settings": _settings(self.config, self.manifest),
        }

    def known_table(self, cell: int) -> ShownCell | None:
        """Return a cell's rows if they are kept."""
        with self._lock:
            if cell not in self._tables:
                kept = self._kept_at(cell)
                table = None if kept is None else read_kept(*kept)
                if table is None:
                    return None
                self._tables[cell] = table
            return self._tables[cell]

    def read_table(self, cell: int) -> ShownCell:
        """Return a cell's rows: kept ones, or read from its shards and kept."""
        kept = self._kept_at(cell)
        table = None if kept is None else read_kept(*kept)
        if table is None:
            table = self._counted(self.manifest.cells[cell])
            if kept is not None:
                keep(*kept, table)
        return table

    def _kept_at(self, cell: int) -> tuple[Path, str] | None:
        """Return where a cell's rows are kept, and the state of its shards; None: nowhere."""
        record, folder = self.manifest.cells[cell], self.store.folder
        path = None if folder is None else kept_path(folder, record.cell.folder)
        if folder is None or path is None:
            return None
        names = [
            *(unit.shard(table) for unit in self._plan(cell) for table in _TABLES),
            questions_shard(record.cell),
        ]
        return path, state_of(folder / name for name in names)

    def _counted(self, record: CellRecord) -> ShownCell:
        rows = read_cell(self.store, self.config, record)
        if rows.curves is None:
            return ShownCell(columns={}, unit=rows.unit, means=None, missing=self._expected(record))
        missing = self._expected(record) - rows.curves.trajectories
        return cell_table(rows.curves, rows.finish, rows.unit, missing)

    def read_curves(self, cell: int) -> Curves:
        """Read a cell's curves."""
        curves = read_cell(self.store, self.config, self.manifest.cells[cell]).curves
        assert curves is not None
        return curves

    def read_questions(self, cell: int) -> list[tuple[str, str, str, str]]:
        """Return id, prompt, reference and fit of a cell's questions."""
        rows = self.store.read_columns(
            "questions",
            questions_shard(self.manifest.cells[cell].cell),
            ("question_id", "prompt", "reference", "fit"),
        )
        return list(zip(*(rows[name].to_pylist() for name in rows.schema.names), strict=True))

    def units(self, cell: int) -> int:
        """Return how many units a cell has."""
        return len(self._plan(cell))

    def read_texts(self, cell: int, unit: int) -> Piece:
        """Return rows of a unit and their thinking."""
        table = self.table(cell)
        rows = np.flatnonzero(table.unit == unit)
        keys = [(int(table.columns["q"][row]), int(table.columns["s"][row])) for row in rows]
        texts = unit_texts(self.store, self._plan(cell)[unit], self._tokenizer(cell), keys)
        return {"rows": rows.tolist(), "texts": texts}

    def read_trajectory(self, cell: int, row: int) -> Piece:
        """Return a trajectory: its curve, steps, answers at every position, and own answer."""
        table = self.table(cell)
        with self._lock:
            texts = self._texts(cell, int(table.unit[row]))
            return texts.trajectory(int(table.columns["q"][row]), int(table.columns["s"][row]))

    def _expected(self, record: CellRecord) -> int:
        return (record.questions - record.too_long) * self.config.generation.trajectories

    def _plan(self, cell: int) -> list[Unit]:
        if cell not in self._plans:
            self._plans[cell] = self.store.plan(self.config, self.manifest.cells[cell])
        return self._plans[cell]

    def _tokenizer(self, cell: int) -> StoredTokenizer:
        model = self.manifest.cells[cell].model
        with self._lock:
            if model not in self._tokenizers:
                self._tokenizers[model] = StoredTokenizer(self.store, model)
            return self._tokenizers[model]

    def _texts(self, cell: int, unit: int) -> UnitTexts:
        """Return the texts of a unit; those looked at last are kept."""
        key = (cell, unit)
        if key not in self._units:
            self._units[key] = UnitTexts(
                self.store,
                self._plan(cell)[unit],
                self._tokenizer(cell),
                probes=self.config.probing.everywhere,
            )
        self._units.move_to_end(key)
        while len(self._units) > _UNITS_KEPT:
            self._units.popitem(last=False)
        return self._units[key]


def read_cell(store: Store, config: CampaignConfig, record: CellRecord) -> GradedCell:
    """Read the numbers of a cell's graded units, and only the columns that they need."""
    # Told by the graders' code, which takes a while to import: kept rows do without.
    from stp.campaign.status import unit_state

    probes = config.probing.everywhere
    tokens, correct, lengths = [], [], []
    parts: dict[str, list[npt.NDArray[Any]]] = {
        name: [] for name in ("question", "sample", "original", "finish", "unit")
    }
    for place, unit in enumerate(store.plan(config, record)):
        if not unit_state(store, unit).graded:
            continue
        counted = _unit_numbers(store, unit, probes)
        if counted is None:
            continue
        tokens.append(counted["tokens"])
        correct.append(counted["correct"])
        lengths.append(counted["lengths"])
        counted["unit"] = np.full(counted["lengths"].size, place)
        for name, arrays in parts.items():
            arrays.append(counted[name])
    if not tokens:
        none = np.empty(0, np.int64)
        return GradedCell(curves=None, finish=none, unit=none)
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    curves = Curves(
        tokens=np.concatenate(tokens),
        correct=np.concatenate(correct),
        trajectory_offsets=offsets_of(np.concatenate(lengths)),
        question=joined["question"],
        sample=joined["sample"],
        original_correct=joined["original"],
        probes=probes,
    )
    return GradedCell(curves=curves, finish=joined["finish"], unit=joined["unit"])


def _unit_numbers(store: Store, unit: Unit, probes: int) -> dict[str, npt.NDArray[Any]] | None:
    """Return a unit's counts in the order of its rows; None if it has no row."""
    positions = store.read_columns(
        "positions", unit.shard("positions"), ("question", "trajectory", "position", "tokens")
    )
    if not positions.num_rows:
        return None
    verdicts = store.read_columns("verdicts", unit.shard("verdicts"), ("position", "right"))
    ends = store.read_columns("trajectories", unit.shard("trajectories"), ("thinking_finish",))
    right = verdicts["right"].to_numpy()
    own = verdicts["position"].to_numpy() == ORIGINAL
    first = np.flatnonzero(positions["position"].to_numpy() == 0)
    codes = {name: code for code, name in enumerate(FINISHES)}
    return {
        "tokens": positions["tokens"].to_numpy(),
        "correct": right[~own].reshape(-1, probes).sum(axis=1),
        "lengths": np.diff(np.append(first, positions.num_rows)),
        "question": positions["question"].to_numpy()[first],
        "sample": positions["trajectory"].to_numpy()[first],
        "original": right[own].astype(np.int8),
        "finish": np.array([codes[name] for name in ends["thinking_finish"].to_pylist()]),
    }


def _settings(config: CampaignConfig, manifest: Manifest) -> list[list[str]]:
    pairs = (*settings_of(config, manifest), *provenance_of(manifest))
    return [[visible(name), visible(value)] for name, value in pairs]
