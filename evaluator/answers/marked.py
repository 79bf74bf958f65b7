r"""Answers that a response marks in other ways than a box.

Text only. The layers, strongest first: an ``<answer>`` tag or a label (``Answer: 7``,
``#### 7``), a sentence (``the answer is 7``), emphasis in the last line (``**7**``), a last line
that is nothing but the value, the end of the last line (``so x = 7.``). The last of all is the
fallback: the only value of the last sentence.
"""

import re

from evaluator.answers.expressions_in_text import (
    ADVERBS,
    CONNECTOR,
    FORMULA,
    MARKDOWN,
    PROSE_WORD,
    VALUE,
    conclusion_of,
    content_of,
    formulas_from,
    leading_expression,
)
from evaluator.answers.fallback import is_list_item, only_value
from evaluator.answers.languages import ANNOUNCEMENT
from evaluator.answers.sentences import is_doubted, last_sentence
from evaluator.answers.units import is_unit

TAIL_CHARACTERS = 6000
"""Unmarked answers are looked for in the end of a response only."""

_TAG = re.compile(r"<(answer|final_answer)>", re.IGNORECASE)
_HASHES = re.compile(
    rf"^####[ \t]{{0,4}}(?=(?:[*$\\({{\[]|{VALUE})"
    r"(?![ \t]{0,2}[.:)][ \t]{1,3}[A-Za-z])[^\n:]{0,200}$)",
    re.MULTILINE,
)
_LABEL = re.compile(
    r"(?:^|(?<=[\n\s*_#>.!?]))(?:the[ \t])?(?:my[ \t])?(?:final[ \t]|correct[ \t])?(?:answer|ans)"
    r"[ \t]{0,3}[*_]{0,3}[ \t]{0,3}[:：=][ \t*_]{0,6}(?:is[ \t:]{1,3})?",
    re.IGNORECASE,
)
_LABEL_BEFORE_FORMULA = re.compile(
    r"^[ \t]{0,3}[*_#]{0,4}[ \t]?(?:final )?answer[*_]{0,3}[ \t]{1,3}(?=\$|\\[(\[])",
    re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(
    r"^[#*_ \t]{1,8}(?:the )?(?:final )?answer[*_: \t]{0,6}\n\s{0,6}(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = re.compile(
    r"\b(?:answer|result|solution)s?\b[^.\n:$\\]{0,60}?"
    r"\b(?:is|are|should be|must be|would be|equals)\b[ \t]{0,3}:?[ \t*_]{0,6}\s{0,3}",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_FEW_WORDS = re.compile(
    r"[ \t*_:\"']{0,6}([a-zA-Z]{1,20}(?:[ -][a-zA-Z]{1,20}){0,3})[*_\"']{0,3}[.!]?[*_]{0,3}[ "
    r"\t]{0,3}(?=\n|$)"
)
_THEREFORE = re.compile(
    r"(?:so|thus|therefore|hence|we (?:get|have|find|obtain)|giving)\b", re.IGNORECASE
)
_HEDGED = re.compile(
    r"\b(?:maybe|perhaps|possibly|might|i guess|would have to|have to|need to|let me|let us|let's|"
    r"not sure|next|suppose|assume|consider|if|so far|still|starts?|begins?|initially|"
    r"doubt)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(
    r", (?:which is |and (?:it )?is )?(?:attained|achieved|reached|obtained|occurring|"
    r"where|when|since|"
    r"because|as (?:required|desired|claimed|expected)|with equality)\b.{0,200}$",
    re.IGNORECASE,
)
_ASSIGNMENTS = re.compile(
    r"\b([a-z](?:_\w)? ?= ?[-−\d./\\{}a-z]{1,40}(?:,? and |"
    r", )[a-z](?:_\w)? ?= ?[-−\d./\\{}a-z]{1,40}?"
    r"(?:(?:,? and |, )[a-z](?:_\w)? ?= ?[-−\d./\\{}a-z]{1,40}?)?)[.!]?$"
)
_TWO_WORDS = re.compile(r"(?<!\\)(?<![a-zA-Z])[a-zA-Z]{3,20}[ ,]{1,2}[a-zA-Z]{2,20}")
_BARE_VALUE = re.compile(
    r"[-+−]?[\d\\(\[{$√π∞.€£][^!?;]{0,150}|[a-zA-Z]|[a-zA-Z](?:_\w)? ?= ?[^!?;=]{1,100}"
)


class FallbackAnswer(str):
    """An answer that nothing marks: the only value of the last sentence."""

    __slots__ = ()


def marked_answer(text: str) -> str | None:
    """Find the answer that a response without a box marks; None if it marks none."""
    tail = text[-TAIL_CHARACTERS:]
    found = labelled_answer(tail)
    if found is not None:
        return found[0]
    label_words = _words_behind(_LABEL, tail)
    if label_words is not None:
        return label_words
    for pattern in (_SENTENCE, ANNOUNCEMENT):
        for sentence in reversed(list(pattern.finditer(tail))):
            if is_doubted(tail, sentence):
                continue
            content = leading_expression(tail[sentence.end() : sentence.end() + 600])
            if content is not None:
                return content
    return _closing_answer(tail) or _words_behind(_SENTENCE, tail) or _fallback(tail)


def _words_behind(pattern: re.Pattern[str], text: str) -> str | None:
    """Read a word or three after the last mark, as in ``Answer: less than``."""
    last = None
    for last in pattern.finditer(text):  # noqa: B007 (the last match is wanted)
        pass
    if last is None:
        return None
    adverbs = ADVERBS.match(text, last.end())
    words = _FEW_WORDS.match(text, last.end() if adverbs is None else adverbs.end())
    return words.group(1) if words is not None else None


def labelled_answer(text: str, *, behind_box: bool = False) -> tuple[str, int] | None:
    """Find the last answer after a tag or a label, and where its mark starts.

    Behind a box, ``#### 7 remarks`` is a heading; elsewhere ``#### 7 apples`` is an answer.
    """
    best: tuple[str, int] | None = None
    for tag in _TAG.finditer(text):
        end = text.find(f"</{tag.group(1)}>", tag.end())
        content = text[tag.end() : end if end >= 0 else tag.end() + 600].strip()
        if content:
            best = (content, tag.start())
    for pattern in (_HASHES, _LABEL, _HEADING, _LABEL_BEFORE_FORMULA):
        for label in reversed(list(pattern.finditer(text))):
            if best is not None and label.start() < best[1]:
                break
            content_or_none = leading_expression(text[label.end() : label.end() + 600])
            if behind_box and pattern is _HASHES and PROSE_WORD.search(content_or_none or ""):
                continue
            if content_or_none is not None:
                best = (content_or_none, label.start())
                break
    return best


def _closing_answer(tail: str) -> str | None:
    lines = [line for line in tail.rsplit("\n", 40)[-40:] if line.strip()]
    if not lines:
        return None
    last = lines[-1].strip()
    bold = _BOLD.findall(last)
    if bold and re.search(r"\d", bold[-1]):
        return leading_expression(bold[-1])
    whole = _whole_expression(last)
    if whole is not None and (len(lines) == 1 or not re.match(r"\d{1,3}[.)]|[-*] ", last)):
        return whole
    sentence = last_sentence(last)
    clause = _AFTERTHOUGHT.search(sentence)
    if clause is not None:
        sentence = sentence[: clause.start()]
    assignments = _ASSIGNMENTS.search(sentence)
    if assignments is not None:
        return assignments.group(1)
    formulas = list(FORMULA.finditer(sentence))
    if formulas and len(sentence) - formulas[-1].end() <= 3:
        return formulas_from(sentence, _first_joined(sentence, formulas))
    if formulas and re.search(r"\d", formulas[-1].group()):
        behind = sentence[formulas[-1].end() :].strip(" .!*")
        if is_unit(behind):
            return rf"{content_of(formulas[-1])} \text{{ {behind}}}"
    if len(formulas) == 1 and "=" in formulas[0].group() and _THEREFORE.match(sentence):
        return content_of(formulas[0])
    return None if _HEDGED.search(sentence) else conclusion_of(sentence)


def _first_joined(sentence: str, formulas: list[re.Match[str]]) -> re.Match[str]:
    """Give the first of the formulas that are joined to the last one: ``$x = 2$ or $x = 3$``."""
    first = len(formulas) - 1
    while first and CONNECTOR.fullmatch(
        sentence, formulas[first - 1].end(), formulas[first].start()
    ):
        first -= 1
    return formulas[first]


def _whole_expression(line: str) -> str | None:
    """Take a line that is nothing but an expression: no words but those after a number."""
    formula = FORMULA.match(line.strip(MARKDOWN))
    if formula is not None and len(line.strip(MARKDOWN)) - formula.end() <= 12:
        behind = line.strip(MARKDOWN)[formula.end() :].strip(" .")
        if not behind or re.fullmatch(r"\\?%|[a-zA-Z]{1,10}", behind):
            return formulas_from(line.strip(MARKDOWN), formula)
    content = line.strip(MARKDOWN + "$").rstrip(".")
    if _BARE_VALUE.fullmatch(content) and not _TWO_WORDS.search(content):
        return content
    return None


def _fallback(tail: str) -> FallbackAnswer | None:
    """Take the only value of the last sentence, if the sentence states something."""
    last_line = tail.rstrip().rsplit("\n", 1)[-1]
    value = None if is_list_item(last_line) else only_value(last_sentence(tail))
    return None if value is None else FallbackAnswer(value)
