"""Engines: prompt trees of token ids in, sampled token ids out.

:func:`open_engine` makes one by name; the libraries that run a model are imported only then.
"""

import inspect
import itertools
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from data.errors import ConfigError
from data.hints import did_you_mean
from stp.engines.base import (
    Branch,
    Completion,
    Engine,
    FinishReason,
    PromptTree,
    RequestError,
    SamplingParameters,
    TreeCompletions,
    Usage,
)
from stp.engines.names import ENGINES, engine_names

__all__ = [
    "Branch",
    "Completion",
    "Engine",
    "FinishReason",
    "PromptTree",
    "RequestError",
    "SamplingParameters",
    "TreeCompletions",
    "Usage",
    "engine_names",
    "open_engine",
]


_LARGEST = 2**63 - 1
"""No library takes a larger whole number."""


def open_engine(name: str, model_path: str | Path, /, **options: Any) -> Engine:
    """Load a model.

    Parameters
    ----------
    name
        One of :func:`engine_names`.
    model_path
        Folder of a Hugging Face model.
    **options
        The engine's own options; see its class.

    Raises
    ------
    data.errors.ConfigError
        If the engine or one of its options is unknown.
    data.errors.MissingDependencyError
        If the engine's library is not installed.
    data.errors.MisuseError
        If there is no model in the folder.
    data.errors.EngineError
        If the model cannot be run by this engine.
    """
    if name not in ENGINES:
        raise ConfigError(f"engine {name!r} is unknown; choose one of {', '.join(ENGINES)}")
    # PyTorch's threads read this once. They would otherwise burn their cores while they wait for
    # each other: on a machine that others use too, ten times the time.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    module_name, class_name = ENGINES[name]
    engine_class: type[Engine] = getattr(import_module(module_name), class_name)
    _check_options(name, engine_class, options)
    return engine_class(model_path, **options)  # type: ignore[call-arg]


def _whole_numbers(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(map(_whole_numbers, value.values()))
    elif isinstance(value, list | tuple):
        yield from itertools.chain.from_iterable(map(_whole_numbers, value))


def _check_options(name: str, engine_class: type[Engine], options: Mapping[str, object]) -> None:
    """Refuse options that the engine has not, or of another type or size than it can have."""
    from pydantic import TypeAdapter, ValidationError

    parameters = inspect.signature(engine_class).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    known = [key for key, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    hints = get_type_hints(engine_class.__init__)
    for key in known:
        if key not in options and parameters[key].default is inspect.Parameter.empty:
            raise ConfigError(
                f"engine {name!r} needs the option {key!r}; set it under [engine.options]"
            )
    for key, value in options.items():
        if any(abs(number) > _LARGEST for number in _whole_numbers(value)):
            raise ConfigError(f"engine option {key} holds a number that no engine counts to")
        if key not in known:
            ours = inspect.signature(engine_class.__init__).parameters
            if inspect.Parameter.VAR_KEYWORD in kinds and key not in ours:
                continue  # They go to a library that has its own check.
            raise ConfigError(
                f"engine {name!r} has no option {key!r}{did_you_mean(key, known)} (there are "
                f"{', '.join(known)})"
            )
        try:
            TypeAdapter(hints[key]).validate_python(value, strict=True)
        except ValidationError as error:
            reason = error.errors()[0]["msg"].replace("Input should be", "must be")
            raise ConfigError(f"engine option {key} is {value!r}: it {reason}") from error
