"""A run of OTBench as pieces: its rows, with every operating point."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from data.errors import MisuseError
from evaluator.analysis.frontiers import STRATEGY_LABELS
from evaluator.explorer.source import NoPieceError, Piece, TrajectoryKey
from evaluator.otbench.compare import is_own, order_rows, standings
from evaluator.otbench.decisions import decisions_of
from evaluator.otbench.leaderboard import read_rows
from evaluator.otbench.row import Row
from evaluator.otbench.summary import SUMMARIES
from evaluator.present.names import visible


class MethodsSource:
    """A folder that ``stp otbench run`` wrote; ``rows`` has all of its rows.

    Raises
    ------
    data.errors.MisuseError
        If it holds no row, or one that was changed.
    """

    kind = "otbench"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = order_rows(read_rows([folder]))
        if not self.rows:
            raise MisuseError(f"{folder}: holds no row")
        self._decided = [(row, decisions_of(row)) for row in self.rows]

    def stops(self, key: TrajectoryKey) -> list[Piece]:
        """Return where the selected setting of each method would have stopped a test trajectory."""
        return [
            {
                "method": visible(row.label, 120),
                "where": visible(self.folder.name),
                "live": False,
                "own": is_own(row),
                "strategy": row.method.strategy,
                "setting": visible(str(row.selected.setting), 80),
                "position": decided[key][0],
                "signal_tokens": decided[key][2],
            }
            for row, decided in self._decided
            if key in decided
        ]

    def index(self) -> Piece:
        """Return what was measured on what."""
        return {
            "kind": self.kind,
            "name": visible(self.folder.name),
            "folder": visible(str(self.folder)),
            "release": visible(self.rows[0].release.name),
            "headlines": [visible(line, 400) for line in standings(self.rows)],
        }

    def names(self) -> Iterator[str]:
        """Yield the names of all pieces."""
        yield "rows"

    def piece(self, name: str) -> Piece:
        """Return a piece."""
        if name != "rows":
            raise NoPieceError(f"no piece {name!r}")
        shares = [_shares(found) for _, found in self._decided]
        found = rows_piece(self.rows)
        found["rows"] = [row | {"shares": s} for row, s in zip(found["rows"], shares, strict=True)]
        return found


def rows_piece(rows: Sequence[Row]) -> Piece:
    """Return rows as pages show them, with what they have in common."""
    return {
        "zero": rows[0].zero_accuracy,
        "full": rows[0].full_accuracy,
        "strategies": STRATEGY_LABELS,
        "summaries": SUMMARIES,
        "rows": [row_piece(row) for row in rows],
    }


def row_piece(row: Row) -> Piece:
    """Return a row as the page shows it."""
    points = []
    for place, point in enumerate(row.points):
        extra = point.model_extra or {}
        points.append(
            {
                "x": point.tokens_fraction,
                "y": point.accuracy,
                "kept": point.on_curve,
                "setting": visible(str(point.setting), 80),
                "frontier": extra.get("frontier_accuracy"),
                "band": (extra.get("intervals") or {}).get("accuracy"),
                "tokens": _total(row, "tokens", place),
                "right": _total(row, "right", place),
            }
        )
    return {
        "label": visible(row.label, 120),
        "strategy": row.method.strategy,
        "trivial": row.method.trivial,
        "own": is_own(row),
        "points": points,
        "selected": row.selected.index,
        "summary": {
            key: [row.summary[key].value, row.summary[key].low, row.summary[key].high]
            for key in SUMMARIES
        },
        "release": visible(row.release.name, 120),
        "checksum": row.release.checksum,
        "versions": {visible(key): visible(value) for key, value in row.versions.items()},
        "origin": visible(row.method.origin, 200),
        "digest": row.digest,
        "date": visible(str(row.run.get("date", "")), 40),
        "isolation": visible(str(row.run.get("isolation", "")), 80),
    }


def _shares(decided: Mapping[Any, tuple[int, int, int]]) -> Piece | None:
    """Return the shares of test trajectories that do not think, and that think to the end."""
    if not decided:
        return None
    stops = list(decided.values())
    none = sum(position == 0 for position, *_ in stops)
    whole = sum(position == last > 0 for position, last, _ in stops)
    return {"none": none / len(stops), "all": whole / len(stops)}


def _total(row: Row, column: str, place: int) -> int | None:
    """Return a whole number of an operating point over all cells; None if rows do not say."""
    cells = (row.model_extra or {}).get("cells") or []
    values = [cell[column][place] for cell in cells if place < len(cell.get(column, ()))]
    return sum(values) if cells and len(values) == len(cells) else None
