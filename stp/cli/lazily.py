"""The commands of ``stp``, each in a module that is imported only when it is asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_group

from stp.cli import COMMANDS, first_help


class CommandGroup(TyperGroup):
    """A group of commands with a default: used if the first word names no command."""

    default: ClassVar[str | None] = None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before arguments that name no command."""
        first = args[0] if args else ""
        if self.default and first not in self.commands and first not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``; of a group it is False where it was not given.

        The library has pydantic read what is not a truth value, and the help of a command then
        takes twice as long as it must.
        """
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option


def group_of(default: str) -> type[CommandGroup]:
    """Return the class of groups with a default command."""
    return type("GroupWithDefault", (CommandGroup,), {"default": default})


class LazyGroup(CommandGroup):
    """A group whose commands are those of :data:`COMMANDS`."""

    lines: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # What the library offers where a name was mistyped; none of them is made yet.
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, its module imported now; None if there is none of that name."""
        if cmd_name not in self.lines:
            return None
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        import_module(f"stp.cli.{self.lines[cmd_name][0]}").register(app)
        return get_group(app).commands[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the first help."""
        formatter.write(first_help())


app = typer.Typer(
    name="stp",
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"stp-engine {version('stp-engine')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug")] = False,
) -> None:
    """Take the options that every command has."""
