"""From the text of one value to its expression, with its unit, per cent sign and base."""

import re
from fractions import Fraction

from evaluator.answers.expressions import FUNCTIONS, NotAnExpressionError, parse
from evaluator.answers.forms import Opaque, Value, Words
from evaluator.answers.number_words import number_from_words
from evaluator.answers.trees import Number, Tree, variables
from evaluator.answers.units import UNITS, NotAUnitError, Unit, read_unit

PLAIN_WORDS = re.compile(r"[a-zA-Z][a-zA-Z .'\-()]{0,80}")
_TRAILING_TEXT = re.compile(r"\\text\{([^{}]{0,60})\} ?(?:\^ ?\{? ?(\d) ?\}?)?$")
_TRAILING_WORDS = re.compile(
    r"(?<=[\d})!])( ?)([a-zA-Z]{1,20}\.?(?:(?: ?/ ?| )[a-zA-Z]{1,20}\.?){0,4})(?: ?\^ ?\{? "
    r"?([23]) ?\}?)?$"
)
_CURRENCY = re.compile(r"([-+]?) ?\\(dollar|euro|pound) ?")
_BASED = re.compile(
    r"\(?([0-9A-F]{1,60})\)?_ ?\{? ?(?:\\text\{ ?)?(\d{1,2}|[a-z]{3,8}) ?(?:\})? ?\}?"
)
_BASE_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "twelve": 12, "sixteen": 16,
}  # fmt: skip
_MATH_COMMANDS = re.compile(r"\\(?!text|dollar)[a-zA-Z]+")
_CURRENCY_UNITS = {
    "dollar": UNITS["dollar"],
    "euro": UNITS["euro"],
    "pound": Unit("pound sterling", Fraction(1)),
}
_EMPTY = frozenset(
    ["no solution", "no solutions", "none", "no real solution", "no real solutions",
     "does not exist", "dne", "empty set", "the empty set", "impossible", "undefined"]
)  # fmt: skip
_SCALE = re.compile(r"(?<=[\d)}]) ?(\\text\{ ?)?(thousand|million|billion|trillion)(?![a-zA-Z])")
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_RATIO = re.compile(r"(\d{1,12}(?:\.\d{1,12})?) ?: ?(\d{1,12}(?:\.\d{1,12})?)")
_APPROXIMATELY = re.compile(r"(?:\\approx|~|approximately|about|roughly) ?")


def read_value(text: str) -> Value | Words | Opaque:
    r"""Read one value. Never raises.

    Examples
    --------
    >>> read_value(r"864 \text{ inches}^2").unit.power
    2
    >>> read_value("52_8").base
    8
    """
    text = (
        _APPROXIMATELY.sub("", text.strip(), count=1)
        if "a" in text or "~" in text
        else text.strip()
    )
    text = _SCALE.sub(_scale, text)
    try:
        tree = parse(text)
    except NotAnExpressionError:
        pass
    else:
        if not text.endswith(("%", r"\degree")) or any(name in text for name in FUNCTIONS):
            return Value(text, tree)
    based = _BASED.fullmatch(text)
    if based is not None:
        return _read_based(text, based.group(1), based.group(2))
    try:
        core, unit, percent = _split_unit(text)
    except NotAUnitError:
        return Opaque()  # "7 or more": nothing that symbolic equality should see
    ratio = _RATIO.fullmatch(core)
    if ratio is not None and Fraction(ratio.group(2)) != 0:
        return Value(
            core, Number(Fraction(ratio.group(1)) / Fraction(ratio.group(2))), unit, percent
        )
    words = words_of(core)
    if words is not None:
        number = number_from_words(words)
        if number is not None:
            return Value(core, Number(number), unit, percent)
        return _counted(words) or Words(words)
    if not core:
        return Opaque(text)
    return Value(core, _tree_or_none(core), unit, percent)


def _scale(match: re.Match[str]) -> str:
    r"""Rewrite ``25\text{ million dollars}`` as a power of ten and the rest."""
    return f"*10^{{{_SCALES[match.group(2)]}}}" + (r"\text{" if match.group(1) else "")


def with_unit(text: str) -> Value | None:
    """Read ``5 m`` as a length; None if the text is no number with a bare unit behind it.

    `read_value` reads it as a product of variables, which it may be as well.
    """
    if not text[-1:].isalpha():
        return None
    try:
        core, unit, percent = _split_unit(text)
    except NotAUnitError:
        return None
    tree = _tree_or_none(core)
    if unit is None or tree is None or variables(tree):
        return None
    return Value(core, tree, unit, percent)


def _counted(words: str) -> Value | None:
    """Read "seven apples": a number in words and a noun."""
    names = words.split()
    for count in range(len(names) - 1, max(0, len(names) - 3), -1):
        number = number_from_words(" ".join(names[:count]))
        if number is not None:
            try:
                unit = read_unit(" ".join(names[count:]))
            except NotAUnitError:
                return None
            return Value(words, Number(number), unit)
    return None


def _tree_or_none(text: str) -> Tree | None:
    try:
        return parse(text)
    except NotAnExpressionError:
        return None


def _read_based(text: str, digits: str, base_text: str) -> Value | Opaque:
    base = int(base_text) if base_text.isdigit() else _BASE_WORDS.get(base_text, 0)
    try:
        value = int(digits, base) if 2 <= base <= 36 else None
    except ValueError:
        value = None
    return Opaque(text) if value is None else Value(digits, Number(Fraction(value)), base=base)


def _split_unit(text: str) -> tuple[str, Unit | None, bool]:
    """Part a value from its unit and its per cent sign."""
    unit: Unit | None = None
    percent = False
    currency = _CURRENCY.match(text)
    if currency is not None:
        unit = _CURRENCY_UNITS[currency.group(2)]
        text = currency.group(1) + text[currency.end() :]
    for _ in range(3):
        text = text.replace(r"\text{}", "").rstrip(" .")
        if text.endswith("%"):
            text, percent = text[:-1], True
        elif text.endswith(r"\degree"):
            text, unit = text[: -len(r"\degree")], UNITS["degree"]
        elif text.endswith((r"\dollar", r"\euro")):
            text, unit = text[: text.rindex("\\")], UNITS[text[text.rindex("\\") + 1 :]]
        else:
            words = _TRAILING_TEXT.search(text) if "}" in text[-6:] else None
            if words is not None and words.start() > 0:
                name, power = words.group(1), words.group(2)
            else:
                words = _TRAILING_WORDS.search(text)
                if words is None or not _is_unit(words.group(1), words.group(2)):
                    break
                name, power = words.group(2), words.group(3)
            if name.strip().lower() in ("percent", "per cent", "pct", "percentage"):
                percent = True
            elif name.strip() in ("C", "F") and text[: words.start()].endswith(r"\degree"):
                pass
            else:
                unit = read_unit(name, int(power or 1)) or unit
            text = text[: words.start()]
    return text.strip(), unit, percent


def _is_unit(gap: str, words: str) -> bool:
    """Whether bare words after a number are its unit, not variables that multiply it."""
    names = words.replace("/", " ").split()
    if not names or any(name in FUNCTIONS or name in ("pi", "sqrt", "infinity") for name in names):
        return False
    known = all(name in UNITS or name.lower() in UNITS or len(name) > 3 for name in names)
    return known and (gap == " " or len(names[0]) > 1)


def words_of(text: str) -> str | None:
    r"""Give the words of a text that is nothing but words; None if it holds mathematics."""
    if _MATH_COMMANDS.search(text):
        return None
    plain = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    if not PLAIN_WORDS.fullmatch(plain.strip(" ()\"'")) or "\\" in plain:
        return None
    words = re.sub(r"[^a-z0-9 ]", " ", plain.lower())
    words = re.sub(r"^ *(?:the|a|an) (?=[a-z0-9])", "", re.sub(r" +", " ", words)).strip()
    return "no solution" if words in _EMPTY else words
