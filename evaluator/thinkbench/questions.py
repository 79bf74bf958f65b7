"""The questions of a run, as they are put: tasks and puzzles, fold after fold."""

from collections.abc import Iterator
from dataclasses import dataclass

from data.puzzles import get_puzzle, make_puzzles, puzzle_names
from data.question import Question
from data.tasks import get_task
from data.tasks.base import make_questions
from evaluator.thinkbench.config import ThinkConfig
from stp.asking import Request
from stp.seeds import sample_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQuestion:
    """One question of a run.

    Attributes
    ----------
    question
        What is asked, and what is right.
    task, category
        The question's task and its category.
    fold, size
        Which sample it is from, and how many numbers it has.
    """

    question: Question
    task: str
    category: str
    fold: int
    size: int

    @property
    def id(self) -> str:
        """The question's id, unique in the run."""
        return self.question.id


def plan_questions(config: ThinkConfig) -> list[TaskQuestion]:
    """Return all questions of a run, task after task, fold after fold.

    Raises
    ------
    data.errors.MisuseError
        If a size does not fit its task.
    """
    return list(_planned(config))


def _planned(config: ThinkConfig) -> Iterator[TaskQuestion]:
    for task in config.tasks:
        for fold in range(config.folds):
            parameters = config.parameters(task, fold)
            if task in puzzle_names():
                category = get_puzzle(task).category
                questions = make_puzzles(get_puzzle(task), parameters, config.samples)
            else:
                category = get_task(task).category
                worded = config.prompts.worded(get_task(task))
                questions = make_questions(worded, parameters, config.samples)
            for question in questions:
                yield TaskQuestion(
                    question=question,
                    task=task,
                    category=category,
                    fold=fold,
                    # An id is TASK-foldF-sizeS-I.
                    size=int(question.id.rpartition("-size")[2].partition("-")[0]),
                )


def make_request(item: TaskQuestion, config: ThinkConfig) -> Request:
    """Return a question as it is put to a model: question, empty line, way of answering."""
    asked = config.prompts.text(f"style-{config.style}")
    if item.task in puzzle_names():
        asked = get_puzzle(item.task).instruction
    return Request(
        id=item.id,
        prompt=f"{item.question.prompt}\n\n{asked}",
        seed=sample_seed(
            config.seed,
            model="",
            benchmark=f"think-{item.task}",
            question=item.id,
            trajectory=0,
            phase="think",
        ),
    )
