"""``stp leaderboard``: boards of methods and models as a static site, and submissions to them."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from stp.cli.arguments import out_folder
from stp.cli.lazily import CommandGroup

leaderboard = typer.Typer(
    cls=CommandGroup,
    help="Boards of methods and models as a site; check, add submissions.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ResultsArgument = Annotated[
    Path, typer.Argument(help="A result folder of otbench run, think run or optimal run.")
]
RerunOption = Annotated[
    Path | None,
    typer.Option(
        "--release", help="Of OTBench rows: what they were measured on, to run them again."
    ),
]


@leaderboard.command("build")
def build(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="A board's folder, or result folders.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The site's folder, new or empty.")],
    title: Annotated[
        str, typer.Option("--title", help="What the page is called.")
    ] = "Leaderboards",
) -> None:
    """Write boards as a static site: every row linked to its evidence."""
    from evaluator.explorer.board import open_board
    from evaluator.explorer.static import write_static
    from evaluator.explorer.submission import SUBMISSIONS, submissions
    from stp.cli.progress import shown_progress

    out = out_folder(out)
    found = [
        result
        for folder in (path.expanduser() for path in folders)
        for result in (submissions(folder) if (folder / SUBMISSIONS).is_dir() else [folder])
    ]
    sources = open_board(found, title)
    with shown_progress() as progress:
        page = write_static(sources, out, progress=progress.stage("writing pieces"))
    typer.echo(f"Page: {page}")


@leaderboard.command("check")
def check(submission: ResultsArgument, release: RerunOption = None) -> None:
    """Check a submission: files, schema, checksums, scores made again, isolation."""
    raise typer.Exit(0 if _checked(submission.expanduser(), release) else 1)


@leaderboard.command("add")
def add(
    submission: ResultsArgument,
    board: Annotated[Path, typer.Argument(help="The board's folder; made if it is not there.")],
    name: Annotated[
        str | None, typer.Option("--name", help="What it is called there.", show_default="its own")
    ] = None,
    release: RerunOption = None,
) -> None:
    """Check a submission, and copy it into a board."""
    from evaluator.explorer.submission import add_submission

    folder = submission.expanduser()
    if not _checked(folder, release):
        typer.echo("not added", err=True)
        raise typer.Exit(1)
    target = add_submission(folder, board.expanduser(), name)
    typer.echo(f"Added: {target}\nNext: stp leaderboard build {quote(str(board))} --out SITE")


def _checked(folder: Path, release: Path | None) -> bool:
    """Print what the checks find; return whether none failed."""
    from evaluator.explorer.submission import check_submission
    from stp.cli.progress import shown_progress
    from stp.cli.seen import seen

    with shown_progress() as progress:
        findings = check_submission(
            folder, release=release.expanduser() if release else None, progress=progress
        )
    words = {True: "holds", False: "FAILS", None: "not made"}
    for finding in findings:
        typer.echo(f"{finding.check:<10} {words[finding.holds]:<9} {seen(finding.detail)}")
    return all(finding.holds is not False for finding in findings)


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.add_typer(leaderboard, name="leaderboard")
