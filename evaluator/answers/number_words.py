"""Numbers written as English words."""

import re
from fractions import Fraction

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL = {name: value for value, name in enumerate(_UNITS)} | {
    name: 10 * value for value, name in enumerate(_TENS, start=2)
}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4,
          "fourths": 4, "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8,
          "tenth": 10, "tenths": 10}  # fmt: skip
_MAX_CHARACTERS = 120
_WORD = re.compile(r"[a-z]+")


def number_from_words(text: str) -> Fraction | None:
    """Read a number in words; None if the text is anything else.

    Examples
    --------
    >>> number_from_words("minus one hundred and twenty-three")
    Fraction(-123, 1)
    >>> number_from_words("three quarters")
    Fraction(3, 4)
    >>> number_from_words("two apples") is None
    True
    """
    if len(text) > _MAX_CHARACTERS or not re.fullmatch(r"[a-zA-Z \-,]+", text):
        return None
    names = _WORD.findall(text.lower())
    sign = 1
    if names and names[0] in ("minus", "negative"):
        sign, names = -1, names[1:]
    if not names:
        return None
    if names[-1] in _PARTS and len(names) > 1:
        above = 1 if names[:-1] in (["a"], ["one"]) else _whole(names[:-1])
        return None if above is None else Fraction(sign * above, _PARTS[names[-1]])
    whole = _whole(names)
    return None if whole is None else Fraction(sign * whole)


def _whole(names: list[str]) -> int | None:
    total = current = 0
    previous = 10**18
    seen = False
    for name in names:
        if name == "and" and seen:
            continue
        if name in _SMALL:
            value = _SMALL[name]
            # "twenty five" is one number, "five twenty" is two.
            if seen and not (previous >= 100 or (20 <= previous < 100 and 0 < value < 10)):
                return None
            current, previous = current + value, value
        elif name == "hundred" and 0 < current < 100:
            current, previous = current * 100, 100
        elif name in _LARGE and current > 0:
            total, current, previous = total + current * _LARGE[name], 0, _LARGE[name]
        else:
            return None
        seen = True
    return total + current if seen else None
