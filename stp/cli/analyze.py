"""``stp analyze``: every table and figure of one or several campaigns."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import MisuseError
from stp.cli.arguments import out_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from evaluator.analysis.files import AnalysisPaths
    from evaluator.analysis.pipeline import Analysis
    from evaluator.present.table import Table

MAIN_TABLES = ("overthinking", "baselines")


def analyze(
    campaigns: Annotated[
        list[str], typer.Argument(help="Folders or URLs of campaigns, analysed together.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Where tables and figures go.",
            show_default="CAMPAIGN/analysis for one folder, else ./analysis",
        ),
    ] = None,
    tables: Annotated[
        str,
        typer.Option("--tables", help="Which to print: main, all, none, or names with commas."),
    ] = "main",
    replicates: Annotated[
        int, typer.Option("--replicates", min=0, help="Bootstrap replicates; 0: no intervals.")
    ] = 10_000,
    frontier_replicates: Annotated[
        int | None,
        typer.Option(
            "--frontier-replicates",
            min=0,
            help="Bootstrap replicates of the frontiers, which take longest.",
            show_default="as many",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Threads; they do not change any number."),
    ] = None,
    direct: Annotated[
        list[str] | None,
        typer.Option(
            "--direct",
            help="Answers without thinking: a campaign in direct mode, or a CSV with model, "
            "benchmark, accuracy. May be repeated.",
        ),
    ] = None,
    cross_fit: Annotated[
        bool,
        typer.Option("--cross-fit", help="Add frontiers scored on other probes than chose them."),
    ] = False,
    latent_draws: Annotated[
        int,
        typer.Option(
            "--latent-draws", min=0, help="Curves drawn behind the counts; 0: no latent tables."
        ),
    ] = 20,
    allow_incomplete: Annotated[
        bool,
        typer.Option("--allow-incomplete", help="Analyse what is graded, and say what is missing."),
    ] = False,
) -> None:
    """Write all tables and figures of campaigns; say what was found."""
    # What cannot be written in the end is said before anything else is imported.
    folder = _writable_folder(campaigns, out)
    from rich.console import Console

    from evaluator.analysis.files import write_analysis
    from evaluator.analysis.pipeline import TABLES, Asked, analyse_campaigns
    from stp.cli.progress import shown_progress

    names = _names(tables, TABLES)
    analysis: Analysis | None
    try:
        with shown_progress() as progress:
            analysis = analyse_campaigns(
                campaigns,
                allow_incomplete=allow_incomplete,
                asked=Asked(
                    replicates=replicates,
                    frontier_replicates=frontier_replicates,
                    workers=workers,
                    cross_fit=cross_fit,
                    latent_draws=latent_draws,
                ),
                direct=direct,
                progress=progress,
            )
            paths = write_analysis(analysis, folder, progress=progress)
    except KeyboardInterrupt:
        analysis = None
    if analysis is None:
        # Outside of the handler: the command line has words of its own for what is interrupted.
        typer.echo("stp: error: stopped at once; the analysis is not written", err=True)
        raise typer.Exit(130)
    shown = [table for table in analysis.tables if table.name in names]
    _print(Console(highlight=False), analysis, shown, paths)


def _writable_folder(campaigns: "Sequence[str]", out: Path | None) -> Path:
    """Return where tables and figures go."""
    alone = len(campaigns) == 1 and "://" not in campaigns[0]
    own = Path(campaigns[0]) / "analysis" if alone else Path("analysis")
    # The campaigns' folders may be given so too, where no shell has replaced it.
    return out_folder(out or own)


def _names(wanted: str, known: "Sequence[str]") -> "Sequence[str]":
    """Return the names of the tables that ``--tables`` asks for."""
    shortcuts: dict[str, Sequence[str]] = {"main": MAIN_TABLES, "all": known, "none": ()}
    if wanted in shortcuts:
        return shortcuts[wanted]
    names = [name.strip() for name in wanted.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise MisuseError(
            f"--tables {unknown[0]}: there is no such table; there are main, all, none, "
            f"{', '.join(known)}"
        )
    return names


def _print(
    console: "Console", analysis: "Analysis", shown: "list[Table]", paths: "AnalysisPaths"
) -> None:
    from rich.table import Table as RichTable
    from rich.text import Text

    from evaluator.present.terminal import rich_table

    bullets = RichTable.grid(padding=(0, 1, 0, 0))
    for sentence in analysis.findings.sentences:
        bullets.add_row("-", Text(sentence))
    console.print(bullets)
    console.print()
    for table in shown:
        console.print(rich_table(table, console.width))
    count = len(analysis.tables)
    console.print(
        f"{count} tables (CSV, Markdown, LaTeX), {len(paths.figures) // 2} figures (PNG, PDF) and "
        "findings.md are in"
    )
    console.print(str(paths.folder), markup=False, soft_wrap=True)
    if len(shown) < count:
        console.print(f"{len(shown)} of {count} tables are shown; --tables all shows every one")


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(analyze)
