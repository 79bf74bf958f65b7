r"""The table of characters that stand for mathematics: each with its spelling in LaTeX.

``−`` is a minus, ``½`` a fraction, ``𝟓`` and ``５`` are digits, ``（`` is a bracket, ``。`` ends a
sentence.
"""

import re
import unicodedata

_FULL_WIDTH = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_MATHEMATICAL = {
    code: unicodedata.normalize("NFKC", chr(code))
    for code in range(0x1D400, 0x1D800)
    if unicodedata.normalize("NFKC", chr(code)).isascii()
}
LETTERS_AND_DIGITS = {
    **_FULL_WIDTH,
    **_MATHEMATICAL,
    ord("。"): ".",
    ord("、"): ",",
    ord("【"): "[",
    ord("】"): "]",
    ord("〔"): "[",
    ord("〕"): "]",
    ord("．"): ".",
    ord("Ⅰ"): "I",
}
"""Other forms of the characters of ASCII. One character for one, so that positions stay."""

_FRACTIONS = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5",
    "⅘": "4/5", "⅙": "1/6", "⅚": "5/6", "⅐": "1/7", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
    "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
_FRACTION = re.compile(r"(\d?) ?([" + "".join(_FRACTIONS) + "])")

_GREEK = dict(zip("αβγδζηκλξρστφϕχψωΓΔΘΛΞΦΨ", [
    "alpha", "beta", "gamma", "delta", "zeta", "eta", "kappa", "lambda", "xi", "rho", "sigma",
    "tau", "phi", "phi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Phi",
    "Psi",
], strict=True))  # fmt: skip
"""Without those that stand in units: μ and Ω."""

SPELLINGS: dict[str, str] = {
    **dict.fromkeys("−–—‐‒‑﹣－⁻", "-"),
    **dict.fromkeys("·⋅∙×✕✖∗⨯", "*"),
    **dict.fromkeys("\u00a0\u2007\u3000\t\n\r\v\f", " "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\u00ad✓✔", ""),
    **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""),
    **dict.fromkeys("\u2009\u202f\u2006\u2005\u2004\u2008", r"\,"),
    **dict.fromkeys("′’‘", "'"),
    **dict.fromkeys("÷⁄∕", "/"),
    "≤": r"\le ",
    "⩽": r"\le ",
    "≦": r"\le ",
    "≥": r"\ge ",
    "⩾": r"\ge ",
    "≧": r"\ge ",
    "≠": r"\ne ",
    "≈": r"\approx ",
    "±": r"\pm ",
    "∓": r"\mp ",
    "∞": r"\infty ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∈": r"\in ",
    "∅": r"\emptyset ",
    "∖": r"\setminus ",
    "°": r"\degree ",
    "º": r"\degree ",
    "˚": r"\degree ",
    "℃": r"\degree C",
    "℉": r"\degree F",
    "∠": r"\angle ",
    "△": r"\triangle ",
    "…": r"\dots ",
    "⋯": r"\dots ",
    "→": r"\to ",
    "⇒": r"\to ",
    "π": r"\pi ",
    "θ": r"\theta ",
    **{letter: rf"\{name} " for letter, name in _GREEK.items()},
    "α": r"\alpha ",
    "β": r"\beta ",
    "γ": r"\gamma ",
    "δ": r"\delta ",
    "ε": r"\epsilon ",
    "λ": r"\lambda ",
    "μ": "µ",
    "φ": r"\phi ",
    "ϕ": r"\phi ",
    "ω": r"\omega ",
    "ρ": r"\rho ",
    "σ": r"\sigma ",
    "Ω": "Ω",
    "ℝ": r"\R ",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "〈": r"\langle ",
    "〉": r"\rangle ",
    "％": "%",
    "＄": "$",
    "￥": "¥",
    **{mark: rf"\frac{{{value[:1]}}}{{{value[2:]}}}" for mark, value in _FRACTIONS.items()},
}
_TRANSLATION = str.maketrans(SPELLINGS)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉ₙ", "0123456789n")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺ⁿ⁻]{1,20}")
_SUBSCRIPT_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉ₙ]{1,20}")
_ROOT = re.compile(r"([√∛∜])\s?(\d{1,40}(?:\.\d{1,40})?|[a-zA-Z](?![a-zA-Z])|(?=[({\\]))")
_ROOTS = {"√": r"\sqrt", "∛": r"\sqrt[3]", "∜": r"\sqrt[4]"}
_LIST_COMMA = re.compile("[，、]")


def plain_letters(text: str) -> str:
    """Give full-width and mathematical letters, digits and signs their usual form.

    The text keeps its length.

    Examples
    --------
    >>> plain_letters("（𝟓，６）")
    '(5,6)'
    """
    return text if text.isascii() else text.translate(LETTERS_AND_DIGITS)


def with_plain_fractions(text: str) -> str:
    """Spell the characters of fractions with a slash: ``2½`` is ``2 1/2``."""
    return text if text.isascii() else _FRACTION.sub(_plain_fraction, text)


def _plain_fraction(match: re.Match[str]) -> str:
    fraction = _FRACTIONS[match.group(2)]
    return f"{match.group(1)} {fraction}" if match.group(1) else match.group()[:-1] + fraction


def spelled_in_latex(text: str) -> str:
    r"""Spell all such characters in LaTeX.

    Examples
    --------
    >>> spelled_in_latex("√3 ≤ x²")
    '\\sqrt{3} \\le  x^{2}'
    """
    if text.isascii():
        return text
    text = _LIST_COMMA.sub(", ", text).translate(LETTERS_AND_DIGITS)
    text = _SUPERSCRIPT_RUN.sub(lambda run: f"^{{{run.group().translate(_SUPERSCRIPTS)}}}", text)
    text = _SUBSCRIPT_RUN.sub(lambda run: f"_{{{run.group().translate(_SUBSCRIPTS)}}}", text)
    text = _ROOT.sub(_root, text)
    return text.translate(_TRANSLATION)


def _root(match: re.Match[str]) -> str:
    return _ROOTS[match.group(1)] + (f"{{{match.group(2)}}}" if match.group(2) else "")
