r"""Boxes in a response: where each ``\boxed{...}`` starts and ends, in linear time.

Text only; what a box's content means is decided elsewhere.
"""

import re
from typing import NamedTuple

_BEFORE_BOX = ("\\", r"\f", r"\frame")
_MAX_MENTIONS = 4096
_MAX_CONTENT = 20_000
"""A box with more in it is taken for one that is never closed."""
MAX_BOXES = 64
"""Boxes looked at, from the end. A response with more of them is a loop, not an answer."""

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_OPENING = re.compile(
    r"\\(?:boxed|fbox|framebox)\s{0,4}(?=\{)|\\boxed(?:\s{1,4}|(?=\d))(?=[\w\\-])"
)
_BARE_CONTENT = re.compile(r"\d[\d.,]{0,60}|[^\s$]{1,60}")
_MATH_END = re.compile(r"\$|\\\]|\\\)|\n\s*\n|\\end\{")


class Box(NamedTuple):
    """One box: ``text[start:end]`` is the whole of it, `content` what it holds.

    `closed` is False if the brace is never closed: the response was cut inside the box.
    """

    start: int
    end: int
    content: str
    closed: bool = True


def matching_brace(text: str, opening: int, end: int | None = None) -> int:
    r"""Index of the brace that closes the one at `opening`; -1 if there is none before `end`.

    Escaped braces (``\{``) do not count.
    """
    depth = 0
    for token in _BRACE.finditer(text, opening, len(text) if end is None else end):
        character = token.group()
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return token.start()
    return -1


def first_box_end(text: str) -> int:
    r"""Index after the first ``\boxed{...}`` that is closed; -1 if none is.

    >>> first_box_end(r"It is \boxed{\frac{1}{2}}, or \boxed{0.5}.")
    25
    """
    start = text.find("\\boxed{")
    while start >= 0:
        closing = matching_brace(text, start + len("\\boxed"))
        if closing >= 0:
            return closing + 1
        start = text.find("\\boxed{", start + 1)
    return -1


def last_boxes(text: str) -> list[Box]:
    """Boxes of a text in their order, at most the last `MAX_BOXES` of them.

    A box inside a box is reported, the outer one is not. A brace that is never closed is closed
    at the end of its formula, if that end is there (a model forgot it); otherwise the box is
    reported as not closed.
    """
    first = text.find("box")
    if first < 0:
        return []
    if text.startswith("\\boxed{", first - 1) and text.rfind("box") == first:
        # By far the commonest case: one box, and nothing but a plain value in it.
        closing = text.find("}", first)
        content = text[first + 6 : closing]
        if closing >= 0 and "{" not in content and "\\" not in content:
            return [Box(first - 1, closing + 1, content)]
    starts: list[int] = []
    position = len(text)
    for _ in range(_MAX_MENTIONS):
        position = text.rfind("box", 0, position)
        if position < 0 or len(starts) >= MAX_BOXES:
            break
        for prefix in _BEFORE_BOX:
            if text.endswith(prefix, 0, position):
                starts.append(position - len(prefix))
                break
    boxes: list[Box] = []
    inner_start = len(text)
    for start in starts:
        box = _read_box(text, start, inner_start)
        inner_start = start
        if box is not None:
            boxes.append(box)
    boxes.reverse()
    return boxes


def _read_box(text: str, start: int, end: int) -> Box | None:
    """Read the box at `start`, looking no further than `end`, the start of the next box.

    None if the next box is inside this one. Looking no further keeps all boxes together linear.
    """
    opening = _OPENING.match(text, start)
    if opening is None:
        return None
    if text[opening.end()] != "{":
        bare = _BARE_CONTENT.match(text, opening.end())
        return None if bare is None else Box(start, bare.end(), bare.group())
    limit = min(end, opening.end() + _MAX_CONTENT)
    closing = matching_brace(text, opening.end(), limit)
    if closing >= 0:
        return Box(start, closing + 1, text[opening.end() + 1 : closing])
    end_of_text, end = end == len(text), limit
    formula_end = _MATH_END.search(text, opening.end(), end)
    if formula_end is not None:
        return Box(start, formula_end.start(), text[opening.end() + 1 : formula_end.start()])
    if end_of_text:
        return Box(start, len(text), text[opening.end() + 1 :], closed=False)
    return None
