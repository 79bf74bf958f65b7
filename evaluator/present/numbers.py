"""Numbers as text: the one place where they become it."""

import math
import numbers
from dataclasses import dataclass
from typing import Any

MISSING = "\u2013"
"""What stands where no number is known."""


@dataclass(frozen=True, slots=True)
class Span:
    """A value with its interval, in the units that are shown; the interval may be unknown."""

    value: float
    low: float | None = None
    high: float | None = None

    def parts(self, spec: str) -> tuple[str, str]:
        """Return value and interval as texts; no interval is an empty text.

        Examples
        --------
        >>> Span(1.25, 0.5, 2).parts(".1f")
        ('1.2', '[0.5, 2.0]')
        """
        if self.low is None or self.high is None:
            return format(self.value, spec), ""
        return format(self.value, spec), f"[{self.low:{spec}}, {self.high:{spec}}]"


def absent(value: Any) -> bool:
    """Return whether a value is unknown: None or NaN."""
    return value is None or (isinstance(value, numbers.Real) and math.isnan(value))


def as_text(value: Any, spec: str | None = None) -> str:
    """Return a value of a table as text.

    Parameters
    ----------
    value
        A text, a number, a :class:`Span`, or None or NaN if nothing is known.
    spec
        A format specification. Left out: ``".2f"`` for floats, ``","`` for integers.

    Examples
    --------
    >>> as_text(1234), as_text(0.5), as_text(None), as_text(0.5, ".0%")
    ('1,234', '0.50', '–', '50%')
    """
    if isinstance(value, Span):
        return " ".join(filter(None, value.parts(spec or ".2f")))
    if isinstance(value, str):
        return value
    if absent(value):
        return MISSING
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return str(value)
    return format(value, spec or ("," if isinstance(value, numbers.Integral) else ".2f"))


def percent(fraction: float) -> str:
    """Return a fraction as a percentage: ``"46.4%"``."""
    return f"{100 * fraction:.1f}%"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return ``"1 model"`` or ``"1,234 models"``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
