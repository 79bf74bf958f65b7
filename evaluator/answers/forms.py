"""Kinds of things that an answer can be: value, list, set, intervals, matrix, equation, words."""

from collections.abc import Callable
from dataclasses import dataclass, field

from evaluator.answers.trees import Tree
from evaluator.answers.units import MeasureUnit


@dataclass(frozen=True, slots=True)
class Value:
    """One value with what stands beside it.

    Attributes
    ----------
    text
        The value's text without unit, per cent sign and base.
    tree
        Its expression; None if the parser does not know it.
    unit, percent, base
        What stood beside it. `base` is the base of a numeral such as ``52_8``.
    """

    text: str
    tree: Tree | None
    unit: MeasureUnit | None = None
    percent: bool = False
    base: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """Several values with the brackets around them: ``""``, ``()``, ``[)``, ``{}``, ``<>``."""

    items: tuple["Form", ...]
    brackets: str = ""

    @property
    def ordered(self) -> bool:
        """Whether the order of the values matters."""
        return self.brackets not in ("", "{}")


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval; an end that is None is infinite."""

    low: "Value | None"
    high: "Value | None"
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, slots=True)
class Ranges:
    """A union of intervals."""

    intervals: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix or a vector written as one, row by row; `text` is how it was written."""

    rows: tuple[tuple["Form", ...], ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Equation:
    """An equation; a chain ``a = b = c`` keeps its ends."""

    left: "Form"
    right: "Form"
    text: str


@dataclass(frozen=True, slots=True)
class Inequality:
    """An inequality that is not an interval: `difference` is greater than 0, or at least 0."""

    difference: Tree
    strict: bool


@dataclass(frozen=True, slots=True)
class Ordering:
    r"""Terms in rising order (``f(2) < f(1) \le f(4)``), with the signs between them."""

    terms: tuple["Form", ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """A name, a direction, a letter: compared as text. Lower case, without punctuation."""

    words: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that these rules cannot read; symbolic equality may."""

    text: str = field(default="")


Form = Value | Listing | Ranges | Matrix | Equation | Inequality | Ordering | Words | Opaque
Read = Callable[[str], Form]
"""Reads a part of a text; the readers of brackets, relations and matrices are given one."""


def is_infinite(text: str) -> bool:
    """Whether a text is infinity, of either sign."""
    return text.replace(" ", "").lstrip("+-") in (
        r"\infty",
        "infinity",
        "inf",
        "oo",
        "Infinity",
        "Inf",
    )


def as_ranges(form: Form) -> Ranges | None:
    """Read a bracketed pair as an interval; None if the form cannot be one."""
    if isinstance(form, Ranges):
        return form
    if not (
        isinstance(form, Listing)
        and len(form.items) == 2
        and form.brackets in ("()", "[]", "[)", "(]")
    ):
        return None
    low, high = form.items
    if not (isinstance(low, Value) and isinstance(high, Value)):
        return None
    return Ranges(
        (
            Interval(
                None if is_infinite(low.text) else low,
                None if is_infinite(high.text) else high,
                form.brackets[0] == "[" and not is_infinite(low.text),
                form.brackets[1] == "]" and not is_infinite(high.text),
            ),
        )
    )
