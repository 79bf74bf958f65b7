"""Puzzles of the tool study (paper 000, T): Tower of Hanoi and N-Queens, by size.

As with tasks, a puzzle is one module that exposes ``PUZZLE``. Instances need Reasoning Gym.
"""

import difflib
import importlib
import pkgutil
from functools import cache

from data.errors import MisuseError
from data.puzzles.base import Judged, Puzzle, make_puzzles

__all__ = ["Judged", "Puzzle", "get_puzzle", "make_puzzles", "puzzle_names"]


def puzzle_names() -> tuple[str, ...]:
    """Return the names of all puzzles, sorted.

    Examples
    --------
    >>> puzzle_names()
    ('n_queens', 'tower_of_hanoi')
    """
    return tuple(sorted(_puzzles()))


def get_puzzle(name: str) -> Puzzle:
    """Return a puzzle by its name.

    Raises
    ------
    data.errors.MisuseError
        If there is none of that name.
    """
    try:
        return _puzzles()[name]
    except KeyError:
        near = difflib.get_close_matches(name, puzzle_names(), n=2) or puzzle_names()
        raise MisuseError(f"no puzzle {name!r}; there are {', '.join(near)}") from None


@cache
def _puzzles() -> dict[str, Puzzle]:
    modules = [
        importlib.import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
    ]
    puzzles = [module.PUZZLE for module in modules if hasattr(module, "PUZZLE")]
    return {puzzle.name: puzzle for puzzle in puzzles}
