r"""The words around a question: instructions, styles, suffixes and the prompts of judge and router.

Papers 000, 002, 003 and 004 publish theirs, or parts of them; ours are our own words that ask for
the same. Results with different wordings are not comparable. So every run records its wording,
and ``--prompts FILE`` replaces it::

    name = "published"

    [prompts]
    style-standard = "Solve this. Box the answer: \\boxed{answer}."
    router = '''Simple or complex? $question'''

    [questions]
    sum = "Add up: $numbers"

``docs/prompts.md`` says which name is which text of which paper.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any, Final

from data.benchmark import INSTRUCTIONS
from data.errors import ConfigError, MisuseError
from data.files import plain_file
from data.hints import did_you_mean
from data.optimal import prompt_text
from data.tasks.base import TASK_INSTRUCTION, Task, shown

OWN: Final = "own"
OWN_VERSION: Final = "1"
"""To be raised with every change of a text below: runs with other words are other runs."""

STYLES: Final[Mapping[str, str]] = {
    "standard": "Put your final answer inside \\boxed{}, and nothing else into the box.",
    "concise": "Do not explain anything; give the final answer alone, inside \\boxed{}.",
    "ultra-concise": "Use as few tokens as you can. No words, just \\boxed{answer}.",
}
"""How LLMThinkBench asks for an answer, after the question (paper 000, S)."""

DIRECT_REQUEST: Final = "Answer at once: write no reasoning, only the final answer."

DIRECT_INSTRUCTIONS: Final[Mapping[str, str]] = {
    "math": f"{DIRECT_REQUEST} Put it inside \\boxed{{}}.",
    "choice": (
        f"{DIRECT_REQUEST} Give your choice in an answer field that holds its letter and nothing "
        "else, for example: Answer: C"
    ),
    "code": (
        "Write no reasoning and no explanation, only the complete solution in Python, in one "
        "fenced code block that starts with ```python."
    ),
}
"""What takes the place of the instructions that ask for reasoning, by answer kind (002, B.3)."""

_OPTIMAL: Final = (
    "answer",
    "no_overthinking",
    "step_by_step",
    "router",
    "generate",
    "judge",
    "format_choice",
    "format_numeric",
    "format_open",
    "format_short",
)
_WITH_PLACES: Final = ("router", "generate", "judge", "format_choice")
"""Prompts in which ``$name`` stands for something; in all others a dollar is a dollar."""


@cache
def own_texts() -> Mapping[str, str]:
    """Return our own texts by name."""
    return MappingProxyType(
        {
            **INSTRUCTIONS,
            "task": TASK_INSTRUCTION,
            **{f"style-{name}": text for name, text in STYLES.items()},
            "direct": DIRECT_REQUEST,
            **{f"direct-{kind}": text for kind, text in DIRECT_INSTRUCTIONS.items()},
            **{name.replace("_", "-"): prompt_text(name) for name in _OPTIMAL},
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """A wording: our own, with some texts replaced.

    Attributes
    ----------
    name
        What records and tables call it.
    texts
        What takes the place of our own texts, by the names of :func:`own_texts`.
    questions
        How the generated tasks put their questions, by task; ``$numbers``, and ``$a`` and ``$b``
        for pairs.
    version
        The version of our own texts; for other texts a digest of all of them.
    """

    name: str = OWN
    texts: Mapping[str, str] = field(default_factory=dict)
    questions: Mapping[str, str] = field(default_factory=dict)
    version: str = ""

    def __post_init__(self) -> None:
        if self.version:
            return
        version = OWN_VERSION
        if self.name != OWN or self.texts or self.questions:
            whole = [OWN_VERSION, sorted(self.texts.items()), sorted(self.questions.items())]
            version = hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:12]
        object.__setattr__(self, "version", version)

    def text(self, name: str) -> str:
        """Return a text by its name.

        Raises
        ------
        KeyError
            If there is none: names are the project's own.
        """
        return self.texts.get(name, own_texts()[name])

    def instruction(self, own: str) -> str:
        """Return what takes the place of a benchmark's instruction; its own words stay."""
        for name in (*INSTRUCTIONS, "task", "answer"):
            if own == own_texts()[name]:
                return self.text(name)
        return own

    def worded(self, task: Task) -> Task:
        """Return a generated task that puts its questions in these words."""
        if task.name not in self.questions:
            return task
        template = Template(self.questions[task.name])

        def ask(numbers: tuple[int, ...]) -> str:
            pair = {"a": numbers[0], "b": numbers[1]} if task.fixed_size else {}
            return template.substitute(numbers=shown(numbers), **pair)

        return replace(task, ask=ask)

    def record(self) -> dict[str, Any]:
        """Return what a run keeps of its wording."""
        replaced = sorted([*self.texts, *(f"questions.{task}" for task in self.questions)])
        return {"name": self.name, "version": self.version, "replaced": replaced}

    @property
    def label(self) -> str:
        """Name and version, for captions.

        Examples
        --------
        >>> Prompts().label
        'own (version 1)'
        """
        return f"{self.name} (version {self.version})"


def wording_note(prompts: Iterable[Prompts]) -> str:
    """Name the wordings of runs; results with different wordings are not comparable."""
    labels = sorted({each.label for each in prompts})
    return f"Wording: {', '.join(labels)}." + (
        " Runs asked in other words do not compare." if len(labels) > 1 else ""
    )


def load_prompts(path: str | Path) -> Prompts:
    """Read a file of prompts.

    Raises
    ------
    data.errors.MisuseError
        If it cannot be read.
    data.errors.ConfigError
        If it is not TOML, names an unknown prompt, or a text lacks a ``$name`` that it must have,
        or has one that it must not have.
    """
    path = Path(path).expanduser()
    try:
        values = tomllib.loads(plain_file(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise MisuseError(f"prompts file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"prompts file {path} is not UTF-8 text") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"prompts file {path} is not valid TOML: {error}") from error
    unknown = sorted(set(values) - {"name", "prompts", "questions"})
    if unknown:
        raise ConfigError(
            f"prompts file {path}: unknown key {unknown[0]!r}; there are name, [prompts] and "
            "[questions]"
        )
    return make_prompts(
        values.get("name", path.stem),
        values.get("prompts", {}),
        values.get("questions", {}),
        where=f"prompts file {path}",
    )


def make_prompts(name: Any, texts: Any, questions: Any, *, where: str) -> Prompts:
    """Check a user's prompts.

    Parameters
    ----------
    name, texts, questions
        As in :class:`Prompts`; of any type.
    where
        What errors call their place.

    Raises
    ------
    data.errors.ConfigError
        As :func:`load_prompts`.
    """
    from data.tasks import get_task, task_names

    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"{where}: name is {name!r:.60}; it must be a text")
    if name.strip() == OWN and (texts or questions):
        raise ConfigError(f"{where}: name is {name!r}, which names our own texts; give another")
    for table, known in ((texts, tuple(own_texts())), (questions, task_names())):
        kind = "prompt" if table is texts else "task"
        if not isinstance(table, Mapping):
            raise ConfigError(f"{where}: [prompts] and [questions] are tables of texts")
        for key, text in table.items():
            if key not in known:
                raise ConfigError(
                    f"{where}: no {kind} {key!r}{did_you_mean(key, known)} (there are "
                    f"{', '.join(known)})"
                )
            if not isinstance(text, str) or not text.strip():
                raise ConfigError(f"{where}: {key} is {text!r:.60}; it must be a text")
    for key, text in texts.items():
        if (file := key.replace("-", "_")) in _WITH_PLACES:
            wanted = set(Template(prompt_text(file)).get_identifiers())
            _check_places(key, text, wanted, wanted, where)
    for key, text in questions.items():
        pair = get_task(key).fixed_size
        allowed = {"numbers", "a", "b"} if pair else {"numbers"}
        needed = {"numbers"} if not pair or "$numbers" in text else {"a", "b"}
        _check_places(key, text, needed, allowed, where)
    return Prompts(name=name.strip(), texts=dict(texts), questions=dict(questions))


def _check_places(key: str, text: str, needed: set[str], allowed: set[str], where: str) -> None:
    """Refuse a template with an unknown ``$name``, or without one that it needs."""
    template = Template(text)
    if not template.is_valid():
        raise ConfigError(f"{where}: {key} holds a $ that is not a name; write $$ for a dollar")
    found = set(template.get_identifiers())
    for name in sorted(needed - found):
        raise ConfigError(f"{where}: {key} lacks ${name}, which is replaced by a text")
    for name in sorted(found - allowed):
        places = ", ".join(f"${place}" for place in sorted(allowed))
        raise ConfigError(f"{where}: {key} has ${name}; there is {places}")
