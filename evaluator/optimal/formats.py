"""What a generating model wrote, as candidate questions: parsing, format checks, duplicates.

Text in, questions out; nothing here asks a model. What fails a check is dropped with its reason.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from data.choices import LETTERS
from data.draws import StableDraws
from data.optimal.general import AnswerType, GeneralQuestion
from evaluator.answers.judged import plain_words

MOST_SHORT_WORDS = 5
MOST_OPEN_WORDS = 40
LEAST_OPEN_WORDS = 4
LEAST_OPTIONS, MOST_OPTIONS = 4, 12
QUESTION_CHARACTERS = (12, 600)
SAME = 0.8
"""Two questions that share this fraction of their word pairs are the same question."""

_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?(?:[eE][-+]?\d{1,2})?")
_ELSEWHERE = re.compile(
    r"\b(?:(?:figure|picture|image|table|diagram|passage|graph) (?:above|below|shown)"
    r"|shown (?:above|below)|following (?:figure|picture|image|passage|text)|previous question)\b",
    re.IGNORECASE,
)
_OPTION_LABEL = re.compile(r"^\(?[A-Za-z][.):]\s+")
_CATCH_ALL = re.compile(r"\b(?:all|none|both|any) of the (?:above|these|other)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What did not enter the data set, and why.

    Attributes
    ----------
    id, domain, answer_type
        As of a candidate.
    stage
        ``"format"``, ``"duplicate"``, ``"answers"`` (some differ) or ``"judge"`` (no verdict).
    reason
        One line.
    question
        Its text, as far as there is one.
    """

    id: str
    domain: str
    answer_type: AnswerType
    stage: str
    reason: str
    question: str = ""


@dataclass(slots=True)
class Parsed:
    """What came out of one reply."""

    candidates: list[GeneralQuestion] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)


def parse_reply(
    reply: str, *, prefix: str, domain: str, answer_type: AnswerType, options: int
) -> Parsed:
    """Read the questions of a generating model's reply.

    Parameters
    ----------
    reply
        Its text: a JSON list, which may stand in a fence or be cut at its end.
    prefix
        Ids are ``PREFIX-1``, ``PREFIX-2`` and so on.
    domain, answer_type
        What was asked for.
    options
        How many options a choice was to have.
    """
    parsed = Parsed()
    objects = list(_objects(reply))
    if not objects:
        parsed.dropped.append(
            Dropped(
                id=prefix,
                domain=domain,
                answer_type=answer_type,
                stage="format",
                reason="the reply holds no JSON object",
            )
        )
    for number, values in enumerate(objects, start=1):
        name = f"{prefix}-{number}"
        found = _candidate(values, name, domain, answer_type, options)
        if isinstance(found, GeneralQuestion):
            parsed.candidates.append(found)
        else:
            text = values.get("question")
            parsed.dropped.append(
                Dropped(
                    id=name,
                    domain=domain,
                    answer_type=answer_type,
                    stage="format",
                    reason=found,
                    question=text[:600] if isinstance(text, str) else "",
                )
            )
    return parsed


def _objects(reply: str) -> Iterator[dict[str, Any]]:
    """Yield every whole JSON object of a text, outermost ones only."""
    decoder = json.JSONDecoder()
    position = reply.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(reply, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if isinstance(value, dict):
                yield {str(key).strip().lower(): item for key, item in value.items()}
        position = reply.find("{", end)


def _candidate(
    values: dict[str, Any], name: str, domain: str, answer_type: AnswerType, options: int
) -> GeneralQuestion | str:
    """Return a candidate, or why there is none."""
    question, answer = values.get("question"), values.get("answer")
    if not isinstance(question, str) or not isinstance(answer, str | int | float):
        return "question and answer must be a text and a text or number"
    question = " ".join(question.split())
    answer = " ".join(str(answer).split())
    least, most = QUESTION_CHARACTERS
    if not least <= len(question) <= most:
        return f"the question has {len(question)} characters; {least} to {most} are allowed"
    if _ELSEWHERE.search(question):
        return "the question refers to something that is not there"
    if not answer:
        return "the answer is empty"
    shown: tuple[str, ...] = ()
    if answer_type == "choice":
        found = _options(values, options)
        if isinstance(found, str):
            return found
        right = _right_option(answer, found)
        if right is None:
            return "the answer is not exactly one of the options"
        shown, answer = _arranged(name, found, right), right
    else:
        why = _wrong_form(question, answer, answer_type)
        if why:
            return why
    return GeneralQuestion(
        id=name,
        domain=domain,
        answer_type=answer_type,
        question=question,
        answer=answer,
        options=shown,
    )


def _wrong_form(question: str, answer: str, answer_type: AnswerType) -> str:
    """Say what is wrong with the form of an answer that is not a choice, or nothing."""
    words = answer.split()
    if answer_type == "numeric":
        return "" if _NUMBER.fullmatch(answer) else f"{answer[:40]!r} is not a number in digits"
    if answer_type == "short":
        if len(words) > MOST_SHORT_WORDS:
            return f"the answer has {len(words)} words; at most {MOST_SHORT_WORDS} are allowed"
        plain = plain_words(answer)
        if plain and f" {plain} " in f" {plain_words(question)} ":
            return "the question holds its answer"
        return "" if plain else "the answer has no words"
    if not LEAST_OPEN_WORDS <= len(words) <= MOST_OPEN_WORDS:
        return (
            f"the answer has {len(words)} words; {LEAST_OPEN_WORDS} to {MOST_OPEN_WORDS} are "
            "allowed"
        )
    return ""


def _options(values: dict[str, Any], count: int) -> tuple[str, ...] | str:
    found = values.get("options", values.get("choices"))
    if isinstance(found, dict):
        found = list(found.values())
    if not isinstance(found, list) or not all(isinstance(o, str | int | float) for o in found):
        return "a choice needs a list of options"
    options = tuple(_OPTION_LABEL.sub("", " ".join(str(option).split())) for option in found)
    if len(options) != count or not LEAST_OPTIONS <= len(options) <= MOST_OPTIONS:
        return f"{len(options)} options; {count} were asked for"
    if any(not option for option in options):
        return "an option is empty"
    if len({plain_words(option) or option for option in options}) < len(options):
        return "two options are the same"
    if any(_CATCH_ALL.search(option) for option in options):
        return "an option speaks of the other options"
    return options


def _right_option(answer: str, options: Sequence[str]) -> str | None:
    for text in (answer, _OPTION_LABEL.sub("", answer)):
        if text in options:
            return text
    same = [option for option in options if plain_words(option) == plain_words(answer)]
    if len(same) == 1:
        return same[0]
    letter = answer.strip("().: ").upper()
    place = LETTERS.find(letter) if len(letter) == 1 else -1
    return options[place] if 0 <= place < len(options) else None


def _arranged(name: str, options: Sequence[str], right: str) -> tuple[str, ...]:
    """Return the options in a drawn order: models like to put the right one first."""
    draws = StableDraws("ovt-general", name)
    others = draws.shuffled([option for option in options if option != right])
    others.insert(draws.integer(0, len(options) - 1), right)
    return tuple(others)


class SeenQuestions:
    """Questions that there are already, to tell a new one from a repeated one."""

    def __init__(self) -> None:
        self._plain: dict[str, str] = {}
        self._holders: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}

    def repeated(self, candidate: GeneralQuestion) -> str | None:
        """Return the id of the question that a candidate repeats; otherwise remember it.

        The same words are a repetition, and so are two questions whose pairs of neighbouring words
        overlap by :data:`SAME` (Jaccard) if their answers agree too.
        """
        plain = plain_words(candidate.question)
        if plain in self._plain:
            return self._plain[plain]
        answer = plain_words(candidate.answer)
        pairs = {f"{answer}\x1f{pair}" for pair in _pairs(plain)}
        shared: dict[str, int] = {}
        for pair in pairs:
            for holder in self._holders.get(pair, ()):
                shared[holder] = shared.get(holder, 0) + 1
        for holder, count in shared.items():
            if count >= SAME * (len(pairs) + self._sizes[holder] - count):
                return holder
        self._plain[plain] = candidate.id
        self._sizes[candidate.id] = len(pairs)
        for pair in pairs:
            self._holders.setdefault(pair, []).append(candidate.id)
        return None


def _pairs(plain: str) -> set[str]:
    words = plain.split()
    return {" ".join(words[i : i + 2]) for i in range(max(1, len(words) - 1))}
