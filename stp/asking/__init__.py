"""Asking: questions to any model, and stored responses.

>>> Settings(max_tokens=1024).dress("What is 2 + 2?")
'What is 2 + 2?'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stp.asking.base import (
    TOOL_NAMES,
    Finish,
    OnResponse,
    ReasoningEffort,
    Request,
    Responder,
    Response,
    Settings,
    Thinking,
    failed,
)
from stp.asking.function import CallableResponder
from stp.asking.opening import ModelSpec, open_responder
from stp.asking.store import ResponseStore

if TYPE_CHECKING:
    from stp.asking.api import ApiResponder
    from stp.asking.engine import EngineResponder

__all__ = [
    "TOOL_NAMES",
    "ApiResponder",
    "CallableResponder",
    "EngineResponder",
    "Finish",
    "ModelSpec",
    "OnResponse",
    "ReasoningEffort",
    "Request",
    "Responder",
    "Response",
    "ResponseStore",
    "Settings",
    "Thinking",
    "failed",
    "open_responder",
]


def __getattr__(name: str) -> Any:
    """Import what needs more than this package on first use."""
    homes = {"ApiResponder": "api", "EngineResponder": "engine"}
    if name in homes:
        return getattr(import_module(f"{__name__}.{homes[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
