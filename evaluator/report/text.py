"""Text that strangers wrote (models, question files), made safe for a page."""

import json
from html import escape
from typing import Any

from evaluator.present.names import visible


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
