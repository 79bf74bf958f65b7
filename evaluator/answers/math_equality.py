"""Is an extracted expression equal to a reference?"""

import re
from collections.abc import Callable
from fractions import Fraction

from evaluator.answers.judge import CannotDecideError

_NUMBER = re.compile(r"[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})", re.ASCII)


def plain_number(text: str) -> Fraction | None:
    """Read a plain integer or decimal exactly; None if the text is anything else."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


class Reference:
    """A reference, read once, to compare answers with."""

    def __init__(self, reference: str, prompt: str = "") -> None:
        self.text = reference
        self.parts = 1
        self._number = plain_number(reference.strip())

    def equals(self, answer: str, symbolic_equal: Callable[[str, str], bool] | None = None) -> bool:
        """Compare an answer; without `symbolic_equal`, raises `CannotDecideError` where it is needed."""
        number = plain_number(answer.strip())
        if number is not None and self._number is not None:
            return number == self._number
        if symbolic_equal is None:
            raise CannotDecideError
        return symbolic_equal(self.text, answer)
