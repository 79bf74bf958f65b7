"""Sorting: a list of integers in rising order, repeated ones as often as they occur."""

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_list


def solve(numbers: tuple[int, ...]) -> str:
    """Return the sorted list."""
    return shown(tuple(sorted(numbers)))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return (
        "Sort this list from the least number to the greatest, and give the whole sorted list, "
        f"its numbers parted by commas. {shown(numbers)}"
    )


TASK = Task(
    name="sorting",
    category="basic",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_list,
)
