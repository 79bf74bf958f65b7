"""``stp analyze``: every table and figure of one or several campaigns."""

from pathlib import Path
from typing import Annotated

import typer


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
    replicates: Annotated[
        int, typer.Option("--replicates", min=0, help="Bootstrap replicates; 0: no intervals.")
    ] = 10_000,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Threads; they do not change any number."),
    ] = None,
    direct: Annotated[
        Path | None,
        typer.Option(
            "--direct", help="CSV with model, benchmark, accuracy of answers without thinking."
        ),
    ] = None,
    cross_fit: Annotated[
        bool,
        typer.Option("--cross-fit", help="Add frontiers scored on other probes than chose them."),
    ] = False,
    allow_incomplete: Annotated[
        bool,
        typer.Option("--allow-incomplete", help="Analyse what is graded, and say what is missing."),
    ] = False,
) -> None:
    """Write every table and figure of campaigns, and say what was found."""
    from rich.console import Console
    from rich.progress import Progress

    from evaluator.analysis import analyse_campaigns, read_direct_accuracies, write_analysis

    accuracies = read_direct_accuracies(direct) if direct else None
    alone = len(campaigns) == 1 and "://" not in campaigns[0]
    own = Path(campaigns[0]) / "analysis" if alone else Path("analysis")
    # The campaigns' folders may be given so too, where no shell has replaced it.
    folder = (out or own).expanduser()
    console = Console(highlight=False)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("bootstrap", total=replicates or None)
        analysis = analyse_campaigns(
            campaigns,
            allow_incomplete=allow_incomplete,
            replicates=replicates,
            workers=workers,
            direct=accuracies,
            cross_fit=cross_fit,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    paths = write_analysis(analysis, folder)
    for table in analysis.tables:
        console.print(table.to_rich())
    for sentence in analysis.findings.sentences:
        console.print(f"- {sentence}", markup=False)
    console.print(f"\nTables and figures: {paths.folder}", markup=False, soft_wrap=True)
