"""Answers in plain spelling, and when one equals a reference. Exact: no floats.

A plain number is ``-12``, ``+12``, ``7/2``, ``3.50`` or ``1.5e3``. Whoever extracts an answer
from a response takes away everything else (LaTeX, units, thousands separators, Unicode signs).
"""

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_CHARACTERS = 4000
"""Longest text read as a number. Python refuses to convert much longer ones."""

MAX_EXPONENT = 4000

LEAST_DIGITS = 2
"""Digits after the point, and significant digits, that a rounded decimal must at least have."""

_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>\d+)(?:\.(?P<decimals>\d*))?|\.(?P<bare>\d+))"
    r"(?:[eE](?P<exponent>[+-]?\d{1,6}))?",
    re.ASCII,
)
_FRACTION = re.compile(r"([+-]?\d+)\s*/\s*([+-]?\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class PlainNumber:
    """A number as it was written.

    Attributes
    ----------
    value
        Its exact value.
    decimals
        Digits after the point, less the exponent; None for integers and fractions.
    significant
        Digits from the first that is not 0.
    """

    value: Fraction
    decimals: int | None
    significant: int


def read_number(text: str) -> PlainNumber | None:
    """Return the number that a plain text spells, or None if it spells none.

    Examples
    --------
    >>> read_number("3.50")
    PlainNumber(value=Fraction(7, 2), decimals=2, significant=3)
    >>> read_number("3,5") is None
    True
    """
    text = text.strip()
    if len(text) > MAX_CHARACTERS:
        return None
    fraction = _FRACTION.fullmatch(text)
    if fraction is not None:
        over, under = int(fraction[1]), int(fraction[2])
        return None if under == 0 else PlainNumber(Fraction(over, under), None, 0)
    number = _NUMBER.fullmatch(text)
    if number is None:
        return None
    exponent = int(number["exponent"] or 0)
    if abs(exponent) > MAX_EXPONENT:
        return None
    decimals = number["decimals"] or number["bare"] or ""
    digits = (number["whole"] or "") + decimals
    value = Fraction(int(digits)) * Fraction(10) ** (exponent - len(decimals))
    return PlainNumber(
        value=-value if number["sign"] == "-" else value,
        decimals=len(decimals) - exponent if decimals or exponent < 0 else None,
        significant=len(digits.lstrip("0")),
    )


def same_number(reference: str, answer: str) -> bool:
    """Return whether two plain numbers are equal; ``2.0`` is 2, and 84.9 is not 84."""
    right, given = read_number(reference), read_number(answer)
    return right is not None and given is not None and right.value == given.value


def same_rational(reference: str, answer: str) -> bool:
    """Return whether a plain answer equals a reference exactly or to the digits that it gives.

    A decimal with at least two digits after the point and two significant ones is right if it is
    the reference rounded or cut off at its last digit. Everything else must be equal.

    Examples
    --------
    >>> [same_rational("2/3", text) for text in ("4/6", "0.67", "0.66", "0.7", "0.65")]
    [True, True, True, False, False]
    >>> same_rational("1/300", "0.00")
    False
    """
    right, given = read_number(reference), read_number(answer)
    if right is None or given is None:
        return False
    if right.value == given.value:
        return True
    if given.decimals is None or min(given.decimals, given.significant) < LEAST_DIGITS:
        return False
    # The answer in units of its last digit is an integer; so is the reference rounded or cut off.
    unit = Fraction(10) ** given.decimals
    exact, written = right.value * unit, given.value * unit
    return abs(exact - written) <= Fraction(1, 2) or written == int(exact)


def same_list(reference: str, answer: str) -> bool:
    """Return whether two plain lists have equal numbers in the same order.

    Brackets may be left out; numbers are separated by commas, or all of them by white space alone.
    """
    right, given = _read_list(reference), _read_list(answer)
    return right is not None and right == given


def _read_list(text: str) -> list[Fraction] | None:
    text = text.strip()
    if len(text) >= 2 and text[0] + text[-1] in ("[]", "()", "{}"):
        text = text[1:-1]
    parts = text.split(",") if "," in text else text.split()
    numbers = [read_number(part) for part in parts]
    values = [number.value for number in numbers if number is not None]
    return values if values and len(values) == len(parts) else None
