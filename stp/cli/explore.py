"""``stp explore``: look at campaigns and runs in a browser, or write the same as files."""

from pathlib import Path
from typing import Annotated

import typer

from stp.cli.arguments import out_folder


def explore(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER...",
            help="Campaigns, releases, OTBench runs, live, think and optimal runs.",
        ),
    ],
    static: Annotated[
        Path | None,
        typer.Option("--static", metavar="DIR", help="Write files into DIR; no server."),
    ] = None,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Port of the server; 0 takes a free one."),
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Look at campaigns, releases and runs in a browser, or as files.

    The page is served on this machine alone and changes nothing. Ctrl-C ends it.
    """
    from evaluator.explorer.opening import open_sources
    from stp.cli.progress import shown_progress

    if static is not None:
        static = out_folder(static)
    with shown_progress() as progress:
        sources = open_sources(folders, progress=progress)
    if static is not None:
        from evaluator.explorer.static import write_static

        with shown_progress() as progress:
            page = write_static(sources, static, progress=progress.stage("writing pieces"))
        typer.echo(f"Page: {page}")
        return
    from evaluator.explorer.server import listen, server

    listening = listen(port)
    typer.echo(f"Explorer: {listening.address}\nCtrl-C ends it.")
    if browser:
        import webbrowser

        webbrowser.open(listening.address)
    server(sources, listening).run(sockets=[listening.socket])


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(explore)
