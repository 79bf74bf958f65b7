"""Equal answers get equal numbers, which is all that methods that compare probes see.

Answers to one question are numbered in order of appearance. Two are equal if their text is the
same after white space is normalised, or, for mathematics, if the evaluator's exact rules say that
their values are. Verdicts are not used: whether an answer is right does not matter here.
"""

from data.errors import StpError
from evaluator.answers.judge import CannotDecideError
from evaluator.answers.latex import normalise
from evaluator.answers.math_equality import Reference

NO_ANSWER = -1
# Beyond this many different answers to a question, only equal texts are equal: comparing each with
# all before it would take too long, and such answers are noise.
_MOST_COMPARED = 64


class AnswerNumbers:
    r"""Numbers of the answers to one question.

    Parameters
    ----------
    answer_kind
        As in :class:`data.Question`.

    Examples
    --------
    >>> numbers = AnswerNumbers("math")
    >>> [numbers.number(answer) for answer in ("1/2", "0.5", None, "3", r"\frac12")]
    [0, 0, -1, 1, 0]
    """

    def __init__(self, answer_kind: str) -> None:
        self._mathematics = answer_kind == "math"
        self._number: dict[str, int] = {}
        self._first: list[str] = []
        self._references: list[Reference | None] = []

    @property
    def answers(self) -> tuple[str, ...]:
        """The first answer of every number."""
        return tuple(self._first)

    def number(self, answer: str | None) -> int:
        """Return the number of an answer, -1 for none."""
        if answer is None:
            return NO_ANSWER
        text = " ".join(answer.split())
        key = normalise(text) if self._mathematics else text
        if key not in self._number:
            equal = self._equal(text) if self._mathematics else None
            if equal is None:
                equal = len(self._first)
                self._first.append(text)
                self._references.append(_reference(text) if self._mathematics else None)
            self._number[key] = equal
        return self._number[key]

    def _equal(self, text: str) -> int | None:
        for number, reference in enumerate(self._references[:_MOST_COMPARED]):
            if reference is None:
                continue
            try:
                if reference.equals(text):
                    return number
            except CannotDecideError:
                continue
        return None


def _reference(text: str) -> Reference | None:
    try:
        return Reference(text)
    except (StpError, ValueError):
        return None
