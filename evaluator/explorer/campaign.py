"""A campaign's pieces: its cells, the rows of each, and every trajectory.

Rows are numbers in columns, so that the page can sort and filter 100,000 of them at once; they are
read of a cell when it is looked at. Texts are read and decoded of one trajectory at a time.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evaluator.analysis.falls import largest_falls
from evaluator.analysis.overthinking import STATISTICS, per_trajectory, summarise
from evaluator.explorer.source import NoPieceError, Piece, whole_numbers
from evaluator.explorer.texts import UnitTexts
from evaluator.present.names import visible
from evaluator.report.record import provenance_of, settings_of
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import CellRecord, Manifest
from stp.campaign.status import unit_state
from stp.campaign.store import Store, read_questions
from stp.campaign.tables import ORIGINAL
from stp.campaign.text import StoredTokenizer
from stp.campaign.units import Unit
from stp.curves import Curves
from stp.ragged import IntArray, offsets_of

if TYPE_CHECKING:
    from evaluator.analysis.frontiers import CellFrontiers

FINISHES = ("end", "limit", "stop", "off")
"""Why thinking ended, by the code that rows have for it."""
_PROMPT_CHARACTERS = 2000
_UNITS_KEPT = 3
_MOST_FITTED = 2_000
"""Trajectories of a cell whose latent curves are fitted: a fit of more takes too long to wait."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradedCell:
    """A cell as far as it is graded.

    Attributes
    ----------
    curves
        Its curves; a trajectory's question is its place in the cell.
    finish
        Why thinking ended, as in :data:`FINISHES`; int64 ``(trajectories,)``.
    unit
        Place of the unit that holds each trajectory; int64 ``(trajectories,)``.
    missing
        Trajectories that are not graded yet.
    """

    curves: Curves | None
    finish: IntArray
    unit: IntArray
    missing: int


class CampaignSource:
    """A campaign as pieces.

    ``cell/C`` has the rows of a cell, ``t/C/R`` the trajectory of its row R, ``frontier/C`` the
    frontiers of a cell, ``frontier/all`` their average, ``band/C`` the latent accuracies of a cell.

    Raises
    ------
    data.errors.MisuseError
        If the folder is no campaign.
    data.errors.StoreError
        If it cannot be read.
    """

    kind = "campaign"

    def __init__(self, url: str | Path) -> None:
        self.store = Store(url)
        self.config, self.manifest = self.store.read_campaign()
        self._cells: dict[int, GradedCell] = {}
        self._frontiers: dict[int, CellFrontiers] = {}
        self._bands: dict[int, Piece] = {}
        self._tokenizers: dict[str, StoredTokenizer] = {}
        self._units: OrderedDict[tuple[int, int], UnitTexts] = OrderedDict()
        # A server answers in several threads; what is kept is kept once.
        self._lock = threading.RLock()

    def index(self) -> Piece:
        """Return the campaign's name, cells and settings."""
        return {
            "kind": self.kind,
            "name": visible(self.config.name),
            "folder": visible(self.store.url),
            "probes": self.config.probing.everywhere,
            "cells": [
                {
                    "model": visible(record.model),
                    "benchmark": visible(record.benchmark),
                    "questions": record.questions,
                    "trajectories": self._expected(record),
                    "band": self._expected(record) <= _MOST_FITTED,
                }
                for record in self.manifest.cells
            ],
            "settings": _settings(self.config, self.manifest),
        }

    def names(self) -> Iterator[str]:
        """Yield the names of all pieces; the cells are read for it."""
        for cell in range(len(self.manifest.cells)):
            yield f"cell/{cell}"
            curves = self.rows(cell).curves
            if curves is None:
                continue
            yield f"frontier/{cell}"
            if self._expected(self.manifest.cells[cell]) <= _MOST_FITTED:
                yield f"band/{cell}"
            for row in range(curves.trajectories):
                yield f"t/{cell}/{row}"
        if self._graded():
            yield "frontier/all"

    def piece(self, name: str) -> Piece:
        """Return a piece."""
        if (at := whole_numbers(name, "cell/#")) and at[0] < len(self.manifest.cells):
            return self._cell(at[0])
        if (at := whole_numbers(name, "t/#/#")) and at[0] < len(self.manifest.cells):
            curves = self.rows(at[0]).curves
            if curves is not None and at[1] < curves.trajectories:
                return self._trajectory(*at)
        if (at := whole_numbers(name, "frontier/#")) and at[0] in self._graded():
            return self._frontier(at[0])
        if name == "frontier/all" and self._graded():
            return self._average()
        if (
            (at := whole_numbers(name, "band/#"))
            and at[0] in self._graded()
            and self._expected(self.manifest.cells[at[0]]) <= _MOST_FITTED
        ):
            return self._band(at[0])
        raise NoPieceError(f"no piece {name!r}")

    def _graded(self) -> list[int]:
        """Return the cells that have a graded trajectory."""
        cells = range(len(self.manifest.cells))
        return [cell for cell in cells if self.rows(cell).curves is not None]

    def _frontier(self, cell: int) -> Piece:
        from evaluator.explorer.frontiers import cell_frontier

        record = self.manifest.cells[cell]
        return cell_frontier(
            self._solved(cell), visible(f"{record.model} \u00b7 {record.benchmark}")
        )

    def _band(self, cell: int) -> Piece:
        """Return the latent accuracies of a cell: their mean and a 95 % interval."""
        from evaluator.analysis.latent_tables import latent_curves

        with self._lock:
            if cell not in self._bands:
                curves = self.rows(cell).curves
                assert curves is not None
                found = latent_curves(curves)
                columns = ("mean", "low", "high") if found is not None else ()
                self._bands[cell] = {
                    "offsets": curves.trajectory_offsets.tolist(),
                    "notes": [] if found is None else [visible(note) for note in found.notes],
                } | {name: np.round(getattr(found, name), 4).tolist() for name in columns}
            return self._bands[cell]

    def _average(self) -> Piece:
        from evaluator.explorer.frontiers import average_frontier

        models: dict[str, int] = {}
        benchmarks: dict[str, int] = {}
        cells = []
        for cell in self._graded():
            record = self.manifest.cells[cell]
            cells.append(
                replace(
                    self._solved(cell),
                    model=models.setdefault(record.model, len(models)),
                    benchmark=benchmarks.setdefault(record.benchmark, len(benchmarks)),
                )
            )
        return average_frontier(cells)

    def _solved(self, cell: int) -> "CellFrontiers":
        """Return the exact frontiers of a cell, solved once."""
        from evaluator.analysis.frontiers import cell_frontiers

        with self._lock:
            if cell not in self._frontiers:
                curves = self.rows(cell).curves
                assert curves is not None
                (self._frontiers[cell],) = cell_frontiers(curves)
            return self._frontiers[cell]

    def rows(self, cell: int) -> GradedCell:
        """Return the rows of a cell, read once."""
        with self._lock:
            if cell not in self._cells:
                self._cells[cell] = read_cell(self.store, self.config, self.manifest.cells[cell])
            return self._cells[cell]

    def _expected(self, record: CellRecord) -> int:
        return (record.questions - record.too_long) * self.config.generation.trajectories

    def _cell(self, cell: int) -> Piece:
        record, rows = self.manifest.cells[cell], self.rows(cell)
        questions = read_questions(self.store, record.cell).select(
            ["question_id", "prompt", "reference", "fit"]
        )
        found: Piece = {
            "missing": rows.missing,
            "questions": [
                [
                    visible(row["question_id"], 160),
                    visible(row["prompt"], _PROMPT_CHARACTERS),
                    visible(row["reference"], 400),
                    row["fit"],
                ]
                for row in questions.to_pylist()
            ],
            "columns": {},
            "means": None,
        }
        if rows.curves is not None:
            found["columns"] = columns(rows.curves, rows.finish)
            means = summarise(per_trajectory(rows.curves)).overall
            found["means"] = {
                name: None if math.isnan(means[name]) else round(float(means[name]), 6)
                for name in STATISTICS
            }
        return found

    def _trajectory(self, cell: int, row: int) -> Piece:
        record, rows = self.manifest.cells[cell], self.rows(cell)
        with self._lock:
            texts = self._texts(cell, int(rows.unit[row]))
            assert rows.curves is not None
            return texts.trajectory(
                int(rows.curves.question[row]), int(rows.curves.sample[row])
            ) | {
                "model": visible(record.model),
                "benchmark": visible(record.benchmark),
                "row": row,
                "cell": cell,
            }

    def _texts(self, cell: int, unit: int) -> UnitTexts:
        """Return the texts of a unit; those looked at last are kept."""
        key = (cell, unit)
        if key not in self._units:
            record = self.manifest.cells[cell]
            if record.model not in self._tokenizers:
                self._tokenizers[record.model] = StoredTokenizer(self.store, record.model)
            self._units[key] = UnitTexts(
                self.store,
                self.store.plan(self.config, record)[unit],
                self._tokenizers[record.model],
                probes=self.config.probing.everywhere,
            )
        self._units.move_to_end(key)
        while len(self._units) > _UNITS_KEPT:
            self._units.popitem(last=False)
        return self._units[key]


def columns(curves: Curves, finish: IntArray) -> dict[str, list[int]]:
    """Return what rows are sorted and filtered by: whole numbers, a list for each column.

    ``q`` question, ``s`` sample, ``n`` steps, ``L`` thinking tokens, ``k`` k*, ``kt`` L(k*),
    ``c0``, ``cn``, ``cb`` right probes without thinking, with all of it, and at k*, ``fall`` and
    ``fk`` the largest fall in probes and its step, ``flat``, ``up`` (never falls), ``end`` (a code
    of :data:`FINISHES`), ``own`` (1, 0, or -1 where it is not known).
    """
    falls = largest_falls(curves)
    best = curves.correct[curves.rows_at(curves.k_star_s)]
    least = -np.maximum.reduceat(-curves.correct, curves.trajectory_offsets[:-1])
    made: dict[str, npt.NDArray[Any]] = {
        "q": curves.question,
        "s": curves.sample,
        "n": np.diff(curves.trajectory_offsets) - 1,
        "L": curves.full_tokens_s,
        "k": curves.k_star_s,
        "kt": curves.tokens[curves.rows_at(curves.k_star_s)],
        "c0": curves.zero_correct_s,
        "cn": curves.full_correct_s,
        "cb": best,
        "fall": falls.probes,
        "fk": falls.step,
        "flat": (least == best).astype(np.int64),
        "up": (falls.probes == 0).astype(np.int64),
        "end": finish,
        "own": curves.original_correct,
    }
    return {name: values.tolist() for name, values in made.items()}


def read_cell(store: Store, config: CampaignConfig, record: CellRecord) -> GradedCell:
    """Read the numbers of a cell's graded units, and only the columns that they need."""
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
    expected = (record.questions - record.too_long) * config.generation.trajectories
    if not tokens:
        none = np.empty(0, np.int64)
        return GradedCell(curves=None, finish=none, unit=none, missing=expected)
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
    return GradedCell(
        curves=curves,
        finish=joined["finish"],
        unit=joined["unit"],
        missing=expected - curves.trajectories,
    )


def _unit_numbers(store: Store, unit: Unit, probes: int) -> dict[str, npt.NDArray[Any]] | None:
    """Return a unit's counts in the order of its rows; None where it has no row."""
    positions = store.read_columns(
        unit.shard("positions"), ("question", "trajectory", "position", "tokens")
    )
    if not positions.num_rows:
        return None
    verdicts = store.read_columns(unit.shard("verdicts"), ("position", "right"))
    ends = store.read_columns(unit.shard("trajectories"), ("thinking_finish",))
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
