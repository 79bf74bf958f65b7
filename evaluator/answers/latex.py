r"""One spelling for the many spellings of the same mathematics.

Text in, text out. After `normalise`, words are inside ``\text{}``, multiplication is ``*``,
degrees are ``\degree``, a currency is ``\dollar``, relations are ``<``, ``>``, ``\le``, ``\ge``,
``\ne``, and what only moves ink (``\left``, ``\,``, ``\displaystyle``) is gone. Commas are kept:
whether they separate thousands or values is decided where both readings can be tried (`reading`).
"""

import functools
import re

from evaluator.answers.characters import spelled_in_latex
from evaluator.answers.expressions import FUNCTIONS

_THOUSANDS = re.compile(
    r"(?<![\d.])\d{1,3}(?:(?:\s?\{,\s?\}\s?|,\\!\s?|\\[,;:! ]|~|'|_)\d{3}){1,40}(?!\d)"
    r"|(?<![\d.,])\d{1,3}(?:\.\d{3}){2,40}(?![\d.])"
    r"|(?<![\d.,] )(?<![\d.,])\d{1,3}(?: \d{3}){1,40}(?![\d ,/])"
)
_DECIMAL_COMMA = re.compile(r"(?<=\d)\{([,.])\}(?=\d)")
_NOT_DIGIT_OR_DOT = re.compile(r"[^\d]")
_INVISIBLE = re.compile(
    r"\\(?:left|right|middle|bigg?[lrm]?|Bigg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits"
    r"|hfill|hline|allowbreak|nonumber|strut|rm|bf|it|tiny|scriptsize|footnotesize|small|normalsize"
    r"|large|Large|LARGE|huge|Huge|therefore|checkmark)(?![a-zA-Z])\s?\.?(?<!\s\.)"
)
_SPACES = re.compile(
    r"\\[,;:!> ]|~|\\(?:q?quad|thinspace|enspace|hspace\{[^{}]{0,10}\}|phantom\{[^{}]{0,20}\})"
    r"(?![a-zA-Z])|\s"
)
_FONTS = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc|normal|up)?|mbox|hbox|mathrm|mathbf|mathit|mathsf|mathtt|mathnormal"
    r"|operatorname\*?|boldsymbol|bm|pmb|emph|underline|fbox|boxed|textsuperscript|textnormal)"
    r"\s?\{([^{}]{0,200})\}"
)
_ACCENTS = re.compile(
    r"\\(?:hat|widehat|vec|overrightarrow|overline|bar)\s?(?:\{\s?(\\?[a-zA-Z]{1,5})\s?\}|([a-zA-Z]))"
)
_NUMBER_IN_TEXT = re.compile(r"([-+]?\d[\d.,/]*)(?:\s+([a-zA-Z][a-zA-Z .]{0,60}))")
_DIGIT_DOTS = re.compile(r"(?<=\d)\s?\.{3,}|,\s?\.{3,}")
_COLOURS = re.compile(r"\\(?:textcolor|color)\s?\{[^{}]{0,40}\}")
_DEGREE = re.compile(
    r"\^\s?(?:\{\s?\\circ\s?\}|\\circ(?![a-zA-Z]))|\\circ(?![a-zA-Z])|\\deg(?:ree)?s?(?![a-zA-Z])"
)
_NAMED: dict[str, str] = {
    **dict.fromkeys(("dfrac", "tfrac", "cfrac", "frac"), r"\frac"),
    **dict.fromkeys(("cdot", "times", "ast", "cdotp", "star"), "*"),
    "div": "/",
    **dict.fromkeys(("le", "leq", "leqslant", "leqq"), r"\le "),
    **dict.fromkeys(("ge", "geq", "geqslant", "geqq"), r"\ge "),
    **dict.fromkeys(("ne", "neq"), r"\ne "),
    "lt": "<",
    "gt": ">",
    **dict.fromkeys(("approx", "simeq", "thickapprox"), r"\approx "),
    **dict.fromkeys(("lvert", "rvert", "vert", "mid"), "|"),
    "lbrace": r"\{",
    "rbrace": r"\}",
    "lbrack": "[",
    "rbrack": "]",
    "colon": ":",
    "dbinom": r"\binom",
    "tbinom": r"\binom",
    **dict.fromkeys(("infty", "infin"), r"\infty "),
    **dict.fromkeys(("varnothing", "emptyset"), r"\emptyset "),
    **dict.fromkeys(("backslash", "smallsetminus", "setminus"), r"\setminus "),
    **dict.fromkeys(("dots", "ldots", "cdots"), r"\dots "),
    "varphi": r"\phi ",
    "varepsilon": r"\epsilon ",
    "mathbb": r"\mathbb",
    "dollar": r"\dollar ",
    **dict.fromkeys(("pounds", "textsterling"), r"\pound "),
    **dict.fromkeys(("euro", "texteuro"), r"\euro "),
    **dict.fromkeys(("implies", "Rightarrow", "Longrightarrow", "to", "rightarrow"), r"\to "),
}
_COMMAND = re.compile(r"\\([a-zA-Z]+)")
_REALS = re.compile(r"\\(?:mathbb|mathbf)\s?\{?\s?R\s?\}?")
_ASCII_RELATION = re.compile(r"<=|=<|>=|!=|\*\*|<-|->")
_ASCII_RELATIONS = {
    "<=": r"\le ",
    "=<": r"\le ",
    ">=": r"\ge ",
    "!=": r"\ne ",
    "**": "^",
    "<-": "< -",
    "->": r"\to ",
}
_EQUALS = re.compile(r"(?<![a-zA-Z])(?:\\text\{ ?)?(?:is )?equals?(?: to)? ?\}?(?![a-zA-Z])")
_MATH_DELIMITER = re.compile(r"\\[()\[\]]")
_MICRO = re.compile(r"\\mu\s?\\(?:text|mathrm|mbox)\s?\{\s?(?=[a-zA-Z])")
_OHM = re.compile(
    r"(?<=[\d\s~}])(?:\\(?:text|mathrm)\s?\{\s?([kMm])\s?\}|([kMm]?))\\Omega(?![a-zA-Z])"
)
_INFIX = re.compile(r"\{([^{}]{1,80})\\(over|choose)(?![a-zA-Z])([^{}]{1,80})\}")
_DELIMITERS = frozenset("$*`")
_MANY_SPACES = re.compile(r" {2,}")


def _font(match: re.Match[str]) -> str:
    r"""Keep words in ``\text{}``; a number or one letter in a font is just itself."""
    content = match.group(1)
    stripped = content.strip()
    if stripped in FUNCTIONS and not _is_unit_here(match, stripped):
        return rf" \{stripped} "
    if len(stripped) == 1 and stripped.isalpha() and "math" in match.group()[:6]:
        return f" {stripped} "
    if not any(character.isalpha() for character in stripped) or "\\" in stripped:
        return f" {content} "
    number = _NUMBER_IN_TEXT.fullmatch(stripped)
    if number is not None:
        return rf" {number.group(1)} \text{{ {number.group(2)}}}"
    return rf"\text{{{content}}}"


def _is_unit_here(match: re.Match[str], name: str) -> bool:
    r"""Whether ``\text{min}`` and ``\text{sec}`` are minutes and seconds: no argument follows."""
    following = match.string[match.end() :].lstrip()[:1]
    return (
        name in ("min", "sec") and "operator" not in match.group() and following not in ("(", "\\")
    )


def _infix(match: re.Match[str]) -> str:
    r"""Rewrite TeX's ``{a \over b}`` and ``{n \choose k}``."""
    command = r"\frac" if match.group(2) == "over" else r"\binom"
    return f"{command}{{{match.group(1)}}}{{{match.group(3)}}}"


def _command(match: re.Match[str]) -> str:
    return _NAMED.get(match.group(1), match.group())


@functools.lru_cache(maxsize=64)  # one answer is compared with each option's value
def normalise(text: str) -> str:
    r"""Rewrite an expression in the one spelling that `forms` and `expressions` read.

    Examples
    --------
    >>> normalise(r"\left[ \dfrac{1}{2},\, 12\,450 \right)")
    '[ \\frac{1}{2}, 12450 )'
    """
    text = spelled_in_latex(text)
    text = _strip_delimiters(text.strip())
    if len(text) > 4:
        text = _THOUSANDS.sub(lambda number: _NOT_DIGIT_OR_DOT.sub("", number.group()), text)
        text = _DECIMAL_COMMA.sub(".", text)
    if "..." in text:
        text = _DIGIT_DOTS.sub(lambda dots: dots.group().rstrip(". ") + r"\dots ", text)
    if "\\" in text:
        if r"\\" in text:
            # A doubled backslash is a row's end in a matrix, and a slip of escaping elsewhere.
            text = text.replace(r"\\", r"\cr " if r"\begin" in text else "\\")
        text = text.replace(r"\$", r"\dollar ").replace(r"\%", "%").replace(r"\#", "#")
        text = text.replace(r"\&", "&").replace(r"\_", "_")
        if "color" in text:
            text = _COLOURS.sub("", text)
        if any(accent in text for accent in (r"\hat", r"\vec", r"\over", r"\bar", r"\wide")):
            text = _ACCENTS.sub(lambda accent: f" {accent.group(1) or accent.group(2)} ", text)
        if r"\math" in text:
            text = _REALS.sub(r"\\R ", text)
        if r"\mu" in text:
            text = _MICRO.sub(r"\\text{µ", text)
        if r"\Omega" in text:
            text = _OHM.sub(lambda ohm: rf"\text{{{ohm.group(1) or ohm.group(2) or ''}Ω}}", text)
        for _ in range(3 if "{" in text else 0):  # fonts are nested at most a little
            text, count = _FONTS.subn(_font, text)
            if not count:
                break
        text = _INVISIBLE.sub("", text)
        text = _DEGREE.sub(r"\\degree ", text)
        text = _MATH_DELIMITER.sub(" ", text)
        if r"\over" in text or r"\choose" in text:
            text = _INFIX.sub(_infix, text)
        text = _COMMAND.sub(_command, text)
    if "equal" in text:
        text = _EQUALS.sub("=", text)
    text = _ASCII_RELATION.sub(lambda relation: _ASCII_RELATIONS[relation.group()], text)
    text = _SPACES.sub(" ", text)
    text = text.replace("$", r"\dollar ").replace("€", r"\euro ").replace("£", r"\pound ")
    if "  " in text:
        text = _MANY_SPACES.sub(" ", text)
    text = text.strip()
    while text.endswith((".", ",", ";", ":")):
        text = text[:-1].rstrip()
    return text


def _strip_delimiters(text: str) -> str:
    """Drop what only says that mathematics or emphasis starts and ends here."""
    for _ in range(4):
        if text[:1] not in _DELIMITERS:
            break
        before = text
        for opening, closing in (("$$", "$$"), ("$", "$"), ("**", "**"), ("`", "`"), ("*", "*")):
            if (
                len(text) > len(opening) + len(closing)
                and text.startswith(opening)
                and text.endswith(closing)
                and not text.endswith("\\" + closing)
            ):
                text = text[len(opening) : -len(closing)].strip()
        if text == before:
            break
    return text
