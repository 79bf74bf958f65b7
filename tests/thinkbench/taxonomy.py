"""The labelled traces and wrong answers, read from the files beside this one."""

import re
from dataclasses import dataclass
from pathlib import Path

from data.question import Question
from data.tasks import get_task
from evaluator.thinkbench.questions import TaskQuestion
from stp.asking import Response

HERE = Path(__file__).parent
_TIMES = re.compile(r"\{(\d+)\*(.*?)\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    kind: str
    item: TaskQuestion
    response: Response


def labelled_traces(name: str = "traces.txt") -> list[tuple[str, str]]:
    """Return (pattern, text)."""
    text = (HERE / name).read_text(encoding="utf-8")
    found = []
    for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        label, _, body = part.partition("\n")
        # Boxes inside what is repeated end in a brace of their own.
        body = body.strip().replace("{40*\\boxed{14}}", "\\boxed{14}" * 40)
        found.append((label, _TIMES.sub(lambda match: match[2] * int(match[1]), body)))
    return found


def wrong_answers() -> list[WrongAnswer]:
    """Return labelled wrong answers to questions of the tasks."""
    found = []
    lines = (HERE / "errors.tsv").read_text(encoding="utf-8").splitlines()[1:]
    for line in lines:
        kind, name, numbers, finish, text = line.split("\t")
        values = tuple(int(number) for number in numbers.split())
        task = get_task(name)
        question = Question(
            id=f"{name}-{len(found)}",
            prompt=task.ask(values),
            reference=task.solve(values),
            answer_kind=name,
        )
        item = TaskQuestion(
            question=question, task=name, category=task.category, fold=0, size=len(values)
        )
        response = Response(
            id=item.id,
            text=text.replace("\\n", "\n"),
            finish=finish,
            thinking="Let me add. 3 + 4 =" if not text else None,
        )
        found.append(WrongAnswer(kind, item, response))
    return found
