r"""References that an answer can equal: wrong ones are refused before a model runs.

A benchmark whose references are worked solutions or sentences would give every model nothing but
wrong answers. So each reference must pass two tests: the checker accepts it as an answer to itself,
in the form in which models are asked to answer; and a mathematical one is a value, not a text with
a value somewhere in it, which would equal nothing but its own words.
"""

import re
from collections.abc import Sequence

from data import Question
from data.errors import MisuseError
from data.tasks import task_names
from evaluator.answers import BadReferenceError, Checker, check_reference
from evaluator.answers.forms import Equation, Form, Listing, Opaque, Value, Words
from evaluator.answers.reading import read_forms
from evaluator.answers.trees import Number

_MOST_WORDS = 12
"""Of an answer in words. What has more is a sentence, and nobody answers in just its words."""

_LABEL = re.compile(r"[\w.,/'°%-]+(?::\d[\w:.]*)?(?: [\w.,/'°%-]+(?::\d[\w:.]*)?){0,3}")
"""A date, a time, a name with a number: a few words that stand for themselves."""

_TALK = re.compile(
    r"(?:^|\s)(?:so|thus|hence|therefore|because|since|answers?|ans|solution|we|get|is|are|"
    r"equals?|gives?)(?=\W|$)|\d\s+\([A-Za-z]{3,}[A-Za-z ,-]*\)|"
    r"^[A-Za-z]+:\s+[-+\d$\\]",
    re.IGNORECASE,
)


_PLAIN = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
_LATEX = re.compile(r"\\text(?:bf|it|rm)?\s*\{[^{}]*\}|\\[A-Za-z]+")
_PROSE = re.compile(r"[A-Za-z]{2,}|#|^\s*[A-Za-z]+\s*:")
"""Words, or marks that parts of a text are given: what mathematics alone does not have."""


def check_references(benchmark: str, questions: Sequence[Question]) -> None:
    """Refuse questions whose reference no answer can equal.

    Parameters
    ----------
    benchmark
        Their benchmark's name, for the message.
    questions
        Those that will be asked. References of programs, and of tasks with a verifier of their
        own, are not answers; they must be of their own form.

    Raises
    ------
    data.errors.MisuseError
        Naming the first such question, what is wrong, and how many there are.
    """
    # A number is a number, and a large benchmark has a hundred thousand of them.
    questions = [question for question in questions if not is_plain(question)]
    asked = []
    for question in questions:
        if form := _as_asked(question):
            asked.append((question, form))
            continue
        try:
            check_reference(question)
        except BadReferenceError as error:
            raise BadReferenceError(f"{benchmark}: {error}") from error
    with Checker(workers=1) as checker:
        verdicts = checker.check_many(asked)
    found = [
        (question, why)
        for (question, _), verdict in zip(asked, verdicts, strict=True)
        if (why := _trouble(question) or ("" if verdict.right else _refused(verdict.reason)))
    ]
    if found:
        question, why = found[0]
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        raise MisuseError(
            f"{benchmark}: no answer can equal the reference {question.reference!r:.80} of "
            f"question {question.id!r}: {why}{more}; write the final answer alone, as in '41' or "
            "'\\frac{1}{2}'"
        )


def is_plain(question: Question) -> bool:
    """Return whether a reference is a plain number, with which nothing can be wrong."""
    return question.answer_kind == "math" and bool(_PLAIN.fullmatch(question.reference))


def _as_asked(question: Question) -> str:
    """Return the reference as a model that gives it is asked to; empty if there is no such."""
    if question.answer_kind == "choice":
        return f"Answer: {question.reference}"
    if question.answer_kind in ("math", *task_names()):
        return rf"\boxed{{{question.reference}}}"
    return ""


def _refused(reason: str) -> str:
    return f"the checker itself does not accept it as an answer ({reason.removeprefix('wrong: ')})"


def _trouble(question: Question) -> str:
    """Return why a mathematical reference is not a value; empty if it is one."""
    if question.answer_kind != "math":
        return ""
    text = question.reference.strip()
    if "\n" in text:
        return "it has several lines, as a worked solution has"
    form = read_forms(text)[0]
    if isinstance(form, Words):
        return "it is a sentence" if len(form.words.split()) > _MOST_WORDS else ""
    plain = _LATEX.sub(" ", text)
    # Letters side by side are a product to a parser, and so are words.
    if _TALK.search(plain):
        talks = not (isinstance(form, Value) and isinstance(form.tree, Number))
    else:
        # What the exact rules cannot read may still be mathematics, but not if it talks.
        talks = not (_is_read(form) or _LABEL.fullmatch(text)) and bool(_PROSE.search(plain))
    return "it is a text with a value in it, not a value" if talks else ""


def _is_read(form: Form) -> bool:
    """Return whether something was understood of a form, and of all its parts."""
    if isinstance(form, Equation):
        return _is_read(form.left) and _is_read(form.right)
    if isinstance(form, Listing):
        return all(map(_is_read, form.items))
    if isinstance(form, Value):
        return form.tree is not None
    return not isinstance(form, Opaque)
