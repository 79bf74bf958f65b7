"""Help is quick because it imports nothing heavy. What is asserted is the imports, not the time.

Typer itself imports pydantic, which is therefore not in the list.
"""

import subprocess
import sys

import pytest

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
        ["demo"],
        ["run"],
        ["status"],
        ["grade"],
        ["show"],
        ["show", "verdicts"],
        ["report"],
        ["analyze"],
        ["benchmarks"],
        ["benchmarks", "show"],
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


def test_an_error_of_several_lines_is_shown_as_one(monkeypatch, capsys):
    from data.errors import MisuseError
    from stp.cli import main

    def fail(**_: object) -> None:
        raise MisuseError("first\n  second\n")

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as stopped:
        main.main([])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "stp: error: first second\n"


def test_an_interrupted_command_says_so(monkeypatch, capsys):
    import typer

    from stp.cli import main

    app = typer.Typer()

    @app.command()
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", app)
    with pytest.raises(SystemExit) as stopped:
        main.main([])
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "stp: error: stopped at once; what was finished is kept\n"


def test_lines_of_the_first_help_are_those_of_the_commands():
    from typer.main import get_group

    from stp.cli.lazily import COMMANDS
    from stp.cli.main import app

    group = get_group(app)
    for name, (_, line) in COMMANDS.items():
        command = group.get_command(None, name)
        assert command.name == name
        assert command.help.splitlines()[0] == line
