r"""Values of expression trees: exact where they are rational, else to fifty digits.

Everything is bounded: a power that would not fit is `TooLargeError`, never a hang.
"""

import functools
import math
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from evaluator.answers.trees import Name, Number, Operation, Tree, remembered

EXACT_BITS = 12_000
"""Rational numbers with more bits are not computed exactly. Python prints no longer ones either."""
DIGITS = 60
SAMPLE_POINTS = 5
EQUAL_RELATIVE = 30
"""Two inexact values are equal if they agree to this many digits."""
_MAX_LOG2 = 1e13
_MAX_FACTORIAL = 1_000
_MAX_ROOT_DEGREE = 99

Inexact = Any
"""An mpmath number (mpf or mpc): the library has no types."""


class NoValueError(Exception):
    """The expression has no value here: a division by zero, infinity, a domain error."""


class TooLargeError(NoValueError):
    """The value is too large to be computed; it is certainly greater than 10^1000."""


class NotRationalError(Exception):
    """The value is not known to be rational."""


_precision_lock = threading.Lock()


@functools.cache
def _context() -> Any:
    # A context of our own, so that nobody's precision is changed; imported late, because plain
    # numbers need none of it.
    from mpmath.ctx_mp import MPContext  # type: ignore[import-untyped]

    context = MPContext()
    context.dps = DIGITS
    return context


def exact(tree: Tree) -> Fraction:
    """Value of a tree without variables as a fraction.

    Raises
    ------
    NotRationalError
        It is not known to be rational.
    NoValueError
        It has no value.
    """
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        raise NotRationalError
    if tree.operator == "mod":
        remainder = _remainder_or_none(tree)
        if remainder is None:
            raise NotRationalError
        return remainder
    rule = _EXACT_RULES.get(tree.operator)
    if rule is None:
        raise NotRationalError
    value = rule(*[exact(argument) for argument in tree.arguments])
    if value.numerator.bit_length() + value.denominator.bit_length() > EXACT_BITS:
        raise NotRationalError
    return value


def inexact(tree: Tree, assignment: Mapping[str, Inexact] | None = None) -> Inexact:
    """Value of a tree to `DIGITS` digits, possibly complex.

    Raises
    ------
    NoValueError
        It has no finite value.
    """
    if not assignment:
        try:
            fraction = exact(tree)
        except NotRationalError:
            pass
        else:
            return to_inexact(fraction)
    try:
        value = _inexact(tree, assignment or {})
    except (ArithmeticError, ValueError, TypeError, NotImplementedError) as error:
        raise NoValueError(str(error)) from error
    if not _context().isfinite(value):
        raise NoValueError("not finite")
    return value


def to_inexact(value: Fraction) -> Inexact:
    """Convert a fraction to an mpmath number."""
    context = _context()
    above = context.mpf(value.numerator)
    return above if value.denominator == 1 else above / context.mpf(value.denominator)


def same_value(first: Inexact, second: Inexact) -> bool:
    """Whether two inexact values agree to `EQUAL_RELATIVE` digits."""
    context = _context()
    scale = max(abs(first), abs(second))
    return bool(abs(first - second) <= scale * context.mpf(10) ** -EQUAL_RELATIVE)


def vanishes(tree: Tree) -> bool:
    """Whether a value near 0 is 0: with twice the digits, what is left of it gets smaller still.

    ``exp(-1000)`` stays what it is, ``sqrt(2)^2 - 2`` is only what rounding left.
    """
    context = _context()
    try:
        value = inexact(tree)
        if abs(value) > context.mpf(10) ** -(DIGITS // 2):
            return False
        with _precision_lock, context.workdps(2 * DIGITS):
            closer = inexact(tree)
    except NoValueError:
        return False
    return bool(abs(closer) <= abs(value) * context.mpf(10) ** -(DIGITS // 3))


def real_part_if_real(value: Inexact) -> Inexact | None:
    """Drop a vanishing imaginary part; None if the value is truly complex."""
    context = _context()
    if isinstance(value, context.mpc):
        if abs(value.imag) > abs(value) * context.mpf(10) ** -EQUAL_RELATIVE:
            return None
        return value.real
    return value


@functools.lru_cache(maxsize=128)
def sample_points(names: tuple[str, ...]) -> list[Mapping[str, Inexact]]:
    """Give the points at which functions are compared: fixed, the first three positive."""
    context = _context()
    points: list[Mapping[str, Inexact]] = []
    for point in range(SAMPLE_POINTS):
        assignment = {}
        for index, name in enumerate(names):
            value = context.sqrt(2 + 7 * index + 13 * point) / (3 + point) + index
            assignment[name] = -value if point >= 3 and (index + point) % 2 else value
        points.append(assignment)
    return points


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        root = _exact_root(base, Fraction(exponent.denominator))
        return _exact_power(root, Fraction(exponent.numerator))
    if base == 0 and exponent < 0:
        raise NoValueError("division by zero")
    if base in (0, 1):
        return base if exponent else Fraction(1)
    if base == -1:
        return Fraction(1 if exponent.numerator % 2 == 0 else -1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > EXACT_BITS:
        raise NotRationalError
    return base ** int(exponent)


def _exact_root(value: Fraction, degree: Fraction) -> Fraction:
    if degree.denominator != 1 or not 1 <= degree <= 64:
        raise NotRationalError
    order = int(degree)
    if value < 0 and order % 2 == 0:
        raise NotRationalError
    sign = -1 if value < 0 else 1
    above = _integer_root(abs(value.numerator), order)
    below = _integer_root(value.denominator, order)
    return Fraction(sign * above, below)


def _integer_root(value: int, order: int) -> int:
    if order == 2:
        root = math.isqrt(value)
    else:
        low, high = 0, 1 << (value.bit_length() // order + 1)
        while low < high:
            middle = (low + high + 1) // 2
            if middle**order <= value:
                low = middle
            else:
                high = middle - 1
        root = low
    if root**order != value:
        raise NotRationalError
    return root


def _exact_divide(above: Fraction, below: Fraction) -> Fraction:
    if below == 0:
        raise NoValueError("division by zero")
    return above / below


def _exact_factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or value < 0:
        raise NoValueError("factorial of no natural number")
    if value > _MAX_FACTORIAL:
        raise NotRationalError
    return Fraction(math.factorial(int(value)))


def _exact_binomial(above: Fraction, below: Fraction) -> Fraction:
    if above.denominator != 1 or below.denominator != 1 or above < 0 or below < 0:
        raise NotRationalError
    if above > _MAX_FACTORIAL:
        raise NotRationalError
    return Fraction(math.comb(int(above), int(below)))


@remembered
def _remainder_or_none(tree: Operation) -> Fraction | None:
    """Value of a remainder, once a node: each is asked for twice by the one around it."""
    try:
        return _exact_remainder(*tree.arguments)
    except NotRationalError:
        return None


def _exact_remainder(dividend: Tree, divisor: Tree) -> Fraction:
    """Remainder of a division, also of powers that are too large to be computed."""
    modulus = exact(divisor)
    if modulus <= 0:
        raise NoValueError("a modulus that is not positive")
    try:
        return exact(dividend) % modulus
    except NotRationalError:
        if modulus.denominator != 1:
            raise
        return Fraction(_integer_remainder(dividend, int(modulus)))


def _integer_remainder(tree: Tree, modulus: int) -> int:
    """Remainder of sums and products of integers and their powers."""
    if isinstance(tree, Operation) and tree.operator in ("+", "-", "*", "neg", "^"):
        if tree.operator == "^":
            exponent = exact(tree.arguments[1])
            if exponent.denominator != 1 or exponent < 0:
                raise NotRationalError
            return pow(_integer_remainder(tree.arguments[0], modulus), int(exponent), modulus)
        parts = [_integer_remainder(argument, modulus) for argument in tree.arguments]
        if tree.operator == "*":
            return math.prod(parts) % modulus
        last = parts[-1] if tree.operator == "+" else -parts[-1]
        return (sum(parts[:-1]) + last) % modulus
    value = exact(tree)
    if value.denominator != 1:
        raise NotRationalError
    return int(value) % modulus


def _exact_integers(function: Callable[..., int], *values: Fraction) -> Fraction:
    if any(value.denominator != 1 for value in values):
        raise NotRationalError
    return Fraction(function(*(int(value) for value in values)))


_EXACT_RULES: dict[str, Callable[..., Fraction]] = {
    "+": lambda first, second: first + second,
    "-": lambda first, second: first - second,
    "*": lambda first, second: first * second,
    "/": _exact_divide,
    "^": _exact_power,
    "neg": lambda value: -value,
    "!": _exact_factorial,
    "percent": lambda value: value / 100,
    "abs": abs,
    "root": _exact_root,
    "binom": _exact_binomial,
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
    "gcd": functools.partial(_exact_integers, math.gcd),
    "lcm": functools.partial(_exact_integers, math.lcm),
    "max": max,
    "min": min,
    "sgn": lambda value: Fraction((value > 0) - (value < 0)),
}


def _inexact(tree: Tree, assignment: Mapping[str, Inexact]) -> Inexact:
    context = _context()
    if isinstance(tree, Number):
        return to_inexact(tree.value)
    if isinstance(tree, Name):
        if not tree.constant:
            return assignment[tree.name]
        if tree.name == "infinity":
            raise NoValueError("infinity")
        return {"pi": context.pi, "e": context.e, "i": context.mpc(0, 1)}[tree.name] * 1
    arguments = [_inexact(argument, assignment) for argument in tree.arguments]
    if tree.operator == "^" and not isinstance(arguments[0], context.mpc) and arguments[0] < 0:
        root = _odd_root(arguments[0], tree.arguments[1])
        if root is not None:
            return root
    rule = _inexact_rules().get(tree.operator)
    if rule is None:
        raise NoValueError(tree.operator)
    return rule(*arguments)


@functools.cache
def _inexact_rules() -> dict[str, Callable[..., Inexact]]:
    context = _context()
    rules: dict[str, Callable[..., Inexact]] = {
        "+": lambda first, second: first + second,
        "-": lambda first, second: first - second,
        "*": lambda first, second: first * second,
        "/": lambda first, second: first / second,
        "^": _inexact_power,
        "neg": lambda value: -value,
        "!": _inexact_factorial,
        "percent": lambda value: value / 100,
        "degree": lambda value: value * context.pi / 180,
        "abs": abs,
        "root": _inexact_root,
        "binom": _inexact_binomial,
        "log": lambda value, base=10: context.log(value) / context.log(base),
        "log10": lambda value: context.log(value) / context.log(10),
        "exp": lambda value: _inexact_power(context.e * 1, value),
        "floor": lambda value: context.floor(_small(value)),
        "ceil": lambda value: context.ceil(_small(value)),
    }
    for name in ("sin", "cos", "tan", "cot", "sec", "csc"):
        rules[name] = functools.partial(_of_small, getattr(context, name))
        rules[f"arc{name}"] = getattr(context, f"a{name}")
    for name in ("sinh", "cosh", "tanh", "coth", "sech", "csch"):
        rules[name] = functools.partial(_of_small, getattr(context, name))
    for name in ("sinh", "cosh", "tanh"):
        rules[f"arc{name}"] = getattr(context, f"a{name}")
    rules["ln"] = context.log
    rules["sgn"] = context.sign
    rules["max"] = functools.partial(_of_reals, max)
    rules["min"] = functools.partial(_of_reals, min)
    return rules


def _small(value: Inexact) -> Inexact:
    """Refuse arguments that a reduction by pi, or a floor, would need many digits for."""
    if abs(value) > 1e18:
        raise TooLargeError
    return value


def _of_small(function: Callable[[Inexact], Inexact], value: Inexact) -> Inexact:
    return function(_small(value))


def _of_reals(function: Callable[[list[Inexact]], Inexact], *values: Inexact) -> Inexact:
    reals = [real_part_if_real(value) for value in values]
    if any(real is None for real in reals):
        raise NoValueError("complex")
    return function(reals)


def _odd_root(base: Inexact, exponent: Tree) -> Inexact | None:
    """Take the real root of a negative number if its degree is odd, as for ``root``."""
    if isinstance(exponent, Number) and exponent.value.denominator == 1:
        return None
    try:
        power = exact(exponent)
    except (NotRationalError, NoValueError):
        return None
    if power.denominator % 2 == 0 or not 1 < power.denominator <= _MAX_ROOT_DEGREE:
        return None
    root = -_inexact_power(-base, 1 / _context().mpf(power.denominator))
    return _inexact_power(root, _context().mpf(power.numerator))


def _inexact_power(base: Inexact, exponent: Inexact) -> Inexact:
    context = _context()
    if base == 0:
        if context.re(exponent) < 0:
            raise NoValueError("division by zero")
        return context.mpf(0 if exponent != 0 else 1)
    size = abs(context.log(abs(base), 2)) if abs(base) != 1 else 0
    if abs(exponent) * size > _MAX_LOG2 or abs(exponent) > 1e300:
        raise TooLargeError
    return context.power(base, exponent)


def _inexact_root(value: Inexact, degree: Inexact) -> Inexact:
    context = _context()
    odd = context.im(degree) == 0 and degree == int(degree.real) and int(degree.real) % 2 == 1
    if odd and degree <= _MAX_ROOT_DEGREE and context.im(value) == 0 and context.re(value) < 0:
        return -_inexact_power(-context.re(value), 1 / degree)
    return _inexact_power(value, 1 / degree)


def _inexact_factorial(value: Inexact) -> Inexact:
    if abs(value) > 1e9:
        raise TooLargeError
    return _context().factorial(value)


def _inexact_binomial(above: Inexact, below: Inexact) -> Inexact:
    if abs(above) > 1e9 or abs(below) > 1e9:
        raise TooLargeError
    return _context().binomial(above, below)
