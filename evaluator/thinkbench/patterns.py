"""Long traces sorted by what they spend their tokens on (paper 000, O and Q), by rules.

- ``stopping-failure``: one character, one phrase or noise repeated without end.
- ``self-contradiction``: a result is taken back, replaced and taken up again.
- ``redundant-verification``: a result that stands is worked out again and again.
- ``irrelevant-exploration``: matters that the question does not ask about.
- ``helpful-decomposition``: steps towards the result, and little else.

Every rule is a count over the text, in linear time; the strongest one names the trace.
"""

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

Pattern = Literal[
    "redundant-verification",
    "self-contradiction",
    "irrelevant-exploration",
    "stopping-failure",
    "helpful-decomposition",
]

PATTERNS: Final[tuple[Pattern, ...]] = (
    "redundant-verification",
    "self-contradiction",
    "irrelevant-exploration",
    "stopping-failure",
    "helpful-decomposition",
)

LONG_WORDS: Final = 40
"""A trace with fewer words has no pattern, unless it repeats itself."""

_TAIL: Final = 6000
_RUN: Final = 24
_LOOPS: Final = 4
_LOOP_CHARACTERS: Final = 48
_SAME_SENTENCES: Final = 5

_CHECK: Final = re.compile(
    r"\b(?:double[- ]?check|triple[- ]?check|re-?check|re-?verify|verif(?:y|ying|ication|ies)|"
    r"check(?:ing|s)?(?= (?:again|this|that|my|the|once|it|by|with|via)|[:,.])|"
    r"let me (?:check|confirm|recount|recompute|recalculate|redo|count again|add again|re-add)|"
    r"re-?(?:count|comput|calculat|add|sort|do)(?:e|ed|ing|s)?\b|once more|one more time|"
    r"again to be (?:sure|safe)|to be (?:sure|safe|certain|thorough)|just to (?:be|make)|"
    r"confirm(?:s|ed|ing)?|sanity check|another (?:way|method)|(?:second|third|different|other) "
    r"(?:way|method|approach)|method [2-9]|same (?:result|answer|value|number) (?:again|as before)|"
    r"still (?:get|the same)|matches|make (?:quite |really )?sure|the other (?:way|direction)|"
    r"different order|check(?= in\b)|step \d+: check|go(?:ing)? (?:through|over) (?:it|them|each)|"
    r"did i \w+|is (?:it|that|this|[-−\d ×x*/+]+) really|want to be careful|checks out)\b|✓",
    re.IGNORECASE,
)
_DENY: Final = re.compile(
    r"\b(?:wait|hold on|no,|hmm|oops|actually|that(?:'s| is| was)? (?:not right|wrong|incorrect)|"
    r"that can(?:'t|not) be|i (?:made|was) (?:a |an )?(?:mistake|error|wrong)|mistake|"
    r"contradict\w*|but (?:earlier|before|i said|i got)|"
    r"different from|doesn't match|does not match|not the same|on second thought|scratch that|"
    r"let me (?:correct|fix|reconsider|rethink|start over)|or is it|or (?:maybe|was it)|"
    r"should(?:n't| not) (?:be|it))",
    re.IGNORECASE,
)
_STRAY: Final = re.compile(
    r"\b(?:interesting(?:ly)?|by the way|history|historical|theorem|conjecture|"
    r"in (?:general|higher|modern|number theory|statistics|programming|python|binary|base)|"
    r"binary|hexadecimal|modulo|prime|fibonacci|gauss(?:ian)?|euler|complex numbers?|"
    r"integral|derivative|matrix|vector|polynomial|logarithm|trigonometr\w*|geometr\w*|"
    r"probability|distribution|variance|standard deviation|harmonic mean|geometric mean|"
    r"quicksort|merge ?sort|bubble ?sort|heap ?sort|algorithm\w*|complexity|big-o|hash map|"
    r"what if|suppose instead|could be a trick|trick question|perhaps (?:the|they|it)|"
    r"maybe the (?:question|problem|user|list)|ambiguous|interpret\w*|"
    r"alternatively,? (?:one|we|it|the)|reminds me|related (?:to|question|problem)|"
    r"think about (?:how|why|what)|generali[sz]e\w*|real[- ]world|applications?|"
    r"etymology|philosoph\w*|weather|temperature|money|dollars|as a side note|tangent|"
    r"curious\w*|divisib\w*|factori[sz]\w*|perfect square|negative zero|infinity|empty list|"
    r"duplicates? (?:could|might|would)|outliers?|skew\w*|rounding (?:rules|modes?)|"
    r"floating[- ]point|two's complement|absolute value (?:is|of a)|number line)\b",
    re.IGNORECASE,
)
_STEP: Final = re.compile(
    r"(?:^|\n)[ \t]*(?:step \d|\d{1,2}[.)]|[-*•])|[-\d)]\s*[=<>≤≥]\s*[-−(\[\d]|"
    r"\b(?:first|next|then|finally|now|group|split|positives?|negatives?|merge|subtotal|"
    r"running total|so far|remaining|left over|carry|tens|units|hundreds)\b|→|->",
    re.IGNORECASE,
)
_RESULT: Final = re.compile(
    r"(?:\b(?:is|be|get|gives|got|equals|answer|total|sum|result|median|mean|mode|maximum|minimum|"
    r"count|makes)\b(?: is)?[^\d\n\-−]{0,12}|= ?)([-−]?\d[\d,]*(?:\.\d+)?)",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[^.!?\n]{12,}")
_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class TraceMeasures:
    """What the rules count in a trace.

    Attributes
    ----------
    words
        Words of the trace.
    checks, denials, strays, steps
        Phrases that check, take back, stray, or take a step.
    changes
        How often the claimed result becomes another one.
    returns
        How often it becomes one that was claimed before and dropped.
    repeats
        How often the result that stands is claimed once more.
    looping
        Whether the end repeats itself, or the trace is noise.
    """

    words: int
    checks: int
    denials: int
    strays: int
    steps: int
    changes: int
    returns: int
    repeats: int
    looping: bool


def trace_pattern(text: str, *, cut: bool = False) -> Pattern | None:
    """Return the pattern that dominates a trace, or None for a short one.

    Parameters
    ----------
    text
        All that a model wrote, thinking included.
    cut
        Whether a token limit ended it. A loop that the model left by itself does not count.
    """
    measures = measure_trace(text, cut=cut)
    if measures.looping:
        return "stopping-failure"
    if measures.words < LONG_WORDS:
        return None
    scores: dict[Pattern, float] = {
        "self-contradiction": 0.0
        if measures.denials < 2
        else 1.0 * measures.denials + 1.0 * min(measures.changes, 6) + 2.0 * measures.returns,
        "redundant-verification": 0.0
        if measures.checks < 2
        else 1.5 * measures.checks + min(measures.repeats, 4),
        "irrelevant-exploration": 0.0 if measures.strays < 2 else 2.0 * measures.strays,
    }
    best = max(scores, key=lambda name: scores[name])
    # Steps excuse a little of everything: a long sum may be checked once.
    enough = 3.0 + measures.steps / 8
    return best if scores[best] >= enough else "helpful-decomposition"


def measure_trace(text: str, *, cut: bool = False) -> TraceMeasures:
    """Count what the rules look at."""
    claimed = [found.replace("−", "-").replace(",", "") for found in _RESULT.findall(text)]
    changes = returns = repeats = 0
    seen: Counter[str] = Counter()
    for before, now in itertools.pairwise(claimed):
        seen[before] += 1
        if now == before:
            repeats += 1
        else:
            changes += 1
            returns += seen[now] > 0
    return TraceMeasures(
        words=sum(1 for _ in _WORD.finditer(text)),
        checks=sum(1 for _ in _CHECK.finditer(text)),
        denials=sum(1 for _ in _DENY.finditer(text)),
        strays=len({found.lower() for found in _STRAY.findall(text)}),
        steps=sum(1 for _ in _STEP.finditer(text)),
        changes=changes,
        returns=returns,
        repeats=repeats,
        looping=repeats_itself(text, cut=cut) or is_noise(text),
    )


def repeats_itself(text: str, *, cut: bool = False) -> bool:
    """Whether a text ends in one character or phrase over and over, or is full of one sentence.

    Examples
    --------
    >>> repeats_itself("The answer is 1" + "0" * 80)
    True
    >>> repeats_itself("The answer is 10.")
    False
    """
    tail = text.rstrip()[-_TAIL:]
    if len(tail) >= _RUN and len(set(tail[-_RUN:])) == 1:
        return True
    period = _period(tail)
    if period is not None:
        return True
    sentences = Counter(
        " ".join(found.lower().split()) for found in _SENTENCE.findall(text[-4 * _TAIL :])
    )
    most = max(sentences.values(), default=0)
    needed = _SAME_SENTENCES if cut else _SAME_SENTENCES + 2
    return most >= needed and most * 3 >= sum(sentences.values())


def _period(tail: str) -> int | None:
    """Return the shortest piece that the text ends with several times in a row, or None.

    The Z-function of the text read backwards: ``z[p]`` characters before the last ``p`` are the
    same as the last ones.
    """
    backwards = tail[::-1]
    size = len(backwards)
    z = [0] * size
    left = right = 0
    # A piece that occurs this many times is at most this long.
    for at in range(1, size // _LOOPS + 1):
        if at < right:
            z[at] = min(right - at, z[at - left])
        while at + z[at] < size and backwards[z[at]] == backwards[at + z[at]]:
            z[at] += 1
        if at + z[at] > right:
            left, right = at, at + z[at]
        covered = at + z[at]
        if covered >= _LOOPS * at and covered >= _LOOP_CHARACTERS:
            return at
    return None


def is_noise(text: str) -> bool:
    """Whether a text is mostly characters that belong to no words, numbers or formulas."""
    tail = text[-_TAIL:]
    words = _WORD.findall(tail)
    if len(tail) < 80 or not words:
        return False
    odd = sum(1 for word in words if _is_odd(word))
    return odd * 2 > len(words)


def _is_odd(word: str) -> bool:
    """Return whether a word mixes letters, digits and signs, has no vowel, or is very long."""
    core = word.strip(".,;:!?()[]{}\"'`*_$\\-")
    if len(core) < 4:
        return False
    kinds = sum(
        (
            any(character.isalpha() for character in core),
            any(character.isdigit() for character in core),
            any(not character.isalnum() for character in core),
        )
    )
    if core.isalpha():
        return core.isascii() and not re.search(r"[aeiouyAEIOUY]", core) and len(core) > 4
    if re.fullmatch(r"[-+−*/=<>().,\d\s^×÷{}\[\]\\]*", core):
        return False
    return kinds == 3 or len(core) > 40
