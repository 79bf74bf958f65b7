"""Tower of Hanoi: all disks from one peg to another; the size is the number of disks.

One record (size 2)::

    question   There are 3 pegs and 2 disks, all on peg 2 ... Move all of them to peg 1.
    reference  {"disks": 2, "pegs": 3, "start": 2, "target": 1}
    answer     Move disk 1 from peg 2 to peg 3
               Move disk 2 from peg 2 to peg 1
               Move disk 1 from peg 3 to peg 1
"""

import json
import re
from typing import Any

from data.puzzles.base import Judged, Puzzle

_MAX_MOVES = 20_000
_MOVE = re.compile(
    r"[ \t]*(?:[-*>]|\d{1,6}[.):])?[ \t]*\**(?:step \d{1,6}[.:][ \t]*)?"
    r"move (?:disk|disc) (\d{1,3}) from (?:peg|rod) (\d{1,2}) to (?:peg|rod) (\d{1,2})\**[ \t.;,]*",
    re.IGNORECASE,
)


def ask(entry: dict[str, Any]) -> tuple[str, str]:
    """Return question and reference of an entry."""
    disks, pegs = entry["num_disks"], entry["num_pegs"]
    start, target = entry["start_peg"], entry["target_peg"]
    prompt = (
        f"There are {pegs} pegs and {disks} disks of different sizes; disk 1 is the smallest. All "
        f"disks lie on peg {start}, the largest at the bottom. Move all of them to peg {target}, "
        "one disk at a time, always the top one of a peg, and never a larger disk onto a smaller "
        "one."
    )
    reference = {"disks": disks, "pegs": pegs, "start": start, "target": target}
    return prompt, json.dumps(reference)


def judge(reference: str, text: str) -> Judged:
    """Play the last unbroken run of moves in a text; it is right if all is legal and solved."""
    values = json.loads(reference)
    moves = _last_moves(text)
    if not moves:
        return Judged(None, False)
    answer = "\n".join(f"{disk} {start} {target}" for disk, start, target in moves)
    pegs: list[list[int]] = [[] for _ in range(values["pegs"] + 1)]
    pegs[values["start"]] = list(range(values["disks"], 0, -1))
    for disk, start, target in moves:
        if not (1 <= start <= values["pegs"] and 1 <= target <= values["pegs"]):
            return Judged(answer, False)
        if not pegs[start] or pegs[start][-1] != disk:
            return Judged(answer, False)
        if pegs[target] and pegs[target][-1] < disk:
            return Judged(answer, False)
        pegs[target].append(pegs[start].pop())
    return Judged(answer, len(pegs[values["target"]]) == values["disks"])


def _last_moves(text: str) -> list[tuple[int, int, int]]:
    """Return the moves of the last lines that are moves; empty lines may stand between them."""
    moves: list[tuple[int, int, int]] = []
    for line in reversed(text.splitlines()):
        found = _MOVE.fullmatch(line) if len(line) < 200 else None
        if found is not None:
            moves.append((int(found[1]), int(found[2]), int(found[3])))
        elif moves and line.strip():
            break
        if len(moves) > _MAX_MOVES:
            return []
    return moves[::-1]


PUZZLE = Puzzle(
    name="tower_of_hanoi",
    sizes=(5, 7),
    least_size=2,
    most_size=12,
    instruction=(
        "End with the complete list of moves, one a line and nothing between them, each in the "
        "form: Move disk X from peg Y to peg Z"
    ),
    dataset="tower_of_hanoi",
    options=lambda size: {
        "min_disks": size,
        "max_disks": size,
        "min_pegs": 3,
        "max_pegs": 3,
    },
    ask=ask,
    judge=judge,
)
