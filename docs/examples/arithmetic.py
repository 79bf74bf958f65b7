"""Two functions that answer the questions of LLMThinkBench, as a model of your own would.

``careful`` writes down what it does; ``hasty`` answers at once, and looks at the first six numbers
of a list only.
"""

import re
import statistics
from collections.abc import Callable
from fractions import Fraction
from math import prod

RULES: tuple[tuple[str, Callable[[list[int]], object]], ...] = (
    ("sum of", sum),
    ("exact product", prod),
    ("greatest number in", max),
    ("least number in", min),
    ("mean of the numbers", lambda numbers: Fraction(sum(numbers), len(numbers))),
    ("median of", lambda numbers: statistics.median(map(Fraction, numbers))),
    ("occurs most often", statistics.mode),
    ("are even", lambda numbers: sum(n % 2 == 0 for n in numbers)),
    ("are odd", lambda numbers: sum(n % 2 for n in numbers)),
    ("Sort this list", lambda numbers: str(sorted(numbers))[1:-1]),
    ("absolute difference", lambda numbers: abs(numbers[0] - numbers[1])),
    ("Subtract", lambda numbers: numbers[1] - numbers[0]),
    ("Divide", lambda numbers: Fraction(numbers[0], numbers[1])),
    ("Compare", lambda numbers: "<=>"[(numbers[0] >= numbers[1]) + (numbers[0] > numbers[1])]),
)


def careful(prompt: str) -> dict[str, str]:
    """Answer with all numbers, after writing them down one by one."""
    numbers = read(prompt)
    steps = "\n\n".join(f"Number {place} is {n}." for place, n in enumerate(numbers, start=1))
    return {"thinking": steps, "text": boxed(prompt, numbers)}


def hasty(prompt: str) -> dict[str, str]:
    """Answer at once, with the first six numbers."""
    return {"thinking": "", "text": boxed(prompt, read(prompt)[:6])}


def read(prompt: str) -> list[int]:
    """Return the numbers of a question."""
    _, opened, listed = prompt.partition("[")
    return [int(n) for n in re.findall(r"-?\d+", listed.split("]")[0] if opened else prompt)]


def boxed(prompt: str, numbers: list[int]) -> str:
    """Return the answer by the first rule whose words are in the question."""
    rule = next(rule for words, rule in RULES if words in prompt)
    return rf"\boxed{{{rule(numbers)}}}"
