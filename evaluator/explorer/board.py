"""Leaderboards: rows of many result folders, each linked to its evidence.

Rows are comparable only if they answered the same questions under the same settings. Such rows make
a group; a winner is named within a group and never across two.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import MisuseError
from evaluator.explorer.opening import open_source
from evaluator.explorer.source import NoPieceError, Piece, Source, Sources
from evaluator.present.names import visible
from evaluator.runs.graded import file_digest
from evaluator.runs.record import RECORD, RunRecord
from stp.files import json_bytes

BOARDS = {
    "otbench": ("OTBench: methods", "area", "Tokens at the selected setting", "Accuracy there"),
    "think": ("LLMThinkBench: models", "oscore", "Token efficiency", "Accuracy"),
    "optimal": ("OptimalThinkingBench: models", "f1", "AUC OAA, easy questions", "Accuracy, hard"),
}
"""Of each board its title, the value that ranks its rows, and the axes of its plot."""
VALUES = {
    "area": ("Area", "share"),
    "of_frontier": ("Of frontier", "share"),
    "saved": ("Saved at P(n)", "share"),
    "oscore": ("O-Score", "score"),
    "accuracy": ("Accuracy", "share"),
    "efficiency": ("Efficiency", "score"),
    "tokens": ("Tokens", "count"),
    "f1": ("F1", "share"),
    "auc_oaa": ("AUC OAA", "share"),
    "ut_accuracy": ("Accuracy, hard", "share"),
    "ovt_thinking_tokens": ("Thinking tokens, easy", "count"),
}
"""Headings of values, and how they are written."""


@dataclass(slots=True, kw_only=True)
class BoardRow:
    """A row of a board.

    Attributes
    ----------
    board, group
        Which board, and a digest of the questions and settings that it answered.
    name
        The method or the model.
    folder, route
        Its result folder, and where the page shows its evidence, below that folder's.
    values
        Numbers by the names of :data:`VALUES`; None if unknown.
    point
        Its place in the plot, (x, y), or None.
    facts
        Texts to filter by and to read: family, size, quantisation, strategy, date, versions.
    """

    board: str
    group: str
    name: str
    folder: int
    values: dict[str, float | None]
    point: tuple[float, float] | None
    route: str = ""
    facts: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> Piece:
        """Return the row as the page reads it."""
        return {
            "board": self.board,
            "group": self.group,
            "name": visible(self.name, 160),
            "folder": self.folder,
            "route": self.route,
            "values": self.values,
            "point": self.point,
            "facts": {visible(key, 60): visible(text, 200) for key, text in self.facts.items()},
        }


class BoardSource:
    """Boards of several result folders; ``rows`` has all of their rows.

    Parameters
    ----------
    folders
        Results of ``stp otbench run``, ``stp think run`` and ``stp optimal run``. Folder i is the
        source i + 1 of the page.
    name
        The boards' title.
    """

    kind = "board"

    def __init__(self, folders: Sequence[Path], name: str = "Leaderboards") -> None:
        self._name = name
        self.rows = board_rows(folders)

    def index(self) -> Piece:
        """Return which boards there are."""
        boards = [board for board in BOARDS if any(row.board == board for row in self.rows)]
        return {
            "kind": self.kind,
            "name": visible(self._name),
            "folder": f"{len(self.rows)} rows",
            "boards": boards,
        }

    def names(self) -> Iterator[str]:
        """Yield the names of all pieces."""
        yield "rows"

    def piece(self, name: str) -> Piece:
        """Return a piece."""
        if name != "rows":
            raise NoPieceError(f"no piece {name!r}")
        groups = grouped(self.rows)
        return {
            "boards": {
                board: {"title": title, "by": by, "x": x, "y": y}
                for board, (title, by, x, y) in BOARDS.items()
            },
            "values": VALUES,
            "rows": [row.to_json() for row in self.rows],
            "headlines": [
                {"board": board, "group": group, "text": headline(board, rows)}
                for (board, group), rows in groups.items()
            ],
        }


def open_board(folders: Sequence[str | Path], name: str = "Leaderboards") -> Sources:
    """Open the boards of result folders, with the folders themselves as their evidence.

    Raises
    ------
    data.errors.MisuseError
        If there is none, or one holds no results.
    """
    paths = [Path(folder).expanduser() for folder in folders]
    if not paths:
        raise MisuseError("name at least one result folder")
    evidence: list[Source] = [open_source(path) for path in paths]
    return Sources([BoardSource(paths, name), *evidence])


def board_rows(folders: Sequence[Path]) -> list[BoardRow]:
    """Return the rows of result folders, best first within each board and group.

    Raises
    ------
    data.errors.MisuseError
        If a folder holds no results.
    """
    rows: list[BoardRow] = []
    think: list[tuple[int, Any]] = []
    optimal: list[tuple[int, Any]] = []
    for place, folder in enumerate(folders, 1):
        kind = result_kind(folder)
        if kind == "otbench":
            rows += _method_rows(folder, place)
        elif kind == "think":
            from evaluator.thinkbench.stored import load_run as load_think

            think.append((place, load_think(folder)))
        else:
            from evaluator.optimal.stored import load_run as load_optimal

            optimal.append((place, load_optimal(folder)))
    rows += _think_rows(think)
    rows += _optimal_rows(optimal)
    order = list(BOARDS)
    groups = {key: len(group) for key, group in grouped(rows).items()}
    return sorted(
        rows,
        key=lambda row: (
            order.index(row.board),
            -groups[row.board, row.group],
            row.group,
            -(row.values[BOARDS[row.board][1]] or 0.0),
            row.name,
        ),
    )


def result_kind(folder: Path) -> str:
    """Return ``"otbench"``, ``"think"`` or ``"optimal"``: what a folder's results are of.

    Raises
    ------
    data.errors.MisuseError
        If they are of none.
    """
    from evaluator.optimal.stored import KIND as OPTIMAL
    from evaluator.otbench.leaderboard import ROWS
    from evaluator.thinkbench.stored import KIND as THINK
    from stp.files import read_json

    if (folder / ROWS).is_file():
        return "otbench"
    if (folder / RECORD).is_file():
        kind = read_json(folder / RECORD).get("kind")
        if kind in (THINK, OPTIMAL):
            return "think" if kind == THINK else "optimal"
    raise MisuseError(f"{folder}: holds no results of otbench, think or optimal")


def grouped(rows: Sequence[BoardRow]) -> dict[tuple[str, str], list[BoardRow]]:
    """Return the rows of every (board, group), in their order."""
    found: dict[tuple[str, str], list[BoardRow]] = {}
    for row in rows:
        found.setdefault((row.board, row.group), []).append(row)
    return found


def headline(board: str, rows: Sequence[BoardRow]) -> str:
    """Return who leads a group, in a sentence; nobody leads alone, or beside an equal."""
    _, by, *_ = BOARDS[board]
    heading, kind = VALUES[by]
    known = sorted(
        (row for row in rows if row.values.get(by) is not None), key=lambda row: -_value(row, by)
    )
    if len(known) < 2:
        return "One row alone: nothing to compare it with."
    best, second = known[0], known[1]
    shown = [
        f"{100 * _value(r, by):.1f}" if kind == "share" else f"{_value(r, by):.3f}"
        for r in (best, second)
    ]
    if shown[0] == shown[1]:
        return (
            f"{visible(best.name, 60)} and {visible(second.name, 60)} share the first place of "
            f"{len(known)}: {heading} {shown[0]}."
        )
    return (
        f"{visible(best.name, 60)} leads {len(known)} rows: {heading} {shown[0]}, before "
        f"{visible(second.name, 60)} with {shown[1]}."
    )


def _value(row: BoardRow, name: str) -> float:
    value = row.values[name]
    return 0.0 if value is None else value


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json_bytes({"parts": parts})).hexdigest()[:16]


def _method_rows(folder: Path, place: int) -> Iterator[BoardRow]:
    from evaluator.analysis.frontiers import STRATEGY_LABELS
    from evaluator.otbench.leaderboard import read_rows

    for row in read_rows([folder]):
        chosen = row.points[row.selected.index]
        versions = ", ".join(f"{name} {version}" for name, version in row.versions.items())
        yield BoardRow(
            board="otbench",
            group=_digest(row.release.checksum, row.resampling.model_dump()),
            name=row.label,
            folder=place,
            values={
                "area": row.summary["curve_area"].value,
                "of_frontier": row.summary["hypervolume_share"].value,
                "saved": row.summary["tokens_saved_fraction"].value,
                "accuracy": chosen.accuracy,
            },
            point=(chosen.tokens_fraction, chosen.accuracy),
            facts={
                "strategy": STRATEGY_LABELS[row.method.strategy],
                "trivial": "yes" if row.method.trivial else "no",
                "date": str(row.run.get("date", ""))[:10],
                "release": f"{row.release.name} {row.release.checksum[:12]}",
                "isolation": str(row.run.get("isolation", "")),
                "versions": versions,
            },
        )


def _think_rows(runs: Sequence[tuple[int, Any]]) -> Iterator[BoardRow]:
    """Yield rows of think runs; each group is a pool of its own, since O-Scores need one."""
    from evaluator.thinkbench.comparison import run_results
    from evaluator.thinkbench.pools import make_pool, score_all

    groups: dict[str, list[tuple[int, Any]]] = {}
    for place, run in runs:
        groups.setdefault(_digest(run.record.asked), []).append((place, run))
    for group, members in groups.items():
        # Two runs may be of one model; names of rows are theirs, keys of the pool are places.
        results = {str(place): run_results([run])[run.name] for place, run in members}
        scores = score_all(results, make_pool(results))
        for place, run in members:
            score, overall = scores[str(place)], run.measures.overall
            yield BoardRow(
                board="think",
                group=group,
                name=run.name,
                folder=place,
                values={
                    "oscore": score.mean_oscore,
                    "accuracy": overall.accuracy.mean,
                    "efficiency": score.mean_efficiency,
                    "tokens": float(np.mean([row.tokens for row in run.graded])),
                },
                point=(score.mean_efficiency, overall.accuracy.mean),
                facts=_facts(run.record)
                | {"pool": f"{len(members)} runs", "responses": f"{len(run.graded):,}"},
            )


def _optimal_rows(runs: Sequence[tuple[int, Any]]) -> Iterator[BoardRow]:
    from evaluator.optimal.scores import MEASURES, score
    from evaluator.optimal.stored import QUESTIONS

    for place, run in runs:
        asked = {
            key: value
            for key, value in run.record.asked.items()
            if key not in ("name", "size", "data_dir", "methods")
        }
        # Another judge is another setting: it says of other answers that they are right.
        judge = run.judging.judged_with
        group = _digest(
            asked, file_digest(run.folder / QUESTIONS), None if judge is None else asdict(judge)
        )
        scores = score(run.rows, replicates=0, allow_undecided=True)
        for at, (model, method) in enumerate(scores.rows):
            values = {
                name: None if np.isnan(value) else float(value)
                for name, value in zip(MEASURES, scores.values[at], strict=True)
            }
            x, y = values["auc_oaa"], values["ut_accuracy"]
            yield BoardRow(
                board="optimal",
                group=group,
                name=f"{model}, {method}",
                folder=place,
                values={
                    name: values[name]
                    for name in ("f1", "auc_oaa", "ut_accuracy", "ovt_thinking_tokens")
                },
                point=None if x is None or y is None else (x, y),
                facts=_facts(run.record) | {"method": method},
            )


def _facts(record: RunRecord) -> dict[str, str]:
    """Return what a record says of its model, as texts."""
    model: Mapping[str, Any] = record.models.get("model", {})
    said = {key: model.get(key) for key in ("family", "revision", "engine", "quantisation")}
    given = {key: record.attributes.get(key) for key in record.attributes}
    texts = {
        key: str(value) for key, value in (said | given).items() if value not in (None, "", {})
    }
    versions = ", ".join(f"{name} {v}" for name, v in record.versions.items() if v)
    return texts | {"date": record.started[:10], "checker": record.checker, "versions": versions}
