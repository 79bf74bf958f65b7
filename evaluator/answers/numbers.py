"""When two numbers are the same answer: exactly, or as a decimal that is right to its digits.

Integers and fractions are compared exactly. A decimal answers an exact value if it has at least
four significant digits and is that value rounded, or cut, at its last digit. That is relative to
the value's size: 0.0000004 never answers 0.0000003. Two decimals are equal if they are the same
number, or if one is the other rounded and has at least four significant digits.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from evaluator.answers import values
from evaluator.answers.modular import same_rational
from evaluator.answers.trees import Tree, operators, ordered, remembered, variables

MIN_SIGNIFICANT = 4
MIN_GOLD_SIGNIFICANT = 3
"""A reference that is a decimal is taken for a rounded one only from this many digits on."""
MIN_DECIMALS = 3
"""A reference with at least this many decimals may have been rounded."""
MIN_APPROXIMATE_DECIMALS = 5
"""A reference with at least this many decimals is an approximation."""
FLOAT_SIGNIFICANT = range(15, 19)
"""Significant digits of what a program prints for a number in double precision."""
_FLOAT_ERROR = Fraction(1, 2**51)
"""Four units in the last place of a double, relative."""
_OF_INTEGERS = frozenset(["gcd", "lcm"])
_DECIMAL = re.compile(
    r"[-+]?\(?(\d{0,60})\.(\d{0,400})\)?(?: ?\* ?10 ?\^ ?(?:\{ ?([-+]?\d{1,4}) ?\}|([-+]?\d{1,4})"
    r")|[eE]([-+]?\d{1,4}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Precision:
    """How precisely a decimal was written.

    Attributes
    ----------
    unit
        Size of one unit in its last place.
    significant
        Number of significant digits.
    """

    unit: Fraction
    significant: int


def written_precision(text: str) -> Precision | None:
    """Precision of a decimal; None if the text is not a decimal (an integer, a fraction, a root).

    Examples
    --------
    >>> written_precision("0.3330").significant
    4
    """
    if "." not in text:
        return None
    match = _DECIMAL.fullmatch(text.replace(" ", ""))
    if match is None:
        return None
    whole, decimals = match.group(1), match.group(2)
    exponent = int(match.group(3) or match.group(4) or match.group(5) or 0)
    significant = len((whole + decimals).lstrip("0"))
    return Precision(Fraction(10) ** (exponent - len(decimals)), significant)


def sort_key(tree: Tree | None) -> float | None:
    """Approximate value for sorting; None if the tree has no real value."""
    if tree is None or variables(tree):
        return None
    try:
        real = values.real_part_if_real(values.inexact(tree))
        return None if real is None else float(real)
    except (values.NoValueError, OverflowError):
        return None


def same_constant(gold: Tree, gold_text: str, answer: Tree, answer_text: str) -> bool | None:
    """Compare two trees without variables; None if it cannot be decided here.

    The texts say how precisely decimals were written.
    """
    gold_exact, answer_exact = _exact_or_none(gold), _exact_or_none(answer)
    gold_precision = written_precision(gold_text) if gold_exact is not None else None
    answer_precision = written_precision(answer_text) if answer_exact is not None else None
    if gold_exact is not None and answer_exact is not None:
        if gold_exact == answer_exact:
            return True
        if gold_precision is None and answer_precision is None:
            return False
    elif gold_precision is None and answer_precision is None:
        same = same_rational(gold, answer)
        if same is not None:
            return same
    gold_value, gold_huge = _inexact_or_none(gold)
    answer_value, answer_huge = _inexact_or_none(answer)
    if gold_huge or answer_huge:
        return None if gold_huge and answer_huge else False
    if gold_value is None or answer_value is None:
        return None
    if (gold_exact is None or answer_exact is None) and values.same_value(gold_value, answer_value):
        return True
    if (gold_exact == 0 and answer_exact is None) or (answer_exact == 0 and gold_exact is None):
        return values.vanishes(answer if gold_exact == 0 else gold)
    gold_number = gold_value if gold_exact is None else gold_exact
    answer_number = answer_value if answer_exact is None else answer_exact
    if gold_precision is not None and answer_precision is not None:
        return _same_decimal(gold_number, gold_precision, answer_number, answer_precision)
    if answer_precision is not None:
        if _is_integer(gold_exact):
            return _printed_for(gold_number, answer_number, answer_precision)
        return _rounds_to(gold_number, answer_number, answer_precision, MIN_SIGNIFICANT)
    if gold_precision is not None:
        if _is_integer(answer_exact):
            return _printed_for(answer_number, gold_number, gold_precision)
        return _rounds_to(answer_number, gold_number, gold_precision, MIN_GOLD_SIGNIFICANT)
    return False


def same_function(gold: Tree, answer: Tree) -> bool | None:
    """Compare two trees with variables at fixed points; None if it cannot be decided here.

    Two expressions that agree at the points where all variables are positive but not elsewhere
    (``|x|`` and ``x``) are left to symbolic equality.
    """
    if _OF_INTEGERS & (operators(gold) | operators(answer)):
        # There is no greatest common divisor at the points below.
        return True if ordered(gold) == ordered(answer) else None
    names = tuple(sorted(variables(gold) | variables(answer)))
    agreed = 0
    for index in range(values.SAMPLE_POINTS):
        positive = index < 3
        gold_value, answer_value = _value_at(gold, names, index), _value_at(answer, names, index)
        if gold_value is None or answer_value is None:
            continue
        if not values.same_value(gold_value, answer_value):
            return False if positive else None
        agreed += positive
    if agreed < 2:
        return None
    # Thirty digits cannot tell x + 10^{-40} from x; residues can.
    return same_rational(gold, answer) is not False


def proportional(gold: Tree, answer: Tree) -> bool | None:
    """Whether two trees differ by a constant factor, as the two sides of equal equations do."""
    ratios = _ratios(gold, answer)
    if ratios is None:
        return None
    return True if all(values.same_value(ratios[0], ratio) for ratio in ratios) else None


def positive_multiple(gold: Tree, answer: Tree) -> bool | None:
    """Whether two trees differ by a positive factor, as those of equal inequalities do."""
    ratios = _ratios(gold, answer)
    if ratios is None:
        return None
    first = values.real_part_if_real(ratios[0])
    positive = first is not None and bool(first > 0)
    return positive and all(values.same_value(ratios[0], ratio) for ratio in ratios)


def _ratios(gold: Tree, answer: Tree) -> list[values.Inexact] | None:
    names = tuple(sorted(variables(gold) | variables(answer)))
    if not variables(gold) or not variables(answer):
        return None
    ratios = []
    for index in range(values.SAMPLE_POINTS):
        below, above = _value_at(gold, names, index), _value_at(answer, names, index)
        if below is None or above is None:
            continue
        if below == 0 or above == 0:
            return None
        ratios.append(above / below)
    return ratios if len(ratios) >= 3 else None


@remembered
def _value_at(tree: Tree, names: tuple[str, ...], index: int) -> values.Inexact | None:
    """Value of a tree at one of the points at which functions are compared."""
    try:
        return values.inexact(tree, values.sample_points(names)[index])
    except values.NoValueError:
        return None


@remembered
def _exact_or_none(tree: Tree) -> Fraction | None:
    try:
        return values.exact(tree)
    except (values.NotRationalError, values.NoValueError):
        return None


@remembered
def _inexact_or_none(tree: Tree) -> tuple[values.Inexact | None, bool]:
    """Value of a tree, and whether it is too large to have one."""
    try:
        return values.inexact(tree), False
    except values.TooLargeError:
        return None, True
    except values.NoValueError:
        return None, False


def _is_integer(value: Fraction | None) -> bool:
    return value is not None and value.denominator == 1


def _same_decimal(
    gold: Fraction, gold_precision: Precision, answer: Fraction, precision: Precision
) -> bool:
    """Compare two decimals: one may be the other rounded, or what a program prints for it."""
    if precision.unit > gold_precision.unit:
        # Only a reference that is an approximation itself may be given with fewer digits.
        approximate = gold_precision.unit <= Fraction(1, 10**MIN_APPROXIMATE_DECIMALS)
        return approximate and _rounds_to(gold, answer, precision, MIN_SIGNIFICANT)
    # A longer decimal than the reference is another number, unless the reference was cut short.
    decimals = 0
    while Fraction(1, 10**decimals) > gold_precision.unit and decimals < MIN_DECIMALS:
        decimals += 1
    cut_short = decimals >= MIN_DECIMALS or precision.unit * 100 <= gold_precision.unit
    if cut_short and _rounds_to(answer, gold, gold_precision, MIN_SIGNIFICANT):
        return True
    return _printed_for(gold, answer, precision)


def _rounds_to(
    value: values.Inexact, decimal: values.Inexact, precision: Precision, min_significant: int
) -> bool:
    """Whether `decimal` is `value` rounded or cut at its last digit, or printed for it.

    Both are fractions, or `value` is an mpmath number.
    """
    if precision.significant < min_significant:
        return False
    unit: values.Inexact = precision.unit
    if not isinstance(value, Fraction):
        value = values.real_part_if_real(value)
        if value is None:
            return False
        unit, decimal = values.to_inexact(unit), values.to_inexact(decimal)
    difference = abs(value - decimal)
    cut = difference < unit and abs(decimal) <= abs(value)
    return bool(cut or difference <= unit / 2) or _printed_for(value, decimal, precision)


def _printed_for(value: values.Inexact, decimal: values.Inexact, precision: Precision) -> bool:
    """Whether a program that computes with doubles may print `decimal` for `value`."""
    if precision.significant not in FLOAT_SIGNIFICANT or precision.unit >= 1:
        return False
    error: values.Inexact = _FLOAT_ERROR
    if not isinstance(value, Fraction):
        error = values.to_inexact(error)
    return bool(abs(value - decimal) <= abs(value) * error)
