"""Sentences at the end of a response."""

import re

_END = re.compile(r"(?<![A-Z])[.!?](?=\s|$|[*\"'”)])|[。！？।]|\n")
_PLEASANTRY = re.compile(
    r"(?:i )?hope (?:it|this|that)\b|let me know|if you have|feel free|please (?:let|feel)|thank|"
    r"(?:is there|would you like)|good luck|note:|i'm (?:happy|glad)",
    re.IGNORECASE,
)
_MAX_CHARACTERS = 1500


_DOUBTED = re.compile(
    r"(?:n['’]t|\bnot|\bnever) (?:think|believe|say|claim|know|sure)|"
    r"(?:n['’]t|\bnot|\bnever)\b(?: \w{1,12}){0,3} ?$|\bdoubt\b|\bunlikely\b|"
    r"\bwhether\b",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[.!?\n](?=\s|$)|\n")


def is_doubted(text: str, mark: re.Match[str]) -> bool:
    """Whether a sentence about the answer denies it, or is about another case.

    `mark` is the part of it that announces the answer, as in "if n were 3, the answer would be".
    """
    before = _BREAK.split(text[max(0, mark.start() - 160) : mark.start()])[-1]
    hypothetical = "would" in mark.group().lower() and re.search(r"\bif\b", before, re.IGNORECASE)
    return _DOUBTED.search(before) is not None or bool(hypothetical)


def last_sentence(text: str) -> str:
    """Give the last sentence that says something about the question, with its full stop.

    Wishes after it ("I hope it is correct.") are left out.
    """
    text = text[-_MAX_CHARACTERS:].strip()
    ends = [end.end() for end in _END.finditer(text)]
    bounds = sorted({0, *ends, len(text)})
    for start, stop in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
        sentence = text[start:stop].strip()
        if len(sentence) > 1 and not _PLEASANTRY.match(sentence.lstrip("*_ ")):
            return sentence
    return ""
