"""The commands of ``stp``, each in a module that is imported only when it is asked for.

A list of names and first lines is all that ``stp --help`` needs. Reading every command's module for
it took as long again as starting Python and the command-line library.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_group

COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("demo", "Probe the demo model on 40 questions and report what it finds."),
    "run": ("campaigns", "Run a campaign, or go on with one that was stopped."),
    "status": ("campaigns", "Show how far a campaign is: done, rate, time left, prefill."),
    "grade": ("campaigns", "Grade a campaign's answers, without a model."),
    "report": ("report", "Write a campaign's report: an HTML page and figures."),
    "explore": (
        "explore",
        "Look at campaigns and runs: tables, trajectories, responses, frontiers.",
    ),
    "analyze": ("analyze", "Write all tables and figures of campaigns; say what was found."),
    "probes": ("probes", "Compare two campaigns that probed the same trajectories."),
    "signals": (
        "signals",
        "Read signals for termination methods at every step.",
    ),
    "merge": ("merge", "Put the parts of a campaign together, checked."),
    "release": ("release", "Freeze campaigns into a release, for `stp otbench`."),
    "show": ("showing", "Show a campaign, or its verdicts, as text."),
    "otbench": ("otbench", "Measure termination methods on a release."),
    "think": ("think", "LLMThinkBench: accuracy and length on arithmetic, the O-Score."),
    "optimal": ("optimal", "OptimalThinkingBench: over- and underthinking in one score."),
    "live": ("live", "Run a termination method live; compare, choose a setting."),
    "serve": (
        "serve",
        "Serve a model by chat completions, its thinking stopped by a method.",
    ),
    "leaderboard": (
        "leaderboard",
        "Boards of methods and models as a static site; check and add submissions.",
    ),
    "benchmarks": ("benchmarks", "The benchmarks that there are."),
    "families": (
        "families",
        "List the model families, or say which one a model gets, and why.",
    ),
}
"""For every command the module of :mod:`stp.cli` that registers it, and the first line of its help,
in the order of ``stp --help``."""


class Group(TyperGroup):
    """A group of commands."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``; of a group it is False where it was not given.

        The library has pydantic read what is not a truth value, and the help of a command then
        takes twice as long as it must.
        """
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option


class LazyGroup(Group):
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

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names and first lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.lines.items()])
