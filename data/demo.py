r"""The demo benchmark: small arithmetic questions, made up from a seed and answered exactly.

It exists so that everything can be tried in minutes on a CPU with the demo model of this project,
which was trained on such questions. It says nothing about any other model.

Five kinds, one example each::

    sum          What is 4 + 7 + 2 + 9 + 5?                          27
    difference   What is 31 - 8 - 6 - 9 - 3?                         5
    comparison   Which is larger, 8 + 5 + 9 or 7 + 6 + 4?            22
    extremum     What is the smallest of 31, 17, 58, 44, 62, 20?     17
    count        How many of 13, 28, 12, 35, 47, 40 are even?        3

A question is held out or not by the hash of its numbers, regardless of their order, so no
rearrangement of a held-out question is ever trained on.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from data.draws import StableDraws
from data.question import Question

QuestionKind = Literal["sum", "difference", "comparison", "extremum", "count"]

KINDS: tuple[QuestionKind, ...] = ("sum", "difference", "comparison", "extremum", "count")

INSTRUCTION = r"Put the final answer in \boxed{}."
"""Follows the question in the user's message, on a line of its own."""

HELD_OUT_SHARE = 8
"""One in this many sets of numbers is held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoProblem:
    """One arithmetic question with its parts, from which prompt and answer are made.

    Attributes
    ----------
    kind
        What is asked of the numbers.
    numbers
        The operands in the order shown; the first side of a comparison.
    others
        The second side of a comparison; empty for the other kinds.
    word
        ``"largest"`` or ``"smallest"`` (extremum), ``"even"`` or ``"larger"`` (count, the
        latter with ``threshold``), ``"larger"`` or ``"smaller"`` (comparison); else empty.
    threshold
        What numbers are counted against when ``word`` is ``"larger"``; 0 otherwise.
    """

    kind: QuestionKind
    numbers: tuple[int, ...]
    others: tuple[int, ...] = ()
    word: str = ""
    threshold: int = 0

    @property
    def prompt(self) -> str:
        """The question, without the instruction."""
        if self.kind == "sum":
            return f"What is {_joined(self.numbers, ' + ')}?"
        if self.kind == "difference":
            return f"What is {_joined(self.numbers, ' - ')}?"
        if self.kind == "comparison":
            sides = f"{_joined(self.numbers, ' + ')} or {_joined(self.others, ' + ')}"
            return f"Which is {self.word}, {sides}?"
        listed = _joined(self.numbers, ", ")
        if self.kind == "extremum":
            return f"What is the {self.word} of {listed}?"
        asked = f"larger than {self.threshold}" if self.word == "larger" else self.word
        return f"How many of {listed} are {asked}?"

    @property
    def answer(self) -> int:
        """The right answer."""
        if self.kind == "sum":
            return sum(self.numbers)
        if self.kind == "difference":
            return self.numbers[0] - sum(self.numbers[1:])
        if self.kind == "comparison":
            pick = max if self.word == "larger" else min
            return pick(sum(self.numbers), sum(self.others))
        if self.kind == "extremum":
            return max(self.numbers) if self.word == "largest" else min(self.numbers)
        return sum(self.counts(number) for number in self.numbers)

    def counts(self, number: int) -> bool:
        """Return whether a number of a count question is to be counted."""
        if self.word == "larger":
            return number > self.threshold
        return number % 2 == 0

    @property
    def held_out(self) -> bool:
        """Whether this question is kept out of training, in any order of its numbers."""
        sides = sorted((sorted(self.numbers), sorted(self.others)))
        if self.kind == "difference":
            sides = [[self.numbers[0]], sorted(self.numbers[1:])]
        digest = hashlib.blake2b(f"{self.kind}/{sides}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % HELD_OUT_SHARE == 0


def _joined(numbers: Sequence[int], separator: str) -> str:
    return separator.join(str(number) for number in numbers)


def _distinct(draws: StableDraws, high: int, count: int) -> tuple[int, ...]:
    """Return ``count`` different integers from 10 to ``high`` in drawn order."""
    drawn: list[int] = []
    while len(drawn) < count:
        number = draws.integer(10, high)
        if number not in drawn:
            drawn.append(number)
    return tuple(drawn)


def _draw_problem(kind: QuestionKind, draws: StableDraws) -> DemoProblem:
    """Return a problem of a kind, held out or not."""
    if kind == "sum":
        terms = tuple(draws.integer(1, 9) for _ in range(draws.integer(5, 8)))
        return DemoProblem(kind=kind, numbers=terms)
    if kind == "difference":
        taken = tuple(draws.integer(1, 9) for _ in range(draws.integer(4, 7)))
        return DemoProblem(kind=kind, numbers=(draws.integer(15, 50), *taken))
    if kind == "comparison":
        size = draws.integer(3, 4)
        while True:
            left = tuple(draws.integer(1, 9) for _ in range(size))
            right = tuple(draws.integer(1, 9) for _ in range(size))
            if sum(left) != sum(right):
                word = ("larger", "smaller")[draws.integer(0, 1)]
                return DemoProblem(kind=kind, numbers=left, others=right, word=word)
    if kind == "extremum":
        numbers = _distinct(draws, 99, draws.integer(6, 9))
        return DemoProblem(
            kind=kind, numbers=numbers, word=("largest", "smallest")[draws.integer(0, 1)]
        )
    numbers = _distinct(draws, 59, draws.integer(6, 9))
    word = ("even", "larger")[draws.integer(0, 1)]
    threshold = 10 * draws.integer(2, 5) if word == "larger" else 0
    return DemoProblem(kind=kind, numbers=numbers, word=word, threshold=threshold)


def demo_problems(seed: int, *, held_out: bool = True) -> Iterator[DemoProblem]:
    """Yield problems of the five kinds in turn, without end.

    Parameters
    ----------
    seed
        Another seed gives other problems.
    held_out
        True for problems that are never trained on, False for those that may be.
    """
    index = 0
    while True:
        kind = KINDS[index % len(KINDS)]
        draws = StableDraws("demo", seed, "held-out" if held_out else "training", index)
        problem = _draw_problem(kind, draws)
        while problem.held_out != held_out:
            problem = _draw_problem(kind, draws)
        yield problem
        index += 1


def demo_questions(count: int, seed: int, held_out: bool = True) -> list[Question]:
    """Return ``count`` different questions, the five kinds in turn.

    Parameters
    ----------
    count
        How many; a smaller count gives the first of a larger one.
    seed
        Another seed gives other questions.
    held_out
        True for questions that the demo model was not trained on, False for the others.

    Returns
    -------
    list
        Questions of kind ``"math"`` with ids such as ``demo-sum-0``, unique within the list.

    Examples
    --------
    >>> first = demo_questions(2, seed=1)[0]
    >>> first.id, first.answer_kind
    ('demo-sum-0', 'math')
    """
    questions: list[Question] = []
    seen: set[str] = set()
    problems = demo_problems(seed, held_out=held_out)
    while len(questions) < count:
        problem = next(problems)
        if problem.prompt in seen:
            continue
        seen.add(problem.prompt)
        questions.append(
            Question(
                id=f"demo-{problem.kind}-{len(questions)}",
                prompt=problem.prompt,
                reference=str(problem.answer),
                answer_kind="math",
            )
        )
    return questions
