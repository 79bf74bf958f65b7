r"""Validators of generated tasks: the one place where their answers are judged.

A generated task's question has the task's name as its ``answer_kind`` (``"sum"``, or with the
prefix ``"task:sum"``). `VALIDATORS` says for each name what kind of value its reference is; a new
task adds one line. Extraction is shared with mathematics (the last box that stands for itself, or
a marked answer), comparison is exact.

Two rules hold everywhere: an integer is never answered by another number that starts with it
(84.9 is not 84), and a division or a mean is answered by an exact fraction or by a decimal that is
right to the digits given, at least two.
"""

import re
from collections.abc import Callable
from fractions import Fraction

from data.question import Question
from evaluator.answers.errors import BadReferenceError
from evaluator.answers.expressions import variables
from evaluator.answers.forms import Equation, Form, Listing, Value
from evaluator.answers.judge import SlowTools
from evaluator.answers.math_extraction import extract
from evaluator.answers.reading import read_forms
from evaluator.answers.values import NotRationalError, NoValueError, exact
from evaluator.answers.verdict import Verdict

PREFIX = "task:"
MIN_DECIMALS = 2

Validator = Callable[[str, str], bool]
"""``(reference, answer) -> right``; both are texts, the answer as it was extracted."""

_DECIMAL = re.compile(r"[-+]?\d*\.(\d+)")
_RELATIONS = {
    "<": ("<", "less than", "smaller than", "less", "smaller", "lt", "is less than", "lower than"),
    ">": (">", "greater than", "larger than", "bigger than", "greater", "larger", "bigger", "gt",
          "more than", "higher than", "is greater than"),
    "=": ("=", "==", "equal to", "equal", "equals", "the same", "same", "equal to each other",
          "is equal to", "they are equal", "eq"),
}  # fmt: skip
_RELATION_OF = {word: sign for sign, words in _RELATIONS.items() for word in words}
_RELATION_INSIDE = re.compile(r"-?\d[\d,.]*\s*(<|>|==?|\\lt|\\gt)\s*-?\d[\d,.]*")


def integer(reference: str, answer: str) -> bool:
    """Whether the answer is this integer; ``2.0`` and ``1,000`` are integers, ``84.9`` is not 84."""
    wanted = _number(reference)
    return wanted is not None and wanted in _numbers(answer)


def rational(reference: str, answer: str) -> bool:
    """Whether the answer is this fraction, or a decimal right to its digits (two at least)."""
    wanted = _number(reference)
    if wanted is None:
        return False
    for form in read_forms(answer):
        value = _last_value(form)
        number = _exact(value)
        if value is None or number is None:
            continue
        if number == wanted:
            return True
        decimal = _DECIMAL.fullmatch(value.text.replace(" ", ""))
        if decimal is not None and len(decimal.group(1)) >= MIN_DECIMALS:
            unit = Fraction(1, 10 ** len(decimal.group(1)))
            # A value that rounds to nothing but zeros has no digit that could be right.
            if abs(number - wanted) <= unit / 2 and (number != 0 or wanted == 0):
                return True
    return False


def integer_list(reference: str, answer: str) -> bool:
    """Whether the answer lists these integers in this order, with or without brackets."""
    wanted = _list(reference)
    return wanted is not None and any(
        _items(form) == wanted for form in read_forms(answer.replace("[ ", "["))
    )


def relation(reference: str, answer: str) -> bool:
    r"""Whether the answer is this relation: ``<``, ``\text{less than}``, ``3 < 5``."""
    wanted = _RELATION_OF.get(reference.strip())
    return wanted is not None and _relation(answer) == wanted


def any_of_list(reference: str, answer: str) -> bool:
    """Whether the answer is one of the values that the reference lists (modes)."""
    wanted = _list(reference) or ()
    numbers = _numbers(answer)
    if any(number in wanted for number in numbers):
        return True
    # All of the modes together are right as well.
    return any(
        items is not None and sorted(items) == sorted(wanted)
        for items in map(_items, read_forms(answer))
    )


VALIDATORS: dict[str, Validator] = {
    "sorting": integer_list,
    "comparison": relation,
    "sum": integer,
    "subtraction": integer,
    "multiplication": integer,
    "division": rational,
    "absolute_difference": integer,
    "find_maximum": integer,
    "find_minimum": integer,
    "maximum": integer,
    "minimum": integer,
    "mean": rational,
    "median": rational,
    "mode": any_of_list,
    "odd_count": integer,
    "even_count": integer,
}


class TaskJudge:
    """Judges answers to one question of a generated task."""

    def __init__(self, question: Question) -> None:
        name = question.answer_kind.removeprefix(PREFIX)
        self._validator = VALIDATORS[name]
        self._reference = question.reference
        if not self._validator(question.reference, question.reference):
            raise BadReferenceError(
                f"question {question.id}: '{question.reference}' is no reference of task {name}"
            )

    def extract(self, response: str) -> str | None:
        """Extract the answer as in mathematics."""
        return extract(response)

    def quick(self, answer: str) -> Verdict | None:
        """Judge by the task's validator."""
        right = self._validator(self._reference, answer)
        return Verdict(right, answer, "right: exact" if right else "wrong: another value")

    def slow(self, answer: str, tools: SlowTools) -> Verdict:
        """Never needed: validators are exact."""
        verdict = self.quick(answer)
        assert verdict is not None
        return verdict


def is_task(answer_kind: str) -> bool:
    """Whether an answer kind is the name of a generated task."""
    return answer_kind.removeprefix(PREFIX) in VALIDATORS


def _number(text: str) -> Fraction | None:
    numbers = _numbers(text)
    return numbers[0] if numbers else None


def _numbers(text: str) -> list[Fraction]:
    """Read a number in each of a text's readings."""
    numbers = [_exact(_last_value(form)) for form in read_forms(text)]
    return [number for number in numbers if number is not None]


def _last_value(form: Form) -> Value | None:
    """Take the value itself, or what an equation (``100 + (-30) = 70``) ends in."""
    if isinstance(form, Equation):
        return _last_value(form.right)
    if isinstance(form, Listing) and len(form.items) == 1:
        return _last_value(form.items[0])
    return form if isinstance(form, Value) else None


def _exact(value: Value | None) -> Fraction | None:
    if value is None or value.tree is None or value.percent or variables(value.tree):
        return None
    try:
        return exact(value.tree)
    except (NotRationalError, NoValueError):
        return None


def _items(form: Form) -> tuple[Fraction, ...] | None:
    if isinstance(form, Equation):
        return _items(form.right)
    items = form.items if isinstance(form, Listing) else (form,)
    numbers = tuple(_exact(_last_value(item)) for item in items)
    known = tuple(number for number in numbers if number is not None)
    return known if len(known) == len(numbers) else None


def _list(text: str) -> tuple[Fraction, ...] | None:
    for form in reversed(read_forms(text)):
        items = _items(form)
        if items is not None:
            return items
    return None


def _relation(text: str) -> str | None:
    plain = re.sub(r"\\(?:text|mathrm|textbf|mathbf|mbox)\s?\{([^{}]*)\}", r"\1", text)
    plain = plain.replace(r"\lt", "<").replace(r"\gt", ">").replace("$", "")
    statement = _RELATION_INSIDE.search(plain)
    if statement is not None:
        return _RELATION_OF.get(statement.group(1))
    words = re.sub(r"[^a-z<>= ]", " ", plain.lower())
    return _RELATION_OF.get(re.sub(r" +", " ", words).strip())
