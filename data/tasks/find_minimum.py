"""Find minimum: the least number of a list."""

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return the least number."""
    return str(min(numbers))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return f"What is the least number in this list? {shown(numbers)}"


TASK = Task(
    name="find_minimum",
    category="extremum",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
)
