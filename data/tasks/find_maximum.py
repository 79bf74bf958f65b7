"""Find maximum: the greatest number of a list."""

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return the greatest number."""
    return str(max(numbers))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return f"What is the greatest number in this list? {shown(numbers)}"


TASK = Task(
    name="find_maximum",
    category="extremum",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
)
