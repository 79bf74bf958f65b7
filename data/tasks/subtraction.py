"""Subtraction: the first integer taken from the second, b - a."""

from data.tasks.base import PAIR_SIZES, Instance, Task
from data.tasks.plain import same_number


def solve(numbers: tuple[int, ...]) -> str:
    """Return the second less the first."""
    first, second = numbers
    return str(second - first)


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    first, second = numbers
    return f"Subtract {first} from {second}. In other words, what is ({second}) - ({first})?"


TASK = Task(
    name="subtraction",
    category="basic",
    sample=Instance.integers,
    solve=solve,
    ask=ask,
    right=same_number,
    sizes=PAIR_SIZES,
    fixed_size=True,
)
