r"""The judge of multiple-choice answers.

An answer is a letter in any decoration (``(B)``, ``\textbf{b}``, ``B. Mitochondria``), or the text
of exactly one option. Marks are boxes, labels (``Answer: B``, ``"answer": "B"``) and verdicts in
words ("option B is correct"); the last one counts. A letter inside a formula, an article ("a
photon") and two letters at once are no answer.
"""

import re

from data.question import Question
from evaluator.answers.boxes import Box, last_boxes
from evaluator.answers.characters import plain_letters
from evaluator.answers.choice_marks import (
    PLACES,
    SENTENCES,
    concluded,
    copies_options,
    opened,
    praised,
    with_capitals,
)
from evaluator.answers.errors import BadReferenceError
from evaluator.answers.judge import CannotDecideError, SlowTools
from evaluator.answers.latex import normalise
from evaluator.answers.math_equality import Reference
from evaluator.answers.sentences import is_doubted
from evaluator.answers.verdict import Verdict
from evaluator.answers.visible import visible_text

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERS_WITHOUT_OPTIONS = 10
_TAIL_CHARACTERS = 8000
_CONTENT_CHARACTERS = 400
_VALUE_CHARACTERS = 100
_MARKS = 12
"""Marks of one sort that are tried, from the last one on."""

_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:bf|rm|it|sf|tt)|mbox|boldsymbol|bf|rm)\s?\{([^{}]{0,300})\}"
)
_INK = re.compile(
    r"\\(?:left|right|displaystyle|,|;|!|quad|qquad| )|[*`$\"“”]|\\[()\[\]](?=\s|$|\\|\w)"
)
_LETTER = re.compile(
    r"(?:(?:the |my )?(?:correct |final |best )?(?:option|choice|answer|letter)s?:?(?: is)?:? ?)?"
    r"(?P<open>[(\[{<]?) ?(?P<letter>[A-Za-z]) ?(?P<close>[)\]}>]?)(?![A-Za-z_^]|['’][A-Za-z])"
    r"(?P<rest>.*)",
    re.DOTALL | re.IGNORECASE,
)
_SECOND_LETTER = re.compile(
    r"\s?(?:,|/|&|\bor\b|\band\b|\bnor\b)+\s?(?:(?:or|and|option|choice)\s)?[(\[]?[A-Z][)\]]?(?![A-Za-z'’])"
)
_REST_ENDS = re.compile(
    r"['’]?\s*(?:$|(?!是?(?:错|不))[\u3000-\u9fff\uac00-\ud7af]|(?:non|not|nicht|rather|"
    r"instead)\b|[.:;,)\]](?=\s|$|\\|[A-Z(])|[-–—] |—|\(|\n|(?:because|since|as|is|due|given|"
    r"which|with|for|by)\b)",
    re.IGNORECASE,
)
_NOT_PLAIN = re.compile(r"[^a-z0-9.+\-/%<>=]+")

_NONE = "none"
"""Marks that are read as a refusal or as two answers at once."""


class ChoiceJudge:
    """Judges answers to one question with options."""

    def __init__(self, question: Question) -> None:
        count = len(question.choices) or _LETTERS_WITHOUT_OPTIONS
        self._letters = LETTERS[:count]
        self._reference = question.reference.strip().strip("()").upper()
        if len(self._reference) != 1 or self._reference not in self._letters:
            raise BadReferenceError(
                f"question {question.id}: the reference '{question.reference}' is not a letter "
                "from "
                f"A to {self._letters[-1]}"
            )
        self._options = [_plain(option) for option in question.choices]
        self._values = [
            (letter, Reference(option))
            for letter, option in zip(self._letters, question.choices, strict=False)
            if option.strip()
        ]

    def extract(self, response: str) -> str | None:
        """Extract the letter that a response marks, upper case; None if it marks none."""
        text = visible_text(response)
        if text is None:
            return None
        text = with_capitals(plain_letters(text[-_TAIL_CHARACTERS:]))
        boxes = last_boxes(text) if "box" in text else []
        if boxes and not boxes[-1].closed:
            return None  # cut inside the box
        letter = self._marked(text, boxes) or self._unmarked(text)
        return None if letter in (None, _NONE) else letter

    def quick(self, answer: str) -> Verdict | None:
        """Compare letters."""
        if answer == self._reference:
            return Verdict(right=True, answer=answer, reason="right: the reference's option")
        return Verdict(False, answer, f"wrong: option {answer}, the reference is {self._reference}")

    def slow(self, answer: str, tools: SlowTools) -> Verdict:
        """Never needed: letters are compared at once."""
        verdict = self.quick(answer)
        assert verdict is not None
        return verdict

    def _marked(self, text: str, boxes: list[Box]) -> str | None:
        """Read the last mark that can be read; `_NONE` if it names no single option."""
        found: list[tuple[int, str]] = []
        for box in reversed(boxes):
            letter = self._option(box.content)
            if letter is not None:
                found.append((box.start, letter))
                break
        for pattern in PLACES:
            for mark in list(pattern.finditer(text))[: -_MARKS - 1 : -1]:
                if pattern in SENTENCES and is_doubted(text, mark):
                    continue
                content = text[mark.end() : mark.end() + _CONTENT_CHARACTERS]
                letter = self._option(_first_statement(content))
                if letter is not None:
                    found.append((mark.start(), letter))
                    break
        found += [(place, letter) for place, letter in praised(text) if letter in self._letters]
        return max(found)[1] if found else None

    def _unmarked(self, text: str) -> str | None:
        """Read a response that is just a letter, or whose first or last line says one."""
        lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
        if not lines:
            return None
        if copies_options(text):
            lines = lines[-1:] if len(lines) > 1 and not copies_options(text, lines[-2:]) else []
        for line in lines[-1:] + lines[:1]:
            bold = re.findall(r"\*\*([^*\n]{1,300})\*\*", line)
            for content in [line, *bold[-1:]]:
                letter = self._option(content, sentence=False)
                if letter is not None:
                    return letter
        for letter in (concluded(lines[-1]) if lines else None, opened(text)):
            if letter is not None and letter in self._letters:
                return letter
        return None

    def _option(self, content: str, *, sentence: bool = True) -> str | None:
        """Read what a mark holds: an option's letter, `_NONE`, or None if it is not an option.

        `sentence` allows words after the letter (``B because ...``), as after a label.
        """
        content = _cleaned(content)
        if not content or len(content) > 2 * _CONTENT_CHARACTERS:
            return None
        by_text = self._by_text(content)
        if by_text is not None:
            return by_text
        match = _LETTER.match(content)
        if match is None or match.group("letter").upper() not in self._letters:
            return self._by_value(content)
        letter, rest = match.group("letter"), match.group("rest")
        if _SECOND_LETTER.match(rest):
            return _NONE
        bracketed = bool(match.group("close"))
        if not rest.strip(" .!)\n'’"):
            return letter.upper()
        if self._begins_with_option(rest, letter.upper()):
            return letter.upper()
        if letter.islower() and not bracketed:
            return self._by_value(content)
        if sentence and (_REST_ENDS.match(rest) or (bracketed and rest[:1] in " \n")):
            return letter.upper()
        if not sentence and bracketed and self._by_value(rest.strip()) == letter.upper():
            return letter.upper()
        if not sentence and not self._options and re.match(r"[.:)] ", rest):
            return letter.upper()
        return self._by_value(content)

    def _by_text(self, content: str) -> str | None:
        """Find the one option whose text this is."""
        plain = _plain(content)
        if not plain or len(plain) == 1:
            return None
        matches = [index for index, option in enumerate(self._options) if option == plain]
        return self._letters[matches[0]] if len(matches) == 1 else None

    def _begins_with_option(self, rest: str, letter: str) -> bool:
        """Whether the words after a letter are its option's text."""
        index = self._letters.index(letter)
        if index >= len(self._options) or not self._options[index]:
            return False
        return _plain(rest).startswith(self._options[index])

    def _by_value(self, content: str) -> str | None:
        """Find the one option that has this value, by the exact rules of mathematics."""
        if not re.search(r"\d|\\", content) or len(content) > _VALUE_CHARACTERS:
            return None
        matches = []
        for letter, value in self._values:
            try:
                if value.equals(content.rstrip(".")):
                    matches.append(letter)
            except CannotDecideError:
                continue
        return matches[0] if len(matches) == 1 else None


def _first_statement(content: str) -> str:
    """Cut what stands after a label at the end of its line."""
    return content.lstrip(" \t\n*_:").split("\n", 1)[0].split("</", 1)[0]


def _cleaned(content: str) -> str:
    """Drop fonts, quotes, emphasis and mathematics signs around a letter or an option's text."""
    for _ in range(3):
        content, count = _FONT.subn(r"\1", content)
        if not count:
            break
    content = content.replace(r"\boxed{", "").replace("~", " ")
    content = _INK.sub(" ", content)
    content = re.sub(r"\s+", " ", content).strip(" '_")
    while content.startswith("{") and content.endswith("}"):
        content = content[1:-1].strip()
    return content.rstrip("},. ") if content.count("}") > content.count("{") else content


def _plain(text: str) -> str:
    """Give a text's letters and digits, lower case, for comparing options."""
    text = normalise(text[:1000]).replace(r"\text", " ").lower()
    text = _NOT_PLAIN.sub(" ", text).strip(" .")
    return re.sub(r"^(?:the|a|an) (?=[a-z0-9])", "", re.sub(r" +", " ", text))
