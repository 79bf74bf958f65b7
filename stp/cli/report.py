"""``stp report``: the page and the figures of a campaign."""

from pathlib import Path
from typing import Annotated

import typer

from stp.cli.arguments import out_folder


def report(
    campaign: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The campaign's folder, or its URL.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Where the page and its figures go.",
            show_default="CAMPAIGN/report, or ./report for a URL",
        ),
    ] = None,
    allow_incomplete: Annotated[
        bool,
        typer.Option("--allow-incomplete", help="Report what is graded, and say what is missing."),
    ] = False,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Figures for articles too, without titles: figures/plain, with SVG."
        ),
    ] = False,
) -> None:
    """Write a campaign's report: an HTML page and figures.

    The page is one file and works from disk, without a network.
    """
    from rich.console import Console

    from stp.cli.progress import shown_progress

    console = Console()
    own = Path("report") if "://" in campaign else Path(campaign) / "report"
    # The campaign's folder may be given so too, where no shell has replaced it.
    folder = out_folder(out or own)
    with shown_progress(at_once=True) as progress:
        progress.stage("computing frontiers and intervals, drawing figures")
        from evaluator.report import build_report

        paths = build_report(campaign, folder, allow_incomplete=allow_incomplete, plain=plain)
    for line in paths.headline.lines:
        console.print(line, highlight=False, markup=False)
    console.print(f"\nReport: {paths.page}", highlight=False, markup=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(report)
