"""``stp think show`` and ``stp optimal show``: read a run's responses on a terminal."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import MisuseError

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.explorer.responses import ResponseRow, Responses


def show(
    folder: Annotated[Path, typer.Argument(help="A run's folder.")],
    question: Annotated[
        str | None,
        typer.Option("--question", "-q", help="The key of a response, as listed: read it whole."),
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only this task.")] = None,
    method: Annotated[str | None, typer.Option("--method", help="Only this method.")] = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="Only wrong responses.")] = False,
    error: Annotated[str | None, typer.Option("--error", help="Only this kind of error.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most lines of the list.")] = 40,
    thinking: Annotated[
        bool, typer.Option("--thinking", help="With --question or --cases: the thinking too.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            help="Another run, or this one: both on each question, the largest ratio first.",
        ),
    ] = None,
    against_method: Annotated[
        str | None,
        typer.Option("--against-method", help="With --against: the other run's method."),
    ] = None,
    cases: Annotated[
        int,
        typer.Option("--cases", min=0, help="With --against: pairs to show as texts, in columns."),
    ] = 0,
) -> None:
    """Show a run's responses: a list, one response, or two models on the same questions."""
    from rich.console import Console

    from evaluator.explorer.responses import open_responses
    from stp.cli.response_pairs import show_pairs

    console = Console(highlight=False, markup=False)
    responses = open_responses(folder)
    rows = [
        (place, row)
        for place, row in enumerate(responses.rows)
        if task in (None, row.task, row.group)
        and method in (None, row.method)
        and error in (None, row.error)
        and not (wrong and row.right is not False)
    ]
    if against is not None:
        other = open_responses(against)
        theirs = [
            (place, row)
            for place, row in enumerate(other.rows)
            if (against_method or method) in (None, row.method)
        ]
        if question is not None:
            rows = _named(rows, question, folder)
        show_pairs(
            console,
            (responses, rows),
            (other, theirs),
            cases=len(rows) if question is not None else cases,
            limit=limit,
            thinking=thinking,
        )
    elif question is not None:
        for place, row in _named(rows, question, folder):
            _show_response(console, responses, place, row, thinking)
    else:
        _show_list(console, rows, limit)


def _named(
    rows: "list[tuple[int, ResponseRow]]", question: str, folder: Path
) -> "list[tuple[int, ResponseRow]]":
    found = [(place, row) for place, row in rows if row.key == question]
    if not found:
        raise MisuseError(f"{folder}: no response {question!r} among those chosen; leave out -q")
    return found


def _show_list(console: "Console", rows: "list[tuple[int, ResponseRow]]", limit: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from evaluator.present.numbers import as_text
    from stp.cli.seen import seen

    table = Table(box=None, pad_edge=False, header_style="bold")
    # A key is whole at any width: it is given back with --question.
    table.add_column("response", no_wrap=True, min_width=_longest(row for _, row in rows[:limit]))
    for heading in ("method", "verdict", "answer", "kind of error"):
        table.add_column(heading, overflow="ellipsis", no_wrap=True)
    for heading in ("tokens", "thinking"):
        table.add_column(heading, justify="right", no_wrap=True)
    for _, row in rows[:limit]:
        texts = (row.key, row.method, _verdict(row), (row.answer or "")[:60], row.error)
        counts = (as_text(row.tokens), as_text(row.thinking_tokens))
        table.add_row(*(Text(seen(text)) for text in (*texts, *counts)))
    console.print(table, soft_wrap=True)
    if len(rows) > limit:
        console.print(f"{limit} of {len(rows):,} responses; --limit shows more")


def _show_response(
    console: "Console", responses: "Responses", place: int, row: "ResponseRow", thinking: bool
) -> None:
    from rich.text import Text

    from evaluator.present.numbers import as_text
    from stp.cli.seen import seen

    found = responses.text(place)
    heading = f"{row.key}  {responses.name}" + (f", {row.method}" if row.method else "")
    console.rule(Text(seen(heading)), align="left")
    console.print(Text(seen(found.prompt)))
    console.print(Text.assemble(("reference  ", "dim"), (seen(found.reference), "green")))
    if thinking:
        console.rule(Text("thinking"), align="left")
        console.print(Text(seen(found.thinking or "(not known)"), style="dim"))
    console.rule(Text("response"), align="left")
    console.print(Text(seen(found.text or "(empty)")))
    facts = [
        row.reason,
        f"extracted {row.answer!r}" if row.answer is not None else "nothing extracted",
        f"{as_text(row.tokens)} tokens, thinking {as_text(row.thinking_tokens)}",
        f"ended by {row.finish}",
        *([f"kind of error {row.error}"] if row.error else []),
        *([f"pattern {row.pattern}"] if row.pattern else []),
    ]
    console.print(Text(seen("; ".join(facts)), style="bold"))


def _longest(rows: "Iterable[ResponseRow]") -> int:
    from stp.cli.seen import seen

    return max((len(seen(row.key)) for row in rows), default=1)


def _verdict(row: "ResponseRow") -> str:
    return {None: "undecided", True: "right", False: "wrong"}[row.right]
