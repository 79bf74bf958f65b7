"""What a puzzle is: a question of Reasoning Gym by size, and a judge of whole answers.

A task's answer is one value in a box; a puzzle's is many lines, so it is judged from the text.
Instances come from Reasoning Gym, whose generators are kept by its authors; judging is done here,
for theirs runs a model's text as a program.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from data.draws import StableDraws
from data.errors import MissingDependencyError, MisuseError
from data.question import Question
from data.tasks.base import TaskParameters


@dataclass(frozen=True, slots=True)
class Judged:
    """What a puzzle's judge says of a text: the answer in it, or None, and whether it is right."""

    answer: str | None
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Puzzle:
    """One kind of puzzle.

    Attributes
    ----------
    name
        Also the ``answer_kind`` of its questions, after ``"puzzle:"``.
    sizes
        By default; the questions go through these in turn.
    least_size, most_size
        What sizes make sense.
    instruction
        How an answer is to be written.
    dataset
        Its name in Reasoning Gym.
    options
        The dataset's options for a size.
    ask
        The question as it is put and its reference, from an entry's metadata.
    judge
        Judges a text (second argument) by a reference (first).
    category
        For tables.
    """

    name: str
    sizes: tuple[int, ...]
    least_size: int
    most_size: int
    instruction: str
    dataset: str
    options: Callable[[int], dict[str, int]]
    ask: Callable[[dict[str, Any]], tuple[str, str]]
    judge: Callable[[str, str], Judged]
    category: str = "puzzle"


def make_puzzles(puzzle: Puzzle, parameters: TaskParameters, count: int) -> list[Question]:
    """Return the first ``count`` questions of a puzzle, the sizes in turn.

    Raises
    ------
    data.errors.MissingDependencyError
        If Reasoning Gym is not installed.
    data.errors.MisuseError
        If a size makes no sense.
    """
    sizes = parameters.sizes or puzzle.sizes
    for size in sizes:
        if not puzzle.least_size <= size <= puzzle.most_size:
            raise MisuseError(
                f"{puzzle.name}: size {size}; it must be from {puzzle.least_size} to "
                f"{puzzle.most_size}"
            )
    entries = {
        size: _entries(puzzle, parameters, size, -(-count // len(sizes))) for size in set(sizes)
    }
    questions = []
    for number in range(min(count, parameters.samples)):
        size, index = sizes[number % len(sizes)], number // len(sizes)
        prompt, reference = puzzle.ask(entries[size][index])
        questions.append(
            Question(
                id=f"{puzzle.name}-fold{parameters.fold}-size{size}-{index}",
                prompt=prompt,
                reference=reference,
                answer_kind=f"puzzle:{puzzle.name}",
            )
        )
    return questions


def _entries(
    puzzle: Puzzle, parameters: TaskParameters, size: int, count: int
) -> list[dict[str, Any]]:
    """Return the metadata of the first entries of Reasoning Gym."""
    try:
        gym = importlib.import_module("reasoning_gym")
    except ImportError as error:
        raise MissingDependencyError(
            f"the puzzle {puzzle.name} needs Reasoning Gym: pip install 'stp-engine[gym]'"
        ) from error
    key = ("think", parameters.seed, parameters.fold, puzzle.name, size)
    dataset = gym.create_dataset(
        puzzle.dataset,
        seed=StableDraws(*key).integer(0, 2**31 - 1),
        size=count,
        **puzzle.options(size),
    )
    return [dict(dataset[index]["metadata"]) for index in range(count)]
