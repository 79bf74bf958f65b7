"""Text that strangers wrote (models, question files), made safe and visible on a page."""

import json
import re
from html import escape
from typing import Any

# Characters that a browser hides or that turn the reading direction: shown by name instead.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f"
    "\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


def _show(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\u27e8U+{code:04X}\u27e9"


def visible(text: str, limit: int = 6000) -> str:
    """Return ``text`` with hidden characters made visible, cut after ``limit`` characters.

    Newlines and tabs stay. A cut says how much is missing.

    Examples
    --------
    >>> visible("a" + chr(0) + "b") == "a" + chr(0x2400) + "b"
    True
    """
    if len(text) > limit:
        missing = len(text) - limit
        text = f"{text[:limit]} \u2026 [{missing:,} more characters]"
    return _HIDDEN.sub(_show, text)


def html(text: str, limit: int = 6000) -> str:
    """Return ``text`` as it may stand in HTML, in an element or a quoted attribute."""
    return escape(visible(text, limit), quote=True)


def script_json(value: Any) -> str:
    """Return ``value`` as JSON that may stand inside a ``<script>`` element.

    Nothing in it can end the element or start a comment: ``<``, ``>`` and ``&`` are escaped, as
    are the two line separators that older scripts take for line ends.

    Raises
    ------
    ValueError
        If the value holds NaN or an infinity, which are not JSON.
    """
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        dumped = dumped.replace(character, f"\\u{ord(character):04x}")
    return dumped
