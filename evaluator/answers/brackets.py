r"""Brackets in an expression: what closes what, and where a text can be split."""

import re

_BRACKET = re.compile(
    r"\\\{|\\\}|\\langle|\\rangle|[()\[\]{}]|\\begin ?\{[a-zA-Z]{1,12}\*?\}|\\end "
    r"?\{[a-zA-Z]{1,12}\*?\}"
)
_SEPARATOR = re.compile(
    r"\\text\{ {0,3}(?:and|or|,) {0,3}\}|\\(?:lor|land|vee|wedge|quad)(?![a-zA-Z])"
    r"|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])|[和与及或]|, {0,2}\\text\{ {0,3}(?:and|"
    r"or) {0,3}\}|[,;]"
)
_AND = re.compile(r"\band\b|\\land|\\wedge")
_OPENING = {"(": "(", "[": "[", r"\{": "{", r"\langle": "<"}
_CLOSING = {")": ")", "]": "]", r"\}": "}", r"\rangle": ">"}


class Depths:
    """Nesting depth at increasing positions of a text."""

    def __init__(self, text: str) -> None:
        self._brackets = _BRACKET.finditer(text)
        self._pending = next(self._brackets, None)
        self._depth = 0

    def __call__(self, position: int) -> int:
        """Depth at a position that is not before the last one asked for."""
        while self._pending is not None and self._pending.start() < position:
            self._depth += 1 if _opens(self._pending.group()) else -1
            self._pending = next(self._brackets, None)
        return self._depth


def _opens(bracket: str) -> bool:
    return bracket in ("(", "[", "{", r"\{", r"\langle") or bracket.startswith(r"\begin")


def closing(text: str) -> int:
    """Index of the bracket that closes the one with which the text starts; -1 if none."""
    depth = 0
    for token in _BRACKET.finditer(text):
        depth += 1 if _opens(token.group()) else -1
        if depth == 0:
            return token.end() - 1
    return -1


def unwrapped(text: str) -> str:
    """Drop braces around the whole text."""
    for _ in range(4):
        if not (text.startswith("{") and text.endswith("}") and closing(text) == len(text) - 1):
            break
        text = text[1:-1].strip()
    return text


def inside(text: str) -> tuple[str, str] | None:
    r"""Split a text that is wholly in one pair of brackets into its inside and the brackets.

    Examples
    --------
    >>> inside(r"[3, 8)")
    ('3, 8', '[)')
    >>> inside("(1) + (2)") is None
    True
    """
    first = next((mark for mark in _OPENING if text.startswith(mark)), None)
    if first is None or closing(text) != len(text) - 1:
        return None
    last = next((mark for mark in _CLOSING if text.endswith(mark)), None)
    if last is None:
        return None
    return text[len(first) : -len(last)].strip(), _OPENING[first] + _CLOSING[last]


def split(text: str) -> tuple[list[str], bool]:
    """Split at top-level commas, semicolons, "and", "or"; also whether an "and" was there."""
    if _SEPARATOR.search(text) is None:
        return [text.strip()] if text.strip() else [], False
    depths = Depths(text)
    items, start, joined_by_and = [], 0, False
    for separator in _SEPARATOR.finditer(text):
        if depths(separator.start()) == 0:
            items.append(text[start : separator.start()])
            start = separator.end()
            joined_by_and = joined_by_and or _AND.search(separator.group()) is not None
    items.append(text[start:])
    return [item.strip() for item in items if item.strip()], joined_by_and


def split_at(text: str, separator: re.Pattern[str]) -> list[str]:
    """Split at a separator outside of all brackets."""
    depths = Depths(text)
    parts, start = [], 0
    for mark in separator.finditer(text):
        if depths(mark.start()) == 0:
            parts.append(text[start : mark.start()].strip())
            start = mark.end()
    return [*parts, text[start:].strip()]
