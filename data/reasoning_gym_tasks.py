"""Questions of Reasoning Gym (Stojanovski et al. 2025), made from a seed.

One real record::

    Question(id="letter_counting-0", answer_kind="reasoning_gym",
             prompt='How many times does the letter "o" appear in the text: "engineer go see ...',
             reference='{"answer": "16", "dataset": "letter_counting", "metadata": {...}, ...}')

The reference is all that the task's own verifier needs, so an answer can be judged again without
making the question again. What the eleven tasks of OptimalThinkingBench are is in
``data.catalogue.underthinking``; any other data set of Reasoning Gym can be named here too.
"""

import json
from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import Any

from data.errors import MissingDependencyError, MisuseError
from data.question import Question
from data.seeds import PAPER_SEED

ANSWER_KIND = "reasoning_gym"

GYM_INSTRUCTION = (
    "Work the problem out. When you are done, write your final answer, in the form that the "
    "problem asks for, inside \\boxed{} and write nothing else into the box."
)
"""Asks for a box, which is what the answer is read from (paper 004, section 2.2)."""

Parameters = Mapping[str, int | float | str | bool]

_TUPLE, _ITEMS = "~tuple", "~items"
_MADE_AT_ONCE = {"acre": 10_000}


def gym_module() -> Any:
    """Return the package ``reasoning_gym``.

    Raises
    ------
    data.errors.MissingDependencyError
        If it is not installed.
    """
    try:
        import reasoning_gym
    except ImportError as error:
        raise MissingDependencyError(
            "Reasoning Gym is not installed: pip install 'stp-engine[gym]'"
        ) from error
    return reasoning_gym


def gym_dataset(
    dataset: str, parameters: Parameters, *, seed: int = PAPER_SEED, size: int = 1
) -> Any:
    """Return a data set of Reasoning Gym.

    Raises
    ------
    data.errors.MisuseError
        If there is none of that name, or it has no such parameter or not that value.
    """
    gym = gym_module()
    from reasoning_gym.factory import DATASETS

    if dataset not in DATASETS:
        import difflib

        near = difflib.get_close_matches(dataset, DATASETS, n=3) or sorted(DATASETS)[:5]
        raise MisuseError(f"Reasoning Gym has no task {dataset!r}; there are {', '.join(near)} ...")
    try:
        return gym.create_dataset(dataset, seed=seed, size=size, **parameters)
    except (TypeError, ValueError, AssertionError) as error:
        raise MisuseError(f"Reasoning Gym's {dataset} with {dict(parameters)}: {error}") from error


def gym_questions(
    dataset: str, parameters: Parameters, *, seed: int = PAPER_SEED, count: int
) -> list[Question]:
    """Return the first ``count`` questions of a data set.

    Parameters
    ----------
    dataset
        Reasoning Gym's name for it.
    parameters
        Its settings; what is left out keeps Reasoning Gym's default.
    seed
        Question ``i`` is drawn with ``seed + i``: seeds that lie close share questions.
    count
        How many; fewer give a beginning of more.

    Raises
    ------
    data.errors.MisuseError, data.errors.MissingDependencyError
        As :func:`gym_dataset`.
    """
    frozen = tuple(sorted(parameters.items()))
    return [_question(dataset, frozen, seed, index) for index in range(count)]


@cache
def _question(
    dataset: str, parameters: tuple[tuple[str, Any], ...], seed: int, index: int
) -> Question:
    made = _made(dataset, parameters, seed)
    entry = made[index]
    metadata, answer = dict(entry["metadata"]), entry["answer"]
    if dataset == "knight_swap":
        answer = _settle_knights(metadata)
    if answer is None:
        # Propositional logic: any valid conclusion is right, and this is one.
        answer = metadata.get("example_answer")
    reference = {
        "answer": answer if answer is None else str(answer),
        "dataset": dataset,
        "parameters": dict(parameters),
        "metadata": _packed(metadata),
    }
    return Question(
        id=f"{dataset}-{index}",
        prompt=str(entry["question"]).strip(),
        reference=json.dumps(reference, ensure_ascii=False, sort_keys=True, default=str),
        answer_kind=ANSWER_KIND,
    )


@cache
def _made(dataset: str, parameters: tuple[tuple[str, Any], ...], seed: int) -> Any:
    # The size is virtual: an item is made when it is asked for, but for these, made all at once.
    size = _MADE_AT_ONCE.get(dataset, 1_000_000)
    return gym_dataset(dataset, dict(parameters), seed=seed, size=size)


def entry_of(reference: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return data set, parameters and entry from a question's reference.

    The entry has ``answer`` and ``metadata``, as Reasoning Gym's verifiers want it.

    Raises
    ------
    ValueError
        If the text is no such reference.
    """
    values = json.loads(reference)
    try:
        entry = {"answer": values["answer"], "metadata": _unpacked(values["metadata"])}
        return str(values["dataset"]), dict(values["parameters"]), entry
    except (KeyError, TypeError) as error:
        raise ValueError(f"no reference of a Reasoning Gym question: {error}") from error


def _packed(value: Any) -> Any:
    """Return a value as JSON can hold it; tuples and keys that are not texts are marked."""
    if isinstance(value, tuple):
        return {_TUPLE: [_packed(item) for item in value]}
    if isinstance(value, list):
        return [_packed(item) for item in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: _packed(item) for key, item in value.items()}
        return {_ITEMS: [[_packed(key), _packed(item)] for key, item in value.items()]}
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {_TUPLE}:
            return tuple(_unpacked(item) for item in value[_TUPLE])
        if set(value) == {_ITEMS}:
            return {_unpacked(key): _unpacked(item) for key, item in value[_ITEMS]}
        return {key: _unpacked(item) for key, item in value.items()}
    return value


def _settle_knights(metadata: dict[str, Any]) -> str:
    """Replace the solution of a knight swap by one that every process finds, and return it.

    Reasoning Gym's search walks through sets, so which of several shortest solutions it finds
    changes with the hash seed of the process. Its verifier only needs the length.
    """
    metadata.pop("board_states", None)
    metadata["board"] = {square: sorted(near) for square, near in metadata["board"].items()}
    if not metadata["is_possible"]:
        return "No"
    moves = _shortest_swap(metadata["board"], metadata["pieces"], metadata["start_turn"])
    metadata["solution"] = moves
    return json.dumps([",".join(move) for move in moves])


def _shortest_swap(
    board: Mapping[str, list[str]], pieces: Mapping[str, str | None], start_turn: str
) -> list[tuple[str, str, str]]:
    """Return the first of the shortest solutions, squares tried in their order."""
    white = frozenset(square for square, piece in pieces.items() if piece == "w")
    black = frozenset(square for square, piece in pieces.items() if piece == "B")
    start, goal = (white, black, start_turn), (black, white)
    came_from: dict[Any, tuple[Any, tuple[str, str, str]] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        whites, blacks, turn = state
        if (whites, blacks) == goal:
            moves: list[tuple[str, str, str]] = []
            step = came_from[state]
            while step is not None:
                moves.append(step[1])
                step = came_from[step[0]]
            return moves[::-1]
        movers = whites if turn == "w" else blacks
        for square in sorted(movers):
            for target in board[square]:
                if target in whites or target in blacks:
                    continue
                moved = (movers - {square}) | {target}
                after = (moved, blacks, "B") if turn == "w" else (whites, moved, "w")
                if after not in came_from:
                    came_from[after] = (state, (turn, square, target))
                    queue.append(after)
    raise MisuseError("knight_swap: a puzzle that is said to be possible has no solution")
