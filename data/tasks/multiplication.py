"""Multiplication: the product of 2, 4 or 8 integers, exact whatever its size."""

import math

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return the product."""
    return str(math.prod(numbers))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return f"What is the exact product of the numbers in this list? {shown(numbers)}"


TASK = Task(
    name="multiplication",
    category="basic",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
    sizes=(2, 4, 8),
    least_size=2,
)
