"""Questions of OvT-General, and data sets of them: a user's own, the published one, similar ones.

One real record of a data set that ``stp optimal build`` wrote::

    {"id": "mechanics-choice-3", "domain": "Mechanics", "discipline": "Engineering",
     "answer_type": "choice", "question": "Which unit measures force?",
     "options": ["Newton", "Joule", "Watt", "Pascal"], "answer": "Newton", "provenance": {...}}

The published data set (``facebook/optimal_thinking_bench`` on the hub) and files like it name
things differently (``mode`` or a ``metadata`` object with ``answer_type``; options under letters);
they are read too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from data.benchmark import check_questions
from data.choices import LETTERS, letter_question
from data.errors import MissingDependencyError, MisuseError, one_line
from data.files import read_rows
from data.optimal.domains import discipline_of
from data.question import Question

AnswerType = Literal["numeric", "choice", "short", "open"]
ANSWER_TYPES: tuple[AnswerType, ...] = get_args(AnswerType)
JUDGED = "judged"
"""Answer kind of short and open answers: by rule where the words agree, by a model otherwise."""

QUESTIONS_FILE = "questions.jsonl"
PUBLISHED = "facebook/optimal_thinking_bench"
SAMPLE = "sample"
"""A source of 32 questions, eight of each answer type, that comes with the project."""

_TYPES: dict[str, AnswerType] = {
    "numeric": "numeric",
    "number": "numeric",
    "numerical": "numeric",
    "choice": "choice",
    "mcq": "choice",
    "multiple_choice": "choice",
    "multiple choice": "choice",
    "short": "short",
    "short_answer": "short",
    "short answer": "short",
    "one_word": "short",
    "phrase": "short",
    "open": "open",
    "open_ended": "open",
    "open-ended": "open",
    "open ended": "open",
    "freeform": "open",
}
_NAMES = {
    "question": ("question", "problem", "prompt", "query"),
    "answer": ("answer", "reference", "expected_answer", "ground_truth", "target"),
    "type": ("answer_type", "mode", "question_type", "type"),
    "domain": ("domain", "field", "category", "subject"),
    "options": ("options", "choices"),
    "id": ("id", "question_id", "idx"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralQuestion:
    """One question of OvT-General.

    Attributes
    ----------
    id
        Unique within its data set.
    domain, answer_type
        The pair of constraints that it was made under.
    question
        Without options and without instruction.
    answer
        The reference as text; for a choice the right option's text.
    options
        In the order shown; empty unless the answer type is ``"choice"``.
    provenance
        Where it comes from, as its maker wrote it down.
    """

    id: str
    domain: str
    answer_type: AnswerType
    question: str
    answer: str
    options: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @property
    def discipline(self) -> str:
        """The discipline that the domain belongs to, or ``""``."""
        return discipline_of(self.domain)

    def as_question(self) -> Question:
        """Return it as a question that a checker can judge answers to.

        Raises
        ------
        data.errors.MisuseError
            If options and answer do not fit together.
        """
        if self.answer_type == "choice":
            if self.options.count(self.answer) != 1:
                raise MisuseError(f"{self.id}: the answer is not exactly one of the options")
            letter = LETTERS[self.options.index(self.answer)]
            return letter_question(self.id, self.question, self.options, letter, self.id)
        kind = "math" if self.answer_type == "numeric" else JUDGED
        return Question(id=self.id, prompt=self.question, reference=self.answer, answer_kind=kind)

    def as_row(self) -> dict[str, Any]:
        """Return the record as it is stored."""
        return {
            "id": self.id,
            "domain": self.domain,
            "discipline": self.discipline,
            "answer_type": self.answer_type,
            "question": self.question,
            "options": list(self.options),
            "answer": self.answer,
            "provenance": dict(self.provenance),
        }


def load_general(source: str) -> list[GeneralQuestion]:
    """Read questions of OvT-General.

    Parameters
    ----------
    source
        A folder that ``stp optimal build`` wrote, a JSONL, JSON, CSV or Parquet file, the id of a
        data set on the Hugging Face hub (:data:`PUBLISHED`), or :data:`SAMPLE`.

    Raises
    ------
    data.errors.MisuseError
        If it cannot be read, or a row lacks what a question needs (the message names the row).
    """
    path = Path(source).expanduser()
    if source == SAMPLE:
        # Wheels are unpacked: the file beside this module is a file.
        path = Path(__file__).with_name("sample.jsonl")
    if path.is_dir():
        path = path / QUESTIONS_FILE
    if path.exists() or path.suffix in (".jsonl", ".json", ".csv", ".parquet"):
        rows: Sequence[Mapping[str, Any]] = read_rows(path)
        where = str(path)
    elif source.count("/") == 1:
        rows, where = _hub_rows(source), source
    else:
        raise MisuseError(f"{source}: no such folder, file or data set of the hub (owner/name)")
    questions = [
        question
        for number, row in enumerate(rows, start=1)
        if (question := _question(row, f"{where}, row {number}", number)) is not None
    ]
    check_questions(where, [question.as_question() for question in questions])
    return questions


def _hub_rows(source: str) -> list[Mapping[str, Any]]:
    try:
        import datasets
    except ImportError as error:
        raise MissingDependencyError(
            f"{source}: reading the hub needs the extra `hub` (pip install 'stp-engine[hub]')"
        ) from error
    try:
        loaded = datasets.load_dataset(source)
    except Exception as error:
        # Whatever the hub's clients raise means the same to us.
        raise MisuseError(
            f"{source}: cannot be read from the hub ({type(error).__name__}: "
            f"{one_line(error):.200}); download it and give the file"
        ) from error
    return [row for split in loaded.values() for row in split]


def _question(row: Mapping[str, Any], where: str, number: int) -> GeneralQuestion | None:
    """Read one row under whichever names it uses; None for rows of other subsets."""
    flat = {**_object(row.get("metadata")), **row}
    named = _first(flat, "type")
    if named is None:
        raise MisuseError(f"{where}: no answer type; known columns are {', '.join(_NAMES['type'])}")
    answer_type = _TYPES.get(str(named).strip().lower())
    if answer_type is None:
        if "metadata" in row and "answer_type" not in flat:
            return None
        raise MisuseError(
            f"{where}: the answer type {named!r} is not one of {', '.join(ANSWER_TYPES)}"
        )
    texts = {name: _first(flat, name) for name in ("question", "answer")}
    for name, value in texts.items():
        if value is None or not str(value).strip():
            raise MisuseError(f"{where}: no {name}; known columns are {', '.join(_NAMES[name])}")
    options = _options(flat, where) if answer_type == "choice" else ()
    answer = str(texts["answer"]).strip()
    if options and answer not in options:
        letter = answer.strip("().: ").upper()[:1]
        place = LETTERS.find(letter) if len(answer.strip("().: ")) == 1 else -1
        if not 0 <= place < len(options):
            raise MisuseError(f"{where}: the answer {answer!r:.40} is not among the options")
        answer = options[place]
    return GeneralQuestion(
        id=str(_first(flat, "id") or f"general-{number}"),
        domain=str(_first(flat, "domain") or "unknown"),
        answer_type=answer_type,
        question=str(texts["question"]).strip(),
        answer=answer,
        options=options,
        provenance=_object(flat.get("provenance")) or {"source": where},
    )


def _first(row: Mapping[str, Any], name: str) -> Any:
    return next((row[key] for key in _NAMES[name] if row.get(key) is not None), None)


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def _options(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    value = _first(row, "options")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise MisuseError(f"{where}: the options are not a list") from error
    if value is None:
        value = [row[letter] for letter in LETTERS if row.get(letter) is not None]
    if isinstance(value, Mapping):
        value = list(value.values())
    options = tuple(str(option).strip() for option in value)
    if len(options) < 2 or len(set(options)) < len(options):
        raise MisuseError(f"{where}: a choice needs at least two options, all different")
    return options
