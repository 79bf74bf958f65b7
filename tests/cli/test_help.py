"""Help is quick because it imports nothing heavy. What is asserted is the imports, not the time."""

import subprocess
import sys

import pytest

from stp.cli import COMMANDS, first_help

HEAVY = (
    "data.registry",
    "evaluator.answers",
    "evaluator.report",
    "fsspec",
    "hypothesis",
    "matplotlib",
    "numba",
    "numpy",
    "pandas",
    "plotly",
    "pyarrow",
    "pydantic",
    "scipy",
    "sympy",
    "tokenizers",
    "torch",
    "transformers",
    "stp.campaign.run",
)

PROGRAM = """
import sys
from stp.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
print("LOADED", code, *sorted(sys.modules))
"""


@pytest.mark.parametrize(
    "command",
    [
        [],
        *([name] for name in COMMANDS),
        ["show", "verdicts"],
        ["benchmarks", "show"],
        ["otbench", "run"],
        ["think", "run"],
        ["optimal", "run"],
        ["live", "run"],
    ],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(command):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command, "--help"], capture_output=True, text=True
    )
    assert "Usage: stp" in done.stdout, done.stderr
    code, *loaded = done.stdout.rpartition("LOADED ")[2].split()
    assert code == "0"
    assert [module for module in HEAVY if module in loaded] == []
    assert ("typer" in loaded) == bool(command)


def test_an_error_of_several_lines_is_shown_as_one(monkeypatch, capsys):
    from data.errors import MisuseError
    from stp.cli import lazily, main

    def fail(**_: object) -> None:
        raise MisuseError("first\n  second\n")

    monkeypatch.setattr(lazily, "app", fail)
    with pytest.raises(SystemExit) as stopped:
        main.main([])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "stp: error: first second\n"


@pytest.mark.parametrize("begun", [True, False])
def test_an_interrupted_command_says_so(monkeypatch, capsys, begun):
    """Also where the library of the command line was not there yet, to notice it."""
    import typer

    from stp.cli import lazily, main

    app = typer.Typer()

    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    app.command()(lambda: interrupted())
    monkeypatch.setattr(lazily, "app", app if begun else interrupted)
    with pytest.raises(SystemExit) as stopped:
        main.main([])
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "stp: error: stopped at once; what was finished is kept\n"


def test_lines_of_the_first_help_are_those_of_the_commands():
    from typer.main import get_group

    from stp.cli.lazily import app

    group = get_group(app)
    for name, (_, line) in COMMANDS.items():
        command = group.get_command(None, name)
        assert command.name == name
        assert command.help.splitlines()[0] == line
        assert f"  {name} " in first_help()
    assert max(map(len, first_help().splitlines())) < 80
