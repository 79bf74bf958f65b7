"""Which engines there are, without loading any."""

from typing import Final

ENGINES: Final = {
    "transformers": ("stp.engines.transformers", "TransformersEngine"),
    "vllm": ("stp.engines.vllm", "VllmEngine"),
    "server": ("stp.engines.server", "ServerEngine"),
}
"""By name, the module and the class of an engine."""


def engine_names() -> tuple[str, ...]:
    """Return the names that :func:`stp.engines.open_engine` knows."""
    return tuple(ENGINES)
