r"""Equations, inequalities and chains of them."""

import itertools
import re
from fractions import Fraction

from evaluator.answers.brackets import Depths
from evaluator.answers.forms import (
    Equation,
    Form,
    Inequality,
    Opaque,
    Ordering,
    Read,
    Value,
)
from evaluator.answers.intervals import (
    FLIPPED,
    VARIABLE,
    absolute_bound,
    between,
    linear,
    ray,
    without_points,
)
from evaluator.answers.single_values import read_value
from evaluator.answers.trees import Number, Operation, Tree, variables

_RELATION = re.compile(r"\\approx|\\le |\\ge |\\ne |\\in(?![a-zA-Z])|\\to(?![a-zA-Z])|[=<>]")
_MAX_RELATIONS = 12
_APPROXIMATED_NAME = re.compile(r"[a-zA-Z](?:_\{?\w\}?)?|[a-zA-Z]\([a-zA-Z]\)")


def read_relation(text: str, read: Read) -> Form | None:
    """Read a text with relations outside of its brackets; None if it has none."""
    if _RELATION.search(text) is None:
        return None
    depths = Depths(text)
    marks = [mark for mark in _RELATION.finditer(text) if depths(mark.start()) == 0]
    if not marks:
        return None
    if len(marks) > _MAX_RELATIONS:
        return Opaque(text)
    bounds = [0, *itertools.chain.from_iterable((m.start(), m.end()) for m in marks), len(text)]
    sides = [text[start:end].strip() for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
    signs = [mark.group().strip() for mark in marks]
    if r"\to" in signs:
        # "x^2 = 9 => x = 3" says its answer last.
        cut = len(signs) - 1 - signs[::-1].index(r"\to")
        return read(text[marks[cut].end() :].strip()) if sides[-1] else Opaque(text)
    if r"\approx" in signs:
        cut = signs.index(r"\approx")
        exactly = text[: marks[cut].start()].strip()
        # "x \approx 1.41" says its value last, "\sqrt{2} \approx 1.41" first.
        if not exactly or _APPROXIMATED_NAME.fullmatch(exactly):
            return read(sides[cut + 1])
        return read(exactly)
    if signs[0] == r"\in" and len(signs) == 1:
        return read(sides[1])
    if all(sign == "=" for sign in signs):
        if not sides[0] or not sides[-1]:
            return read(sides[-1] or sides[0])
        left = read(sides[0]) if sides[0].startswith(("(", r"\{", r"\begin")) else None
        return Equation(left or read_value(sides[0]), read(sides[-1]), f"{sides[0]} = {sides[-1]}")
    return _read_inequality(sides, signs) or Opaque(text)


def _read_inequality(sides: list[str], signs: list[str]) -> Form | None:
    r"""Read ``x > 3``, ``3 < x``, ``1 \le x < 4``, ``x \ne 2`` as intervals, others as they are."""
    values = [value for value in map(read_value, sides) if isinstance(value, Value)]
    if len(values) != len(sides):
        return None
    if len(sides) == 2:
        return _two_sided(sides, signs[0], values)
    if any(sign not in FLIPPED for sign in signs):
        return None
    if signs[0] in (">", r"\ge"):
        sides, values = sides[::-1], values[::-1]
        signs = [FLIPPED[sign] for sign in signs[::-1]]
    if any(sign not in ("<", r"\le") for sign in signs):
        return None
    constant = [value.tree is not None and not variables(value.tree) for value in values]
    if len(sides) == 3 and constant[0] and constant[2] and not constant[1]:
        if VARIABLE.fullmatch(sides[1]):
            return between(values[0], values[2], signs)
        return _solved_between(values, signs)
    return Ordering(tuple(values), tuple(signs))


def _two_sided(sides: list[str], sign: str, values: list[Value]) -> Form | None:
    is_variable = [
        VARIABLE.fullmatch(side) is not None
        and value.tree is not None
        and bool(variables(value.tree))
        for side, value in zip(sides, values, strict=True)
    ]
    if sum(is_variable) == 1:
        if is_variable[1]:
            sign, values = FLIPPED.get(sign, sign), values[::-1]
        bound = values[1]
        if bound.tree is None or not variables(bound.tree):
            if sign == r"\ne":
                return without_points([bound])
            return ray(bound, sign) if sign in FLIPPED else None
    if re.fullmatch(r"\| ?[a-zA-Z] ?\|", sides[0]):
        return absolute_bound(sign, values[1])
    left, right = values[0].tree, values[1].tree
    if sign not in FLIPPED or left is None or right is None:
        return None
    if sign in ("<", r"\le"):
        left, right = right, left
    difference = Operation("-", (left, right))
    return _solved(difference, sign) or Inequality(difference, strict=sign in ("<", ">"))


def _solved(difference: Tree, sign: str) -> Form | None:
    """Solve ``difference > 0`` if it is linear in one unknown."""
    line = linear(difference)
    if line is None:
        return None
    _, factor, constant = line
    above = r"\ge" if sign in (r"\le", r"\ge") else ">"
    return ray(_number(-constant / factor), above if factor > 0 else FLIPPED[above])


def _solved_between(values: list[Value], signs: list[str]) -> Form | None:
    r"""Solve ``1 < 2x + 3 \le 7`` for its unknown."""
    line = None if values[1].tree is None else linear(values[1].tree)
    if line is None:
        return Ordering(tuple(values), tuple(signs))
    _, factor, constant = line
    shifted = [
        Value(
            "",
            Operation(
                "/",
                (Operation("-", (value.tree, Number(constant))), Number(factor)),
            ),
        )
        for value in (values[0], values[2])
        if value.tree is not None
    ]
    if factor < 0:
        shifted, signs = shifted[::-1], signs[::-1]
    return between(shifted[0], shifted[1], signs)


def _number(value: Fraction) -> Value:
    return Value("", Number(value))
