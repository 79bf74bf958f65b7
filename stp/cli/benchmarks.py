"""``stp benchmarks`` and ``stp benchmarks show``: what can be asked, and how it is asked."""

from pathlib import Path
from typing import Annotated

import typer

from stp.cli.arguments import PromptsOption
from stp.cli.lazily import group_of

_KINDS = ("math", "choice", "code")
"""The others are generated tasks, each with a judge of its own."""

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of question files. Without it: $STP_DATA_DIR, then the Hugging Face hub.",
    ),
]
_MOST_REFERENCE = 400
"""Characters that are shown of a reference: those of programs hold all tests."""


def list_benchmarks(data_dir: DataDir = None) -> None:
    """List the benchmarks: group, questions, answer kind, source, licence, where they are."""
    from rich.console import Console
    from rich.table import Table

    from data import benchmark_names, get_benchmark

    rows = []
    for name in benchmark_names():
        benchmark = get_benchmark(name)
        place = benchmark.source.available(data_dir)
        rows.append(
            {
                "name": name,
                "group": benchmark.group,
                "questions": (
                    "?" if benchmark.expected_count is None else f"{benchmark.expected_count:,}"
                ),
                "answers": benchmark.answer_kind if benchmark.answer_kind in _KINDS else "task",
                "where": Path(place).name if place else "on the hub",
                "source": benchmark.source.describe(),
                "licence": benchmark.source.licence,
            }
        )
    console = Console(highlight=False, markup=False)
    headings, left_off = _fitting(rows, console.width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(
            heading, justify="right" if heading == "questions" else "left", no_wrap=True
        )
    for row in rows:
        table.add_row(*(row[heading] for heading in headings))
    console.print(table, soft_wrap=True)
    if left_off:
        console.print(f"{' and '.join(left_off)}: stp benchmarks show NAME, or a wider terminal")


def _fitting(rows: list[dict[str, str]], width: int) -> tuple[list[str], list[str]]:
    """Return the columns that fit into a width whole, and those left off; the first one always."""
    headings = list(rows[0]) if rows else ["name"]
    used, shown = 0, 0
    for heading in headings:
        used += max(len(heading), *(len(row[heading]) for row in rows)) + 2 * (shown > 0)
        if shown and used > width:
            break
        shown += 1
    return headings[:shown], headings[shown:]


def show(
    name: Annotated[
        str, typer.Argument(help="A benchmark's name, or the path of a user's own TOML file.")
    ],
    n: Annotated[int, typer.Option("--n", min=1, help="How many questions.")] = 3,
    data_dir: DataDir = None,
    prompts: PromptsOption = None,
) -> None:
    """Show questions as they will be asked, with their references."""
    from rich.console import Console
    from rich.text import Text

    from data import get_benchmark
    from data.prompts import Prompts, load_prompts

    benchmark = get_benchmark(name)
    questions = benchmark.load(data_dir, limit=n)
    console = Console(highlight=False)
    count = "" if benchmark.expected_count is None else f" of {benchmark.expected_count:,}"
    console.print(
        Text.assemble(
            (benchmark.name, "bold"),
            f"  group {benchmark.group}, answers {benchmark.answer_kind}, "
            f"{len(questions)}{count} questions, {benchmark.source.describe()}, "
            f"licence {benchmark.source.licence}",
        )
    )
    wording = Prompts() if prompts is None else load_prompts(prompts)
    instruction = wording.instruction(benchmark.instruction)
    console.print(Text.assemble(("instruction  ", "dim"), instruction))
    console.print(Text.assemble(("wording      ", "dim"), wording.label))
    console.print(
        Text("In the system role or with the question, as the model family has it.", style="dim")
    )
    for question in questions:
        reference = question.reference
        if len(reference) > _MOST_REFERENCE:
            reference = f"{reference[:_MOST_REFERENCE]}… ({len(reference):,} characters)"
        console.rule(Text(question.id, style="bold cyan"), align="left")
        # Text, not markup: a question may hold square brackets.
        console.print(Text(question.prompt))
        console.print(Text.assemble(("reference  ", "dim"), (reference, "green")))


def register(app: typer.Typer) -> None:
    """Add the command group ``benchmarks`` to an application."""
    group = typer.Typer(cls=group_of("list"), help="The benchmarks that there are.")
    group.command("list")(list_benchmarks)
    group.command("show")(show)
    app.add_typer(group, name="benchmarks")
