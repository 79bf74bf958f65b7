r"""The last resort: the only value of a sentence that states something.

Text only. A question, a plan, a doubt, a bound, a step's number and what was asked for more are no
statements, whatever number is in them.
"""

import re

from evaluator.answers.expressions_in_text import FORMULA, content_of
from evaluator.answers.languages import CHINESE_UNITS

_NO_STATEMENT = re.compile(
    r"\?|\b(?:can(?:no|')t|cannot|could|unable|unclear|unknown|undetermined|not|never|no|none|"
    r"insufficient|enough|need(?:s|ed)? (?:to|more|a|an|some|further)|i need|we need|"
    r"missing|more|less|fewer|"
    r"greater|at least|at most|between|up to|over|under|almost|nearly|roughly|without|"
    r"except|unless|"
    r"maybe|perhaps|might|may|possibly|probably|guess|estimate|seems?|appears?|not sure|"
    r"either|or|let|"
    r"doubt|will|shall|i'll|we'll|should|would|try|consider|suppose|assume|assuming|if|until|"
    r"stuck|give up|so far|still|starts?|begins?|"
    r"gave up|mystery|ran out|wrong|incorrect|mistake|sorry|please|wait|hmm|times|"
    r"(?:step|question|problem|exercise|case|part|section|page|chapter|figure|equation|line|item|option|"
    r"method|approach|example|remark|note|theorem|lemma|day|term) \(?\d+|"
    r"(?:first|last|next|other|remaining) \d+)\b|n['’]t\b|[:：]\s*$"
    r"|可能|也许|不|如果|假设|需要|至少|最多|大约|吗|或|第\s?\d|设",
    re.IGNORECASE,
)
_NO_BEGINNING = re.compile(
    r"[\s*_]*(?:given|since|because|when|recall|note|next|first|second|now|step|is|are|do|does|what|how|"
    r"which|why|for|using|in the case|checking|it remains)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])[-+−]?[$€£¥]?(?:\\\$)?[-+−]?"
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+ \d+/\d+|\d+/\d+|\d+(?:\.\d+)?|\.\d+)"
    r"(?: ?\\?%)?(?:[€£¥$]|°)?"
    r"(?![\d√π]|\\(?:pi|sqrt))"
    rf"(?: ?(?:{'|'.join(sorted(CHINESE_UNITS, key=len, reverse=True))}))?"
    r"(?: ?(?:k?m|cm|mm|km/h|m/s|kg|g|mph|ml|mL|L|cm²|m²|cm\^2|m\^2)(?![\w/]))?"
)
_COMPUTATION = re.compile(
    r"(?:[$€£]?\d[\d,.]{0,20}|"
    r"\([\d+*/ .-]{1,40}\))(?: ?[-+*/×÷x^] ?(?:[$€£]?\d[\d,.]{0,20}|\([\d+*/ .-]{1,40}\))){1,9}"
    r" ?= ?(?=[-$€£\d])"
)
"""The way to a value: ``9 * 2 =``."""
_COUNTED = re.compile(
    r"(?<!the )(?<!all )(?<!these )(?<!those )(?<!both )\b(?:two|three|four|five|six|"
    r"seven|eight|nine|ten|"
    r"eleven|twelve)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\s*(?:with|in|after|over|for) [^,\d$\\]{1,60}, ", re.IGNORECASE)
"""What a sentence says first of the circumstances: "With five days, ..."."""
_ENDED = re.compile(r"[.!。！।)\]$%°\d*]\s*$")
_STARTS_AS_ITEM = re.compile(r"\s*(?:[-*•]\s|\(?\d{1,3}[.)](?:\s|$)|#)")
_MAX_SENTENCE = 400


def is_list_item(line: str) -> bool:
    """Whether a line is an item of a list, or a heading."""
    return _STARTS_AS_ITEM.match(line) is not None


def only_value(sentence: str) -> str | None:
    r"""Give the only value of a sentence; None if there is another number of them.

    Formulas and numbers outside of formulas count; names (``$x$``) do not.

    Examples
    --------
    >>> only_value("So he saves $65 per month.")
    '$65'
    >>> only_value("There are 3 of 12.") is None
    True
    """
    if len(sentence) > _MAX_SENTENCE or not _ENDED.search(sentence):
        return None
    if _NO_BEGINNING.match(sentence) or _STARTS_AS_ITEM.match(sentence):
        return None
    if _NO_STATEMENT.search(sentence):
        return None
    sentence = _COMPUTATION.sub(" ", _CONDITION.sub("", sentence, count=1))
    formulas = [content_of(formula) for formula in FORMULA.finditer(sentence)]
    formulas = [content for content in formulas if re.search(r"\d|\\[a-z]", content)]
    bare = FORMULA.sub(" ", sentence) if formulas else sentence
    values = formulas + [number.group() for number in _NUMBER.finditer(bare)]
    values += _COUNTED.findall(bare)
    if len(values) != 1:
        return None
    return values[0].strip()
