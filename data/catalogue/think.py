"""The generated tasks as benchmarks: ``think-sum``, ``think-sorting`` and the rest."""

from data.tasks import task_benchmark, task_names

BENCHMARKS = tuple(task_benchmark(name) for name in task_names())
