"""Mean: the average of a list of integers; an exact fraction."""

from fractions import Fraction

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_rational


def solve(numbers: tuple[int, ...]) -> str:
    """Return the mean as a fraction in lowest terms, or an integer."""
    return str(Fraction(sum(numbers), len(numbers)))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return (
        "What is the mean of the numbers in this list? Give the exact value, or a decimal with at "
        "least two digits after the point and two digits that are not leading zeros. "
        f"{shown(numbers)}"
    )


TASK = Task(
    name="mean",
    category="statistics",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_rational,
)
