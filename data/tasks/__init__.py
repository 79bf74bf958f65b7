"""The fourteen generated tasks of LLMThinkBench (paper 000), and any other that lies here.

A task is one module that exposes ``TASK``; it is found by being here, and becomes the benchmark
``think-NAME`` and the answer kind ``NAME``.
"""

import importlib
import pkgutil
from functools import cache, partial

from data.benchmark import Benchmark, GeneratedSource
from data.errors import MisuseError
from data.hints import did_you_mean
from data.tasks.base import TASK_INSTRUCTION, Task, TaskParameters, make_questions

__all__ = ["TASK_LABELS", "Task", "TaskParameters", "get_task", "task_benchmark", "task_names"]


TASK_LABELS = {
    "absolute_difference": "abs. diff.",
    "find_maximum": "maximum",
    "find_minimum": "minimum",
}
"""What tables call tasks whose names are long."""


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks, sorted.

    Examples
    --------
    >>> len(task_names())
    14
    """
    return tuple(sorted(_tasks()))


def get_task(name: str) -> Task:
    """Return a task by its name.

    Raises
    ------
    data.errors.MisuseError
        If there is none of that name; the message offers the nearest ones.
    """
    try:
        return _tasks()[name]
    except KeyError:
        known = task_names()
        raise MisuseError(
            f"no task {name!r}{did_you_mean(name, known)} (there are {', '.join(known)})"
        ) from None


def task_benchmark(name: str, parameters: TaskParameters | None = None) -> Benchmark:
    """Return a task as a benchmark.

    Parameters
    ----------
    name
        The task.
    parameters
        Samples, fold, seed, range and sizes; by default the first fold of paper 000.

    Returns
    -------
    data.Benchmark
        Named ``think-NAME``, in the reporting group ``think``.
    """
    task = get_task(name)
    parameters = parameters or TaskParameters()
    return Benchmark(
        name=f"think-{name}",
        group="think",
        instruction=TASK_INSTRUCTION,
        answer_kind=name,
        expected_count=parameters.samples,
        source=GeneratedSource(
            make=partial(make_questions, task, parameters),
            count=parameters.samples,
            description=f"generated (seed {parameters.seed}, fold {parameters.fold})",
        ),
    )


@cache
def _tasks() -> dict[str, Task]:
    found: dict[str, Task] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        task = getattr(module, "TASK", None)
        if task is None:
            continue
        if task.name in found:
            raise MisuseError(f"{module.__name__}: the task {task.name!r} exists already")
        found[task.name] = task
    return found
