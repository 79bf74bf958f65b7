"""Absolute difference: how far two integers lie apart."""

from data.tasks.base import PAIR_SIZES, Instance, Task
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return the distance."""
    first, second = numbers
    return str(abs(first - second))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    first, second = numbers
    return f"What is the absolute difference of {first} and {second}?"


TASK = Task(
    name="absolute_difference",
    category="basic",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
    sizes=PAIR_SIZES,
    fixed_size=True,
)
