"""The tables of responses with their right verdicts: ``cases_KIND.tsv``.

One response a line: right (yes or no), reference, response (``⏎`` is a newline), note, and for
choices the options, for tasks the task's name. Lines that start with ``# `` are headings.
"""

from dataclasses import dataclass
from pathlib import Path

from data.question import Question
from evaluator.answers import CodeTests

FOLDER = Path(__file__).parent
KINDS = ("math", "choice", "task", "code")
OPTIONS = "12 m/s|15 m/s|18 m/s|21 m/s"
CODE_TESTS = {
    "sum": CodeTests(None, ("1 2\n", "30 -4\n"), ("3\n", "26\n"), 4.0),
    "add": CodeTests("add", ("1\n2", "[1]\n[2, 3]"), ("3", "[1, 2, 3]"), 4.0),
}


@dataclass(frozen=True)
class Case:
    """One line of a table."""

    place: str
    question: Question
    response: str
    right: bool
    note: str


def read_table(kind: str) -> list[Case]:
    """Read one table."""
    cases = []
    path = FOLDER / f"cases_{kind}.tsv"
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if number == 1 or not line or line.startswith("# "):
            continue
        right, reference, response, note, *more = line.split("\t")
        assert right in ("yes", "no"), f"{path.name}:{number}"
        choices: tuple[str, ...] = ()
        answer_kind = kind
        if kind == "choice":
            choices = tuple((more[0] if more else OPTIONS).split("|"))
        elif kind == "task":
            answer_kind = more[0]
        elif kind == "code":
            reference = CODE_TESTS[reference].to_json()
        question = Question(
            id=f"{kind}-{number}",
            prompt="",
            reference=reference,
            answer_kind=answer_kind,
            choices=choices,
        )
        place = f"{path.name}:{number}"
        cases.append(Case(place, question, response.replace("⏎", "\n"), right == "yes", note))
    return cases
