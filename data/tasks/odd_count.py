"""Odd count: how many numbers of a list are odd; negative ones count as well."""

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return how many are odd."""
    return str(sum(number % 2 for number in numbers))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return (
        "How many of the numbers in this list are odd? Negative numbers count like any other, "
        f"and a number that occurs several times counts each time. {shown(numbers)}"
    )


TASK = Task(
    name="odd_count",
    category="counting",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
)
