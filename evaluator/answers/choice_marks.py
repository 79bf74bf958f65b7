r"""Where a response names an option: patterns of labels, sentences and statements, in text.

What a place holds (a letter, an option's text, two letters) is decided in `choices`.
"""

import re
from collections.abc import Iterator

from evaluator.answers.languages import ANNOUNCEMENT, CHOSEN

_ADVERBS = (
    r"(?:(?:therefore|thus|hence|then|simply|just|definitely|clearly|obviously|certainly|"
    r"surely|for sure|"
    r"most likely|likely|probably|indeed|actually|really|of course|in fact|again|now|also|still|"
    r"none other than)\b[ \t,:*_]{1,4}){0,3}"
)
TAG = re.compile(r"<(?:final_)?answer>\s{0,8}", re.IGNORECASE)
LABEL = re.compile(
    r"(?:\"|')?\b(?:answer|ans|choice|option|letter|selection|selected)\b(?:\"|"
    r"')?[ \t]{0,3}[*_]{0,3}"
    r"[ \t]{0,3}[:：=][ \t*_\n]{0,8}",
    re.IGNORECASE,
)
SENTENCE = re.compile(
    r"\b(?:answer|choice|option|letter)\b(?: to (?:the|this) question)?(?:,? (?:here|"
    r"therefore|thus|then),?)? "
    rf"(?:is|should be|must be|would be|appears to be|seems to be)\b:?[ \t*_\n]{{0,6}}{_ADVERBS}",
    re.IGNORECASE,
)
CHOOSING = re.compile(
    r"\b(?:i|we|i'll|i'd|i’d|i’ll)(?: would| will| must| should)?"
    r" (?:choose|pick|select|go with|opt for|answer)[ \t*_:]{1,4}",
    re.IGNORECASE,
)
PLACES = (TAG, LABEL, SENTENCE, CHOOSING, ANNOUNCEMENT, CHOSEN)
"""Marks after which the option stands, as text or as letter."""

SENTENCES = (SENTENCE, CHOOSING, ANNOUNCEMENT)
"""Those of them that can be denied or be about another case."""

_LETTER = r"[*_]{0,3}[(\[]?([A-Z])[)\]]?[*_]{0,3}"
_PRAISE = re.compile(
    rf"(?<![A-Za-z'’\\_^{{]){_LETTER}(?:[ \t]\([^()\n]{{1,80}}\))?[ \t]{{1,2}}"
    rf"(?i:is|must be|would be|has to be)[ \t]{{1,2}}{_ADVERBS}"
    r"(?i:(?:the )?(?:only )?(?:correct|right|best)(?: (?:answer|option|choice|one|"
    r"response|letter))?"
    r"|the (?:answer|one|choice|option)|true)\b"
    r"(?=[ \t]{0,2}(?:[.!?,;:)*\n—–-]|$|(?i:because|since|as|here|given|for|and|to|from|but)\b))"
)
_KEYWORD = re.compile(r"\b(?:option|choice|answer|statement)[ \t]{1,2}$", re.IGNORECASE)
_SUBJECT_BEGINS = re.compile(
    r"(?:^|[,:;—–(\"“-]|\b(?:so|thus|therefore|hence|think|believe|that|say|conclude|clearly|then|means|"
    r"only|see|find|know|know that|is that|confident|sure|and so)\b)[\s*_]*$",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:if|whether|not|neither|nor|or|and|doubt|unless|suppose|assume|assuming|would|might|could|both|"
    r"why|claims?|says?|only when)\b|n['’]t\b|[,/&][ (]{0,2}[A-Z][)]?[ ,]{0,3}$",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"\b(?i:wait|actually|no|correction|sorry|oops)\b[^.\n?]{0,60}?"
    r"(?i:\bit(?:['’]s| is| should be| must be)|\bshould be|\bi meant|\bcorrection:)[ \t]{1,2}"
    r"(?i:option |choice |answer )?" + _LETTER + r"(?![A-Za-z'’])"
)
_CONCLUDING = re.compile(
    r"(?:\b(?i:so|therefore|thus|hence|is|be|it's|it’s|with|choose|option|choice|be option)\b|^)[ "
    r"\t,:*_]{1,4}"
    r"(?i:option |choice |answer )?" + _LETTER + r"[ \t.!*_]{0,5}$"
)
_OPENING = re.compile(
    r"[\s*_#>]{0,6}(?i:option |choice )?[(\[]?([A-Z])[)\]]?[*_]{0,3}"
    r"(?:(?=[\u3000-\u9fff])|[.:)][*_]{0,3}[ \t]{1,2}(?P<word>\S{1,20})"
    r"|[,;][ \t]{1,2}(?=(?i:because|since|as|which|it|the|this|that|for)\b)"
    r"|[ \t]{1,2}(?=(?i:because|since)\b)|[ \t]?[–—-][ \t])"
)
_WORDS_THAT_EXPLAIN = frozenset(
    [
        "it", "this", "that", "the", "because", "since", "as", "they", "there", "we", "for", "by",
        "in", "if", "all", "none", "both", "i", "its",
    ]
)  # fmt: skip
_OPTION_LINE = re.compile(r"^[\s*_>-]{0,6}[(\[]?([A-Z])[)\].:]", re.MULTILINE)
_LOWER_CASE = re.compile(
    r"\((?<![\w)}\]]\()[a-z]\)(?![\w(^_])"
    r"|(?:[Oo]ption|[Cc]hoice)[ \t][a-z](?=[ \t]?(?:[.,;:!)*\n]|$|(?:is|was|must|would|because)\b))"
    r"|^[ \t*_]{0,4}[a-z]\)(?=[ \t]{1,2}(?i:because|since|as|it|this|that|the|they|there|for)\b)"
    r"|(?:[Ss]o|[Tt]hus|[Hh]ence|[Tt]herefore,?|think|believe)[ \t][b-z]"
    r"(?= is (?:the )?(?:correct|right|best|answer)\b)",
    re.MULTILINE,
)
_SENTENCE_BREAK = re.compile(r"[.!?\n](?=\s|$)|。|\n")


def with_capitals(text: str) -> str:
    """Write letters that can only be options in upper case: "(b)", "option b is right".

    The text keeps its length.
    """
    return _LOWER_CASE.sub(lambda letter: letter.group().upper(), text)


def praised(text: str) -> Iterator[tuple[int, str]]:
    """Yield the letters that a statement calls right, and where: "so (B) is correct"."""
    for praise in _PRAISE.finditer(text):
        before = text[max(0, praise.start() - 160) : praise.start()]
        breaks = [mark.end() for mark in _SENTENCE_BREAK.finditer(before)]
        before = before[breaks[-1] if breaks else 0 :]
        keyword = _KEYWORD.search(before) is not None
        if praise.group().endswith(("true", "True")) and not keyword:
            continue  # "B is true" may be said of a statement B
        end = _SENTENCE_BREAK.search(text, praise.end())
        asked = end is not None and end.group() == "?"
        if not keyword and "(" not in praise.group()[:4] and not _SUBJECT_BEGINS.search(before):
            continue  # "Vitamin C is the best"
        if not asked and not _DOUBT.search(_KEYWORD.sub("", before)):
            yield praise.start(), praise.group(1)
    for corrected in _CORRECTED.finditer(text):
        yield corrected.start(), corrected.group(1)


def concluded(line: str) -> str | None:
    """Give the letter that a last line ends in: "Therefore, C."."""
    conclusion = _CONCLUDING.search(line[-200:])
    return None if conclusion is None else conclusion.group(1)


def opened(text: str) -> str | None:
    """Give the letter with which a response opens before it explains: "C. It is the only one"."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    word = opening.group("word")
    if (
        word is not None
        and word[0].islower()
        and word.strip(",").lower() not in _WORDS_THAT_EXPLAIN
    ):
        return None  # "E. coli"
    return None if copies_options(text) else opening.group(1)


def copies_options(text: str, lines: list[str] | None = None) -> bool:
    """Whether a response, or some lines of it, copy the options out, a line each."""
    copied = text[:4000] if lines is None else "\n".join(lines)
    return len({line.group(1) for line in _OPTION_LINE.finditer(copied)}) > 1
