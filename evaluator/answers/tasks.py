r"""The judge of generated tasks: a response's answer in plain spelling, judged by the task itself.

A generated task's question has the task's name as its ``answer_kind`` (``"sum"``, also written
``"task:sum"``). Each task brings its own validator, ``data.tasks.get_task(name).right``, which
knows plain spelling alone; this module finds the answer (as in mathematics: the last box that
stands for itself, or a marked answer) and takes LaTeX, units, separators and Unicode away. A new
task is one file in ``data.tasks`` and needs nothing here.
"""

import re
from collections.abc import Iterator
from fractions import Fraction

from data.question import Question
from data.tasks import get_task, task_names
from evaluator.answers.boxes import last_boxes
from evaluator.answers.errors import BadReferenceError
from evaluator.answers.forms import Equation, Form, Listing, Matrix, Value
from evaluator.answers.judge import SlowTools
from evaluator.answers.marked import TAIL_CHARACTERS
from evaluator.answers.math_extraction import extract
from evaluator.answers.reading import read_forms
from evaluator.answers.trees import variables
from evaluator.answers.values import NotRationalError, NoValueError, exact
from evaluator.answers.verdict import Verdict
from evaluator.answers.visible import visible_text

PREFIX = "task:"

_DECIMAL = re.compile(r"[-+]?\d{0,400}\.\d{1,400}", re.ASCII)
_FONT = re.compile(r"\\(?:text(?:bf|it|rm|sf)?|math(?:rm|bf|sf|it)|mbox) ?\{([^{}]*)\}")
_STATEMENT = re.compile(r"(?:is )?[-−]?\d[\d,. ]{0,400}(<|>|==?)[-−\s]{0,4}\d[\d,. ]{0,400}")
_SIGNS = ("<", "=", ">")
_AROUND = " \t\n*_`\"'$.()"
_SIGN = (
    r"(?P<sign><|>|=|\\(?:lt|gt)\b|"
    r"(?:less|smaller|greater|larger|bigger)(?: than)?\b|equals?\b(?: to\b)?)"
)
_ONLY_SIGN = re.compile(r"[*_`\"'$(\s]{0,6}" + _SIGN + r"[*_`\"'$).\s]{0,6}", re.IGNORECASE)
_MARKED_SIGN = re.compile(
    r"(?:(?:\b(?:answer|result|sign|relation|symbol)[*_]{0,3}[ \t]{0,3}(?::|is\b|=>)"
    r"[ \t]{0,3}(?:is\b|:)?|^####)[ \t]{0,4}|^[#*_ \t]{1,8}(?:final )?answer[*_: \t]{0,6}\n\s{0,6})"
    r"[*_`\"'$( \t]{0,6}" + _SIGN + r"(?![<>=\w])",
    re.IGNORECASE | re.MULTILINE,
)
_ARTICLES = re.compile(r"^(?:it |they |the first(?: number)? )?(?:is|are) |^the (?=same)")


class TaskJudge:
    """Judges answers to one question of a generated task."""

    def __init__(self, question: Question) -> None:
        if not question.reference.strip():
            raise BadReferenceError(f"question {question.id}: the reference is empty")
        self._right = get_task(question.answer_kind.removeprefix(PREFIX)).right
        self._reference = question.reference

    def extract(self, response: str) -> str | None:
        """Extract the answer as in mathematics; a sign outside a box is not an expression."""
        answer = extract(response)
        if self._reference in _SIGNS:
            sign = _marked_sign(response)
            return answer if sign is None else sign
        return answer

    def quick(self, answer: str) -> Verdict | None:
        """Judge by the task's own validator; one of the answer's readings has to be right."""
        right = any(self._right(self._reference, plain) for plain in plain_spellings(answer))
        reason = "right: by the task's rule" if right else "wrong: differs from the reference"
        return Verdict(right, answer, reason)

    def slow(self, answer: str, tools: SlowTools) -> Verdict:
        """Never needed: validators are exact."""
        verdict = self.quick(answer)
        assert verdict is not None
        return verdict


def _marked_sign(response: str) -> str | None:
    r"""Return the sign or the words that a response marks as its answer after its last box.

    Examples
    --------
    >>> _marked_sign("At first \\boxed{>}. Final answer: <")
    '<'
    >>> _marked_sign("Final answer: <, that is \\boxed{<}") is None
    True
    """
    text = visible_text(response)
    if text is None:
        return None
    boxes = last_boxes(text) if "box" in text else []
    tail = text[boxes[-1].end :] if boxes else text
    tail = tail[-TAIL_CHARACTERS:]
    if not boxes and _ONLY_SIGN.fullmatch(tail.strip()[:40]):
        return tail.strip(_AROUND)
    marked = None
    for marked in _MARKED_SIGN.finditer(tail):  # noqa: B007 (the last match is wanted)
        pass
    return None if marked is None else marked["sign"]


def is_task(answer_kind: str) -> bool:
    """Whether an answer kind is the name of a generated task."""
    return answer_kind.removeprefix(PREFIX) in task_names()


def plain_spellings(answer: str) -> Iterator[str]:
    r"""Yield what an answer may mean, in the plain spelling that tasks judge.

    Examples
    --------
    >>> list(plain_spellings(r"\dfrac{7}{2}"))[0]
    '7/2'
    >>> list(plain_spellings(r"1,200"))[:2]
    ['1200', '[1, 200]']
    """
    for form in read_forms(answer, as_reference=True):
        plain = _plain(form)
        if plain is not None:
            yield plain
    yield _words(answer)


def _plain(form: Form) -> str | None:
    if isinstance(form, Equation):
        return _plain(form.right)
    if isinstance(form, Value):
        return _plain_number(form)
    if isinstance(form, Listing):
        items = [_plain(item) for item in form.items]
        known = [item for item in items if item is not None]
        if len(known) < len(items):
            return None
        return known[0] if len(known) == 1 else f"[{', '.join(known)}]"
    if isinstance(form, Matrix) and len(form.rows) == 1:
        return _plain(Listing(form.rows[0]))
    return None


def _plain_number(value: Value) -> str | None:
    """Spell one number: a decimal keeps its digits, anything else becomes a fraction."""
    if value.tree is None or value.percent or value.base is not None or variables(value.tree):
        return None
    text = value.text.replace(" ", "")
    if _DECIMAL.fullmatch(text):
        return text
    try:
        return str(Fraction(exact(value.tree)))
    except (NotRationalError, NoValueError):
        return None


def _words(answer: str) -> str:
    r"""Take the words or the sign out of an answer: ``\text{less than}``, ``3 < 5``, ``\lt``."""
    plain = answer
    for _ in range(3):
        plain = _FONT.sub(r"\1", plain)
    plain = re.sub(r"\\lt(?![a-z])", "<", re.sub(r"\\gt(?![a-z])", ">", plain))
    plain = plain.replace("$", "").replace("＜", "<").replace("＞", ">").replace("＝", "=")
    plain = " ".join(plain.lower().split()).strip(" .\"'`*{}\\")
    statement = _STATEMENT.fullmatch(plain)
    if statement is not None:
        return statement.group(1)
    return _ARTICLES.sub("", plain)
