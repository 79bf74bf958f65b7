"""``stp probes``: compare probes of the same trajectories that were asked in two ways."""

from typing import Annotated

import typer

from stp.cli.lazily import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    help="Compare two campaigns that probed the same trajectories.",
    no_args_is_help=True,
)


@app.callback()
def probes() -> None:
    """Compare two campaigns that probed the same trajectories."""


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A campaign's folder.")],
    second: Annotated[
        str, typer.Argument(metavar="B", help="A campaign on the same trajectories.")
    ],
    replicates: Annotated[
        int, typer.Option("--replicates", min=1, help="Bootstrap replicates.")
    ] = 10_000,
) -> None:
    """Set P(k), k*, frontiers and answer tokens of two campaigns side by side.

    For instance free answers and opened ones (probing.answer_opening) of the same thinking.
    """
    from rich.console import Console

    from evaluator.analysis.probe_comparison import compare_probes
    from evaluator.present.terminal import rich_table
    from stp.cli.progress import shown_progress

    with shown_progress() as progress:
        found = compare_probes(first, second, replicates=replicates, progress=progress)
    for sentence in found.sentences:
        typer.echo(sentence)
    typer.echo()
    console = Console(highlight=False)
    for table in found.tables:
        console.print(rich_table(table, console.width))


def register(parent: typer.Typer) -> None:
    """Add the commands to an application."""
    parent.add_typer(app, name="probes")
