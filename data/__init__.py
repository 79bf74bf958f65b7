"""What is asked: questions, benchmarks, generated tasks, and the errors of this project."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "Benchmark": "benchmark",
    "ConfigError": "errors",
    "EngineError": "errors",
    "MissingDependencyError": "errors",
    "MisuseError": "errors",
    "Question": "question",
    "StoreError": "errors",
    "StoreMismatchError": "errors",
    "StpError": "errors",
    "benchmark_names": "registry",
    "get_benchmark": "registry",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module on first use: whoever needs an error needs no registry."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
