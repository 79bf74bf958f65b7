"""Is an extracted expression equal to a reference? The reference is read once for all answers."""

import itertools
import re
from fractions import Fraction

from evaluator.answers.clock import same_time
from evaluator.answers.comparison import FormComparison, SymbolicEqual
from evaluator.answers.forms import Equation, Form, Listing
from evaluator.answers.judge import CannotDecideError
from evaluator.answers.latex import normalise
from evaluator.answers.reading import read_forms, read_normalised

_NUMBER = re.compile(r"[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})", re.ASCII)
_OPTION = re.compile(
    r"(?:\\text\{ ?)?(?:\(([A-J])\)|([A-J])[).:])[ .:]?(?: ?\}|(?=\\| |$))[ .:]*(.{0,200})",
    re.DOTALL,
)
_LETTER = re.compile(r"(?:\\text\{ ?)?\(?([A-J])[.)]? ?\}?\)?")
_COMMA_NUMBER = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+(?:,\d+)?|[-+]?\d+,\d+")
_POINT_OR_THOUSANDS = re.compile(r"[-+]?\d{1,3}\.\d{3}")
_PUNCTUATION = re.compile(r"[ {}]|\.(?!\d)")
_MEANINGFUL_SPACE = re.compile(r"(?<=\d) +(?=\d)|(?<=\d,) +(?=\d{3})")


def plain_number(text: str) -> Fraction | None:
    """Read a plain integer or decimal exactly; None if the text is anything else."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


class Reference:
    """A reference, read once, to compare answers with.

    Parameters
    ----------
    reference
        The right answer, LaTeX or plain text.
    prompt
        The question; it tells whether a bare number is meant in per cent.
    decimal_comma
        Whether decimals are written with a comma where the question comes from: ``2,5`` is then
        two and a half on both sides, and ``1.234`` may be either number that it can be.
    """

    def __init__(self, reference: str, prompt: str = "", *, decimal_comma: bool = False) -> None:
        self._text = normalise(reference)
        self._decimal_comma = decimal_comma
        self._forms = read_forms(reference, as_reference=True)
        if decimal_comma and _COMMA_NUMBER.fullmatch(self._text):
            exact = _POINT_OR_THOUSANDS.fullmatch(self._text) is None
            self._forms = read_forms(_with_points(reference)) + (() if exact else self._forms)
        self._number = plain_number(self._text)
        self._percent = re.search(r"per ?cent|%", prompt, re.IGNORECASE) is not None
        self._letter, self._option = _option(self._text, prompt)
        self.parts = _parts(self._forms[0])

    def equals(self, answer: str, symbolic_equal: SymbolicEqual | None = None) -> bool:
        """Compare an answer.

        Raises
        ------
        CannotDecideError
            The exact rules do not decide, and there is no `symbolic_equal`.
        """
        if self._number is not None:
            number = plain_number(answer)
            if number is not None and (number == self._number or "." not in answer + self._text):
                return number == self._number
        text = normalise(answer)
        if _squeezed(text) == _squeezed(self._text) or _same_text(self._text, text):
            return True
        time = same_time(self._text, text) if ":" in text else None
        if time is not None:
            return time
        if self._letter is not None:
            option = _OPTION.fullmatch(text)
            if option is not None:
                same_letter = (option.group(1) or option.group(2)) == self._letter
                text_of_option = option.group(3).strip()
                if same_letter and self._option is not None and text_of_option:
                    return self._option.equals(text_of_option, symbolic_equal)
                return same_letter
            if text == self._letter:
                return True
            if self._option is not None:
                return self._option.equals(answer, symbolic_equal)
        comparison = FormComparison(symbolic_equal, self._percent)
        undecided = False
        forms = read_normalised(text)
        if self._decimal_comma and _COMMA_NUMBER.match(text):
            forms = (*read_forms(_with_points(answer)), *forms)
        for gold, read in itertools.product(self._forms, forms):
            try:
                if comparison.same(gold, read):
                    return True
            except CannotDecideError:
                undecided = True
        if undecided:
            raise CannotDecideError
        return False


def _with_points(text: str) -> str:
    """Rewrite ``1.234,5`` as ``1234.5``."""
    return re.sub(
        r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d+",
        lambda number: number.group().replace(".", "").replace(",", "."),
        text,
    )


def _option(text: str, prompt: str) -> tuple[str | None, "Reference | None"]:
    """Read a reference that is an option's letter, alone or with the option's text."""
    letter = _LETTER.fullmatch(text)
    if letter is not None:
        return letter.group(1), None
    option = _OPTION.fullmatch(text)
    if option is None or not option.group(3).strip():
        return None, None
    return option.group(1) or option.group(2), Reference(option.group(3), prompt)


def _parts(form: Form) -> int:
    if isinstance(form, Equation):
        form = form.right
    return len(form.items) if isinstance(form, Listing) else 1


def _same_text(gold: str, answer: str) -> bool:
    """Whether two texts with words in them (``June 20``, ``3:45 PM``) are the same but for case."""
    if not re.search(r"[a-zA-Z]{2}", gold) or "\\" in gold.replace(r"\text", ""):
        return False
    return _plain(gold) == _plain(answer)


def _plain(text: str) -> str:
    text = _MEANINGFUL_SPACE.sub("\n", text.replace(r"\text", ""))
    return _PUNCTUATION.sub("", text).lower()


def _squeezed(text: str) -> str:
    """Drop spaces, but not those of a mixed number (``6 1/8``) and of a list (``6, 125``)."""
    return _MEANINGFUL_SPACE.sub("\n", text).replace(" ", "")
