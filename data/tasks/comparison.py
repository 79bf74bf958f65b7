"""Comparison: whether the first of two integers is less than, equal to or greater than the other.

Each relation has a third of the pairs: among three successive instances, each holds once.
"""

from data.tasks.base import PAIR_SIZES, Instance, Task

RELATIONS = ("<", "=", ">")

WORDS = {
    "<": ("<", "less than", "less", "smaller than", "smaller", "lt"),
    "=": ("=", "==", "equal to", "equal", "equals", "eq"),
    ">": (">", "greater than", "greater", "larger than", "larger", "bigger", "gt"),
}
"""What a relation may be called: signs, words and the names of LaTeX commands."""

_RELATION_OF = {word: relation for relation, words in WORDS.items() for word in words}


def sample(instance: Instance) -> tuple[int, ...]:
    """Draw a pair in which this instance's relation holds."""
    relation = RELATIONS[instance.dealt(len(RELATIONS))]
    first = instance.integer()
    if relation == "=":
        return first, first
    # One of the other values, all equally likely: skip the first one.
    second = instance.draws.integer(instance.low, instance.high - 1)
    second += second >= first
    less, greater = sorted((first, second))
    return (less, greater) if relation == "<" else (greater, less)


def solve(numbers: tuple[int, ...]) -> str:
    """Return the relation's sign."""
    first, second = numbers
    return RELATIONS[1 + (first > second) - (first < second)]


def ask(numbers: tuple[int, ...]) -> str:
    """Put the question."""
    first, second = numbers
    return (
        f"Compare the first number, {first}, with the second number, {second}. Answer with one "
        "sign: < if the first is less, = if they are equal, > if the first is greater."
    )


def right(reference: str, answer: str) -> bool:
    """Return whether the answer is the reference's relation, as a sign or in words."""
    return _RELATION_OF.get(" ".join(answer.lower().split())) == reference


TASK = Task(
    name="comparison",
    category="basic",
    sample=sample,
    solve=solve,
    ask=ask,
    right=right,
    sizes=PAIR_SIZES,
    fixed_size=True,
)
