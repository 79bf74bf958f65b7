"""Sentences at the end of a response."""

import re

_END = re.compile(r"(?<![A-Z])[.!?](?=\s|$|[*\"'”)])|[。！？।]|\n")
_PLEASANTRY = re.compile(
    r"(?:i )?hope (?:it|this|that)\b|let me know|if you have|feel free|please (?:let|feel)|thank|"
    r"(?:is there|would you like)|good luck|note:|i'm (?:happy|glad)",
    re.IGNORECASE,
)
_MAX_CHARACTERS = 1500


def last_sentence(text: str) -> str:
    """Give the last sentence that says something about the question, with its full stop.

    Wishes behind it ("I hope it is correct.") are left out.
    """
    text = text[-_MAX_CHARACTERS:].strip()
    ends = [end.end() for end in _END.finditer(text)]
    bounds = sorted({0, *ends, len(text)})
    for start, stop in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
        sentence = text[start:stop].strip()
        if len(sentence) > 1 and not _PLEASANTRY.match(sentence.lstrip("*_ ")):
            return sentence
    return ""
