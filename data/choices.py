"""Choice questions: how options are ordered, lettered and shown.

Orders come from a stored seed and a hash, never from a generator's state, so that a question has
one order on every machine and in every release.
"""

import hashlib
import string
from collections.abc import Sequence

from data.errors import MisuseError
from data.question import Question
from data.seeds import PAPER_SEED

LETTERS = string.ascii_uppercase

"""Seed of the orders in which this project's benchmarks show their options."""


def balanced_letters(ids: Sequence[str], option_count: int, seed: int = PAPER_SEED) -> list[str]:
    """Return the letter of the right option for each question, each letter equally often.

    Questions are ranked by a hash of seed and id, and the letters are assigned in turn along the
    ranks: the counts of two letters differ by at most one, and the letter does not depend on the
    question's place in its file.

    Parameters
    ----------
    ids
        Distinct ids of all questions of the benchmark.
    option_count
        Options of each question, at least 2.
    seed
        Another seed gives another assignment.

    Examples
    --------
    >>> sorted(balanced_letters(["a", "b", "c", "d"], 2))
    ['A', 'A', 'B', 'B']
    """
    ranked = sorted(range(len(ids)), key=lambda place: _hash(seed, "rank", ids[place]))
    letters = [""] * len(ids)
    for rank, place in enumerate(ranked):
        letters[place] = LETTERS[rank % option_count]
    return letters


def shuffled_options(
    right: str, wrong: Sequence[str], letter: str, question_id: str
) -> tuple[str, ...]:
    """Return the options with the right one at ``letter`` and the others in a hashed order.

    Parameters
    ----------
    right, wrong
        Texts of the right option and of the others.
    letter
        Where the right one stands.
    question_id
        What the order of the others depends on.
    """
    order = sorted(
        range(len(wrong)), key=lambda place: _hash(PAPER_SEED, "order", question_id, str(place))
    )
    options = [wrong[place] for place in order]
    options.insert(LETTERS.index(letter), right)
    return tuple(options)


def letter_question(
    question_id: str, text: str, options: Sequence[str], letter: str, where: str
) -> Question:
    """Return a choice question whose prompt shows the options under their letters.

    Raises
    ------
    data.errors.MisuseError
        If there are fewer than 2 or more than 26 options, if one is empty, if the right one stands
        there twice, or if ``letter`` is not among their letters.
    """
    if not 2 <= len(options) <= len(LETTERS):
        raise MisuseError(f"{where}: {len(options)} options; 2 to {len(LETTERS)} can be shown")
    if any(not option.strip() for option in options):
        raise MisuseError(f"{where}: an option is empty")
    if letter not in LETTERS[: len(options)] or len(letter) != 1:
        raise MisuseError(
            f"{where}: the reference {letter!r} is not a letter from A to "
            f"{LETTERS[len(options) - 1]}"
        )
    if options.count(options[LETTERS.index(letter)]) > 1:
        raise MisuseError(f"{where}: the right option {letter} stands there twice")
    shown = "\n".join(f"{LETTERS[place]}. {option}" for place, option in enumerate(options))
    return Question(
        id=question_id,
        prompt=f"{text}\n\n{shown}",
        reference=letter,
        answer_kind="choice",
        choices=tuple(options),
    )


def _hash(seed: int, *parts: str) -> bytes:
    text = "\x1f".join((str(seed), *parts))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
