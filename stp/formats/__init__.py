"""How a model is spoken to, and where its thinking ends and its answer starts."""

from stp.formats.family import ModelFamily, family_names, get_family
from stp.formats.finding import Found, family_for_model, find_family
from stp.formats.thinking import SplitOutput, ThinkingFormat

__all__ = [
    "Found",
    "ModelFamily",
    "SplitOutput",
    "ThinkingFormat",
    "family_for_model",
    "family_names",
    "find_family",
    "get_family",
]
