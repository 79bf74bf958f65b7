"""N-Queens: complete a board so that no two queens attack each other; the size is its side.

One record (size 4)::

    question   Complete this 4 x 4 board ...
    reference  ["_ Q _ _", "_ _ _ _", "_ _ _ _", "_ _ _ _"]
    answer     _ Q _ _
               _ _ _ Q
               Q _ _ _
               _ _ Q _
"""

import json
import re
from typing import Any

from data.puzzles.base import Judged, Puzzle

_ROW = re.compile(r"[ \t|>]*(?:[_.Q][ \t|,]*){4,12}", re.IGNORECASE)


def ask(entry: dict[str, Any]) -> tuple[str, str]:
    """Return question and reference of an entry."""
    rows = [" ".join(row) for row in entry["puzzle"]]
    board = "\n".join(rows)
    prompt = (
        f"Complete this {len(rows)} x {len(rows)} board with queens (Q) so that there are "
        f"{len(rows)} of them and no two share a row, a column or a diagonal. Queens that are "
        f"there stay where they are; empty squares are written _.\n{board}"
    )
    return prompt, json.dumps(rows)


def judge(reference: str, text: str) -> Judged:
    """Judge the last board in a text that has as many rows and columns as the reference."""
    given = [row.split(" ") for row in json.loads(reference)]
    board = _last_board(text, len(given))
    if board is None:
        return Judged(None, False)
    return Judged("\n".join("".join(row) for row in board), _solves(given, board))


def _last_board(text: str, size: int) -> list[list[str]] | None:
    rows: list[list[str]] = []
    for line in reversed(text.splitlines()):
        row = _row(line, size)
        if row is None:
            rows = []
            continue
        rows.append(row)
        if len(rows) == size:
            return rows[::-1]
    return None


def _row(line: str, size: int) -> list[str] | None:
    if len(line) > 100 or not _ROW.fullmatch(line):
        return None
    squares = [character.upper() for character in line if character in "_.Qq"]
    return (
        ["_" if square == "." else square for square in squares] if len(squares) == size else None
    )


def _solves(given: list[list[str]], board: list[list[str]]) -> bool:
    size = len(given)
    queens = [(row, at) for row in range(size) for at in range(size) if board[row][at] == "Q"]
    kept = all(
        board[row][at] == "Q" for row in range(size) for at in range(size) if given[row][at] == "Q"
    )
    return (
        kept
        and len(queens) == size
        and len({row for row, _ in queens}) == size
        and len({at for _, at in queens}) == size
        and len({row + at for row, at in queens}) == size
        and len({row - at for row, at in queens}) == size
    )


PUZZLE = Puzzle(
    name="n_queens",
    sizes=(8, 12),
    least_size=4,
    most_size=12,
    instruction="End with the complete board, one row a line, squares parted by spaces.",
    dataset="n_queens",
    options=lambda size: {"n": size, "min_remove": size - 1, "max_remove": size - 1},
    ask=ask,
    judge=judge,
)
