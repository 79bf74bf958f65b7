"""UT-Reasoning (paper 004): eleven tasks of Reasoning Gym, 50 questions each, by a fixed seed.

The settings are those of this project's specification: Table 5 of the paper gives
tasks, categories and numbers of questions, but no parameters. Three notes on the settings:
``puzzle24`` with numbers from 8 to 10 comes down to one question (10, 8, 8, 8), put 50 times;
``quantum_lock`` draws each difficulty from 1 to 25; and ``maze`` asks for the number of steps, not
for the way.
"""

from typing import NamedTuple

from data.benchmark import Benchmark, GeneratedSource
from data.question import Question
from data.reasoning_gym_tasks import ANSWER_KIND, GYM_INSTRUCTION, gym_questions
from data.seeds import PAPER_SEED

QUESTIONS_PER_TASK = 50


class UnderthinkingTask(NamedTuple):
    """A task, the settings that differ from Reasoning Gym's defaults, and its category."""

    dataset: str
    category: str
    parameters: dict[str, int]


TASKS = (
    UnderthinkingTask("ab", "algorithmic", {"length": 20}),
    UnderthinkingTask("letter_counting", "algorithmic", {"min_words": 25, "max_words": 35}),
    UnderthinkingTask("bitwise_arithmetic", "arithmetic", {"difficulty": 4}),
    UnderthinkingTask("fraction_simplification", "arithmetic", {}),
    UnderthinkingTask("quantum_lock", "graphs", {"difficulty": 25}),
    UnderthinkingTask(
        "maze",
        "games",
        {"min_dist": 15, "max_dist": 25, "min_grid_size": 15, "max_grid_size": 25},
    ),
    UnderthinkingTask("knight_swap", "games", {}),
    UnderthinkingTask("puzzle24", "games", {"min_value": 8, "max_value": 10}),
    UnderthinkingTask(
        "tsumego", "games", {"min_board_size": 15, "max_board_size": 19, "max_stones": 20}
    ),
    UnderthinkingTask("advanced_geometry", "geometry", {"min_coord": -20, "max_coord": 20}),
    UnderthinkingTask("propositional_logic", "logic", {}),
)
"""In the order of the paper's Table 5, with its categories; that table has no parameters."""


def gym_benchmark(
    dataset: str, parameters: dict[str, int], *, name: str | None = None
) -> Benchmark:
    """Return a data set of Reasoning Gym as a benchmark.

    Parameters
    ----------
    dataset, parameters
        As :func:`data.reasoning_gym_tasks.gym_questions`.
    name
        Its name; ``gym-DATASET`` by default.
    """

    def make(wanted: int) -> list[Question]:
        return gym_questions(dataset, parameters, seed=PAPER_SEED, count=wanted)

    return Benchmark(
        name=name or f"gym-{dataset}",
        group="UT-Reasoning",
        instruction=GYM_INSTRUCTION,
        answer_kind=ANSWER_KIND,
        expected_count=QUESTIONS_PER_TASK,
        source=GeneratedSource(
            make=make,
            count=QUESTIONS_PER_TASK,
            description=f"Reasoning Gym's {dataset} (seed {PAPER_SEED})",
        ),
    )


BENCHMARKS = tuple(
    gym_benchmark(task.dataset, task.parameters, name=f"ut-{task.dataset}") for task in TASKS
)
