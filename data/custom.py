r"""A user's own benchmark: a question file and some ten lines of TOML.

One real description, ``lab.toml``::

    name = "lab"
    path = "questions.jsonl"
    answer_kind = "math"
    group = "Lab"
    licence = "CC-BY-4.0"
    instruction = "Put the final answer inside \\boxed{}."

    [columns]
    id = "number"
    question = "text"
    answer = "gold"

``path`` counts from the folder of the TOML file. ``stp run`` and ``stp benchmarks show`` take the
TOML file's path wherever they take a benchmark's name.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args, get_type_hints

from data.benchmark import INSTRUCTIONS, Benchmark
from data.choices import LETTERS, letter_question
from data.code_tests import CodeTests
from data.errors import BadReferenceError, ConfigError, MisuseError
from data.files import RawRow, plain_file, read_rows, text_of, value_of
from data.hints import nearest
from data.question import Question
from data.tasks import task_names
from data.tasks.base import TASK_INSTRUCTION

LONGEST_NAME = 80
"""Bytes of a benchmark's name; percent-encoded, each may take three, and systems have some 255."""

_AFTER_HASHES = re.compile(r"^\s*####[ \t]*(\S[^\n]*)\s*\Z", re.MULTILINE)
_IN_TAG = re.compile(r"<answer>\s*(.*?\S.*?)\s*</answer>\s*\Z", re.DOTALL | re.IGNORECASE)
_AFTER_WORD = re.compile(r"\A\s*(?:final )?answer\s*:\s*(\S[^\n]*)\Z", re.IGNORECASE)

ANSWER_FORMS = ("letter", "index", "text")
"""How a choice file names the right option: its letter, its place from 0, or its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which column of the file holds what.

    Attributes
    ----------
    id
        A question's id; without it, ids are the name of the benchmark and the row's number.
    question
        What is asked.
    answer
        The reference. For code, a JSON document of tests (see docs/benchmarks.md).
    choices
        The options: one column that holds a list, or several columns of one option each.
    """

    id: str | None = None
    question: str = "question"
    answer: str = "answer"
    choices: str | tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomDescription:
    """What a TOML file says of a benchmark.

    Attributes
    ----------
    name
        What reports call it; the TOML file's name without its ending if it is not given.
    path
        The question file: JSONL, JSON, Parquet or CSV.
    answer_kind
        ``"math"``, ``"choice"``, ``"code"``, or the name of a generated task.
    columns
        Which column holds what.
    instruction
        How to answer; the project's own for the answer kind if it is not given.
    group
        Reporting group; the name if it is not given.
    licence
        Licence of the questions.
    answer_form
        For choices: ``"letter"``, ``"index"`` (from 0) or ``"text"``.
    expected_count
        Number of questions; checked where it is given.
    """

    name: str
    path: str
    answer_kind: str
    columns: Columns
    instruction: str | None = None
    group: str | None = None
    licence: str = "not stated"
    answer_form: str = "letter"
    expected_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomSource:
    """The question file that a description names.

    Attributes
    ----------
    file
        Its path.
    description
        What its columns mean.
    """

    file: Path
    description: CustomDescription

    @property
    def licence(self) -> str:
        """Licence of the questions."""
        return self.description.licence

    def describe(self) -> str:
        """Return the file's name."""
        return self.file.name

    def available(self, data_dir: Path | None) -> str:
        """Return the file's path if it is there."""
        return str(self.file) if self.file.is_file() else ""

    def questions(self, benchmark: str, data_dir: Path | None, limit: int | None) -> list[Question]:
        """Read all questions; ``data_dir`` and ``limit`` change nothing here."""
        rows = read_rows(self.file)
        return [
            _question(self.description, row, number, f"{self.file}, row {number}")
            for number, row in enumerate(rows, start=1)
        ]


def load_custom(path: Path) -> Benchmark:
    """Return the benchmark that a TOML file describes; the question file is read by ``load``.

    Parameters
    ----------
    path
        The TOML file.

    Raises
    ------
    data.errors.ConfigError
        If the file is missing or not TOML, or a key is unknown, missing or of the wrong type; the
        message names the key.
    """
    described = _read_description(path)
    instruction = described.instruction
    if instruction is None:
        instruction = _known_instruction(described.answer_kind)
    return Benchmark(
        name=described.name,
        group=described.group or described.name,
        instruction=instruction,
        answer_kind=described.answer_kind,
        expected_count=described.expected_count,
        source=CustomSource(file=path.parent / described.path, description=described),
    )


def _read_description(path: Path) -> CustomDescription:
    try:
        table = tomllib.loads(plain_file(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not a TOML file ({error})") from error
    columns_table = table.pop("columns", {})
    if not isinstance(columns_table, dict):
        raise ConfigError(f"{path}: 'columns' must be a table, as in [columns]")
    if isinstance(columns_table.get("choices"), list):
        columns_table["choices"] = tuple(columns_table["choices"])
    table.setdefault("name", path.stem)
    # A misspelt key is also a missing one; the first says more.
    _check_keys(table, CustomDescription, {"columns"}, str(path))
    for key in ("path", "answer_kind"):
        if key not in table:
            raise ConfigError(f"{path}: the key {key!r} is missing")
    _check_keys(columns_table, Columns, set(), f"{path}, [columns]")
    described = CustomDescription(columns=Columns(**columns_table), **table)
    _check_name(described.name, str(path))
    _known_instruction(described.answer_kind, str(path))
    if described.answer_form not in ANSWER_FORMS:
        raise ConfigError(
            f"{path}: answer_form {described.answer_form!r}; expected one of "
            f"{', '.join(ANSWER_FORMS)}"
        )
    if (described.answer_kind == "choice") != (described.columns.choices is not None):
        raise ConfigError(
            f"{path}: [columns] choices goes with answer_kind 'choice', and only with it"
        )
    return described


def _check_keys(table: dict[str, object], described: type, apart: set[str], where: str) -> None:
    types = {key: kind for key, kind in get_type_hints(described).items() if key not in apart}
    for key, value in table.items():
        if key not in types:
            near = nearest(key, types)
            hint = f"did you mean {near!r}? Known are" if near else "known are"
            raise ConfigError(f"{where}: unknown key {key!r}; {hint} {', '.join(types)}")
        allowed = tuple(
            getattr(kind, "__origin__", kind) for kind in get_args(types[key]) or (types[key],)
        )
        fits = isinstance(value, allowed) and not isinstance(value, bool)
        if not fits or (isinstance(value, tuple) and not all(isinstance(v, str) for v in value)):
            wanted = " or ".join(kind.__name__ for kind in allowed if kind is not type(None))
            raise ConfigError(f"{where}: {key!r} must be {wanted}, not {value!r:.60}")


def _check_name(name: str, where: str) -> None:
    """Refuse names that cannot be a folder's; a campaign has one for each benchmark."""
    if not name.isprintable() or not 0 < len(name.encode()) <= LONGEST_NAME or name[0] in ". ":
        raise ConfigError(
            f"{where}: the name {name!r:.60} cannot be a folder's; take visible characters, 1 to "
            f"{LONGEST_NAME} bytes of them, the first no dot"
        )


def _known_instruction(answer_kind: str, where: str = "") -> str:
    """Return the instruction that goes with an answer kind."""
    if answer_kind in INSTRUCTIONS:
        return INSTRUCTIONS[answer_kind]
    if answer_kind in task_names():
        return TASK_INSTRUCTION
    known = ", ".join((*INSTRUCTIONS, *task_names()))
    raise ConfigError(f"{where}: unknown answer_kind {answer_kind!r}; known are {known}")


def _question(described: CustomDescription, row: RawRow, number: int, where: str) -> Question:
    columns = described.columns
    question_id = f"{described.name}-{number}"
    if columns.id is not None:
        question_id = text_of(row, columns.id, where)
    text = text_of(row, columns.question, where)
    reference = text_of(row, columns.answer, where)
    if columns.choices is None:
        if described.answer_kind == "math":
            reference = final_answer(reference)
        if described.answer_kind == "code":
            try:
                CodeTests.from_json(reference)
            except BadReferenceError as error:
                raise BadReferenceError(f"{where}: {error}") from error
        return Question(
            id=question_id, prompt=text, reference=reference, answer_kind=described.answer_kind
        )
    options = _options(row, columns.choices, where)
    letter = _letter(reference, options, described.answer_form, where)
    return letter_question(question_id, text, options, letter, where)


def final_answer(reference: str) -> str:
    r"""Return the final answer of a reference that gives it in a form that is in wide use.

    These are the last line of a worked solution after ``####`` (GSM8K's form), an ``<answer>`` tag,
    and a text that begins with ``Answer:``. Any other reference is returned as it is.

    Examples
    --------
    >>> [final_answer(text) for text in ("48 + 24 = 72.\n#### 72", "<answer>5</answer>")]
    ['72', '5']
    >>> final_answer("Answer: x = 5"), final_answer("June 20")
    ('x = 5', 'June 20')
    """
    for form in (_AFTER_HASHES, _IN_TAG, _AFTER_WORD):
        if (found := form.search(reference)) is not None:
            return found[1].strip()
    return reference


def _options(row: RawRow, columns: str | tuple[str, ...], where: str) -> list[str]:
    if isinstance(columns, tuple):
        return [text_of(row, column, where) for column in columns]
    values = value_of(row, columns, where)
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise MisuseError(f"{where}: column {columns!r} must hold a list of options")
    return [str(value).strip() for value in values]


def _letter(reference: str, options: Sequence[str], form: str, where: str) -> str:
    if form == "letter":
        return reference.upper()
    if form == "index":
        place = int(reference) if reference.isdecimal() else -1
        if not 0 <= place < min(len(options), len(LETTERS)):
            raise MisuseError(
                f"{where}: the reference {reference!r} is not a place from 0 to {len(options) - 1}"
            )
        return LETTERS[place]
    if options.count(reference) != 1:
        raise MisuseError(f"{where}: the reference {reference!r:.60} is not exactly one option")
    return LETTERS[options.index(reference)]
