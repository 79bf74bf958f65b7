"""Even count: how many numbers of a list are even; zero is even."""

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return how many are even."""
    return str(sum(1 - number % 2 for number in numbers))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return (
        "How many of the numbers in this list are even? Negative numbers count like any other, "
        "zero is even, and a number that occurs several times counts each time. "
        f"{shown(numbers)}"
    )


TASK = Task(
    name="even_count",
    category="counting",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
)
