"""The judge of short and open answers: by rule where the words agree, by a model otherwise.

Which model, and what it is asked, is not known here: whoever makes a `Checker` brings it.
"""

import re
import unicodedata

from data.question import Question
from evaluator.answers.boxes import last_boxes
from evaluator.answers.errors import BadReferenceError, CheckerError
from evaluator.answers.judge import SlowTools
from evaluator.answers.verdict import Verdict
from evaluator.answers.visible import visible_text

MAX_CHARACTERS = 4000
"""How many characters are kept of the end of an answer without a box."""

_FONT = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf|it)|mbox) ?\{([^{}]*)\}")
_INK = re.compile(r"[^\w\s%°.+/-]|(?<!\d)[.\-/]|[.](?!\d)")
_ARTICLE = re.compile(r"^(?:the|a|an) ")


class JudgedJudge:
    """Judges answers to one question that has its answer in words."""

    def __init__(self, question: Question) -> None:
        if not question.reference.strip():
            raise BadReferenceError(f"question {question.id}: the reference is empty")
        self._question = question
        self._plain = plain_words(question.reference)

    def extract(self, response: str) -> str | None:
        """Extract what the last box holds, or all of the answer if there is no box."""
        return boxed_or_whole(response)

    def quick(self, answer: str) -> Verdict | None:
        """Accept an answer in the reference's own words."""
        if self._plain and plain_words(answer) == self._plain:
            return Verdict(right=True, answer=answer, reason="right: the reference's words")
        return None

    def slow(self, answer: str, tools: SlowTools) -> Verdict:
        """Ask the model that judges.

        Raises
        ------
        evaluator.answers.CheckerError
            If there is none, or it gives no verdict that can be read.
        """
        if tools.model_judge is None:
            raise CheckerError(
                f"question {self._question.id}: an answer in words needs a model as judge: "
                "`stp optimal grade CAMPAIGN --judge MODEL`, or model_judge of Checker"
            )
        return tools.model_judge(self._question, answer)


def boxed_or_whole(response: str) -> str | None:
    r"""Return what a response gives as its answer: its last box, or all of it without a box.

    Examples
    --------
    >>> boxed_or_whole(r"First \boxed{Rome}, no: \boxed{Paris}.")
    'Paris'
    """
    text = visible_text(response)
    if text is None:
        return None
    boxes = last_boxes(text) if "box" in text else []
    content = boxes[-1].content.strip() if boxes and boxes[-1].closed else ""
    return content or text.strip()[-MAX_CHARACTERS:] or None


def plain_words(text: str) -> str:
    """Return the words of a text for comparing: no case, fonts, punctuation, leading article.

    Examples
    --------
    >>> plain_words("The Battle of Hastings.") == plain_words("battle of  Hastings")
    True
    """
    text = unicodedata.normalize("NFKC", text)
    for _ in range(3):
        text = _FONT.sub(r"\1", text)
    words = " ".join(_INK.sub(" ", text.casefold()).split())
    return _ARTICLE.sub("", words)
