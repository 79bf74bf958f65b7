r"""The expression that stands somewhere in a text: after a label, at the end of a sentence.

Text in, text out. Every regular expression here is linear: alternatives start with different
characters, and what repeats is bounded.
"""

import re

from evaluator.answers.units import is_unit

MARKDOWN = " \t\r\n*_`#>\"'"
FORMULA = re.compile(
    r"\$\$([^$]{1,400})\$\$|\$([^$\n]{1,400})\$|\\\[(.{1,400}?)\\\]|\\\((.{1,400}?)\\\)", re.DOTALL
)
PROSE_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{2,30}")
VALUE = (
    r"[-+−]?[$€£¥]?(?:\\\$)?[-+−]?"
    r"(?:\d[\d,. /]{0,40}|\.\d{1,40}|\\[dt]?frac\{\d{1,20}\}\{\d{1,20}\}|\[[-−\d., ]{1,300}\]"
    r"|\([-−\d., ]{1,300}\)|√\d{1,20})(?:√\d{1,20}|√\([^()]{1,40}\)|π|\\pi\b|"
    r"\\sqrt\{[^{}]{1,40}\})?(?: ?\\?%)?[€£¥$]?(?:\\degree|°)?"
)
SENTENCE_END = re.compile(r"(?<!\.\.)[.!?](?!\.)(?=\s|$|\*|\")|[。！？](?!\d)")
STOP_WORD = re.compile(
    r"[ \t,;(]{1,4}(?:because|since|so|as|which|where|after|given|by|I hope|if|when|but|not)\b",
    re.IGNORECASE,
)
ADVERBS = re.compile(
    r"(?:(?:therefore|thus|then|hence|simply|just|exactly|precisely|clearly|indeed|actually|definitely|"
    r"obviously|certainly|surely|of course|now|also|only|really|likely|equal to|given by|"
    r"found to be|"
    r"computed to be|calculated to be|calculated as|as follows|always|finally|in fact|a total of|"
    r"the number|the value|the integer|the fraction)\b[ \t,:]{1,3}){1,4}",
    re.IGNORECASE,
)
_EXPRESSION_LIKE = re.compile(r"[\d\\∞π√²³⁰¹⁴⁵⁶⁷⁸⁹]|^[a-zA-Z]$|^\(?[A-J]\)?$")
_DOTS = re.compile(r"^\.{2,4}\s{1,3}")
_COPULA = re.compile(
    r"(?:\b(?:is|are|be|was|equals|equal to|becomes|gives|get|as|to)\b|[=:≈]|"
    r"\bis thus\b)[ \t*_]{1,4}"
)
_CONCLUSION = re.compile(
    r"(?:\b(?:is|are|be|get|gives|equals|have|has|makes|total of|totals|it's)\b|[=:≈])"
    r"[ \t*_]{0,4}(?:exactly |only |a total of )?[*_]{0,3}"
    rf"({VALUE})[ \t]{{0,3}}[*_]{{0,3}}"
    r"((?: ?[a-zA-Z°²³/^]{1,20}){0,5}|[^\x00-\x7f]{0,12})[*_]{0,3}[ \t]{0,3}[.!。]?[ \t]{0,3}$",
    re.IGNORECASE,
)
_PROSE_NUMBER = re.compile(r"(?<![\w.])[-−]?\$?\d[\d,./]{0,60}(?![a-zA-Z])")
_CHANGING = frozenset(
    ["or", "and", "more", "less", "percent", "million", "thousand", "billion", "not", "hundred"]
)
_HEDGING = re.compile(r"\b(?:or|and|to|million|thousand|billion|percent|more|less)\b|^\\")
_COMPARED = re.compile(
    r"\d\S{0,20} (?:less|more|fewer|greater|larger|smaller|times|above|below) ", re.IGNORECASE
)
_OF_A_VALUE = re.compile(
    r"\b(?:half|twice|double|triple|thirds?|quarters?|percent|dozen|multiple|factors?|"
    r"square root|square|cube"
    r"|reciprocal|sum|product) (?:of|the)\b",
    re.IGNORECASE,
)
_REFERS = re.compile(
    r"\b(?:step|case|part|section|equation|page|problem|question|figure|line|item|example|"
    r"remark) \(?\d",
    re.IGNORECASE,
)
_FOREIGN = "\u0590-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_FOREIGN_CONCLUSION = re.compile(
    rf"(?:[是为有]|等于|=)[ *]{{0,3}}({VALUE}[{_FOREIGN}/]{{0,12}})[ *.]{{0,3}}$"
)
_FOREIGN_NUMBER = re.compile(rf"{VALUE}(?:[{_FOREIGN}/]{{0,6}}$)?")
_UNIT_BEHIND = re.compile(r"[ \t]{1,2}([a-zA-Z]{1,20})(?=[.!,;\s]|$)")
_PERCENT_BEHIND = re.compile(r"[ \t]{0,2}(?:\\?%|(?:percent|pct|per cent)\b)")
CONNECTOR = re.compile(r"[ \t]{0,3}(?:,[ \t]{0,3})?(?:and|or|,)[ \t]{1,3}")
_SAYS_MORE = re.compile(r"[ \t]{1,2}(?:is|are|equals|has|have|wins|was|be)\b")
_MAX_FORMULAS = 20
_MAX_EXPRESSION = 200


def leading_expression(text: str) -> str | None:
    """Read the expression with which a text starts: a formula, or the words up to a stop.

    A sentence ("the smallest k is 53") ends in its value. None if what stands there is prose, not
    an expression.
    """
    text = _DOTS.sub("", text.lstrip(MARKDOWN + ":,…"))
    adverbs = ADVERBS.match(text)
    if adverbs is not None:
        text = text[adverbs.end() :].lstrip(MARKDOWN + ":")
    formula = FORMULA.match(text)
    if formula is not None and not _SAYS_MORE.match(text, formula.end()):
        return formulas_from(text, formula)
    line = text.split("\n", 1)[0]
    sentence_end = SENTENCE_END.search(line)
    if sentence_end is not None:
        line = line[: sentence_end.start()]
    if formula is not None or PROSE_WORD.match(line):
        value = _value_at_the_end(line)
        if value is not None:
            return value
    stop = STOP_WORD.search(line)
    if stop is not None:
        line = line[: stop.start()]
    formula = FORMULA.search(line)
    if formula is not None and not re.search(r"\d", line[: formula.start()]):
        return formulas_from(line, formula)
    content = without_full_stop(line)
    if not content or len(content) > _MAX_EXPRESSION or not _EXPRESSION_LIKE.search(content):
        return None
    if re.match(rf"[{_FOREIGN}]", content):
        return _value_in_foreign_prose(content)
    if len(PROSE_WORD.findall(content)) < 3 or is_unit(re.sub(r"^[^a-zA-Z]*", "", content)):
        return content
    return _value_in_prose(content)


def without_full_stop(text: str) -> str:
    """Drop what ends a sentence, but not the dots of ``0.666...``."""
    text = text.strip(MARKDOWN)
    if text.endswith("..."):
        return text
    return text.rstrip(".,;:").strip(MARKDOWN)


def _value_at_the_end(sentence: str) -> str | None:
    """Read what a sentence says after its last verb: ``The value of $b_7$ is $83$``."""
    for verb in reversed(list(_COPULA.finditer(sentence))):
        rest = sentence[verb.end() :].lstrip(MARKDOWN + ":")
        adverbs = ADVERBS.match(rest)
        rest = rest[adverbs.end() :].lstrip(MARKDOWN) if adverbs is not None else rest
        formula = FORMULA.match(rest)
        if formula is not None:
            return formulas_from(rest, formula)
        number = re.match(VALUE, rest)
        if number is not None or re.match(r"[-+−]?[(\[]?\\[a-z]|[-+−]?\d", rest):
            value = without_full_stop(rest)
            stop = STOP_WORD.search(value)
            value = value[: stop.start()] if stop is not None else value
            if number is not None and len(PROSE_WORD.findall(value)) > 1:
                return _number_of(value, number)
            return value if len(PROSE_WORD.findall(value)) < 3 else _value_in_prose(value)
    return None


def _value_in_foreign_prose(sentence: str) -> str | None:
    """Read what a sentence in another script ends in, or its only number."""
    conclusion = _FOREIGN_CONCLUSION.search(sentence)
    if conclusion is not None:
        return conclusion.group(1)
    formulas = list(FORMULA.finditer(sentence))
    if formulas:
        return content_of(formulas[-1]) if len(formulas) == 1 else None
    numbers = [number.group() for number in _FOREIGN_NUMBER.finditer(sentence)]
    return numbers[0].rstrip(" .,") if len(numbers) == 1 else None


def _number_of(value: str, number: re.Match[str]) -> str:
    """Take the number from ``53 such pairs``, with its unit from ``53 miles per hour``."""
    words = value[number.end() :].strip()
    if is_unit(words) or _HEDGING.search(words) or _COMPARED.search(value):
        return value
    return number.group().strip().rstrip(",.")


def _value_in_prose(sentence: str) -> str | None:
    """Read "the value of x is 12" and "there are 12 such": what it ends in, or its number."""
    conclusion = _CONCLUSION.search(sentence)
    if conclusion is not None:
        return _concluded(conclusion)
    if _COMPARED.search(sentence) or _OF_A_VALUE.search(sentence):
        return sentence
    if _REFERS.search(sentence):
        return None
    numbers = _PROSE_NUMBER.findall(sentence)
    return str(numbers[0]).rstrip(".,") if len(numbers) == 1 else None


def conclusion_of(sentence: str) -> str | None:
    """Read the value that a sentence ends in, after a verb or a sign: ``we get 12 apples.``."""
    conclusion = _CONCLUSION.search(sentence[-400:])
    return None if conclusion is None else _concluded(conclusion)


def _concluded(conclusion: re.Match[str]) -> str:
    """Take the number that a sentence ends in, with the word after it, which may be its unit."""
    number, behind = conclusion.group(1).rstrip(), conclusion.group(2)
    if number.endswith((",", ".")):
        return number.rstrip(" ,.")
    words = behind.split()
    if not words or not behind.isascii():
        return number + behind
    if is_unit(behind):
        return f"{number} {behind.strip()}"
    if not any(word.lower() in _CHANGING for word in words):
        words = [] if words[0].lower() in _STOPS else words[:1]
    return " ".join([number, *words])


_STOPS = frozenset(
    [
        "as",
        "in",
        "for",
        "of",
        "per",
        "at",
        "to",
        "from",
        "on",
        "with",
        "by",
        "after",
        "each",
        "every",
        "when",
        "if",
        "that",
        "which",
        "so",
        "total",
        "altogether",
        "this",
        "these",
        "using",
    ]
)


def formulas_from(text: str, formula: re.Match[str]) -> str:
    """Join a formula with those that follow it, as in ``$4$ and $10$``, and with its unit."""
    contents = []
    while True:
        contents.append(content_of(formula))
        connector = CONNECTOR.match(text, formula.end())
        following = FORMULA.match(text, connector.end()) if connector is not None else None
        if following is None or len(contents) > _MAX_FORMULAS:
            break
        formula = following
    joined = ", ".join(contents)
    if len(contents) > 1:
        return joined
    if _PERCENT_BEHIND.match(text, formula.end()):
        return joined + r"\%"
    unit = _UNIT_BEHIND.match(text, formula.end())
    if unit is None or unit.group(1).lower() in _STOPS:
        return joined
    return f"{joined} \\text{{ {unit.group(1)}}}"


def content_of(formula: re.Match[str]) -> str:
    """Give what is between a formula's delimiters."""
    return next(group for group in formula.groups() if group is not None).strip()
