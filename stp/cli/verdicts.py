"""``stp show verdicts`` and ``stp grade --diff``: look at how a campaign's answers were judged."""

from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import MisuseError
from stp.cli.arguments import Folder
from stp.cli.seen import seen

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from stp.campaign.graded import GradedAnswer

TAIL_CHARACTERS = 400

OnlyModel = Annotated[str | None, typer.Option("--model", help="Only this model.")]
OnlyBenchmark = Annotated[str | None, typer.Option("--benchmark", help="Only this benchmark.")]


def show_verdicts(
    folder: Folder,
    wrong: Annotated[bool, typer.Option("--wrong", help="Only wrong answers.")] = False,
    right: Annotated[bool, typer.Option("--right", help="Only right answers.")] = False,
    trouble: Annotated[
        bool, typer.Option("--trouble", help="Only what a failed rule or a time limit decided.")
    ] = False,
    n: Annotated[int, typer.Option("--n", min=1, help="How many, drawn evenly from all.")] = 20,
    model: OnlyModel = None,
    benchmark: OnlyBenchmark = None,
) -> None:
    """Show answers with what was extracted, the reference and the reason of the verdict.

    Equal answers to one question are shown once, with their count.
    """
    from rich.console import Console

    from stp.campaign.graded import graded_answers

    if wrong and right:
        raise MisuseError("say --wrong or --right, not both; without either, all are shown")
    wanted = False if wrong else True if right else None
    found = graded_answers(
        folder, right=wanted, trouble=trouble, model=model, benchmark=benchmark, limit=n
    )
    console = Console(highlight=False)
    for answer in found.answers:
        _show_answer(console, answer)
    if not found.answers:
        console.print("no such answers; `stp status` says whether the campaign is graded")
        return
    drawn = "all" if len(found.answers) == found.distinct else f"{len(found.answers):,}"
    console.print(
        f"{drawn} of {found.distinct:,} distinct answers to a question, which "
        f"{found.responses:,} responses gave"
        + ("" if drawn == "all" else "; drawn evenly from the distinct ones, --n shows more")
    )


def grade_diff(
    folder: Folder,
    model: OnlyModel = None,
    benchmark: OnlyBenchmark = None,
    unsandboxed: Annotated[
        bool, typer.Option("--unsandboxed", help="Run programs without a sandbox.")
    ] = False,
) -> None:
    """List the stored verdicts that the checker of today would change, with the responses.

    Nothing is written; `stp grade --again` grades again.
    """
    from rich.console import Console
    from rich.text import Text

    from stp.campaign.graded import changed_verdicts

    found = changed_verdicts(folder, model=model, benchmark=benchmark, unsandboxed=unsandboxed)
    console = Console(highlight=False)
    for item in found.changed:
        _show_answer(console, item.answer)
        console.print(_line("now", _verdict_text(item.verdict.right, item.verdict.reason)))
        console.print(_line("extracted now", Text(_shown(item.verdict.answer), style="bold")))
    changed = sum(item.answer.count for item in found.changed)
    console.print(
        f"{changed:,} of {found.responses:,} verdicts change with checker {found.checker_version}"
    )


def _show_answer(console: "Console", answer: "GradedAnswer") -> None:
    from rich.text import Text

    place = "own answer" if answer.position < 0 else f"position {answer.position}"
    title = Text.assemble(
        (seen(answer.question.id), "bold"),
        f"  {answer.model} on {answer.benchmark}, trajectory {answer.trajectory}, {place}",
        ("" if answer.count == 1 else f", {answer.count:,} responses", "dim"),
    )
    console.rule(title, align="left")
    console.print(_tail(answer.response, answer.verdict.answer))
    console.print(_line("extracted", Text(_shown(answer.verdict.answer), style="bold")))
    console.print(_line("reference", Text(_shown(answer.question.reference), style="green")))
    console.print(_line("verdict", _verdict_text(answer.verdict.right, answer.verdict.reason)))


def _tail(response: str, extracted: str | None) -> "Text":
    """Give the end of a response, what was extracted from it in reverse."""
    from rich.text import Text

    tail = response.rstrip()[-TAIL_CHARACTERS:]
    text = Text(("…" if len(tail) < len(response.rstrip()) else "") + seen(tail), style="dim")
    if extracted:
        start = text.plain.rfind(seen(extracted))
        if start >= 0:
            text.stylize("not dim reverse", start, start + len(seen(extracted)))
    return text


def _verdict_text(right: bool, reason: str) -> "Text":
    from rich.text import Text

    return Text(seen(reason), style="green" if right else "red")


def _shown(text: str | None) -> str:
    if text is None:
        return "(nothing)"
    return seen(text if len(text) <= TAIL_CHARACTERS else f"{text[:TAIL_CHARACTERS]}…")


def _line(label: str, value: "Text") -> "Text":
    from rich.text import Text

    return Text.assemble((f"{label:>14}  ", "dim"), value)
