"""What to say of a name that nobody knows."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is nearest, whatever its case; None if none is near.

    Examples
    --------
    >>> nearest("geografy", ["Geography", "History"]), nearest("x", ["History"])
    ('Geography', None)
    """
    by_small_letters = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_small_letters, n=1)
    return by_small_letters[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'X'?"`` for the known name that is nearest, ``""`` if none is near.

    Examples
    --------
    >>> did_you_mean("transfomers", ["transformers", "vllm"]), did_you_mean("x", ["vllm"])
    ("; did you mean 'transformers'?", '')
    """
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near is not None else ""
