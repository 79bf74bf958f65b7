r"""The answer in a response to a mathematical question.

Text in, text out; nothing is parsed as mathematics here. The last box that stands for itself is
the answer: placeholders (an empty box, a box with dots) do not count, neither does a box that the
model takes back, and neighbouring boxes are parts of one answer. Without a box, see `marked`.

One record::

    response  "I get \boxed{6}. Wait, I dropped a factor; it is \boxed{9}."
    extracted "9"
"""

import itertools
import re

from evaluator.answers.around_boxes import in_its_expression, is_broken, whole_content
from evaluator.answers.boxes import Box, last_boxes
from evaluator.answers.characters import plain_letters, with_plain_fractions
from evaluator.answers.marked import (
    TAIL_CHARACTERS,
    FallbackAnswer,
    labelled_answer,
    marked_answer,
)
from evaluator.answers.retractions import retraction
from evaluator.answers.visible import visible_text

MAX_ANSWER_CHARACTERS = 2000
"""An answer longer than this is not an expression but a response that ran away."""

_PLACEHOLDER = re.compile(
    r"[\s.…_?\\,;:]*(?:\\[lcd]?dots|\\text\{\s*(?:your |the |final )*(?:answer|result)s?(?: here)"
    r"?\s*\}|"
    r"(?:your |the |final )*answer(?: here)?)?[\s.…_?\\]*",
    re.IGNORECASE,
)
_CONNECTOR = re.compile(
    r"(?:[\s$,;&*]|\\[,;:!()\[\] ]|\\q?quad\b|\\\\|\\text\{\s{0,3}(?:and|or|,)\s{0,3}\}|and\b|or\b|"
    r"\b[a-zA-Z](?:_\{?\d\}?)?\s{0,3}=)*"
)
_APPROXIMATION = re.compile(
    r"[\s$]*(?:\\\)|\\\])?[\s,(]*(?:\\approx|\\simeq|≈|~|(?:or |which is |i\.e\. )?"
    r"(?:approximately|about|roughly|around))[\s:]*(?:\\\(|\\\[)?[\s$]*",
    re.IGNORECASE,
)
_RELATION_BETWEEN = re.compile(r"[\s$]*(<|>|≤|≥|≠|\\(?:leq?|geq?|neq?|lt|gt)(?![a-zA-Z])|:)[\s$]*")
_JOINING = re.compile(r"[,;&]|\band\b|\bor\b|\\q?quad\b")
_RETRACTING = re.compile(
    r"\b(?:wait|actually|no|not|wrong|mistake|error|instead|rather|oops|hold on|correct(?:ion|ed|"
    r"ing)?|"
    r"recheck|re-?check|check|hmm|sorry|then|so|thus|therefore|hence|final(?:ly)?)\b",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|instead of|rather than|isn't|isn’t)|≠|\\neq?)[\s$*(]{0,6}(?:\\[(\[])"
    r"?\s{0,3}\Z",
    re.IGNORECASE,
)
_LAST_OF_DENIALS = frozenset("tTrRfFnNqQeE≠")
_MAX_GAP = 160
_PLAIN_TAILS = frozenset(
    [
        closing + end
        for closing in ("", "$", "$$", r"\)", r"\]", "\n\\]", "\n$$")
        for end in ("", ".", "\n", ".\n", "**")
    ]
)
_PLAIN_BEFORE = frozenset("$[(\n")


def extract(response: str, parts: int = 1) -> str | None:
    """Extract the answer from a whole response.

    Parameters
    ----------
    response
        A model's output; thinking between tags is dropped first.
    parts
        How many values the reference lists. Several boxes that are not joined by a connector
        (one per line, say) are read as one answer only if there are as many of them as parts.

    Returns
    -------
    str or None
        The expression as it was written, or None if nothing is marked as an answer.
    """
    text = visible_text(response)
    if text is None:
        return None
    if not text.isascii():
        text = plain_letters(text)
    boxes = last_boxes(text)
    if boxes and not boxes[-1].closed:
        return None  # cut inside the box: \boxed{12 may have become 12 or 123
    if boxes:
        boxes = [box for box in boxes if _stands_for_itself(text, box)]
    if boxes:
        answer = _boxed_answer(text, boxes, parts)
    else:
        answer = marked_answer(with_plain_fractions(text[-TAIL_CHARACTERS:]))
    if answer is None or isinstance(answer, FallbackAnswer):
        return answer
    answer = answer.strip()
    return answer if 0 < len(answer) <= MAX_ANSWER_CHARACTERS else None


def _stands_for_itself(text: str, box: Box) -> bool:
    """Whether a box holds an answer: no placeholder, and not one that the text denies."""
    if not box.content[:1].isdigit() and _PLACEHOLDER.fullmatch(box.content[:80]):
        return False
    before = text[max(0, box.start - 10) : box.start].rstrip(" \n$*([\\")
    if before and before[-1] not in _LAST_OF_DENIALS:
        return True
    return _DENIED_BEFORE.search(text[max(0, box.start - 30) : box.start]) is None


def _boxed_answer(text: str, boxes: list[Box], parts: int) -> str | None:
    tail = text[boxes[-1].end :]
    if len(boxes) == 1 and tail in _PLAIN_TAILS:
        before = text[max(0, boxes[0].start - 2) : boxes[0].start]
        if before[-1:] in _PLAIN_BEFORE and before[0] not in "-−":
            return boxes[0].content  # by far the commonest case: nothing is left outside the box
    if len(tail) > 8:
        labelled = labelled_answer(tail[-1000:], behind_box=True)
        if labelled is not None and re.search(r"\d|\\[a-z]", labelled[0]):
            return labelled[0]
        taken_back, value = retraction(tail)
        if taken_back:
            return value
    if len(boxes) > 1:
        boxes = list(dict.fromkeys([in_its_expression(text, box) for box in boxes]))
    else:
        boxes = [in_its_expression(text, boxes[0])]
    if is_broken(text, boxes[-1]):
        return None
    if len(boxes) == 1:
        return whole_content(text, boxes[0])
    contents = [whole_content(text, box) for box in boxes]
    if _APPROXIMATION.fullmatch(text[boxes[-2].end : boxes[-1].start]):
        # "\boxed{\frac{5}{7}} \approx \boxed{0.714}": the exact value is the answer.
        return contents[-2]
    relation = _RELATION_BETWEEN.fullmatch(text[boxes[-2].end : boxes[-1].start])
    if relation is not None:
        return f"{contents[-2]} {relation.group(1)} {contents[-1]}"
    group = [contents[-1]]
    for index in range(len(boxes) - 1, 0, -1):
        gap = text[boxes[index - 1].end : boxes[index].start]
        if len(gap) > _MAX_GAP or not _CONNECTOR.fullmatch(gap) or not _JOINING.search(gap):
            break
        group.append(contents[index - 1])
    if len(group) == 1 and parts > 1:
        group = _separate_parts(text, boxes, contents, parts)
    distinct = list(dict.fromkeys(reversed(group)))
    return distinct[0] if len(distinct) == 1 else ", ".join(distinct)


def _separate_parts(text: str, boxes: list[Box], contents: list[str], parts: int) -> list[str]:
    """One box per part, each with its own words around it: exactly `parts` different ones."""
    if len(dict.fromkeys(contents)) != parts or len(boxes) != parts:
        return contents[-1:]
    gaps = [text[first.end : second.start] for first, second in itertools.pairwise(boxes)]
    if any(len(gap) > _MAX_GAP or _RETRACTING.search(gap) for gap in gaps):
        return contents[-1:]
    return contents[::-1]
