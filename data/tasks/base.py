"""What a generated task is, and how its questions are made from a seed.

A task knows integers and texts. It knows nothing of models, and nothing of how an answer is found
in a response: its ``right`` takes the answer alone, already extracted and in plain spelling.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from data.draws import StableDraws
from data.errors import MisuseError
from data.question import Question
from data.seeds import PAPER_SEED
from data.tasks.plain import MAX_CHARACTERS

DEFAULT_SAMPLES = 1000
DEFAULT_LOW = -1000
DEFAULT_HIGH = 1000
LIST_SIZES = (8, 16, 32, 64)
"""List lengths of paper 000, E.1."""
PAIR_SIZES = (2,)

TASK_INSTRUCTION = "Put your final answer inside \\boxed{}, and nothing else into the box."
"""Follows every task's question; paper 000 asks for a box in its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What a sampler may draw from, for one instance of a task.

    Attributes
    ----------
    key
        Seed, fold, task and size: what all instances of one run of draws share.
    index
        Number of this instance among them, from 0.
    low, high
        Range of the values, both included.
    size
        How many numbers the instance has.
    draws
        The draws of this instance alone: instance 7 is the same whether 8 or 1,000 are made.
    """

    key: tuple[str | int, ...]
    index: int
    low: int
    high: int
    size: int
    draws: StableDraws = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", StableDraws(*self.key, self.index))

    def integer(self) -> int:
        """Return an integer of the range."""
        return self.draws.integer(self.low, self.high)

    def integers(self) -> tuple[int, ...]:
        """Return ``size`` integers of the range."""
        return tuple(self.integer() for _ in range(self.size))

    def dealt(self, kinds: int) -> int:
        """Return a kind from 0 to ``kinds - 1``; successive instances take them in turn."""
        block, place = divmod(self.index, kinds)
        return StableDraws(*self.key, "block", block).shuffled(range(kinds))[place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One kind of generated question.

    Attributes
    ----------
    name
        Also the ``answer_kind`` of its questions.
    category
        ``"basic"``, ``"extremum"``, ``"statistics"`` or ``"counting"`` (paper 000, Table 1).
    sample
        Draws the numbers of an instance.
    solve
        The reference function: the right answer as plain text.
    ask
        The question as it is put, without the instruction.
    right
        Whether a plain answer (second argument) is right by a reference (first).
    sizes
        How many numbers an instance has; the questions go through these in turn.
    least_size
        Fewest numbers that make sense.
    fixed_size
        Whether other sizes than ``sizes`` make no sense (tasks on a pair).
    """

    name: str
    category: str
    sample: Callable[[Instance], tuple[int, ...]]
    solve: Callable[[tuple[int, ...]], str]
    ask: Callable[[tuple[int, ...]], str]
    right: Callable[[str, str], bool]
    sizes: tuple[int, ...] = LIST_SIZES
    least_size: int = 1
    fixed_size: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskParameters:
    """How many questions of a task are made, and from what. Defaults are those of paper 000.

    Attributes
    ----------
    samples
        Questions in a fold.
    fold
        Folds are independent samples; there may be any number of them.
    seed
        Another seed gives other questions.
    low, high
        Range of the values, both included.
    sizes
        Numbers in an instance, in turn; the task's own where it is None. Tasks on a pair keep
        theirs, so that one value serves all tasks of a run.
    """

    samples: int = DEFAULT_SAMPLES
    fold: int = 0
    seed: int = PAPER_SEED
    low: int = DEFAULT_LOW
    high: int = DEFAULT_HIGH
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise MisuseError(f"samples must be at least 1, not {self.samples}")
        if self.fold < 0:
            raise MisuseError(f"fold must be at least 0, not {self.fold}")
        if self.low >= self.high:
            raise MisuseError(f"the range [{self.low}, {self.high}] holds fewer than two values")
        if self.sizes is not None and not self.sizes:
            raise MisuseError("sizes must name at least one size")


def make_questions(task: Task, parameters: TaskParameters, count: int) -> list[Question]:
    """Return the first ``count`` questions of a task.

    Question ``i`` has the size ``sizes[i % len(sizes)]``, so every beginning of the list has all
    sizes about equally often.

    Parameters
    ----------
    task
        Which task.
    parameters
        Seed, fold, range and sizes.
    count
        How many, at most ``parameters.samples``.

    Raises
    ------
    data.errors.MisuseError
        If a size is too small for the task, or its numbers are too long to be read back.
    """
    sizes = task.sizes
    if parameters.sizes is not None and not task.fixed_size:
        sizes = parameters.sizes
    digits = len(str(max(abs(parameters.low), abs(parameters.high))))
    for size in sizes:
        if size < task.least_size:
            raise MisuseError(f"{task.name}: size {size}; the least is {task.least_size}")
        if size * digits > MAX_CHARACTERS:
            raise MisuseError(
                f"{task.name}: {size} numbers of {digits} digits; together they may have "
                f"{MAX_CHARACTERS}"
            )
    questions = []
    for number in range(min(count, parameters.samples)):
        size = sizes[number % len(sizes)]
        instance = Instance(
            key=("think", parameters.seed, parameters.fold, task.name, size),
            index=number // len(sizes),
            low=parameters.low,
            high=parameters.high,
            size=size,
        )
        numbers = task.sample(instance)
        questions.append(
            Question(
                id=f"{task.name}-fold{parameters.fold}-size{size}-{instance.index}",
                prompt=task.ask(numbers),
                reference=task.solve(numbers),
                answer_kind=task.name,
            )
        )
    return questions


def shown(numbers: tuple[int, ...]) -> str:
    """Return numbers as they stand in a question: ``[3, -1, 4]``."""
    return "[" + ", ".join(map(str, numbers)) + "]"
