"""``stp think``: LLMThinkBench; run models on basic arithmetic, compare and rank them."""

from pathlib import Path
from typing import Annotated

import typer

from stp.cli.arguments import AllowIncompleteOption, ReplicatesOption, out_folder
from stp.cli.lazily import CommandGroup
from stp.cli.responses import show
from stp.cli.think_compare import compare_and_print, compared, say_page
from stp.cli.think_run import run

think = typer.Typer(
    cls=CommandGroup,
    help="LLMThinkBench: accuracy and length on arithmetic, the O-Score.",
    no_args_is_help=True,
)

Places = Annotated[
    list[str], typer.Argument(help="Run folders, folders of runs, or leaderboard files.")
]
PoolOption = Annotated[
    str, typer.Option("--pool", help="Range of tokens: global, or per-task.", show_default=True)
]


think.command("run")(run)
think.command("show")(show)


@think.command("grade")
def grade(places: Places) -> None:
    """Grade stored responses again, with this version's parser; needs no model."""
    from rich.console import Console

    from evaluator.present.terminal import rich_table
    from evaluator.thinkbench import grade as grade_run
    from evaluator.thinkbench.leaderboard import run_folders
    from evaluator.thinkbench.tables import summary_table

    console = Console(highlight=False)
    # What an earlier grading wrote is not needed, and may be torn.
    for folder in run_folders(places):
        console.print(rich_table(summary_table(grade_run(folder))))


@think.command("aggregate")
def aggregate(
    places: Places,
    out: Annotated[Path, typer.Option("--out", help="The leaderboard file.")] = Path(
        "leaderboard.json"
    ),
    pool: PoolOption = "global",
    replicates: ReplicatesOption = 10_000,
    allow_incomplete: AllowIncompleteOption = False,
) -> None:
    """Merge runs into a leaderboard file: scores, their pool, and each run's metadata."""
    from rich.console import Console

    from evaluator.present.terminal import rich_table
    from evaluator.thinkbench.leaderboard import find_runs, write_leaderboard
    from evaluator.thinkbench.tables import leaderboard_table
    from stp.files import check_writable

    console = Console(highlight=False)
    check_writable(out)
    comparison = compared(find_runs(places), pool, replicates, allow_incomplete)
    path = write_leaderboard(comparison, out)
    console.print(rich_table(leaderboard_table(comparison)))
    console.print(f"Leaderboard: {path}", markup=False, soft_wrap=True)


@think.command("leaderboard")
def leaderboard(
    places: Places,
    out: Annotated[Path | None, typer.Option("--out", help="Write a page (HTML) as well.")] = None,
    pool: PoolOption = "global",
    replicates: ReplicatesOption = 10_000,
    allow_incomplete: AllowIncompleteOption = False,
) -> None:
    """Rank runs by their O-Score."""
    from rich.console import Console

    from evaluator.present.terminal import rich_table
    from evaluator.thinkbench.leaderboard import find_runs
    from evaluator.thinkbench.page import write_page
    from evaluator.thinkbench.tables import leaderboard_table
    from stp.files import check_writable

    if out is not None:
        check_writable(out)
    console = Console(highlight=False)
    comparison = compared(find_runs(places), pool, replicates, allow_incomplete)
    console.print(rich_table(leaderboard_table(comparison)))
    if out is not None:
        say_page(console, write_page(comparison, out))


@think.command("compare")
def compare(
    places: Places,
    campaigns: Annotated[
        list[str] | None,
        typer.Option(
            "--campaign",
            help="A campaign on think-TASK benchmarks: OR, AD and frontiers beside. Repeatable.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            help="Model that sorts errors and patterns, too; as MODEL of run.",
        ),
    ] = None,
    judge_samples: Annotated[
        int, typer.Option("--judge-samples", min=1, help="Responses that the judge sees.")
    ] = 100,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for tables, figures and a page.")
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--beside",
            help="A graded run of stp optimal: its accuracies in a figure, by name. Repeatable.",
        ),
    ] = None,
    pool: PoolOption = "global",
    replicates: ReplicatesOption = 10_000,
    allow_incomplete: AllowIncompleteOption = False,
) -> None:
    """Print runs side by side: scores, tests, stability, errors, patterns, and a campaign's OR."""
    from rich.console import Console

    from evaluator.thinkbench.leaderboard import find_runs

    if out is not None:
        out = out_folder(out)
    console = Console(highlight=False)
    compare_and_print(
        console,
        find_runs(places),
        pool,
        replicates,
        allow_incomplete=allow_incomplete,
        campaigns=campaigns or [],
        judge=judge,
        judge_samples=judge_samples,
        out=out,
        beside=beside or [],
    )


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.add_typer(think, name="think")
