"""Tokens of texts that no provider counted, by tiktoken (paper 000, F.5): always an estimate.

A GPT model has its own encoding. Other models of closed providers get ``cl100k_base``, as in the
paper. All others (a user's own server, a host of open models, a function) have none here.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from stp.asking.api import OWN_SERVER

_LOG = logging.getLogger(__name__)

CLOSED_ENCODING: Final = "cl100k_base"
"""What the paper counts closed models by."""

_PIECE: Final = 50_000
"""Characters encoded at a time: a million blanks overflow the stack of tiktoken's regex. Texts are
rarely longer, and a cut changes the count by a token or two."""

_CLOSED: Final = frozenset(
    {"anthropic", "azureai", "google", "grok", "openai", "perplexity", "vertex"}
)
_ROUTER: Final = "openrouter/"


@dataclass(frozen=True, slots=True)
class TextCounter:
    """Counts the tokens of a text.

    Attributes
    ----------
    name
        By what, such as ``"tiktoken o200k_base"``.
    count
        Text to number of tokens.
    """

    name: str
    count: Callable[[str], int]


def encoding_name(model: Mapping[str, object]) -> str | None:
    """Return the encoding that a model's texts are counted by; None if there is none.

    Parameters
    ----------
    model
        As :meth:`stp.asking.Responder.describe` says it.

    Raises
    ------
    ImportError
        If the model is behind an API and tiktoken is not installed.

    Examples
    --------
    >>> encoding_name({"engine": "api", "model": "openai/gpt-4.1-mini"})
    'o200k_base'
    >>> encoding_name({"engine": "api", "model": "anthropic/claude-sonnet-4-5"})
    'cl100k_base'
    >>> encoding_name({"engine": "function", "model": "gpt-4o"}) is None
    True
    """
    if model.get("engine") != "api":
        return None
    from tiktoken import encoding_name_for_model

    name = str(model.get("model", "")).lower()
    try:
        return encoding_name_for_model(name.rpartition("/")[2])
    except KeyError:
        closed = name.removeprefix(_ROUTER).partition("/")[0] in _CLOSED
        return CLOSED_ENCODING if closed and not name.startswith(OWN_SERVER) else None


def text_counter(model: Mapping[str, object]) -> TextCounter | None:
    """Return what counts a model's texts; None if nothing here can.

    An encoding that cannot be loaded is one line of warning: tiktoken fetches it once, and keeps
    it in the folder ``TIKTOKEN_CACHE_DIR``.

    Parameters
    ----------
    model
        As :func:`encoding_name`.
    """
    name = None
    try:
        name = encoding_name(model)
        if name is None:
            return None
        from tiktoken import get_encoding

        encoding = get_encoding(name)
    except ImportError:
        _LOG.warning(
            "tiktoken is not installed, so tokens that the provider did not count are estimated "
            "from words; pip install 'stp-engine[api]'"
        )
        return None
    # requests' errors are OSErrors; a damaged file is a ValueError.
    except (OSError, ValueError) as error:
        _LOG.warning(
            "tiktoken's encoding %s cannot be loaded (%s), so tokens that the provider did not "
            "count are estimated from words; connect once, or set TIKTOKEN_CACHE_DIR to a folder "
            "that has it",
            name,
            type(error).__name__,
        )
        return None

    def count(text: str) -> int:
        pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
        # Names of special tokens are text like any other where a model writes them.
        return sum(len(encoding.encode(piece, disallowed_special=())) for piece in pieces)

    return TextCounter(f"tiktoken {name}", count)
