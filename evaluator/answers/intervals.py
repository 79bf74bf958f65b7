r"""Sets of numbers: intervals, their unions, set builders, the reals, and inequalities as sets."""

import itertools
import re
from fractions import Fraction

from evaluator.answers.brackets import split_at
from evaluator.answers.forms import (
    Form,
    Interval,
    Listing,
    Opaque,
    Ranges,
    Read,
    Value,
    as_ranges,
)
from evaluator.answers.numbers import sort_key
from evaluator.answers.trees import Name, Number, Operation, Tree, nodes, substituted, variables
from evaluator.answers.values import NotRationalError, NoValueError, exact

FLIPPED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
VARIABLE = re.compile(r"\\?[a-zA-Z]+(?:_\{?\w\}?)?")
_REALS = re.compile(
    r"(?:\\text\{ ?)?(?:all )?(?:real numbers?|reals?)(?: numbers)?\}?", re.IGNORECASE
)
_BUILDER = re.compile(r"\||:|\\text\{ ?such that ?\}")
_MEMBER = re.compile(r"[a-zA-Z](?:_\w)? ?(?:\\in(?![a-zA-Z]) ?|= ?)")
_IN_REALS = re.compile(r"[a-zA-Z](?:_\w)? ?\\in(?![a-zA-Z]) ?\\R ?(?:,|\\text\{ ?and ?\}|$)?")
_PROBES = (Fraction(0), Fraction(1), Fraction(3), Fraction(-2))


def everything() -> Ranges:
    """All real numbers."""
    return Ranges((Interval(None, None, False, False),))


def read_union(text: str, read: Read) -> Form:
    r"""Read ``[0,1) \cup \{3\}``; a single number is an interval that holds nothing else."""
    intervals: list[Interval] = []
    for part in split_at(_MEMBER.sub("", text, count=1), re.compile(r"\\cup(?![a-zA-Z])")):
        form = read(part)
        ranges = as_ranges(form) or _points(form)
        if ranges is None:
            return Opaque(text)
        intervals.extend(ranges.intervals)
    return Ranges(tuple(intervals))


def _points(form: Form) -> Ranges | None:
    if not (isinstance(form, Listing) and form.brackets == "{}" and form.items):
        return None
    values = [item for item in form.items if isinstance(item, Value)]
    if len(values) != len(form.items):
        return None
    return Ranges(tuple(Interval(value, value, True, True) for value in values))


def read_reals(text: str, read: Read) -> Form | None:
    r"""Read ``\R``, and ``\R \setminus \{a, b\}``."""
    text = _MEMBER.sub("", text, count=1).strip() if r"\in" in text or "=" in text else text
    if text == r"\R" or _REALS.fullmatch(text):
        return everything()
    match = re.fullmatch(r"\\R ?(?:\\setminus|-) ?(\\\{.{1,100}\\\})", text)
    if match is None:
        return None
    holes = read(match.group(1))
    if not isinstance(holes, Listing) or not all(isinstance(i, Value) for i in holes.items):
        return Opaque(text)
    return without_points([item for item in holes.items if isinstance(item, Value)])


def read_builder(inside: str, read: Read) -> Form | None:
    r"""Read ``\{x \mid -1 < x < 6\}`` from what is in its braces; None if it is another text."""
    parts = split_at(inside, _BUILDER)
    if len(parts) < 2 or not all(parts):
        return None
    member, condition = parts[0], inside[len(parts[0]) :].strip().lstrip("|:").strip()
    condition = re.sub(r"^\\text\{ ?such that ?\}", "", condition).strip()
    name = re.fullmatch(r"([a-zA-Z])(?: ?\\in(?![a-zA-Z]) ?\\R)?", member)
    if name is None:
        return None
    condition = _IN_REALS.sub("", condition).strip(" ,") or r"\R"
    form = read(condition)
    if isinstance(form, Ranges):
        return form
    return as_ranges(form) or _points(form)


def without_points(points: list[Value]) -> Form:
    """All reals but some."""
    keys = {id(point): sort_key(point.tree) for point in points}
    if any(key is None for key in keys.values()):
        return Opaque()
    ordered: list[Value | None] = [
        None,
        *sorted(points, key=lambda point: keys[id(point)] or 0.0),
        None,
    ]
    return Ranges(
        tuple(Interval(low, high, False, False) for low, high in itertools.pairwise(ordered))
    )


def intersection(first: Interval, second: Interval) -> Form:
    """Two rays that point at each other bound one interval."""
    if first.low is None and second.high is None:
        first, second = second, first
    if first.high is None and second.low is None:
        return Ranges((Interval(first.low, second.high, first.low_closed, second.high_closed),))
    return Opaque()


def ray(bound: Value, sign: str) -> Ranges:
    r"""Give what is above a bound (``>``, ``\ge``), or below it (``<``, ``\le``)."""
    closed = sign in (r"\le", r"\ge")
    if sign in (">", r"\ge"):
        return Ranges((Interval(bound, None, closed, False),))
    return Ranges((Interval(None, bound, False, closed),))


def absolute_bound(sign: str, bound: Value) -> Form | None:
    """Read ``|x| < 3`` as the interval around 0, ``|x| > 3`` as what is outside of it."""
    if bound.tree is None or sign not in FLIPPED:
        return None
    closed = sign in (r"\le", r"\ge")
    below = Value(f"-({bound.text})", Operation("neg", (bound.tree,)))
    if sign in ("<", r"\le"):
        return Ranges((Interval(below, bound, closed, closed),))
    return Ranges((Interval(None, below, False, closed), Interval(bound, None, closed, False)))


def between(low: Value, high: Value, signs: list[str]) -> Form | None:
    r"""Read ``low < x \le high``."""
    brackets = ("[" if signs[0] == r"\le" else "(") + ("]" if signs[1] == r"\le" else ")")
    return as_ranges(Listing((low, high), brackets))


def linear(tree: Tree) -> tuple[str, Fraction, Fraction] | None:
    """Name, factor and constant of ``factor * name + constant``; None if a tree is not so."""
    names = sorted(variables(tree))
    if len(names) != 1 or any(isinstance(node, Name) and node.constant for node in nodes(tree)):
        return None
    try:
        values = [exact(substituted(tree, names[0], Number(probe))) for probe in _PROBES]
    except (NotRationalError, NoValueError):
        return None
    constant, factor = values[0], values[1] - values[0]
    straight = all(
        value == factor * probe + constant for value, probe in zip(values, _PROBES, strict=True)
    )
    return (names[0], factor, constant) if straight and factor else None
