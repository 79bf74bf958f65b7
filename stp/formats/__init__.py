"""How a model is spoken to, and where its thinking ends and its answer starts."""

from stp.formats.family import ModelFamily, family_for_model, family_names, get_family
from stp.formats.thinking import SplitOutput, ThinkingFormat

__all__ = [
    "ModelFamily",
    "SplitOutput",
    "ThinkingFormat",
    "family_for_model",
    "family_names",
    "get_family",
]
