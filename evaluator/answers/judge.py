"""How one question is judged: the interface that each answer kind implements."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from data.question import Question
from evaluator.answers.verdict import Verdict

ModelVerdict = Callable[[Question, str], Verdict]
"""Judges an answer in words to a question, by a model."""


class CannotDecideError(Exception):
    """The exact rules do not decide this pair; symbolic equality has to."""


@dataclass(frozen=True, slots=True)
class SlowTools:
    """What a judge may use outside this process.

    Attributes
    ----------
    symbolic_equal
        ``(gold, answer) -> bool`` for two LaTeX expressions. Raises
        `symbolic.SymbolicTimeoutError` or `errors.CheckerError`.
    gym_credit
        ``(reference, answer) -> float``: the credit that a task of Reasoning Gym gives an answer,
        from 0 to 1. Raises as `symbolic_equal` does.
    unsandboxed
        Whether the user has said that programs may run without a sandbox.
    model_judge
        ``(question, answer) -> Verdict`` for answers in words, by a model; None if there is none.
    """

    symbolic_equal: Callable[[str, str], bool]
    gym_credit: Callable[[str, str], float]
    unsandboxed: bool = False
    model_judge: ModelVerdict | None = None


class Judge(Protocol):
    """Judges answers to one question. Prepared once per question, then used for all its answers."""

    def extract(self, response: str) -> str | None:
        """Extract the answer from a response; None if it has none. Pure, linear, never raises."""

    def quick(self, answer: str) -> Verdict | None:
        """Judge an extracted answer by exact rules; None if `slow` is needed. Pure and fast."""

    def slow(self, answer: str, tools: SlowTools) -> Verdict:
        """Judge an extracted answer with other processes."""
