"""What is asked: questions, benchmarks, generated tasks, and the errors of this project."""

from data.benchmark import Benchmark
from data.errors import (
    ConfigError,
    EngineError,
    MissingDependencyError,
    MisuseError,
    StoreError,
    StoreMismatchError,
    StpError,
)
from data.question import Question
from data.registry import benchmark_names, get_benchmark

__all__ = [
    "Benchmark",
    "ConfigError",
    "EngineError",
    "MissingDependencyError",
    "MisuseError",
    "Question",
    "StoreError",
    "StoreMismatchError",
    "StpError",
    "benchmark_names",
    "get_benchmark",
]
