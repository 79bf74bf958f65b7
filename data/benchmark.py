"""A benchmark: a named list of questions, the instruction they are asked with, and their source.

Sees files and rows; knows nothing of models, chat formats or how an answer is judged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from data.errors import MisuseError
from data.question import Question

MATH_INSTRUCTION = (
    "Reason through the problem one step at a time. "
    "When you are done, put the final answer inside \\boxed{}."
)
"""Asks for a boxed answer (paper 002, A.1)."""

CHOICE_INSTRUCTION = (
    "Reason through the question one step at a time. When you are done, give your choice in an "
    "answer field that holds its letter and nothing else, for example: Answer: C"
)
"""Asks for the letter in an answer field (paper 002, A.1)."""

CODE_INSTRUCTION = (
    "Reason through the problem one step at a time. When you are done, write the complete "
    "solution in Python, in one fenced code block that starts with ```python."
)
"""Asks for step by step reasoning and one program (paper 002, A.1)."""

INSTRUCTIONS = {
    "math": MATH_INSTRUCTION,
    "choice": CHOICE_INSTRUCTION,
    "code": CODE_INSTRUCTION,
}
"""The instruction of each answer kind that is not a generated task."""


class QuestionSource(Protocol):
    """Where a benchmark's questions come from: a public file, a user's file, or a generator."""

    @property
    def licence(self) -> str:
        """Licence of the questions, as their publisher states it."""

    def describe(self) -> str:
        """Return source and revision in one phrase."""

    def available(self, data_dir: Path | None) -> str:
        """Return where the questions can be read without a network, or ``""`` if nowhere."""

    def questions(self, benchmark: str, data_dir: Path | None, limit: int | None) -> list[Question]:
        """Return all questions, or at least the first ``limit`` of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A named list of questions with one way of asking.

    Attributes
    ----------
    name
        What a campaign file and the command line call it.
    group
        The reporting group; several benchmarks may share one (AIME 2024, 2025, 2026).
    instruction
        Goes into the system role or before the question, as the model family wants it.
    answer_kind
        ``"math"``, ``"choice"``, ``"code"``, or the name of a generated task.
    expected_count
        How many questions the whole benchmark has; ``None`` if its file alone decides.
    source
        Where the questions come from.
    """

    name: str
    group: str
    instruction: str
    answer_kind: str
    expected_count: int | None
    source: QuestionSource

    def load(self, data_dir: Path | None = None, limit: int | None = None) -> list[Question]:
        """Return the questions, in the order of their source.

        Parameters
        ----------
        data_dir
            Folder of question files. Without it, the folder that the environment variable
            ``STP_DATA_DIR`` names, and without that, the Hugging Face hub.
        limit
            Only this many of the first questions. The count is checked before the list is cut.

        Returns
        -------
        list of Question
            With distinct ids.

        Raises
        ------
        data.errors.MisuseError
            If the questions cannot be read (the message says what to download where), are not
            as many as the benchmark has, or ``limit`` is below 1.
        data.errors.StoreError
            If the hub that has them cannot be reached.
        """
        if limit is not None and limit < 1:
            raise MisuseError(f"{self.name}: limit must be at least 1, not {limit}")
        questions = self.source.questions(self.name, data_dir, limit)
        check_questions(f"{self.name} ({self.source.describe()})", questions)
        if self.expected_count is not None:
            # A generator makes no more than asked; every other source gives all it has.
            enough = {self.expected_count, min(limit or self.expected_count, self.expected_count)}
            if len(questions) not in enough:
                raise MisuseError(
                    f"{self.name}: {len(questions)} questions, and {self.expected_count} are "
                    f"expected (source: {self.source.describe()})"
                )
        return questions if limit is None else questions[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedSource:
    """Questions that a function of this project makes; nothing to download.

    Attributes
    ----------
    make
        Takes how many questions are wanted and returns that many; a smaller count gives a prefix
        of a larger one.
    count
        How many questions the benchmark has.
    description
        One phrase for listings.
    licence
        Licence of the questions.
    """

    make: Callable[[int], Sequence[Question]]
    count: int
    description: str
    licence: str = "Apache-2.0"

    def describe(self) -> str:
        """Return what makes the questions."""
        return self.description

    def available(self, data_dir: Path | None) -> str:
        """Return ``"generated"``: always there."""
        return "generated"

    def questions(self, benchmark: str, data_dir: Path | None, limit: int | None) -> list[Question]:
        """Make the questions that are asked for, and no more."""
        return list(self.make(self.count if limit is None else min(limit, self.count)))


def check_questions(benchmark: str, questions: Sequence[Question]) -> None:
    """Check what every list of questions must satisfy.

    Raises
    ------
    data.errors.MisuseError
        If there are none, an id occurs twice (the message gives both rows), a question or a
        reference is empty, or any text holds half a character (a lone surrogate).
    """
    if not questions:
        raise MisuseError(f"{benchmark}: no questions")
    first_rows: dict[str, int] = {}
    for row, question in enumerate(questions, start=1):
        if question.id in first_rows:
            raise MisuseError(
                f"{benchmark}, row {row}: the id {question.id!r} is that of row "
                f"{first_rows[question.id]} already"
            )
        first_rows[question.id] = row
        for field, value in (("question", question.prompt), ("reference", question.reference)):
            if not value.strip():
                raise MisuseError(f"{benchmark}, row {row} ({question.id}): empty {field}")
        _check_characters(benchmark, row, question)


def _check_characters(benchmark: str, row: int, question: Question) -> None:
    """Refuse half characters (lone surrogates), which JSON can spell and no file can hold."""
    for text in (question.id, question.prompt, question.reference, *question.choices):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = ord(text[error.start])
            raise MisuseError(
                f"{benchmark}, row {row}: half a character (\\u{half:04x}) at {error.start} of "
                f"{text[max(0, error.start - 10) : error.start + 10]!r}; write the whole one"
            ) from error
