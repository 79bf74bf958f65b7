r"""Units of measurement, and what else stands beside a number without changing it.

A unit is optional in an answer: ``5.4`` answers ``5.4 \text{ cents}``. Another unit is not: of the
same kind it is converted, of another kind it is wrong. Words that are not units ("apples") are
ignored, unless they change the meaning ("or more"). Sizes and kinds are those of the library pint,
which is asked only when two units differ.
"""

import functools
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evaluator.answers.unit_table import (
    BESIDE_UNITS,
    METRIC,
    NO_UNITS,
    OTHERS,
    OWN_DEFINITIONS,
    PREFIXES,
    SHORT_FORMS,
    WORDS_OF_POWERS,
)


@dataclass(frozen=True, slots=True)
class MeasureUnit:
    """A product of powers of units: names of the library and exponents, sorted by name."""

    parts: tuple[tuple[str, int], ...]

    @staticmethod
    def of(name: str) -> "MeasureUnit":
        """One unit of the library by its name."""
        return MeasureUnit(((name, 1),))


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a value in one unit becomes one in another: ``value * factor + offset``."""

    factor: Fraction
    offset: Fraction = Fraction(0)


DEGREE = MeasureUnit.of("angle_degree")
_TEMPERATURES = (MeasureUnit.of("degree_Celsius"), MeasureUnit.of("degree_Fahrenheit"))
CHANGES_MEANING = frozenset(
    [
        "or", "and", "not", "than", "least", "most", "if", "when", "between", "except", "but",
        "more", "less", "approximately", "about", "minus", "plus", "times", "over", "under",
        "half", "twice", "dozen", "hundred", "percent", "no", "nor", "either", "only", "to",
        "from", "wrong", "incorrect", "unknown", "undefined",
    ]
)  # fmt: skip
_TOKEN = re.compile(r"([a-zA-ZµΩÅ]+(?:-hours?)?\.?)|(\^? ?\{? ?-?\d ?\}?)|([/*()])|\s+")
_MAX_WORDS = 6
_MAX_POWER = 9


class NotAUnitError(Exception):
    """The words beside a number are not a unit and may change its meaning."""


def read_unit(words: str, power: int = 1) -> MeasureUnit | None:
    """Read the words beside a number.

    Parameters
    ----------
    words
        What stands after the number: ``square inches``, ``km/h``, ``kg m^2``, ``apples``.
    power
        An exponent that was written outside of them; it belongs to the last unit.

    Returns
    -------
    MeasureUnit or None
        None if the words name no unit that is known (a noun, say).

    Raises
    ------
    NotAUnitError
        The words may change what the number means.

    Examples
    --------
    >>> read_unit("square inches").parts
    (('inch', 2),)
    >>> read_unit("apples") is None
    True
    """
    words = words.strip()
    names = re.findall(r"[a-zA-Z]+", words)
    if len(names) > _MAX_WORDS or any(name.lower() in CHANGES_MEANING for name in names):
        raise NotAUnitError(words)
    if not names:
        if words.strip(" .,"):
            raise NotAUnitError(words)
        return None
    powers = _powers(words, power)
    if powers is None:
        if re.search(r"\d", words):
            raise NotAUnitError(words)
        return None
    parts = tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))
    return MeasureUnit(parts) if parts else None


def is_unit(words: str) -> bool:
    """Whether words consist of nothing but units."""
    try:
        return read_unit(words) is not None
    except NotAUnitError:
        return False


def _powers(words: str, last_power: int) -> dict[str, int] | None:
    """Add up the exponents of the units that words name; None if one of them is not a unit."""
    powers: dict[str, int] = {}
    sign, waiting, previous = 1, 1, None
    tokens = _tokens(words)
    if tokens is None:
        return None
    for token in tokens:
        lowered = token.lower().rstrip(".")
        if token == "/" or lowered == "per":
            sign, previous = -1, None
        elif token == "*":
            previous = None
        elif token in "()" or lowered in BESIDE_UNITS:
            continue
        elif token[-1].isdigit():
            if previous is None or abs(int(token)) > _MAX_POWER:
                return None
            for name, exponent, direction in previous:
                powers[name] += direction * exponent * (int(token) - 1)
        elif lowered in WORDS_OF_POWERS and previous is not None and lowered.endswith("d"):
            for name, exponent, direction in previous:
                powers[name] += direction * exponent * (WORDS_OF_POWERS[lowered] - 1)
        elif lowered in WORDS_OF_POWERS:
            waiting = WORDS_OF_POWERS[lowered]
        else:
            known = lookup(token)
            if known is None:
                return None
            previous = [(name, exponent * waiting, sign) for name, exponent in known]
            for name, exponent, direction in previous:
                powers[name] = powers.get(name, 0) + direction * exponent
            waiting = 1
    for name, exponent, direction in previous or ():
        powers[name] += direction * exponent * (last_power - 1)
    return powers


def _tokens(words: str) -> list[str] | None:
    tokens = []
    position = 0
    while position < len(words):
        token = _TOKEN.match(words, position)
        if token is None:
            return None
        position = token.end()
        text = token.group().strip("^ {}")
        if text:
            tokens.append(text)
    return tokens


@functools.lru_cache(maxsize=4096)
def lookup(spelling: str) -> tuple[tuple[str, int], ...] | None:
    """Find what a spelling stands for: names of the library with exponents; None if unknown."""
    spelling = spelling.rstrip(".")
    if spelling in NO_UNITS:
        return None
    table = _spellings()
    if spelling.lower() in SHORT_FORMS:
        above, _, below = SHORT_FORMS[spelling.lower()].partition("/")
        name, _, exponent = above.partition("^")
        found = [(name, int(exponent or 1))] if name != "1" else []
        return tuple(found + ([(below, -1)] if below else []))
    name_or_none = table.get(spelling)
    if name_or_none is None and len(spelling) > 1:
        name_or_none = table.get(spelling.lower())
    return None if name_or_none is None else ((name_or_none, 1),)


@functools.cache
def _spellings() -> dict[str, str]:
    """All spellings of single units with the library's names for them."""
    prefixes = [pair.split() for pair in PREFIXES.replace("\n", " ").split(",")]
    table: dict[str, str] = {}
    for row in METRIC.strip().splitlines():
        unit, symbols, *names = row.split()
        for prefix, sign in prefixes:
            signs = (sign, "u", "μ") if prefix == "micro" else (sign,)
            for symbol in symbols.split(","):
                table.update({one + symbol: prefix + unit for one in signs})
            table.update({prefix + name: prefix + unit for name in names})
        table.update(dict.fromkeys([*symbols.split(","), *names], unit))
    for row in OTHERS.strip().splitlines():
        unit, *names = row.split()
        table.update(dict.fromkeys(names, unit))
    return table


def conversion(unit: MeasureUnit, other: MeasureUnit) -> Conversion | None:
    """How values in one unit become values in another; None if they measure different things.

    Examples
    --------
    >>> conversion(read_unit("km/h"), read_unit("m/s")).factor
    Fraction(5, 18)
    >>> conversion(read_unit("kJ"), read_unit("W")) is None
    True
    """
    if unit == other:
        return Conversion(Fraction(1))
    if {unit, other} & set(_TEMPERATURES) and DEGREE in (unit, other):
        return Conversion(Fraction(1))  # "31 degrees" of a temperature
    return _library_conversion(unit, other)


@functools.lru_cache(maxsize=4096)
def _library_conversion(unit: MeasureUnit, other: MeasureUnit) -> Conversion | None:
    registry = _registry()
    first, second = _library_unit(unit), _library_unit(other)
    if first.dimensionality != second.dimensionality:
        return None
    zero = registry.Quantity(Fraction(0), first).to(second).magnitude
    one = registry.Quantity(Fraction(1), first).to(second).magnitude
    return Conversion(Fraction(one) - Fraction(zero), Fraction(zero))


def _library_unit(unit: MeasureUnit) -> Any:
    registry = _registry()
    product = registry.Unit("")
    for name, exponent in unit.parts:
        product = product * registry.Unit(name) ** exponent
    return product


@functools.cache
def _registry() -> Any:
    # Imported late: most answers have no unit, and the library takes a second to read its table.
    import pint

    registry: Any = pint.UnitRegistry(non_int_type=Fraction, autoconvert_offset_to_baseunit=True)
    for definition in OWN_DEFINITIONS:
        registry.define(definition)
    return registry
