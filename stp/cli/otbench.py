"""``stp otbench``: termination methods beside the frontier of their strategy."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stp.cli.arguments import out_folder
from stp.cli.lazily import CommandGroup

if TYPE_CHECKING:
    from rich.console import Console

otbench = typer.Typer(
    cls=CommandGroup,
    name="otbench",
    help="Measure termination methods on a release.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ReleaseArgument = Annotated[Path, typer.Argument(help="A release's folder, made by `stp release`.")]


@otbench.command()
def run(
    release: ReleaseArgument,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="A name, NAME(key=value, ...) or FILE.py:Class; may be repeated.",
            show_default="all that the release has signals for",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where rows and report go.", show_default="RELEASE-otbench"),
    ] = None,
    replicates: Annotated[
        int,
        typer.Option(
            "--replicates", min=0, max=100_000, help="Bootstrap replicates; 0: no intervals."
        ),
    ] = 10_000,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Threads; they do not change any number."),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Figures for articles too, without titles: figures/plain, with SVG."
        ),
    ] = False,
) -> None:
    """Train methods on train, select on validation, measure on test; write rows and a report."""
    from evaluator.otbench.integrity import read_manifest
    from evaluator.present.terminal import rich_table
    from stp.cli.progress import shown_progress

    release = release.expanduser()
    # A wrong folder is said before anything else is imported.
    read_manifest(release)
    folder = out_folder(out or release.with_name(release.name + "-otbench"))
    with shown_progress(at_once=True) as progress:
        progress.stage("starting")
        from evaluator.otbench.compare import order_rows, terminal_tables
        from evaluator.otbench.page import lead
        from evaluator.otbench.session import run_methods
        from stp.cli.seen import seen

        try:
            session = run_methods(
                release,
                method or [],
                folder,
                replicates=replicates,
                workers=workers,
                plain=plain,
                progress=progress,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "rows are written at the end: none of this run is kept"
            ) from None
    console = _console()
    rows = order_rows(session.rows)
    for table in terminal_tables(rows, intervals=False):
        console.print(rich_table(table, console.width))
    console.print(lead(rows), markup=False)
    for note in session.notes:
        console.print(f"- {seen(note)}", markup=False)
    console.print(f"\nRows: {session.leaderboard}", markup=False, soft_wrap=True)
    console.print(f"Report: {session.page}", markup=False, soft_wrap=True)


@otbench.command()
def compare(
    rows: Annotated[
        list[Path], typer.Argument(help="Leaderboard files, or folders that hold one.")
    ],
    against: Annotated[
        str | None,
        typer.Option("--against", help="Show paired differences from this row, by its label."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Only rows with this label; may be repeated."),
    ] = None,
) -> None:
    """Show rows of several runs side by side, with intervals and paired differences."""
    from data.errors import MisuseError
    from evaluator.otbench.compare import (
        check_labels,
        differences_table,
        order_rows,
        terminal_tables,
    )
    from evaluator.otbench.leaderboard import read_rows
    from evaluator.present.terminal import rich_table

    found = order_rows(read_rows(path.expanduser() for path in rows))
    if not found:
        raise MisuseError("the files hold no row")
    check_labels(found, [*(method or []), *([] if against is None else [against])])
    if method:
        found = [row for row in found if row.label in (*method, against)]
    # Made before anything is printed: rows that cannot be paired are refused.
    differences = [] if against is None else [differences_table(found, against)]
    console = _console()
    for table in [*terminal_tables(found, intervals=True), *differences]:
        console.print(rich_table(table, console.width))


@otbench.command()
def regenerate(
    rows: Annotated[Path, typer.Argument(help="A leaderboard file, or a folder that holds one.")],
    release: ReleaseArgument,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Only rows with this label; may be repeated."),
    ] = None,
) -> None:
    """Make rows again from their own settings, and say whether they come out the same."""
    from data.errors import MisuseError
    from evaluator.otbench.integrity import read_manifest
    from stp.cli.progress import shown_progress

    read_manifest(release.expanduser())
    different = False
    with shown_progress(at_once=True) as progress:
        progress.stage("starting")
        from evaluator.otbench.compare import check_labels
        from evaluator.otbench.leaderboard import read_rows
        from evaluator.otbench.session import open_release
        from evaluator.otbench.session import regenerate as make_again
        from stp.cli.seen import seen

        found = read_rows([rows.expanduser()])
        if not found:
            raise MisuseError(f"{rows}: holds no row")
        check_labels(found, method or [])
        found = [row for row in found if not method or row.label in method]
        loaded = open_release(release.expanduser(), progress=progress)
        for place, row in enumerate(found, start=1):
            try:
                again = make_again(
                    row,
                    loaded,
                    progress=progress.within(f"row {place} of {len(found)}")
                    if len(found) > 1
                    else progress,
                )
                said = "the same" if again.digest == row.digest else "differs"
            except MisuseError as error:
                if len(found) == 1:
                    raise
                said = f"cannot be made again: {seen(str(error))}"
            different = different or said != "the same"
            with progress.aside():
                typer.echo(f"{seen(row.label)}: {said}")
    if different:
        raise typer.Exit(1)


@otbench.command("list")
def list_methods() -> None:
    """List the methods that can be had by name."""
    from rich.table import Table
    from rich.text import Text

    from baselines.registry import method_names
    from data.errors import MisuseError
    from evaluator.otbench.apart import find_source
    from stp.cli.seen import seen

    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("method", "strategy", "swept over", "needs"):
        table.add_column(heading, overflow="fold")
    broken = []
    for name in method_names():
        try:
            kind = find_source(name, {}).description
        except MisuseError as error:
            broken.append(str(error))
            continue
        needs = ", ".join(kind.needs) or ("nothing (trivial)" if kind.trivial else "nothing")
        entries = (name, kind.strategy.replace("_", " "), kind.control, needs)
        table.add_row(*(Text(seen(entry)) for entry in entries))
    console.print(table)
    for reason in broken:
        console.print(f"- {seen(reason)}", markup=False)
    console.print("\nYour own: --method FILE.py:Class, or an entry point of the group stp.methods.")


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False)


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.add_typer(otbench)
