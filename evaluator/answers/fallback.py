r"""The last resort: the only value of a sentence that states something.

Text only. A question, a plan, a doubt, a bound, a step's number and what was asked for more are no
statements, whatever number is in them.
"""

import re

from evaluator.answers.expressions_in_text import FORMULA, content_of

_NO_STATEMENT = re.compile(
    r"\?|\b(?:can(?:no|')t|cannot|could|couldn't|unable|unclear|unknown|undetermined|not|n't|never|no|none|"
    r"insufficient|enough|need(?:s|ed)?|missing|more|less|fewer|greater|least|most|between|up to|"
    r"over|under|almost|nearly|roughly|around|without|except|unless|maybe|perhaps|might|may|possibly|"
    r"probably|guess|estimate|seems?|appears?|sure|certain|either|or|let|let's|will|shall|i'll|we'll|"
    r"should|would|try|next|consider|suppose|assume|assuming|if|when|until|first|second|then|step|"
    r"question|problem|exercise|case|part|section|page|chapter|figure|equation|line|item|option|"
    r"method|approach|example|note|recall|given|using|checked?|verif\w+|wrong|incorrect|mistake|error|"
    r"sorry|please|wait|hmm|start(?:s|ed)?|begin|began|originally|initially|remaining|half|twice|times)\b"
    r"|n['’]t\b|[:：]\s*$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w.])[-+−]?[$€£¥]?(?:\\\$)?[-+−]?"
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+ \d+/\d+|\d+/\d+|\d+(?:\.\d+)?|\.\d+)"
    r"(?: ?\\?%)?(?:[€£¥$]|°)?"
    r"(?: ?(?:k?m|cm|mm|km/h|m/s|kg|g|mph|ml|mL|L|cm²|m²|cm\^2|m\^2)(?![\w/]))?"
)
_ENDED = re.compile(r"[.!。！)\]$%°\d*]\s*$")
_STARTS_AS_ITEM = re.compile(r"\s*(?:[-*•]\s|\(?\d{1,3}[.)]\s|#)")
_MAX_SENTENCE = 400


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
    if _NO_STATEMENT.search(sentence) or _STARTS_AS_ITEM.match(sentence):
        return None
    formulas = [content_of(formula) for formula in FORMULA.finditer(sentence)]
    formulas = [content for content in formulas if re.search(r"\d|\\[a-z]", content)]
    bare = FORMULA.sub(" ", sentence) if formulas else sentence
    values = formulas + [number.group() for number in _NUMBER.finditer(bare)]
    if len(values) != 1:
        return None
    return values[0].strip()
