"""Mode: the number that occurs most often; any of them where several do."""

from collections import Counter

from data.tasks.base import Instance, Task, shown
from data.tasks.plain import same_number

SEPARATOR = " or "
"""Stands between the values in a reference that has several."""


def sample(instance: Instance) -> tuple[int, ...]:
    """Draw a list in which at least one number is repeated."""
    numbers = list(instance.integers())
    copied = instance.draws.integer(0, instance.size - 1)
    overwritten = (copied + instance.draws.integer(1, instance.size - 1)) % instance.size
    numbers[overwritten] = numbers[copied]
    return tuple(numbers)


def solve(numbers: tuple[int, ...]) -> str:
    """Return every number of highest frequency, in rising order: ``3 or 7``."""
    counts = Counter(numbers)
    highest = max(counts.values())
    modes = sorted(number for number, count in counts.items() if count == highest)
    return SEPARATOR.join(map(str, modes))


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    return (
        "Which number occurs most often in this list? If several occur equally often, give one of "
        f"them. {shown(numbers)}"
    )


def right(reference: str, answer: str) -> bool:
    """Return whether the answer is one of the reference's values."""
    return any(same_number(value, answer) for value in reference.split(SEPARATOR))


TASK = Task(
    name="mode",
    category="statistics",
    sample=sample,
    solve=solve,
    ask=ask,
    right=right,
    least_size=2,
)
