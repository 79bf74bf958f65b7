"""Asking: questions to any model, and stored responses.

>>> Settings(max_tokens=1024).dress("What is 2 + 2?")
'What is 2 + 2?'
"""

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
from stp.asking.opening import ModelSpec, open_responder
from stp.asking.store import ResponseStore, strict_json

__all__ = [
    "TOOL_NAMES",
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
    "strict_json",
]
