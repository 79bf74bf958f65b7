"""Rows of mathematics contests: a number or an id, a problem, an answer."""

from collections.abc import Sequence

from data.errors import MisuseError
from data.files import RawRow, text_of
from data.question import Question

NUMBER_COLUMNS = ("id", "problem_idx")
"""Columns that may number the problems, the first of them that a file has."""


def parse_contest(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
    """Return one question a row.

    The id is the row's own where it is text that starts with the benchmark's name, and the name
    with the row's number otherwise, so that copies with ``problem_idx`` and copies with ``id``
    give the same ids.
    """
    questions = []
    for number, row in enumerate(rows, start=1):
        place = f"{where}, row {number}"
        column = next((name for name in NUMBER_COLUMNS if name in row), None)
        own = str(number) if column is None else text_of(row, column, place)
        questions.append(
            Question(
                id=own if own.startswith(benchmark) else f"{benchmark}-{own}",
                prompt=text_of(row, "problem", place),
                reference=text_of(row, "answer", place),
                answer_kind="math",
            )
        )
    return questions


def parse_integer_contest(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
    """Return one question a row of a contest whose answers are the integers from 0 to 999.

    Raises
    ------
    data.errors.MisuseError
        If an answer is not such an integer.
    """
    questions = parse_contest(benchmark, rows, where)
    for question in questions:
        if not (question.reference.isdecimal() and int(question.reference) <= 999):
            raise MisuseError(
                f"{where} ({question.id}): the answer {question.reference!r} is not an integer "
                "from "
                "0 to 999"
            )
    return questions
