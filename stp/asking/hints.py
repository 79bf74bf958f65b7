"""What to say of a name that nobody knows."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'X'?"`` for the known name that is nearest, ``""`` if none is near.

    Examples
    --------
    >>> did_you_mean("transfomers", ["transformers", "vllm"]), did_you_mean("x", ["vllm"])
    ("; did you mean 'transformers'?", '')
    """
    by_small_letters = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_small_letters, n=1)
    return f"; did you mean {by_small_letters[near[0]]!r}?" if near else ""
