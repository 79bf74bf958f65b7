r"""What belongs to a box but was left outside: a sign, a factor, a per cent sign, a unit."""

import re

from evaluator.answers.boxes import Box, matching_brace
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
_NUMBER_GOES_ON = re.compile(r"\d|\.\d|(?:\{,\}|,|\\[,!])\d{3}(?!\d)")
_NUMBER_BEFORE = re.compile(r"(?<![a-zA-Z_^\d])\d{1,9}\Z|(?:[=$(]|\bis) ?[-−]?\d{1,9}\.\Z")
_REACH = 160
_STARTS_OF_FORMULAS = frozenset(["", *"$[(\n"])
_IN_NUMBERS = frozenset("0123456789.,{\\")
_ENDS_IN_NUMBER = re.compile(r"\d[.,]?\s{0,4}\Z")
_GOES_ON = frozenset("}+-−*/!^\\ ")
_FORMULA_START = re.compile(r"\$|\\[(\[]|\n|(?<![a-zA-Z\\])[a-zA-Z]{2,}(?![a-zA-Z{(\[]) ?:? ?|&")
_FORMULA_END = re.compile(r"\$|\\[)\]]|\n|\\\\|[.,;:](?!\d)| (?=[a-zA-Z]{2})")
_CONSTRUCT = re.compile(
    r"\\[dtc]?(?:frac|binom)\s?\{|\\sqrt\s?(?:\[\d{1,3}\]\s?)?\{|[\w)}\]]\s?\^\s?\{"
    r"|\\(?:ln|log|sin|cos|tan|exp)\s?(?:_\{?\w\}?)?\s?\{"
)
_OPERATOR_BEFORE = re.compile(
    r"(?:[\w})]\s?[-−+*/]|\\(?:cdot|times|div|pm|mp|ln|log|sin|cos|tan|exp|sqrt)|\^)\s?\Z"
)
_OPERATOR_BEHIND = re.compile(r"\s?(?:[-−+*/]|\\(?:cdot|times|div)(?![a-z]))\s?[\w\\({]|!\s?\Z")
_RELATION = re.compile(r"=|<|>|\\(?:leq?|geq?|neq?|approx|equiv|to|Rightarrow|implies)(?![a-zA-Z])")
_LETTER = re.compile(r"(?<![a-zA-Z\\])[a-zA-Z]")
_PROSE = re.compile(r"(?<![a-zA-Z\\])[a-zA-Z]{2,} |\\text|[?:]")
_BOX_COMMAND = re.compile(r"\\(?:boxed|fbox)\s{0,4}\{")
_LETTER_BEHIND = re.compile(r"[a-zA-Z](?![a-zA-Z'’])(?:\^\{?\d\}?)?")
_SCALE = re.compile(r"(hundred|thousand|million|billion|trillion)( [a-z]{2,12})?")
_NO_UNIT_HERE = frozenset(
    ["in", "are", "a", "as", "at", "second", "bar", "turn", "stone", "degree", "rev", "revs", "cup"]
)
_ALONE = frozenset("mgshLNJWVK")
"""Units of one letter that a sentence may end in."""


def is_broken(text: str, box: Box) -> bool:
    r"""Whether a number continues outside its box: ``\boxed{3}.14`` says neither 3 nor 3.14."""
    content = box.content
    if text[box.end : box.end + 1] in _IN_NUMBERS and _NUMBER_GOES_ON.match(text, box.end):
        return _ENDS_IN_NUMBER.search(content[-9:]) is not None
    if text[box.start - 1 : box.start] not in _IN_NUMBERS or not content[:1].isdigit():
        return False
    return _NUMBER_BEFORE.search(text[max(0, box.start - 12) : box.start]) is not None


def in_its_expression(text: str, box: Box) -> Box:
    r"""Widen a box to the expression that it is only a part of: ``\frac{\boxed{3}}{4}`` is 3/4.

    A blank that is filled in an equation of numbers (``2 + \boxed{3} = 5``) stays what it is.
    """
    if text[box.start - 1 : box.start] in _STARTS_OF_FORMULAS:
        following = text[box.end : box.end + 2]
        if following[:1] not in _GOES_ON or following in (r"\)", r"\]"):
            return box  # by far the commonest case
    left = _FORMULA_START.split(text[max(0, box.start - _REACH) : box.start])[-1]
    behind = _FORMULA_END.search(text, box.end, box.end + _REACH)
    right = text[box.end : box.end + _REACH if behind is None else behind.start()]
    opened = left.count("{") - left.count("}")
    is_argument = opened > 0 and _CONSTRUCT.search(left) is not None
    delimited = behind is not None and behind.group().strip() in ("$", r"\)", r"\]")
    is_term = (
        opened == 0
        and delimited
        and (_OPERATOR_BEFORE.search(left) is not None or _OPERATOR_BEHIND.match(right) is not None)
    )
    if not (is_argument or is_term) or _RELATION.search(right):
        return box
    sides = _RELATION.split(left)
    if len(sides) > 1 and not _LETTER.search(sides[-2]):
        return box
    part = sides[-1].lstrip()
    start = box.start - len(part)
    end = box.end + len(right.rstrip(" .,;*"))
    whole = text[start:end]
    if _PROSE.search(whole) or not _is_balanced(whole):
        return box
    return Box(start, end, _BOX_COMMAND.sub("{", whole))


def _is_balanced(text: str) -> bool:
    return matching_brace("{" + text + "}", 0) == len(text) + 1


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
    """Give the unit, the scale or the per cent sign that stands as a word after a box."""
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
    """Whether words after a box are its unit or a noun, not the rest of a sentence."""
    return is_unit(words) or len(words.split()) == 1
