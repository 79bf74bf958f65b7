"""Equality of rational expressions that are too large to be computed: modulo large primes.

``2026! - 1`` and ``2026!`` agree to thousands of digits; modulo a prime they differ. Two equal
expressions have equal residues modulo every prime that divides no denominator. Two different ones
agree modulo three primes of 61 bits and more by an accident of less than one in 10^50.
Expressions with variables are compared the same way, with the variables at arbitrary residues.
"""

import functools
import math
from collections.abc import Mapping

from evaluator.answers.trees import Name, Number, Operation, Tree, variables
from evaluator.answers.values import NotRationalError, NoValueError, exact

_PRIMES = (2**61 - 1, 2**63 - 25, 2**64 - 59)
MAX_FACTORIAL = 30_000
_START = 0x9E3779B97F4A7C15
"""Where the residues of variables come from: multiples of the golden ratio's bits look random."""


class _UndecidedError(Exception):
    """Not a rational expression with exponents that can be computed, or a division by zero."""


def same_rational(first: Tree, second: Tree) -> bool | None:
    """Compare two rational expressions; None if one of them is no such expression."""
    names = sorted(variables(first) | variables(second))
    compared = False
    for prime in _PRIMES:
        residues = {
            name: _START * (index + 1) ** 3 % prime for index, name in enumerate(names, start=1)
        }
        try:
            difference = _residue(first, prime, residues) - _residue(second, prime, residues)
        except _UndecidedError:
            return None
        if difference % prime:
            return False
        compared = True
    return compared


def _residue(tree: Tree, prime: int, residues: Mapping[str, int]) -> int:
    if isinstance(tree, Number):
        return tree.value.numerator * _inverse(tree.value.denominator, prime) % prime
    if isinstance(tree, Name):
        if tree.constant:
            raise _UndecidedError
        return residues[tree.name]
    if tree.operator == "^":
        return _power(tree, prime, residues)
    if tree.operator == "!":
        return _factorial(_integer(tree.arguments[0]), prime)
    if tree.operator == "binom":
        above, below = (_integer(argument) for argument in tree.arguments)
        if below > above:
            return 0
        under = _factorial(below, prime) * _factorial(above - below, prime)
        return _factorial(above, prime) * _inverse(under, prime) % prime
    if tree.operator not in ("+", "-", "*", "/", "neg", "percent"):
        return _exact_residue(tree, prime)
    values = [_residue(argument, prime, residues) for argument in tree.arguments]
    if tree.operator == "+":
        return sum(values) % prime
    if tree.operator == "*":
        return math.prod(values) % prime
    if tree.operator == "neg":
        return -values[0] % prime
    if tree.operator == "-":
        return (values[0] - values[1]) % prime
    below = 100 if tree.operator == "percent" else values[1]
    return values[0] * _inverse(below, prime) % prime


def _exact_residue(tree: Operation, prime: int) -> int:
    """Residue of what has to be computed as a whole: a root, a floor, a remainder."""
    try:
        value = exact(tree)
    except (NotRationalError, NoValueError) as error:
        raise _UndecidedError from error
    return value.numerator * _inverse(value.denominator, prime) % prime


def _power(tree: Operation, prime: int, residues: Mapping[str, int]) -> int:
    base = _residue(tree.arguments[0], prime, residues)
    try:
        exponent = exact(tree.arguments[1])
    except (NotRationalError, NoValueError) as error:
        raise _UndecidedError from error
    if exponent.denominator != 1 or base == 0:
        return _exact_residue(tree, prime)
    return pow(base, int(exponent), prime)


def _integer(tree: Tree) -> int:
    try:
        value = exact(tree)
    except (NotRationalError, NoValueError) as error:
        raise _UndecidedError from error
    if value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
        raise _UndecidedError
    return int(value)


@functools.lru_cache(maxsize=64)
def _factorial(number: int, prime: int) -> int:
    result = 1
    for factor in range(2, number + 1):
        result = result * factor % prime
    return result


def _inverse(value: int, prime: int) -> int:
    if value % prime == 0:
        raise _UndecidedError
    return pow(value, -1, prime)
