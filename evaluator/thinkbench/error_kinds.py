"""Wrong answers sorted by what went wrong (paper 000, G.4), by rules.

- ``format``: the right value stands at the end of the response, and was not given as asked.
- ``partial``: the response broke off before its answer, or the answer is right for a part.
- ``procedural``: the answer is what another operation on the same numbers gives.
- ``unrelated``: no answer at all, or one that no slip in this task could give.
- ``computational``: an answer of the right kind that is wrong otherwise.

The rules see the question's numbers, the parsed answer and the end of the text.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final, Literal

from data.tasks import get_task
from data.tasks.plain import read_number
from evaluator.answers.tasks import plain_spellings
from evaluator.thinkbench.questions import TaskQuestion
from stp.asking import Response

ErrorKind = Literal["computational", "procedural", "format", "partial", "unrelated"]

ERROR_KINDS: Final[tuple[ErrorKind, ...]] = (
    "computational",
    "procedural",
    "format",
    "partial",
    "unrelated",
)

_TAIL_LINES: Final = 4
_TAIL_CHARACTERS: Final = 1500
_INTEGER: Final = re.compile(r"[-−]?\d+")
_NUMBER: Final = re.compile(r"(?<![\w.])[-−]?\d[\d,]*(?:\.\d+)?(?:\s?/\s?\d+)?(?![\w])")
_SIGN: Final = re.compile(r"(?<![<>=!])(?:<|>|=)(?![<>=])|\b(?:less|greater|equal)\b")
_ELEMENT_TASKS: Final = frozenset({"find_maximum", "find_minimum", "mode"})
_COUNTS: Final = frozenset({"odd_count", "even_count"})


def error_kind(item: TaskQuestion, answer: str | None, response: Response) -> ErrorKind:
    """Return the kind of a wrong answer.

    Parameters
    ----------
    item
        The question.
    answer
        What was parsed; None if nothing was.
    response
        The response.

    Returns
    -------
    str
        One of :data:`ERROR_KINDS`.
    """
    if item.category == "puzzle":
        return _puzzle_kind(answer, response)
    tail = _tail(response.text)
    if _states(item, tail, answer):
        return "format"
    if answer is None:
        if response.finish == "length" or _unfinished(response):
            return "partial"
        return "computational" if _claims_value(item, tail) else "unrelated"
    numbers = question_numbers(item.question.prompt)
    given = _read(answer, item.task)
    if given is None:
        return "partial" if response.finish == "length" else "unrelated"
    if isinstance(given, str):
        return "procedural"  # The wrong sign of the three.
    if item.task == "sorting":
        return _sorting_kind(numbers, given)
    if len(given) != 1:
        return "unrelated"
    return _value_kind(item.task, numbers, given[0])


def question_numbers(prompt: str) -> list[int]:
    """Return the numbers of a task's question: its list, or else the first two integers in it.

    Examples
    --------
    >>> question_numbers("What is the sum of the numbers in this list? [3, -4, 5]")
    [3, -4, 5]
    >>> question_numbers("Subtract 120 from -45. In other words, what is (-45) - (120)?")
    [120, -45]
    """
    opening = prompt.rfind("[")
    part = prompt[opening:] if opening >= 0 else prompt
    numbers = [int(found) for found in _INTEGER.findall(part)]
    return numbers if opening >= 0 else numbers[:2]


def _puzzle_kind(answer: str | None, response: Response) -> ErrorKind:
    if answer is not None:
        return "procedural"
    cut = response.finish == "length" or _unfinished(response)
    return "partial" if cut else "unrelated"


def _unfinished(response: Response) -> bool:
    """Whether there is thinking and no answer after it."""
    return not response.text.strip() and bool(response.thinking)


def _tail(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return "\n".join(lines[-_TAIL_LINES:])[-_TAIL_CHARACTERS:]


def _states(item: TaskQuestion, tail: str, answer: str | None) -> bool:
    """Whether the last thing said, or the answer with something around it, is right."""
    right, reference = get_task(item.task).right, item.question.reference
    if item.task == "comparison":
        found = _SIGN.findall(tail)
        said = {"less": "<", "greater": ">", "equal": "="}
        return bool(found) and answer is None and said.get(found[-1], found[-1]) == reference
    if item.task == "sorting":
        wanted = [str(number) for number in _INTEGER.findall(reference)]
        said_numbers = [found.replace("−", "-") for found in _INTEGER.findall(answer or tail)]
        return said_numbers[-len(wanted) :] == wanted
    found = [text.replace("−", "-").replace(",", "") for text in _NUMBER.findall(answer or tail)]
    # More than one number in an answer is a choice left to the reader: the last one counts.
    return bool(found) and any(right(reference, plain) for plain in (found[-1],))


def _claims_value(item: TaskQuestion, tail: str) -> bool:
    """Whether the text ends on a number that is not just one of the question's."""
    found = [text.replace("−", "-").replace(",", "") for text in _NUMBER.findall(tail)]
    if not found:
        return False
    numbers = {str(number) for number in question_numbers(item.question.prompt)}
    return item.task in _ELEMENT_TASKS or found[-1] not in numbers


def _read(answer: str, task: str) -> list[Fraction] | str | None:
    """Return the values of an answer, or a comparison's sign; None if it is neither."""
    for plain in plain_spellings(answer):
        if task == "comparison":
            sign = _sign(plain)
            if sign is not None:
                return sign
            continue
        parts = [part for part in plain.strip("[](){} ").split(",") if part.strip()]
        values = [read_number(part) for part in parts]
        known = [value.value for value in values if value is not None]
        if known and len(known) == len(parts):
            return known
    return None


def _sign(plain: str) -> str | None:
    task = get_task("comparison")
    return next((sign for sign in ("<", "=", ">") if task.right(sign, plain)), None)


def _sorting_kind(numbers: Sequence[int], answer: list[Fraction]) -> ErrorKind:
    wanted = sorted(Fraction(number) for number in numbers)
    have, need = Counter(answer), Counter(wanted)
    if answer in (wanted[::-1], [Fraction(number) for number in numbers]):
        return "procedural"
    if answer == sorted(set(wanted)) or answer == sorted(wanted, key=abs):
        return "procedural"
    if sum((have & need).values()) * 2 < len(answer):
        return "unrelated"
    if not have - need and len(answer) < len(wanted):
        return "partial"
    return "computational"


def _value_kind(task: str, numbers: Sequence[int], value: Fraction) -> ErrorKind:
    if any(_same(value, other) for other in _other_operations(task, numbers)):
        return "procedural"
    if any(_same(value, other) for other in _of_a_part(task, numbers)):
        return "partial"
    if task in _ELEMENT_TASKS:
        return "computational" if value in numbers else "unrelated"
    if task in _COUNTS:
        within = value.denominator == 1 and 0 <= value <= len(numbers)
        return "computational" if within else "unrelated"
    return "unrelated" if _out_of_reach(task, numbers, value) else "computational"


def _same(value: Fraction, other: Fraction) -> bool:
    """Equal, or a decimal of it with two digits."""
    return value == other or (other.denominator > 1 and abs(value - other) <= Fraction(1, 200))


def _out_of_reach(task: str, numbers: Sequence[int], value: Fraction) -> bool:
    """Whether no slip of a digit or a step explains a value: it is far too large."""
    most = max(abs(number) for number in numbers)
    if task == "multiplication":
        size = math.prod(max(1, abs(number)) for number in numbers)
        return abs(value) > 1000 * size
    if task == "division":
        return abs(value) > 100 * max(1, most)
    reach = most if task in ("mean", "median") else most * len(numbers)
    return abs(value) > 10 * max(1, reach)


def _other_operations(task: str, numbers: Sequence[int]) -> Iterator[Fraction]:
    """Yield what the operations give that a task is taken for."""
    count = len(numbers)
    ordered = sorted(numbers)
    operations: dict[str, Callable[[], list[Fraction | int]]] = {
        "sum": lambda: [
            math.prod(numbers),
            Fraction(sum(numbers), count),
            sum(abs(number) for number in numbers),
            -sum(numbers),
            count,
        ],
        "multiplication": lambda: [
            sum(numbers),
            -math.prod(numbers),
        ],
        "subtraction": lambda: [
            numbers[0] - numbers[1],
            numbers[0] + numbers[1],
            abs(numbers[1]) - abs(numbers[0]),
            abs(numbers[0]) + abs(numbers[1]),
        ],
        "absolute_difference": lambda: [
            -abs(numbers[0] - numbers[1]),
            numbers[0] + numbers[1],
            abs(numbers[0] + numbers[1]),
            abs(abs(numbers[0]) - abs(numbers[1])),
        ],
        "division": lambda: [
            *([Fraction(numbers[1], numbers[0])] if numbers[0] else []),
            -Fraction(numbers[0], numbers[1]),
            numbers[0] // numbers[1],
            numbers[0] % numbers[1],
            int(Fraction(numbers[0], numbers[1])),
            numbers[0] * numbers[1],
        ],
        "find_maximum": lambda: [min(numbers), max(numbers, key=abs), numbers[0], numbers[-1]],
        "find_minimum": lambda: [
            max(numbers),
            min(numbers, key=abs),
            max(numbers, key=abs),
            numbers[0],
            numbers[-1],
        ],
        "mean": lambda: [
            sum(numbers),
            _median(ordered),
            -Fraction(sum(numbers), count),
            Fraction(sum(abs(number) for number in numbers), count),
            Fraction(sum(numbers), max(1, count - 1)),
            Fraction(sum(numbers), count + 1),
            Fraction(ordered[0] + ordered[-1], 2),
        ],
        "median": lambda: [
            Fraction(sum(numbers), count),
            _median(numbers),
            _median(sorted(numbers, key=abs)),
            ordered[count // 2],
            ordered[(count - 1) // 2],
            Fraction(ordered[0] + ordered[-1], 2),
        ],
        "mode": lambda: [
            max(Counter(numbers).values()),
            max(numbers),
            min(numbers),
            _median(ordered),
        ],
        "odd_count": lambda: [
            sum(number % 2 == 0 for number in numbers),
            count,
            sum(number for number in numbers if number % 2),
            sum(number % 2 == 1 and number > 0 for number in numbers),
        ],
        "even_count": lambda: [
            sum(number % 2 == 1 for number in numbers),
            count,
            sum(number for number in numbers if number % 2 == 0),
            sum(number % 2 == 0 and number > 0 for number in numbers),
        ],
    }
    yield from (Fraction(value) for value in operations.get(task, list)())


def _of_a_part(task: str, numbers: Sequence[int]) -> Iterator[Fraction]:
    """Yield what a task gives on the first numbers alone, two or more but not all."""
    if task == "sum":
        yield from (Fraction(total) for total in list(itertools.accumulate(numbers))[1:-1])
    elif task == "multiplication":
        products = itertools.accumulate(numbers, lambda a, b: a * b)
        yield from (Fraction(product) for product in list(products)[1:-1])
    elif task == "mean":
        totals = list(itertools.accumulate(numbers))[1:-1]
        yield from (Fraction(total, at) for at, total in enumerate(totals, start=2))


def _median(ordered: Sequence[int]) -> Fraction:
    count = len(ordered)
    return Fraction(ordered[(count - 1) // 2] + ordered[count // 2], 2)
