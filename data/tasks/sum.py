"""Sum: add up a list of integers."""

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return the sum."""
    return str(sum(numbers))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return f"What is the sum of the numbers in this list? {shown(numbers)}"


TASK = Task(
    name="sum",
    category="basic",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
)
