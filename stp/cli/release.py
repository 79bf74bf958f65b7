"""``stp release``: campaigns frozen into a release that methods are compared on."""

from pathlib import Path
from typing import Annotated

import typer

from data.seeds import PAPER_SEED


def release(
    campaigns: Annotated[
        list[str],
        typer.Argument(help="Folders or URLs of graded campaigns; or, with --push, a release."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The release's folder, a new one.")
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="What it is called.", show_default="the campaigns' names")
    ] = "",
    train: Annotated[
        str, typer.Option("--train", help="Fraction of each benchmark's questions to train on.")
    ] = "1/2",
    validation: Annotated[
        str, typer.Option("--validation", help="Fraction to select settings on.")
    ] = "1/5",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the division.")] = PAPER_SEED,
    allow_incomplete: Annotated[
        bool, typer.Option("--allow-incomplete", help="Take what is graded.")
    ] = False,
    push: Annotated[
        str | None,
        typer.Option("--push", metavar="REPO", help="Send it to the hub, as USER/NAME."),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="With --push: make a new repository private.")
    ] = False,
) -> None:
    """Freeze campaigns into a release, for `stp otbench`.

    It holds curves, signals, splits and checksums, as tables that pandas reads.

    A release that is there already is sent with: stp release FOLDER --push USER/NAME
    """
    from data.errors import MisuseError
    from evaluator.otbench.integrity import MANIFEST
    from stp.cli.seen import seen
    from stp.files import check_writable

    folder = out.expanduser() if out else None
    if folder is None:
        made = Path(campaigns[0]).expanduser()
        if push is None or len(campaigns) > 1 or not _is_release(made / MANIFEST):
            raise MisuseError("say where the release goes: stp release CAMPAIGN... --out FOLDER")
        folder = made
    else:
        _write(campaigns, check_writable(folder), name, train, validation, seed, allow_incomplete)
    if push is not None:
        from evaluator.otbench.hub import push_release

        typer.echo(f"sending {seen(str(folder))} to {seen(push)}", err=True)
        typer.echo(f"sent: {push_release(folder, push, private=private)}")


def _is_release(manifest: Path) -> bool:
    """Return whether a manifest is a release's: a campaign's folder has one of this name too."""
    from evaluator.otbench.integrity import CHECKSUM

    return manifest.is_file() and (manifest.parent / CHECKSUM).is_file()


def _write(
    campaigns: list[str],
    folder: Path,
    name: str,
    train: str,
    validation: str,
    seed: int,
    allow_incomplete: bool,
) -> None:
    from rich.console import Console

    from evaluator.otbench.release import write_release
    from evaluator.otbench.splits import SplitRule
    from stp.cli.progress import shown_progress
    from stp.cli.seen import seen

    rule = SplitRule(train=_fraction(train), validation=_fraction(validation), seed=seed)
    with shown_progress() as progress:
        summary = write_release(
            campaigns,
            folder,
            name=name,
            rule=rule,
            allow_incomplete=allow_incomplete,
            progress=progress,
        )
    console = Console(highlight=False, markup=False)
    counts = ", ".join(f"{count:,} {split}" for split, count in summary.questions.items())
    console.print(f"questions: {counts}")
    console.print(f"{summary.trajectories:,} trajectories, {summary.positions:,} positions")
    console.print(f"signals: {', '.join(summary.signals) or 'none'}")
    for note in summary.notes:
        console.print(f"note: {seen(note)}")
    console.print(
        f"release: {seen(str(summary.folder))} (checksum {summary.checksum[:12]})", soft_wrap=True
    )


def _fraction(text: str):  # type: ignore[no-untyped-def]
    from fractions import Fraction

    from data.errors import MisuseError

    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise MisuseError(f"{text!r} is not a fraction; write 1/2 or 0.5") from error


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(release)
