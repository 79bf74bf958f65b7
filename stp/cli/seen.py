"""Untrusted text on a terminal: a model's output must not move its cursor or set its title."""

import sys


def seen(text: str) -> str:
    """Return ``text`` with control and hidden characters made visible; newlines and tabs stay.

    Examples
    --------
    >>> seen(chr(27) + "[2J") == chr(0x241B) + "[2J"
    True
    """
    from evaluator.present.names import visible

    return visible(text, limit=sys.maxsize)
