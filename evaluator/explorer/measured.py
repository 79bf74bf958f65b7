"""Cells of measured curves as pieces, wherever they were measured: a campaign or a release."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluator.explorer.cells import ShownCell
from evaluator.explorer.source import NoPieceError, Piece, TrajectoryKey, whole_numbers
from evaluator.present.names import visible
from stp.curves import Curves

if TYPE_CHECKING:
    from evaluator.analysis.frontiers import CellFrontiers

_PROMPT_CHARACTERS = 2000
MOST_FITTED = 2_000
"""Trajectories of a cell whose latent curves are fitted, and whose texts a static copy searches: of
more it takes too long to wait, or too much of a disk."""


class MeasuredSource(ABC):
    """Cells as pieces.

    ``means/C`` has the figures of a cell where the index does not have them yet, ``cell/C`` its
    rows, ``t/C/R`` the trajectory of its row R, ``frontier/C`` its frontiers, ``frontier/all``
    their average, ``bands/C`` how sure these are, ``band/C`` the latent accuracies of a cell,
    ``texts/C/U`` the thinking of a unit's trajectories, to be searched.

    Parameters
    ----------
    cells
        Of each, its model, benchmark, number of questions, and how many trajectories it is to have.
    """

    kind: str

    def __init__(self, cells: Sequence[tuple[str, str, int, int]]) -> None:
        self._cells = tuple(cells)
        self._tables: dict[int, ShownCell] = {}
        self._frontiers: dict[int, CellFrontiers] = {}
        self._made: dict[str, Piece] = {}
        # A server answers in several threads; what is kept is kept once.
        self._lock = threading.RLock()

    # -- what a kind of folder gives --------------------------------------------------------------

    @abstractmethod
    def index(self) -> Piece:
        """Return what it is, and its cells."""

    @abstractmethod
    def read_table(self, cell: int) -> ShownCell:
        """Read a cell's rows."""

    @abstractmethod
    def read_curves(self, cell: int) -> Curves:
        """Read a cell's curves; there is a graded trajectory."""

    @abstractmethod
    def read_questions(self, cell: int) -> list[tuple[str, str, str, str]]:
        """Return id, prompt, reference and fit of a cell's questions."""

    @abstractmethod
    def read_trajectory(self, cell: int, row: int) -> Piece:
        """Return a trajectory with its texts, if there are any."""

    def known_table(self, cell: int) -> ShownCell | None:
        """Return a cell's rows if that takes no time; the index has their figures then."""
        return self._tables.get(cell)

    def units(self, cell: int) -> int:
        """Return how many units of texts a cell has; 0 if there are none to search."""
        return 0

    def read_texts(self, cell: int, unit: int) -> Piece:
        """Return rows of a unit and their thinking."""
        raise NoPieceError(f"no texts of cell {cell}, unit {unit}")

    # -- pieces -----------------------------------------------------------------------------------

    def cell_list(self) -> list[Piece]:
        """Return the cells as the index names them."""
        return [
            {
                "model": visible(model),
                "benchmark": visible(benchmark),
                "questions": questions,
                "trajectories": expected,
                "band": expected <= MOST_FITTED,
                "units": self.units(cell),
            }
            | (_figures(table) if (table := self.known_table(cell)) else {})
            for cell, (model, benchmark, questions, expected) in enumerate(self._cells)
        ]

    def table(self, cell: int) -> ShownCell:
        """Return the rows of a cell, read once."""
        with self._lock:
            if cell not in self._tables:
                self._tables[cell] = self.read_table(cell)
            return self._tables[cell]

    def key(self, cell: int, row: int) -> TrajectoryKey:
        """Return what a trajectory is called wherever it is measured."""
        model, benchmark, *_ = self._cells[cell]
        columns = self.table(cell).columns
        question, *_ = self._questions(cell)[int(columns["q"][row])]
        return TrajectoryKey(model, benchmark, question, int(columns["s"][row]))

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield cell and row of every trajectory."""
        for cell in range(len(self._cells)):
            for row in range(self.table(cell).count):
                yield cell, row

    def names(self) -> Iterator[str]:
        """Yield the names of all pieces; the cells are read for it."""
        for cell, (*_, expected) in enumerate(self._cells):
            yield f"cell/{cell}"
            if not self.table(cell).count:
                continue
            yield f"frontier/{cell}"
            if expected <= MOST_FITTED:
                yield f"bands/{cell}"
                yield f"band/{cell}"
                yield from (f"texts/{cell}/{unit}" for unit in range(self.units(cell)))
        yield from (f"t/{cell}/{row}" for cell, row in self.rows())
        if self._graded():
            yield "frontier/all"

    def piece(self, name: str) -> Piece:
        """Return a piece."""
        if name == "frontier/all" and self._graded():
            return self._average()
        kind, _, rest = name.partition("/")
        at = whole_numbers(rest, "#/#") or whole_numbers(rest, "#")
        made = None
        if at and at[0] < len(self._cells):
            made = self._one(kind, *at) if len(at) == 1 else self._two(kind, *at)
        if made is None:
            raise NoPieceError(f"no piece {name!r}")
        return made

    def _one(self, kind: str, cell: int) -> Piece | None:
        table = self.table(cell)
        if kind == "means":
            return _figures(table)
        if kind == "cell":
            questions = [
                [visible(name, 160), visible(prompt, _PROMPT_CHARACTERS), visible(ref, 400), fit]
                for name, prompt, ref, fit in self._questions(cell)
            ]
            return table.piece() | {"questions": questions}
        if not table.count:
            return None
        if kind == "frontier":
            from evaluator.explorer.frontiers import cell_frontier

            model, benchmark, *_ = self._cells[cell]
            return cell_frontier(self._solved(cell), visible(f"{model} \u00b7 {benchmark}"))
        if self._cells[cell][3] > MOST_FITTED:
            return None
        if kind == "bands":
            from evaluator.explorer.frontiers import frontier_bands

            return self._kept(f"bands/{cell}", lambda: frontier_bands(self.read_curves(cell)))
        if kind == "band":
            return self._kept(f"band/{cell}", lambda: latent_band(self.read_curves(cell)))
        return None

    def _two(self, kind: str, cell: int, place: int) -> Piece | None:
        if kind == "texts" and place < self.units(cell):
            return self.read_texts(cell, place)
        if kind == "t" and place < self.table(cell).count:
            model, benchmark, *_ = self._cells[cell]
            return self.read_trajectory(cell, place) | {
                "model": visible(model),
                "benchmark": visible(benchmark),
                "row": place,
                "cell": cell,
            }
        return None

    def _kept(self, name: str, make: Any) -> Piece:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]

    def _questions(self, cell: int) -> list[tuple[str, str, str, str]]:
        found = self._kept(f"questions/{cell}", lambda: {"rows": self.read_questions(cell)})
        rows: list[tuple[str, str, str, str]] = found["rows"]
        return rows

    def _graded(self) -> list[int]:
        """Return the cells that have a graded trajectory."""
        return [cell for cell in range(len(self._cells)) if self.table(cell).count]

    def _solved(self, cell: int) -> "CellFrontiers":
        """Return the exact frontiers of a cell, solved once; its curves are not kept."""
        from evaluator.analysis.frontiers import cell_frontiers

        with self._lock:
            if cell not in self._frontiers:
                (self._frontiers[cell],) = cell_frontiers(self.read_curves(cell))
            return self._frontiers[cell]

    def _average(self) -> Piece:
        from evaluator.explorer.frontiers import average_frontier

        models: dict[str, int] = {}
        benchmarks: dict[str, int] = {}
        cells = []
        for cell in self._graded():
            model, benchmark, *_ = self._cells[cell]
            cells.append(
                replace(
                    self._solved(cell),
                    model=models.setdefault(model, len(models)),
                    benchmark=benchmarks.setdefault(benchmark, len(benchmarks)),
                )
            )
        return average_frontier(cells)


def _figures(table: ShownCell) -> Piece:
    return {"means": table.means, "missing": table.missing}


def latent_band(curves: Curves) -> Piece:
    """Return the latent accuracies of a cell: their mean and a 95 % interval."""
    from evaluator.analysis.latent_tables import latent_curves

    found = latent_curves(curves)
    columns = ("mean", "low", "high") if found is not None else ()
    return {
        "offsets": curves.trajectory_offsets.tolist(),
        "notes": [] if found is None else [visible(note) for note in found.notes],
    } | {name: np.round(getattr(found, name), 4).tolist() for name in columns}
