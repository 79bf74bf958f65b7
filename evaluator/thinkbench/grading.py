"""From responses to graded responses: the parsed answer, the verdict, and what was written.

A response that failed (a failure of this program or of a provider) is never graded.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from data.puzzles import get_puzzle
from evaluator.answers import Checker
from evaluator.answers.boxes import last_boxes
from evaluator.answers.visible import visible_text
from evaluator.thinkbench.error_kinds import ErrorKind, error_kind
from evaluator.thinkbench.patterns import Pattern, trace_pattern
from evaluator.thinkbench.questions import TaskQuestion
from stp.asking import Response
from stp.asking.counting import TextCounter, text_counter

TOKENS_PER_WORD: Final = 1.33
"""Tokens of a word where nobody counted any (paper 000, F.5); always marked as an estimate."""

FEWEST_COUNTED: Final = 30
"""Counted responses of a run from which its own tokens per word are believed."""

_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """One response, judged and measured.

    Attributes
    ----------
    id, task, category, fold, size
        Of the question.
    answer
        What was parsed as the answer; None if nothing was.
    right
        The verdict.
    followed
        Whether the answer stands where it was asked for (in a box; for puzzles, whether there is
        one).
    reason
        Why the verdict is as it is.
    tokens
        Tokens generated; an estimate if ``estimated_by``.
    estimated_by
        How the tokens were estimated where nobody counted them: ``"tiktoken ENCODING"``,
        ``"words × FACTOR"``. Empty if they were counted.
    thinking_tokens, answer_tokens
        The two parts; None if unknown.
    words, characters
        Of all that the model wrote, thinking included.
    finish, seconds, tool_calls, parted, ran_on
        As in the response.
    error
        Kind of error of a wrong answer; None for a right one.
    pattern
        Pattern of a long trace; None for a short one.
    """

    id: str
    task: str
    category: str
    fold: int
    size: int
    answer: str | None
    right: bool
    followed: bool
    reason: str
    tokens: int
    estimated_by: str
    thinking_tokens: int | None
    answer_tokens: int | None
    words: int
    characters: int
    finish: str
    seconds: float
    tool_calls: int
    parted: bool
    ran_on: bool | None
    error: ErrorKind | None
    pattern: Pattern | None

    @property
    def estimated(self) -> bool:
        """Whether the tokens are an estimate."""
        return bool(self.estimated_by)


def mean_ratio(tokens: npt.ArrayLike, words: npt.ArrayLike) -> float:
    """Return the mean of the responses' tokens per word (paper 000, Equation 51).

    Parameters
    ----------
    tokens, words
        Counts above 0, shape ``(n,)`` with n of at least 1.

    Examples
    --------
    >>> mean_ratio([3, 100], [1, 100])
    2.0
    """
    return float(np.mean(np.asarray(tokens, np.float64) / np.asarray(words, np.float64)))


def grade_responses(
    items: Sequence[TaskQuestion],
    responses: Mapping[str, Response],
    model: Mapping[str, object] | None = None,
) -> list[Graded]:
    """Grade all responses that there are, in the order of the questions.

    Tokens that nobody counted are estimated (paper 000, F.5): by tiktoken where it has an encoding
    for the model, else by words and the run's own tokens per word (Equation 51), else by words and
    the paper's 1.33.

    Parameters
    ----------
    items, responses
        What was asked, and what came back.
    model
        Who was asked, as its responder describes it.

    Raises
    ------
    evaluator.answers.CheckerError
        If the checker cannot work.
    """
    given = [
        (item, responses[item.id])
        for item in items
        if item.id in responses and responses[item.id].error is None
    ]
    tasks = [(item, response) for item, response in given if item.category != "puzzle"]
    with Checker() as checker:
        verdicts = checker.check_many([(item.question, response.text) for item, response in tasks])
    judged = {
        item.id: (verdict.answer, verdict.right, verdict.reason)
        for (item, _), verdict in zip(tasks, verdicts, strict=True)
    }
    for item, response in given:
        if item.category == "puzzle":
            outcome = get_puzzle(item.task).judge(item.question.reference, response.text)
            reason = "right: it solves the puzzle" if outcome.right else "wrong: no solution"
            judged[item.id] = (outcome.answer, outcome.right, reason)
    estimate = _estimator([response for _, response in given], model or {})
    return [_graded(item, response, *judged[item.id], estimate) for item, response in given]


def _words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def _estimator(responses: Sequence[Response], model: Mapping[str, object]) -> TextCounter:
    """Return what estimates the tokens that nobody counted."""
    # To load an encoding may be a download: only where there is something to estimate.
    if all(response.output_tokens is not None for response in responses):
        return _by_words(TOKENS_PER_WORD)
    if (counter := text_counter(model)) is not None:
        return counter
    counted = [
        (response.output_tokens, words)
        for response in responses
        if response.output_tokens and (words := _words(written_text(response)))
    ]
    if len(counted) < FEWEST_COUNTED:
        return _by_words(TOKENS_PER_WORD)
    return _by_words(mean_ratio(*zip(*counted, strict=True)))


def _by_words(factor: float) -> TextCounter:
    return TextCounter(f"words × {factor:.3g}", lambda text: round(_words(text) * factor))


def _graded(
    item: TaskQuestion,
    response: Response,
    answer: str | None,
    right: bool,
    reason: str,
    estimate: TextCounter,
) -> Graded:
    written = written_text(response)
    known = response.output_tokens
    return Graded(
        id=item.id,
        task=item.task,
        category=item.category,
        fold=item.fold,
        size=item.size,
        answer=answer,
        right=right,
        followed=_boxed(response.text) if item.category != "puzzle" else answer is not None,
        reason=reason,
        tokens=estimate.count(written) if known is None else known,
        estimated_by=estimate.name if known is None else "",
        thinking_tokens=response.thinking_tokens,
        answer_tokens=response.answer_tokens,
        words=_words(written),
        characters=len(written),
        finish=response.finish,
        seconds=response.seconds,
        tool_calls=response.tool_calls,
        parted=response.parted,
        ran_on=response.ran_on,
        error=None if right else error_kind(item, answer, response),
        pattern=trace_pattern(written, cut=response.finish == "length"),
    )


def written_text(response: Response) -> str:
    """Return all that a model wrote in a response: thinking, tool calls, answer."""
    return "\n".join(
        part for part in (response.thinking, response.tool_text, response.text) if part
    )


def _boxed(text: str) -> bool:
    """Whether a text's last box is closed and holds something."""
    visible = visible_text(text) if "box" in text else None
    boxes = last_boxes(visible) if visible else []
    return bool(boxes) and boxes[-1].closed and bool(boxes[-1].content.strip(" .…_?"))
