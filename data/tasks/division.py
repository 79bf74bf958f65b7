"""Division: the first integer by the second, which is not zero; an exact fraction."""

from fractions import Fraction

from data.tasks.base import PAIR_SIZES, Instance, Task
from data.tasks.plain import same_rational


def sample(instance: Instance) -> tuple[int, ...]:
    """Draw a dividend and a divisor other than zero."""
    dividend, divisor = instance.integer(), 0
    while divisor == 0:
        divisor = instance.integer()
    return dividend, divisor


def solve(numbers: tuple[int, ...]) -> str:
    """Return the quotient as a fraction in lowest terms, or an integer."""
    dividend, divisor = numbers
    return str(Fraction(dividend, divisor))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    dividend, divisor = numbers
    return (
        f"Divide {dividend} by {divisor}. Give the exact value, as an integer or a fraction, or a "
        "decimal with at least two digits after the point and two digits that are not leading "
        "zeros."
    )


TASK = Task(
    name="division",
    category="basic",
    sample=sample,
    solve=solve,
    ask=ask,
    right=same_rational,
    sizes=PAIR_SIZES,
    fixed_size=True,
)
