r"""Spellings of single numbers that the grammar of expressions does not hold.

Text in, text out: mixed numbers (``1 4/5``), repeating decimals (``0.\overline{3}``,
``0.666...``), scientific notation (``6.7e-5``, ``4.5 x 10^6``).
"""

import re
from fractions import Fraction

_MIXED = re.compile(r"(?<![\d./*^({])(\d{1,9}) (\d{1,9})/(\d{1,9})(?![\d.(])", re.ASCII)
_REPEATING = re.compile(
    r"(\d{0,40})\.(\d{0,40})\\(?:overline|bar|dot|overbar) ?(?:\{ ?(\d{1,40}) ?\}|(\d))", re.ASCII
)
_DOTTED = re.compile(
    r"(?<![\d.])(\d{0,40})\.(\d{0,20}?)((?:(\d)\4{2,60})|(?:(\d{2,12})\5{1,20}\d{0,12}))"
    r" ?\\dots ?$",
    re.ASCII,
)
_SCIENTIFIC = re.compile(
    r"(?<![\d.a-zA-Z])(\d+\.\d*(?=[eE])|\d+(?=E)|\d+(?=e[-+]?\d\d)|1(?=e)|\d+(?=e\d))[eE]([-+]?\d{1,6})"
    r"(?![\d.a-zA-Z])",
    re.ASCII,
)
_LETTER_TIMES = re.compile(r"(?<=\d) ?[xX] ?(?=10 ?\^)")


class NotANumeralError(Exception):
    """Two numbers side by side that are not a mixed number."""


def spelled_out(text: str) -> str:
    r"""Rewrite such numerals in the grammar of expressions.

    Raises
    ------
    NotANumeralError
        ``11 7/6`` looks like a mixed number and is not one.

    Examples
    --------
    >>> spelled_out("1 4/5"), spelled_out("4.5 x 10^6")
    ('(\\frac{9}{5})', '4.5*10^6')
    """
    if "." in text:
        text = _REPEATING.sub(_overlined, text)
        if r"\dots" in text:
            text = _DOTTED.sub(_dotted, text)
    if "/" in text:
        text = _MIXED.sub(_mixed, text)
    text = _SCIENTIFIC.sub(r"\1*10^{\2}", text)
    if "x" in text or "X" in text:
        text = _LETTER_TIMES.sub("*", text)
    return text


def _overlined(match: re.Match[str]) -> str:
    return _repeating(match.group(1), match.group(2), match.group(3) or match.group(4))


def _dotted(match: re.Match[str]) -> str:
    """Read ``0.666...`` and ``0.1818...``: a period that is shown at least twice."""
    if match.group(4):
        return _repeating(match.group(1), match.group(2), match.group(4))
    period, shown = match.group(5), match.group(3)
    if not (period * len(shown)).startswith(shown):
        return match.group()
    return _repeating(match.group(1), match.group(2), period)


def _repeating(whole: str, fixed: str, period: str) -> str:
    scale = 10 ** len(fixed)
    value = Fraction(int((whole or "0") + fixed), scale) + Fraction(
        int(period), scale * (10 ** len(period) - 1)
    )
    return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})"


def _mixed(match: re.Match[str]) -> str:
    whole, above, below = (int(part) for part in match.groups())
    if above >= below:
        raise NotANumeralError(match.group())
    return rf"(\frac{{{whole * below + above}}}{{{below}}})"
