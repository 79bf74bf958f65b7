"""The judge of mathematical answers."""

from data.question import Question
from evaluator.answers.errors import BadReferenceError
from evaluator.answers.judge import CannotDecideError, SlowTools
from evaluator.answers.languages import DECIMAL_COMMA, asked_in
from evaluator.answers.math_equality import Reference
from evaluator.answers.math_extraction import extract
from evaluator.answers.symbolic import SymbolicTimeoutError
from evaluator.answers.verdict import TIME_LIMIT_REASON, Verdict


class MathJudge:
    """Judges answers to one mathematical question."""

    def __init__(self, question: Question) -> None:
        if not question.reference.strip():
            raise BadReferenceError(f"question {question.id}: the reference is empty")
        self._reference = Reference(
            question.reference,
            question.prompt,
            decimal_comma=(question.language.lower()[:2] or asked_in(question.prompt))
            in DECIMAL_COMMA,
        )

    def extract(self, response: str) -> str | None:
        """Extract the answer: the last box that stands for itself, or a marked one."""
        return extract(response, self._reference.parts)

    def quick(self, answer: str) -> Verdict | None:
        """Judge by exact rules alone."""
        try:
            return _verdict(self._reference.equals(answer), answer)
        except CannotDecideError:
            return None

    def slow(self, answer: str, tools: SlowTools) -> Verdict:
        """Judge with symbolic equality for what the exact rules leave open."""
        try:
            return _verdict(self._reference.equals(answer, tools.symbolic_equal), answer)
        except SymbolicTimeoutError:
            return Verdict(right=False, answer=answer, reason=TIME_LIMIT_REASON)


def _verdict(right: bool, answer: str) -> Verdict:
    reason = "right: equal to the reference" if right else "wrong: differs from the reference"
    return Verdict(right, answer, reason)
