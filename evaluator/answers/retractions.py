r"""Was the answer in the last box taken back after it, and for which value.

Text only. A remark, a check or a question after the box takes nothing back, whatever numbers are
in it; a denial ("that is wrong") or a new answer in a sentence of its own ("so the answer is 9")
does.
"""

import re

from evaluator.answers.expressions_in_text import PROSE_WORD, leading_expression

_MAX_CHARACTERS = 6000
_OPENER = re.compile(
    r"(?:^|[.!?\n$*\])}])[ \t\n$*\])}.]{0,8}(?:but |oh,? |no,? |hmm,? )?"
    r"(wait|hold on|actually|hmm|no[,.]|oops|sorry|correction|scratch that|on second thought|"
    r"i made an? (?:\w{1,12} )?(?:mistake|error)|(?:that|this) (?:is|was) (?:wrong|incorrect|not "
    r"right|not correct)|"
    r"(?:that|this)(?:'|’)s (?:wrong|incorrect|not right)|let me (?:correct|fix|redo))",
    re.IGNORECASE,
)
_DENIED_AT_ONCE = re.compile(
    r"[\s$*\\)\]}]{0,6},? ?(?:but |and )?(?:(?:this|that|it|which) )?(?:is|was|"
    r"turns out to be|seems) "
    r"(?P<rest>(?:wrong|incorrect|not right|not correct|false|too (?:large|small|big|high|low)))\b"
    r"|[^.!?\n]{0,40}\bbut (?P<new>(?:the |my )?(?:correct|right|actual|true|real|final) "
    r"(?:answer|value|result) )",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.](?=\d)[^.!?\n]*)*[.!?\n]?")
_BEGINNING = re.compile(
    r"[\s*_$>)}\]]*(?:(?:wait|hold on|actually|hmm+|no|oops|sorry|but|oh|so|thus|"
    r"therefore|hence|then|and|"
    r"now|on second thought|in fact|ah|yes|i see)\b[\s,.:;—–-]*)*",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"(?:(?:that|this|it|the (?:above|answer|box|result)|my (?:previous |boxed )?answer)"
    r"(?:(?:'|’)s| is| was| can(?:'|’)t be| cannot be| must be| isn(?:'|’)t| is not)"
    r" (?:wrong|incorrect|not right|not correct|right\b(?<=t be right)|false|"
    r"right\b(?<=not right))|"
    r"scratch that|disregard|ignore (?:that|the above)|correction\b|let me (?:correct|fix|redo)\b)",
    re.IGNORECASE,
)
_CONFESSION = re.compile(
    r"\b(?:i made an? (?:\w{1,12} )?(?:mistake|error)|"
    r"i (?:dropped|forgot|missed|misread|miscalculated|miscounted|overlooked)|scratch that)\b",
    re.IGNORECASE,
)
_NEW_ANSWER = re.compile(
    r"(?:the |my )?(?:(?:correct|right|final|actual|true|corrected|updated|new) "
    r"(?:answer|result|value|total)|answer)"
    r"(?:(?:'|’)s| is| should be| must be| becomes| changes to)[ \t:*_]{1,6}"
    r"|correction:[ \t]{0,3}"
    r"|(?:it|that|this|the (?:result|value|total))[ ](?:should be|should have been)[ \t:*_]{1,6}",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"(?:^|[.!?:\n$*\])}])[ \t\n$*\])}]{0,8}(?:so|thus|therefore|hence),? "
    r"(?:the|my) (?:final |correct |right )?(?:answer|total) is[ \t:*_]{1,6}",
    re.IGNORECASE,
)
_CONCLUDING = re.compile(
    r"[,;:][ ](?:so|thus|therefore|hence|which means(?: that)?|meaning)[ ,]{1,2}", re.IGNORECASE
)
_AFTER_DENIAL = re.compile(
    r"\b(?:(?:answer|result|it|that|value|total|we get|get)(?:(?:'|’)s| is| should be| must be|)"
    r"|should be|should have been|instead)[ \t:*_]{1,6}(?:actually |really |indeed )?",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(
    r"\b(?:if|naive|might|could|some(?:one|times)?|people|students?|books?|version|suppose|would|"
    r"were|originally|another|otherwise|common|mistakenly|often)\b",
    re.IGNORECASE,
)


def retraction(tail: str) -> tuple[bool, str | None]:
    """Read from what follows the last box whether the answer was taken back, and for what.

    Returns
    -------
    (bool, str or None)
        Whether the answer before was taken back, and the new value if the text gives one.
    """
    tail = tail[:_MAX_CHARACTERS]
    at_once = _DENIED_AT_ONCE.match(tail)
    opener = _OPENER.search(tail)
    if at_once is not None:
        start = max(at_once.start("rest"), at_once.start("new"))
    elif opener is not None:
        start = opener.start(1)
    else:
        return _concluded(tail)
    denied = at_once is not None
    value: str | None = None
    asked = others = False
    for match in _SENTENCE.finditer(tail, start):
        sentence = match.group()
        if not sentence.strip():
            continue
        if sentence.rstrip().endswith("?"):
            # An aside: "Is it possible that it is 28? No, that is wrong."
            asked = re.search(r"\d", sentence) is not None
            continue
        beginning = _BEGINNING.match(sentence)
        said = sentence[beginning.end() :] if beginning is not None else sentence
        denies = _DENIAL.match(said) is not None and not asked and not others
        denies = denies or _CONFESSION.search(sentence) is not None
        denied = denied or denies
        others = _OF_OTHERS.search(sentence) is not None and not denies
        if not others:
            value = _new_value(said, denied) or value
        asked = False
    return (True, value) if value is not None else (denied, None)


def _concluded(tail: str) -> tuple[bool, str | None]:
    """Read the value of the last "so the answer is ..." after the box, if there is one."""
    for mark in reversed(list(_CONCLUSION.finditer(tail))):
        found = _value(tail[mark.end() :])
        if found is not None:
            return True, found
    return False, None


def _new_value(sentence: str, denied: bool) -> str | None:
    """Read the new answer that a sentence gives.

    At its start or after a "so" it needs no denial before it; elsewhere it does.
    """
    places = [0, *(mark.end() for mark in _CONCLUDING.finditer(sentence))]
    for place in places:
        mark = _NEW_ANSWER.match(sentence, place)
        if mark is not None:
            found = _value(sentence[mark.end() :])
            if found is not None:
                return found
    if denied:
        for mark in reversed(list(_AFTER_DENIAL.finditer(sentence))):
            found = _value(sentence[mark.end() :])
            if found is not None:
                return found
    return None


def _value(text: str) -> str | None:
    found = leading_expression(text[:300])
    if found is None or len(PROSE_WORD.findall(found)) > 1:
        return None
    return found
