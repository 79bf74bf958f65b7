r"""Units of measurement, and what else stands beside a number without changing it.

A unit is optional in an answer: ``5.4`` answers ``5.4 \text{ cents}``. Another unit is not: of the
same kind it is converted, of another kind it is wrong. Words that are no unit ("apples") are
ignored, unless they change the meaning ("or more").
"""

import re
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: what it measures, its size in that dimension's base unit, and its power."""

    dimension: str
    factor: Fraction
    power: int = 1

    def scale(self) -> Fraction:
        """Size of this unit in base units, power included."""
        return self.factor**self.power


_TABLE = """
length 1        m meter meters metre metres
length 1/100    cm centimeter centimeters centimetre centimetres
length 1/1000   mm millimeter millimeters millimetre millimetres
length 1000     km kilometer kilometers kilometre kilometres kms
length 0.0254   in inch inches
length 0.3048   ft foot feet
length 0.9144   yd yds yard yards
length 1609.344 mi mile miles
time 1          s sec secs second seconds
time 60         min mins minute minutes
time 3600       h hr hrs hour hours
time 86400      day days
time 604800     week weeks wk
month 1         month months
month 12        year years yr yrs
mass 1          g gram grams
mass 1000       kg kilogram kilograms kilos
mass 1/1000     mg milligram milligrams
mass 453.59237  lb lbs pound pounds
mass 28.349523125 oz ounce ounces
volume 1        l L liter liters litre litres
volume 1/1000   ml mL milliliter milliliters millilitre millilitres
volume 3.785411784 gal gallon gallons
money 1         dollar dollars USD usd
money 1/100     cent cents
euro 1          euro euros EUR
angle 1         degree degrees deg degs
radian 1        radian radians rad rads
"""
UNITS: dict[str, Unit] = {
    name: Unit(row.split()[0], Fraction(row.split()[1]))
    for row in _TABLE.strip().splitlines()
    for name in row.split()[2:]
}
_ABBREVIATED = {
    "mph": ("miles", "per", "hour"),
    "kmh": ("km", "per", "h"),
    "kph": ("km", "per", "h"),
}
_POWER_WORDS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3, "cube": 3}
CHANGES_MEANING = frozenset(
    [
        "or",
        "and",
        "not",
        "than",
        "least",
        "most",
        "if",
        "when",
        "between",
        "except",
        "but",
        "more",
        "less",
        "approximately",
        "about",
        "minus",
        "plus",
        "times",
        "over",
        "under",
        "half",
        "twice",
        "dozen",
        "hundred",
        "percent",
        "no",
        "nor",
        "either",
        "only",
        "to",
        "from",
        "wrong",
        "incorrect",
        "unknown",
        "undefined",
    ]
)
_WORDS = re.compile(r"[a-zA-Z]+\.?")
_MAX_WORDS = 5


class NotAUnitError(Exception):
    """The words beside a number are no unit and may change its meaning."""


def read_unit(words: str, power: int = 1) -> Unit | None:
    """Read the words beside a number.

    Returns
    -------
    Unit or None
        None if the words name no unit that is known (a noun, say).

    Raises
    ------
    NotAUnitError
        The words may change what the number means.

    Examples
    --------
    >>> read_unit("square inches").power
    2
    >>> read_unit("apples") is None
    True
    """
    words = words.strip().strip(".").replace("^", " ")
    if not words:
        return None
    names = [word.rstrip(".") for word in _WORDS.findall(words)]
    lowered = [name.lower() for name in names]
    if len(names) > _MAX_WORDS or any(name in CHANGES_MEANING for name in lowered):
        raise NotAUnitError(words)
    names = [part for name in names for part in _ABBREVIATED.get(name.lower(), (name,))]
    lowered = [name.lower() for name in names]
    compound = "/" in words or "per" in lowered or "*" in words
    digits = re.search(r"\d", words)
    if digits is not None:
        if power != 1 or not re.search(r"[a-zA-Z] ?\{?\d\}?$", words):
            raise NotAUnitError(words)
        power = int(digits.group())
    kept = []
    for name, lower in zip(names, lowered, strict=True):
        if lower in _POWER_WORDS:
            power = _POWER_WORDS[lower]
        else:
            kept.append(name)
    if compound:
        parts = [_singular(name) for name in kept if name.lower() != "per"]
        return Unit("/".join(parts), Fraction(1))
    if len(kept) == 1:
        unit = UNITS.get(kept[0]) or UNITS.get(kept[0].lower())
        if unit is not None:
            return Unit(unit.dimension, unit.factor, power)
    return None


def _singular(name: str) -> str:
    unit = UNITS.get(name) or UNITS.get(name.lower())
    return f"{unit.dimension}:{unit.factor}" if unit is not None else name.lower().rstrip("s")
