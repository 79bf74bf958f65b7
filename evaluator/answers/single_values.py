"""From the text of one value to its expression, with its unit, per cent sign and base."""

import re
from fractions import Fraction

from evaluator.answers.expressions import FUNCTIONS, NotAnExpressionError, parse
from evaluator.answers.forms import Opaque, Value, Words
from evaluator.answers.languages import CHANGING, CHINESE_UNITS
from evaluator.answers.number_words import number_from_words
from evaluator.answers.trees import Number, Operation, Tree, balanced, variables
from evaluator.answers.units import (
    DEGREE,
    MeasureUnit,
    NotAUnitError,
    conversion,
    is_unit,
    lookup,
    read_unit,
)

PLAIN_WORDS = re.compile(r"[a-zA-Z][a-zA-Z .'\-()]{0,80}")
_UNIT_TEXT = re.compile(r"\\text\{([^{}]{0,60})\}")
_UNIT_FRACTION = re.compile(
    r"\\frac ?\{ ?\\text\{([^{}]{1,30})\} ?\} ?\{ ?\\text\{([^{}]{1,30})\}"
    r" ?(\^ ?\{? ?\d ?\}?)? ?\}"
)
_UNIT_CHARACTERS = re.compile(r"[a-zA-ZµΩÅ0-9 .,/*^{}()'\"-]{0,80}")
_BARE_UNIT = re.compile(
    r"(?<=[\d})!])( ?)([a-zA-ZµΩÅ]{1,20}\.?"
    r"(?: ?(?:\^ ?\{? ?-?\d ?\}?|[/* ] ?[a-zA-ZµΩÅ]{1,20}\.?)){0,6})$"
)
_CURRENCY = re.compile(r"([-+]?) ?\\(dollar|euro|pound)(?![a-zA-Z]) ?")
_CURRENCY_UNITS = {
    "dollar": MeasureUnit.of("dollar"),
    "euro": MeasureUnit.of("euro"),
    "pound": MeasureUnit.of("pound_sterling"),
}
_TEMPERATURE = re.compile(
    r"(?:\\degree|(?:\\text\{ ?)?degrees?(?: ?\})?) ?(?:\\text\{ ?)?(C|F|Celsius|Fahrenheit) ?\}?$",
    re.IGNORECASE,
)
_BASED = re.compile(
    r"\(?([0-9A-Fa-f]{0,60}\d[0-9A-Fa-f]{0,60})\)?"
    r"(?:_ ?\{? ?(?:\\text\{ ?)?(\d{1,2}|[a-z]{3,11}) ?(?:\})? ?\}?"
    r"|,? ?\(?(?:\\text\{ ?)?\(?(?:in )?base[ -]?\}? ?(\d{1,2}|[a-z]{3,8})[ )}]{0,3})"
)
_BASE_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16, "hex": 16, "bin": 2, "oct": 8,
}  # fmt: skip
_MATH_COMMANDS = re.compile(r"\\(?!text|dollar)[a-zA-Z]+")
_EMPTY = frozenset(
    ["no solution", "no solutions", "none", "no real solution", "no real solutions",
     "does not exist", "dne", "empty set", "the empty set", "impossible", "undefined"]
)  # fmt: skip
_SCALE = re.compile(
    r"(?<=[\d)}]) ?(\\text\{ ?)?(hundred|thousand|million|billion|trillion)(?![a-zA-Z])"
)
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_RATIO_IN_WORDS = re.compile(r"([\d.]{1,12}) ?(?:\\text\{ ?to ?\}|to) ?([\d.]{1,12})")
_RATIO = re.compile(r"([^:]{1,60}):([^:]{1,60})")
_APPROXIMATELY = re.compile(r"(?:\\approx|~|approximately|about|roughly) ?")
_CUT_DECIMAL = re.compile(r"([-+]?\d{0,60}\.\d{1,200}) ?\\dots ?$")
_FOREIGN_TAIL = re.compile(
    r"(?<=[\d})%]) ?(?:\\text\{ "
    r"?)?([\u0590-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
    r"\uac00-\ud7af/]{1,12}) ?\}?$"
)
_TWO_LETTERS = re.compile(r"[a-zA-Z]{2}")
_METRES = re.compile(r"\dm ?\^ ?\{?[23]\}?$")
_SPACES = re.compile(r" +")
_MAX_QUANTITIES = 4
_QUANTITY = re.compile(r" ?(?:and|,)? ?(\d{1,12}(?:\.\d{1,12})?) ?([a-zA-Z]{1,12})\.?")
_PERCENT_BEHIND = re.compile(
    r"(?<=[\d)}]) ?(?:\\text\{ ?)?(?:pct|per ?cents?|percentage)\.? ?\}?$", re.IGNORECASE
)


def read_value(text: str) -> Value | Words | Opaque:
    r"""Read one value. Never raises.

    Examples
    --------
    >>> read_value(r"864 \text{ inches}^2").unit.parts
    (('inch', 2),)
    >>> read_value("52_8").base
    8
    """
    text = text.strip()
    if "a" in text or "~" in text:
        text = _APPROXIMATELY.sub("", text, count=1).strip()
    if text.isalpha() and len(text) > 1:
        number = number_from_words(text)
        if number is not None:
            return Value(text, Number(number))
    ratio = _RATIO_IN_WORDS.fullmatch(text) if "to" in text else None
    if ratio is not None:
        text = f"{ratio.group(1)}:{ratio.group(2)}"
    if _TWO_LETTERS.search(text) is not None:
        text = _PERCENT_BEHIND.sub("%", _SCALE.sub(_scale, text))
    based = _BASED.fullmatch(text)
    if based is not None:
        value = _read_based(based.group(1), based.group(2) or based.group(3))
        if value is not None:
            return value
    temperature = _TEMPERATURE.search(text)
    if temperature is not None:
        core = text[: temperature.start()].strip()
        celsius = temperature.group(1)[0] in "cC"
        name = "degree_Celsius" if celsius else "degree_Fahrenheit"
        return Value(core, _tree_or_none(core), MeasureUnit.of(name))
    foreign = None if text.isascii() else _FOREIGN_TAIL.search(text)
    if foreign is not None:
        return _with_foreign_unit(text[: foreign.start()].strip(), foreign.group(1).strip())
    try:
        tree = parse(text)
    except NotAnExpressionError:
        pass
    else:
        if not text.endswith(("%", r"\degree")) or _holds_function(text):
            return Value(text, tree)
    cut = _CUT_DECIMAL.fullmatch(text)
    if cut is not None and r"\dots" in text and _tree_or_none(text) is None:
        return read_value(cut.group(1))
    try:
        core, unit, percent = _split_unit(text)
    except NotAUnitError:
        return Opaque()  # "7 or more": nothing that symbolic equality should see
    return _read_core(core, text, unit, percent)


def _with_foreign_unit(text: str, words: str) -> Value | Words | Opaque:
    """Read a number with words of another script after it: a Chinese unit, or any noun."""
    unit = CHINESE_UNITS.get(words)
    if unit is not None:
        return read_value(rf"{text} \text{{{unit}}}")
    return Opaque() if CHANGING.search(words) else read_value(text)


def _read_core(
    core: str, text: str, unit: MeasureUnit | None, percent: bool
) -> Value | Words | Opaque:
    ratio = _RATIO.fullmatch(core)
    if ratio is not None:
        first, second = (_tree_or_none(part.strip()) for part in ratio.groups())
        if first is not None and second not in (None, Number(Fraction(0))):
            assert second is not None
            return Value(core, Operation("/", (first, second)), unit, percent)
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


def _holds_function(text: str) -> bool:
    return any(name in FUNCTIONS for name in re.findall(r"[a-z]+", text))


def with_unit(text: str) -> Value | None:
    """Read ``5 m`` as a length; None if the text is not a number with a bare unit after it.

    `read_value` reads it as a product of variables, which it may be as well.
    """
    unit = _BARE_UNIT.search(text)
    if unit is None:
        return None
    try:
        core, measured, percent = _split_unit(text)
    except NotAUnitError:
        return None
    tree = _tree_or_none(core)
    if measured is None and _METRES.search(text):
        core = text[: unit.start()]
        tree, measured = _tree_or_none(core), read_unit(unit.group(2))
    if measured is None or tree is None or variables(tree):
        return None
    return Value(core, tree, measured, percent)


def compound_quantity(text: str) -> Value | None:
    r"""Read ``2 \text{ hours } 15 \text{ minutes}`` as one quantity, in its last unit."""
    if not text[:1].isdigit() and not text.startswith((r"\text", ",", "and")):
        return None
    text = _SPACES.sub(" ", _UNIT_TEXT.sub(r" \1 ", text)).strip()
    parts: list[tuple[Tree, MeasureUnit]] = []
    position = 0
    while position < len(text):
        part = _QUANTITY.match(text, position)
        known = lookup(part.group(2)) if part is not None else None
        if part is None or known is None or len(parts) >= _MAX_QUANTITIES:
            return None
        parts.append((Number(Fraction(part.group(1))), MeasureUnit(known)))
        position = part.end()
    if len(parts) < 2:
        return None
    last = parts[-1][1]
    terms: list[Tree] = []
    previous: Fraction | None = None
    for number, unit in parts:
        size = conversion(unit, last)
        if size is None or size.offset or (previous is not None and size.factor >= previous):
            return None
        previous = size.factor
        terms.append(Operation("*", (number, Number(size.factor))))
    return Value("", balanced("+", terms), last)


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


def _read_based(digits: str, base_text: str) -> Value | None:
    base = int(base_text) if base_text.isdigit() else _BASE_WORDS.get(base_text, 0)
    if not 2 <= base <= 36:
        return None
    try:
        return Value(digits.upper(), Number(Fraction(int(digits, base))), base=base)
    except ValueError:
        return None


def _split_unit(text: str) -> tuple[str, MeasureUnit | None, bool]:
    """Split a value from its unit and its per cent sign."""
    unit: MeasureUnit | None = None
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
            text, unit = text[: -len(r"\degree")], DEGREE
        elif text.endswith((r"\dollar", r"\euro", r"\pound")):
            cut = text.rindex("\\")
            text, unit = text[:cut], _CURRENCY_UNITS[text[cut + 1 :]]
        else:
            found = _written_unit(text)
            if found is None:
                break
            text, words = found
            if currency is not None and re.match(r"(?:per|/|a|each|every)\b", words.strip()):
                continue
            unit = read_unit(words) or unit
    return text.strip(), unit, percent


def _written_unit(text: str) -> tuple[str, str] | None:
    """Split a text before the words that stand after its number; None if there are none."""
    start = text.find(r"\text{")
    fraction = text.find(r"\frac{\text{")
    if 0 <= fraction < start:
        start = fraction
    if start > 0:
        words = _UNIT_FRACTION.sub(r" \1/\2\3 ", text[start:])
        words = _UNIT_TEXT.sub(r" \1 ", words)
        if _UNIT_CHARACTERS.fullmatch(words):
            before = _BARE_UNIT.search(text[:start].rstrip(" */"))
            if before is not None and is_unit(before.group(2)):
                start, words = before.start(), text[before.start() : start] + words
            return text[:start].rstrip(" *"), words.replace(" ^", "^").strip()
    bare = _BARE_UNIT.search(text)
    if bare is None or not _is_bare_unit(bare.group(1), bare.group(2)):
        return None
    return text[: bare.start()], bare.group(2)


def _is_bare_unit(gap: str, words: str) -> bool:
    """Whether bare words after a number are its unit, not variables that multiply it."""
    names = re.findall(r"[a-zA-ZµΩÅ]+", words)
    if any(name in FUNCTIONS or name in ("pi", "sqrt", "infinity") for name in names):
        return False
    known = all(lookup(name) is not None or len(name) > 3 or name == "per" for name in names)
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
