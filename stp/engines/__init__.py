"""Engines: prompt trees of token ids in, sampled token ids out.

:func:`open_engine` makes one by name; the libraries that run a model are imported only then.
"""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from data.errors import ConfigError
from stp.engines.base import (
    Branch,
    Completion,
    Engine,
    FinishReason,
    PromptTree,
    SamplingParameters,
    TreeCompletions,
    Usage,
)

__all__ = [
    "Branch",
    "Completion",
    "Engine",
    "FinishReason",
    "PromptTree",
    "SamplingParameters",
    "TreeCompletions",
    "Usage",
    "engine_names",
    "open_engine",
]

_ENGINES: Final = {
    "transformers": ("stp.engines.transformers", "TransformersEngine"),
    "vllm": ("stp.engines.vllm", "VllmEngine"),
}


def engine_names() -> tuple[str, ...]:
    """Return the names that :func:`open_engine` knows."""
    return tuple(_ENGINES)


def open_engine(name: str, model_path: str | Path, **options: Any) -> Engine:
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
    if name not in _ENGINES:
        raise ConfigError(f"engine {name!r} is unknown; choose one of {', '.join(_ENGINES)}")
    module_name, class_name = _ENGINES[name]
    engine_class: type[Engine] = getattr(import_module(module_name), class_name)
    try:
        return engine_class(model_path, **options)  # type: ignore[call-arg]
    except TypeError as error:
        # Only the call itself may be at fault here: a TypeError from inside carries a longer trace.
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise ConfigError(f"engine {name!r}: {error}") from error
        raise
