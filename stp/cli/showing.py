"""``stp show``: read a campaign's questions, trajectories, steps, prefixes and answers."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import MisuseError
from stp.cli.arguments import Folder
from stp.cli.lazily import group_of
from stp.cli.seen import seen
from stp.cli.verdicts import show_verdicts

_LIST_FIGURES = ("trajectories", "P(0)", "P(n)", "\u0394P", "AD", "own")
_LEAST_PROMPT = 12
"""Fewer characters of a prompt say nothing."""

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from stp.campaign.reader import CampaignReader, ProbeView, QuestionSummary, TrajectoryView


class Order(StrEnum):
    """What a list of questions is sorted by."""

    ASKED = "asked"
    GAIN = "gain"
    DEGRADATION = "degradation"

    def key(self, item: "QuestionSummary") -> float:
        """Return a question's sort key: unknown values come last."""
        if self is Order.ASKED:
            return 0.0
        value = item.gain if self is Order.GAIN else item.degradation
        return float("inf") if value is None else -value


def show(
    folder: Folder,
    question: Annotated[
        str | None, typer.Option("--question", "-q", help="A question's id. Without it: a list.")
    ] = None,
    trajectory: Annotated[
        int | None,
        typer.Option(
            "--trajectory", "-t", min=0, help="Which trajectory of the question; 0 if left out."
        ),
    ] = None,
    position: Annotated[
        int | None,
        typer.Option("--position", "-k", min=0, help="Show the prefix and answers at a position."),
    ] = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="Show the prefix's token ids too, as they were sent.")
    ] = False,
    model: Annotated[str | None, typer.Option("--model", help="Only this model.")] = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", help="Only this benchmark.")
    ] = None,
    sort: Annotated[
        Order,
        typer.Option(
            "--sort",
            help="The list's order: as asked, or the largest gain (what thinking brings) or "
            "degradation (what thinking to the end costs) first.",
        ),
    ] = Order.ASKED,
) -> None:
    """Show a campaign as text: questions, one trajectory's steps, or one position's prefix.

    `stp show verdicts FOLDER` shows how answers were judged.
    """
    from rich.console import Console

    from stp.campaign.reader import CampaignReader

    reader = CampaignReader(folder)
    console = Console(highlight=False, markup=False)
    if question is None:
        if trajectory is not None or position is not None or ids:
            raise MisuseError("--trajectory, --position and --ids need a --question")
        _show_list(console, reader, model, benchmark, sort)
        return
    view = reader.trajectory(question, trajectory or 0, model=model, benchmark=benchmark)
    if position is None:
        _show_steps(console, view)
    else:
        _show_position(console, reader, view, position, ids)


def _lines(items: "Sequence[QuestionSummary]", width: int) -> "Iterator[str]":
    """Yield the list's heading, then a line for every question.

    Names and figures are whole at any width; the prompt has what is left.
    """
    from rich.cells import cell_len, set_cell_size

    ids = [seen(item.question_id) for item in items]
    id_width = max(map(cell_len, ["question", *ids]))
    widths = [max(5, len(heading)) for heading in _LIST_FIGURES]
    room = width - id_width - sum(2 + each for each in widths) - 2

    form = "".join(f"  %{each}s" for each in widths)

    def line(name: str, figures: "Sequence[str]", prompt: str) -> str:
        text = name + " " * (id_width - cell_len(name)) + form % tuple(figures)
        if room < _LEAST_PROMPT or not prompt:
            return text
        cut = cell_len(prompt) > room
        return (
            f"{text}  {set_cell_size(prompt, room - 1).rstrip()}\u2026"
            if cut
            else f"{text}  {prompt}"
        )

    yield line("question", _LIST_FIGURES, "prompt")
    for shown, item in zip(ids, items, strict=True):
        answers = item.trajectories * item.probes
        figures = (
            f"{item.trajectories}" if item.fit != "too_long" else "too long",
            _share(item.zero_correct, answers),
            _share(item.full_correct, answers),
            _change(item.gain),
            _change(item.degradation),
            _share(item.original_correct, item.trajectories),
        )
        # More than that no line shows.
        yield line(shown, figures, seen(" ".join(item.prompt[:1_000].split())[:400]))


def _show_list(
    console: "Console",
    reader: "CampaignReader",
    model: str | None,
    benchmark: str | None,
    sort: Order,
) -> None:
    from itertools import groupby

    def cell(item: "QuestionSummary") -> str:
        return f"{item.model} on {item.benchmark}"

    for name, items in groupby(reader.summaries(model=model, benchmark=benchmark), key=cell):
        console.print(name, style="bold")
        heading, *lines = _lines(sorted(items, key=sort.key), console.width)
        console.print(heading, style="bold", soft_wrap=True)
        # A console lays out every line again, and there may be a hundred thousand of them.
        typer.echo("\n".join(lines))
    console.print(
        "P(0), P(n): right probes without and with all thinking; \u0394P = P(n) - P(0); AD: what "
        "thinking to the end costs; own: original answers"
    )


def _change(fraction: float | None) -> str:
    return f"{fraction:+.2f}" if fraction is not None else ""


def _share(right: int | None, total: int) -> str:
    return f"{right / total:.2f}" if right is not None and total else ""


def _show_steps(console: "Console", view: "TrajectoryView") -> None:
    from rich.text import Text

    _show_head(console, view)
    for position in range(max(1, len(view.tokens))):
        if view.tokens:
            heading = f"k = {position}   L = {view.tokens[position]:,} tokens"
            console.rule(Text(heading + _accuracy(view, position)), align="left")
        if position:
            console.print(Text(seen(view.steps[position - 1].strip("\n")), style="dim"))
    if not view.tokens:
        console.print("not probed yet")
    own = view.original
    console.print(Text.assemble(("its own answer  ", "bold"), seen(own.text.strip()) or "(none)"))
    console.print(f"thinking ended by: {view.thinking_finish}; {_verdict(own)}")


def _accuracy(view: "TrajectoryView", position: int) -> str:
    if view.correct is None:
        return ""
    right = view.correct[position]
    return f"   P = {right / view.probes:.2f} ({right} of {view.probes})"


def _show_head(console: "Console", view: "TrajectoryView") -> None:
    from rich.text import Text

    console.print(
        Text.assemble(
            (seen(view.question.id), "bold cyan"),
            f"  trajectory {view.trajectory} of {view.model} on {view.benchmark}",
        )
    )
    console.print(Text(seen(view.question.prompt)))
    console.print(Text.assemble(("reference  ", "dim"), (seen(view.question.reference), "green")))


def _show_position(
    console: "Console", reader: "CampaignReader", view: "TrajectoryView", position: int, ids: bool
) -> None:
    from rich.text import Text

    prefix = reader.prefix(view, position)
    probes = reader.probes_at(view, position)
    _show_head(console, view)
    console.rule(
        Text(f"prefix at k = {position}: {len(prefix.ids):,} ids, L = {view.tokens[position]:,}"),
        align="left",
    )
    console.print(Text(seen(prefix.text)), soft_wrap=True)
    if ids:
        console.rule(Text("ids"), align="left")
        console.print(Text(" ".join(str(token) for token in prefix.ids)), soft_wrap=True)
    console.rule(Text(f"{len(probes)} answers{_accuracy(view, position)}"), align="left")
    for probe in probes:
        style = {True: "green", False: "red", None: ""}[probe.right]
        console.print(
            Text.assemble(
                (f"{probe.sample:>3}  ", "bold"),
                (seen(" ".join(probe.text.split())) or "(empty)", style),
                (f"  [{probe.finish}] {_verdict(probe)}", "dim"),
            )
        )


def _verdict(probe: "ProbeView") -> str:
    return seen(probe.reason) if probe.reason is not None else "not graded yet"


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    group = typer.Typer(cls=group_of("campaign"), help="Show a campaign, or its verdicts, as text.")
    group.command("campaign")(show)
    group.command("verdicts")(show_verdicts)
    app.add_typer(group, name="show")
