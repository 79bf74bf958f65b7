"""What to say about an unknown name."""

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


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the three nearest known names; case and marks between the letters do not count.

    Examples
    --------
    >>> near_names("AIME-2025", ["aime2024", "aime2025", "gsm8k"])
    ['aime2025', 'aime2024']
    """
    spelled: dict[str, list[str]] = {}
    for each in known:
        spelled.setdefault(_letters(each), []).append(each)
    near = difflib.get_close_matches(_letters(name), spelled, n=3)
    return [each for match in near for each in spelled[match]][:3]


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'X'?"`` for the known name that is nearest, ``""`` if none is near.

    Examples
    --------
    >>> did_you_mean("transfomers", ["transformers", "vllm"]), did_you_mean("x", ["vllm"])
    ("; did you mean 'transformers'?", '')
    """
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near is not None else ""
