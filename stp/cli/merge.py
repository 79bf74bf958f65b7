"""``stp merge``: parts of a campaign, run with ``--shard`` into folders of their own, made one."""

from shlex import quote
from typing import Annotated

import typer


def merge(
    folders: Annotated[list[str], typer.Argument(help="Folders of the parts: paths or URLs.")],
    out: Annotated[
        str,
        typer.Option("--out", help="The merged folder: a new one, or one of the same campaign."),
    ],
) -> None:
    """Put the parts of a campaign together, checked.

    Every shard is checked against its digest; different rows of one unit are refused. The parts
    stay as they are.
    """
    from stp.campaign.merge import merge_campaigns
    from stp.cli.progress import shown_progress

    with shown_progress() as progress:
        result = merge_campaigns(folders, out, progress=progress.stage("merging"))
    typer.echo(f"{result.shards:,} shards written to {out}", err=True)
    if result.complete:
        typer.echo(f"all {result.units:,} units are done; next: stp report {quote(out)}", err=True)
        return
    lacking = ", ".join(f"{stage} {count:,}" for stage, count in result.missing.items() if count)
    typer.echo(
        f"of {result.units:,} units some lack a stage ({lacking}); continue: stp run {quote(out)}",
        err=True,
    )


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(merge)
