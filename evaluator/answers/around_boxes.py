r"""What belongs to a box but was left outside: a sign, a factor, a per cent sign, a unit."""

import re

from evaluator.answers.boxes import Box
from evaluator.answers.units import is_unit

_SIGN_BEFORE = re.compile(
    r"(?:^[-−]|(?:[=$:(\[,]|\\\(|\\\[|\bis)\s{0,4}[-−](?:\{\}|\\[!, ])?\s?)\Z"
)
_TRAILING_FACTOR = re.compile(
    r"\s{0,2}(?:(?:\\%|%)|\^\s{0,2}\{?\s{0,2}\\circ\s{0,2}\}?|°|\\pi\b|\\[dt]?frac\{[^{}]{1,20}\}\{[^{}]{1,20}\}|\\sqrt\{[^{}]{1,40}\}|\^\{?[\w]{1,6}\}?"
    r"|\\(?:text|mathrm|mbox)\{([^{}]{1,30})\}(?:\^\{?\d\}?)?)"
)
_WORD_BEHIND = re.compile(
    r"(?:\$|\\\)|\\\])?[ \t~]{0,2}(?:\*\*[ ]?)?"
    r"((?:hundred|thousand|million|billion|trillion)\b(?: [a-z]{2,12}\b)?"
    r"|percent\b|per cent\b"
    r"|[a-zA-Zµ]{1,16}(?:/[a-zA-Z]{1,8}| per [a-z]{1,12})?(?:\^\{?[23]\}?|"
    r"[²³])?)(?=([.,;:!)]|\s|$))"
)
_LETTER_BEHIND = re.compile(r"[a-zA-Z](?![a-zA-Z'’])(?:\^\{?\d\}?)?")
_SCALE = re.compile(r"(hundred|thousand|million|billion|trillion)( [a-z]{2,12})?")
_NO_UNIT_HERE = frozenset(
    ["in", "are", "a", "as", "at", "second", "bar", "turn", "stone", "degree", "rev", "revs", "cup"]
)
_ALONE = frozenset("mgshLNJWVK")
"""Units of one letter that a sentence may end in."""


def is_broken(text: str, box: Box) -> bool:
    r"""Whether a number goes on behind its box: ``\boxed{3}.14`` says neither 3 nor 3.14."""
    behind = text[box.end : box.end + 2]
    goes_on = behind[:1].isdigit() or (behind[:1] == "." and behind[1:].isdigit())
    return goes_on and box.content[-1:].isdigit()


def whole_content(text: str, box: Box) -> str:
    r"""Add what belongs to the value: ``-\boxed{5}``, ``\boxed{50}\%``, ``\boxed{12}$ m``."""
    content = box.content
    before = text[max(0, box.start - 12) : box.start]
    if ("-" in before or "−" in before) and _SIGN_BEFORE.search(before):
        content = f"-({content})" if re.search(r"[-+−]", content.strip()[1:]) else f"-{content}"
    behind = text[box.end : box.end + 6].lstrip("$ \t~*")
    if not behind or behind[0] in ".,;:)\n":
        return content
    factor = _TRAILING_FACTOR.match(text, box.end)
    if factor is not None:
        words = factor.group(1)
        belongs = words is None or _is_short_unit(words)
        return content + factor.group() if belongs else content
    if content[-1:].isdigit():
        letter = _LETTER_BEHIND.match(text, box.end)
        return content + (letter.group() if letter is not None else _unit_behind(text, box.end))
    return content


def _unit_behind(text: str, position: int) -> str:
    """Give the unit, the scale or the per cent sign that stands as a word behind a box."""
    match = _WORD_BEHIND.match(text, position)
    if match is None:
        return ""
    words, following = match.group(1), match.group(2)
    scale = _SCALE.fullmatch(words)
    if scale is not None:
        noun = (scale.group(2) or "").strip()
        kept = words if is_unit(noun) else scale.group(1)
        return rf"\text{{ {kept}}}"
    if words in ("percent", "per cent"):
        return r"\%"
    if words in _NO_UNIT_HERE or (len(words) == 1 and (words not in _ALONE or following.isspace())):
        return ""
    return rf"\text{{ {words}}}" if is_unit(words) else ""


def _is_short_unit(words: str) -> bool:
    """Whether words behind a box are its unit or a noun, not the rest of a sentence."""
    return is_unit(words) or len(words.split()) == 1
