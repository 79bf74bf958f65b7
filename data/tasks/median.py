"""Median: the middle of a list of integers, or the mean of the two in the middle."""

from fractions import Fraction

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return the median as an integer or a number of halves such as ``19/2``."""
    ordered = sorted(numbers)
    last = len(ordered) - 1
    return str(Fraction(ordered[last // 2] + ordered[last - last // 2], 2))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return (
        "What is the median of the numbers in this list? Where the list has an even number of "
        f"entries, it is the mean of the two in the middle. {shown(numbers)}"
    )


TASK = Task(
    name="median",
    category="statistics",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
)
