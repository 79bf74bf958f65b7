"""Thinking that stands in a text, between tags that the model wrote.

They may be written by a model of no known family, by a model whose thinking is off, by a server
that does not separate the two, or by a user's own function. Without a look at the text all of it
would count as answer, and the model as one that thinks for no tokens.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_TAGS: Final = ("think", "thinking", "thought", "reasoning", "seed:think")
_START: Final = re.compile(rf"<(?:{'|'.join(_TAGS)})>|\[THINK\]|◁think▷", re.IGNORECASE)
_END: Final = re.compile(rf"</(?:{'|'.join(_TAGS)})>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_BLANK: Final = re.compile(r"\s*")
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WrittenThinking:
    """Where in a text the thinking stands; all are character positions.

    Attributes
    ----------
    start, end
        Of the thinking, tags left out.
    answer
        Where the answer starts.
    closed
        Whether the thinking was ended; without it there is no answer.
    """

    start: int
    end: int
    answer: int
    closed: bool


def written_thinking(text: str, *, open_from_start: bool = False) -> WrittenThinking | None:
    """Find thinking between written tags in a response.

    A response is read as thinking where it begins with an opening tag, or holds a closing tag
    without one (the prompt may have opened it). All up to the last closing tag is thinking; after
    that, an opening tag without an end means that the model still thought when it stopped. Tags in
    a fenced block are text that the answer shows.

    Parameters
    ----------
    text
        A response.
    open_from_start
        Whether the prompt is known to have opened the thinking.

    Returns
    -------
    WrittenThinking or None
        None if the text is all answer.

    Examples
    --------
    >>> text = "<think>4 + 4</think> It is 8."
    >>> found = written_thinking(text)
    >>> text[found.start : found.end], text[found.answer :]
    ('4 + 4', ' It is 8.')
    >>> written_thinking("<think>4 + 4, let me").closed
    False
    >>> written_thinking("The tag <think> opens it.") is None
    True
    """
    if not open_from_start and not ("<" in text or "THINK]" in text or "◁" in text):
        return None
    opening = _START.match(text, _after_blank(text, 0))
    opened = open_from_start or opening is not None
    start = opening.end() if opening else 0
    seen = _FENCE.sub(lambda found: " " * len(found[0]), text) if not opened else text
    last = None
    for last in _END.finditer(seen, start):  # noqa: B007 (the last match is wanted)
        pass
    if last is None:
        return WrittenThinking(start, len(text), len(text), closed=False) if opened else None
    if not opened and (quoted := _START.search(seen, 0, last.start())) is not None:
        # The answer came first: only a whole block after it is further thinking.
        start = quoted.end()
    if _START.match(text, _after_blank(text, last.end())):
        return WrittenThinking(start, len(text), len(text), closed=False)
    return WrittenThinking(start, last.start(), last.end(), closed=True)


def part_ids(
    ids: Sequence[int], forms: Sequence[bytes]
) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Split an output by the tags that are written in its text.

    Parameters
    ----------
    ids
        What the model wrote, the id that ended its turn left out.
    forms
        The bytes of every id (:func:`stp.tokenizers.token_bytes`).

    Returns
    -------
    tuple
        The ids of the thinking, those of the answer, and whether there is an answer. A token
        across a tag's end belongs to the answer if it holds some of its text.
    """
    # Bytes that are not text keep their places.
    text = b"".join(forms[token] for token in ids).decode("utf-8", "surrogateescape")
    found = written_thinking(text)
    if found is None:
        return (), tuple(ids), True
    start, end, answer = (
        len(text[:at].encode("utf-8", "surrogateescape"))
        for at in (found.start, found.end, found.answer)
    )
    thinking, rest, at = [], [], 0
    for token in ids:
        after = at + len(forms[token])
        if start <= at and after <= end:
            thinking.append(token)
        elif at >= answer or (after > answer and forms[token][answer - after :].strip()):
            rest.append(token)
        at = after
    return tuple(thinking), tuple(rest), found.closed


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()
