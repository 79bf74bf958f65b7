r"""Answers that a response marks in other ways than a box, and answers taken back after one.

Text only. The layers, strongest first: an ``<answer>`` tag or a label (``Answer: 7``,
``#### 7``), a sentence (``the answer is 7``), emphasis in the last lines (``**7**``), the end of
the last line (``so x = 7.``), a response that is nothing but an expression.

Every regular expression here is linear: alternatives start with different characters, and what
repeats is bounded.
"""

import re

TAIL_CHARACTERS = 6000
"""Unmarked answers are looked for in the end of a response only."""

_TAG = re.compile(r"<(answer|final_answer)>", re.IGNORECASE)
_HASHES = re.compile(r"^####[ \t]{0,4}(?=\S)", re.MULTILINE)
_LABEL = re.compile(
    r"(?:^|(?<=[\n\s*_#>.!?]))(?:the[ \t])?(?:my[ \t])?(?:final[ \t]|correct[ \t])?(?:answer|ans)"
    r"[ \t]{0,3}[*_]{0,3}[ \t]{0,3}[:：=][ \t*_]{0,6}(?:is[ \t:]{1,3})?",
    re.IGNORECASE,
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
_CONCLUSION = re.compile(
    r"(?:\b(?:is|are|be|get|gives|equals|have|has|makes|total of|totals|it's)\b|[=:≈])"
    r"[ \t*_]{0,4}(?:exactly |only |a total of )?[*_]{0,3}"
    r"([-+−]?[$€£]?(?:\\\$)?[-+−]?"
    r"(?:\d[\d,. /]{0,40}|\.\d{1,40}|\\d?frac\{\d{1,20}\}\{\d{1,20}\}|\[[-−\d., ]{1,300}\])"
    r"(?:\\?%)?)[ \t]{0,3}[*_]{0,3}((?:[ \t][a-zA-Z]{1,20}){0,5})[*_]{0,3}[ \t]{0,3}[.!]?[ "
    r"\t]{0,3}$",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_FORMULA = re.compile(
    r"\$\$([^$]{1,400})\$\$|\$([^$\n]{1,400})\$|\\\[(.{1,400}?)\\\]|\\\((.{1,400}?)\\\)", re.DOTALL
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$|\*|\")")
_STOP_WORD = re.compile(
    r"[ \t,;(]{1,4}(?:because|since|so|as|which|where|after|given|by|I hope|if|per|when|but|not)\b",
    re.IGNORECASE,
)
_EXPRESSION_LIKE = re.compile(r"[\d\\∞π√]|^[a-zA-Z]$|^\(?[A-J]\)?$")
_FEW_WORDS = re.compile(
    r"[ \t*_:\"']{0,6}([a-zA-Z]{1,20}(?: [a-zA-Z]{1,20}){0,2})[*_\"']{0,3}[.!]?[*_]{0,3}[ "
    r"\t]{0,3}(?=\n|$)"
)
_PROSE_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{2,30}")
_PROSE_NUMBER = re.compile(r"(?<![\w.])[-−]?\$?\d[\d,./]{0,60}(?![a-zA-Z])")
_CHANGING = frozenset(
    ["or", "and", "more", "less", "percent", "million", "thousand", "billion", "not", "hundred"]
)
_THEREFORE = re.compile(
    r"(?:so|thus|therefore|hence|we (?:get|have|find|obtain)|giving)\b", re.IGNORECASE
)
_MARKDOWN = " \t\r\n*_`#>\"'"

_TAKEN_BACK = re.compile(
    r"(?:^|[.!?\n$*\])}])[ \t\n$*\])}.]{0,8}(?:but |oh,? |no,? |hmm,? )?"
    r"(wait|hold on|actually|hmm|no[,.]|oops|sorry|correction|scratch that|on second thought|"
    r"i made an? (?:\w{1,12} )?(?:mistake|error)|(?:that|this) (?:is|was) (?:wrong|incorrect|not "
    r"right|not correct)|"
    r"(?:that|this)(?:'|’)s (?:wrong|incorrect|not right)|let me (?:correct|fix|redo))",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:scratch that|disregard|ignore (?:that|the above)|i made an? (?:\w{1,12} )?(?:mistake|"
    r"error)|"
    r"(?:that|this|it)(?:(?:'|’)s| is| was| can(?:'|’)t be| cannot be| must be) "
    r"(?:wrong|incorrect|not right|not correct|right)\b|"
    r"correction\b|let me (?:correct|fix|redo)\b|i (?:dropped|forgot|missed|misread|"
    r"miscalculated|miscounted)\b)",
    re.IGNORECASE,
)
_NEW_VALUE = re.compile(
    r"\b(?:(?:answer|result|it|that|value|total)(?:(?:'|’)s| is| should be| must be)"
    r"|correction:|should be|should have been|instead)[ \t:*_]{1,6}(?:actually |really |indeed )?",
    re.IGNORECASE,
)


def marked_answer(text: str) -> str | None:
    """Find the answer that a response without a box marks; None if it marks none."""
    tail = text[-TAIL_CHARACTERS:]
    found = labelled_answer(tail)
    if found is not None:
        return found[0]
    label_words = _words_behind(_LABEL, tail)
    if label_words is not None:
        return label_words
    for sentence in reversed(list(_SENTENCE.finditer(tail))):
        content = leading_expression(tail[sentence.end() : sentence.end() + 600])
        if content is not None:
            return content
    return _closing_answer(tail) or _words_behind(_SENTENCE, tail)


def _words_behind(pattern: re.Pattern[str], text: str) -> str | None:
    """Read a word or three behind the last mark, as in ``Answer: less than``."""
    last = None
    for last in pattern.finditer(text):  # noqa: B007 (the last match is wanted)
        pass
    if last is None:
        return None
    words = _FEW_WORDS.match(text, last.end())
    return words.group(1) if words is not None else None


def labelled_answer(text: str) -> tuple[str, int] | None:
    """Find the last answer behind a tag or a label, and where its mark starts."""
    best: tuple[str, int] | None = None
    for tag in _TAG.finditer(text):
        end = text.find(f"</{tag.group(1)}>", tag.end())
        content = text[tag.end() : end if end >= 0 else tag.end() + 600].strip()
        if content:
            best = (content, tag.start())
    for pattern in (_HASHES, _LABEL, _HEADING):
        for label in reversed(list(pattern.finditer(text))):
            if best is not None and label.start() < best[1]:
                break
            content_or_none = leading_expression(text[label.end() : label.end() + 600])
            if content_or_none is not None:
                best = (content_or_none, label.start())
                break
    return best


def leading_expression(text: str) -> str | None:
    """Read the expression with which a text starts: a formula, or the words up to a stop.

    None if what stands there is prose, not an expression.
    """
    text = text.lstrip(_MARKDOWN + ":")
    formula = _FORMULA.match(text)
    if formula is not None:
        return _formulas_from(text, formula)
    line = text.split("\n", 1)[0]
    sentence_end = _SENTENCE_END.search(line)
    if sentence_end is not None:
        line = line[: sentence_end.start()]
    stop = _STOP_WORD.search(line)
    if stop is not None:
        line = line[: stop.start()]
    formula = _FORMULA.search(line)
    if formula is not None and not re.search(r"\d", line[: formula.start()]):
        return _formulas_from(line, formula)
    content = line.strip(_MARKDOWN).rstrip(".,;:").strip(_MARKDOWN)
    if not content or len(content) > 200 or not _EXPRESSION_LIKE.search(content):
        return None
    if len(_PROSE_WORD.findall(content)) < 3:
        return content
    return _value_in_prose(content)


def _value_in_prose(sentence: str) -> str | None:
    """Read "the value of x is 12" and "there are 12 such": what it ends in, or its number."""
    conclusion = _CONCLUSION.search(sentence)
    if conclusion is not None:
        return _concluded(conclusion)
    numbers = _PROSE_NUMBER.findall(sentence)
    return str(numbers[0]).rstrip(".,") if len(numbers) == 1 else None


def retraction(tail: str) -> tuple[bool, str | None]:
    """Read from what follows the last box whether the answer was taken back, and for what.

    Returns
    -------
    (bool, str or None)
        Whether the answer before was taken back, and the new value if the text gives one.
    """
    tail = tail[:TAIL_CHARACTERS]
    opener = _TAKEN_BACK.search(tail)
    if opener is None:
        return False, None
    rest = tail[opener.start() :]
    value = None
    for mark in _NEW_VALUE.finditer(rest):
        found = leading_expression(rest[mark.end() : mark.end() + 300])
        if found is not None and len(_PROSE_WORD.findall(found)) <= 1:
            value = found
    if value is not None:
        return True, value
    return _DENIAL.search(rest) is not None, None


def _formulas_from(text: str, formula: re.Match[str]) -> str:
    """Join a formula with those that follow it, as in ``$4$ and $10$``."""
    contents = []
    while True:
        contents.append(next(group for group in formula.groups() if group is not None).strip())
        connector = re.compile(r"[ \t]{0,3}(?:,[ \t]{0,3})?(?:and|or|,)[ \t]{1,3}").match(
            text, formula.end()
        )
        following = _FORMULA.match(text, connector.end()) if connector is not None else None
        if following is None or len(contents) > 20:
            break
        formula = following
    unit = re.compile(r"[ \t]{1,2}([a-zA-Z]{1,20})(?=[.!,;\s]|$)").match(text, formula.end())
    joined = ", ".join(contents)
    return joined if unit is None or len(contents) > 1 else f"{joined} \\text{{ {unit.group(1)}}}"


def _closing_answer(tail: str) -> str | None:
    lines = [line for line in tail.rsplit("\n", 40)[-40:] if line.strip()]
    if not lines:
        return None
    last = lines[-1].strip()
    bold = _BOLD.findall(last)
    if bold and re.search(r"\d", bold[-1]):
        return leading_expression(bold[-1])
    if len(lines) == 1 and len(tail) < 200:
        whole = _whole_expression(last)
        if whole is not None:
            return whole
    formulas = list(_FORMULA.finditer(last))
    if formulas and len(last) - formulas[-1].end() <= 3:
        return next(group for group in formulas[-1].groups() if group is not None).strip()
    if len(formulas) == 1 and "=" in formulas[0].group() and _THEREFORE.match(last):
        return next(group for group in formulas[0].groups() if group is not None).strip()
    conclusion = _CONCLUSION.search(last[-400:])
    if conclusion is None:
        return None
    return _concluded(conclusion)


def _concluded(conclusion: re.Match[str]) -> str:
    """Take the number that a sentence ends in, with the word behind it, which may be its unit."""
    number, words = conclusion.group(1).rstrip(), conclusion.group(2).split()
    if number.endswith((",", ".")):
        return number.rstrip(" ,.")
    if not any(word.lower() in _CHANGING for word in words):
        words = words[:1]
    return " ".join([number, *words])


def _whole_expression(line: str) -> str | None:
    """Take a response that is nothing but an expression: no words but those after a number."""
    content = line.strip(_MARKDOWN + "$").rstrip(".")
    if re.fullmatch(r"[-+−]?[\d\\(\[{$√π∞.][^!?;]{0,150}|[a-zA-Z]", content) and not re.search(
        r"(?<!\\)(?<![a-zA-Z])[a-zA-Z]{3,20}[ ,]{1,2}[a-zA-Z]{2,20}", content
    ):
        return content
    return None
