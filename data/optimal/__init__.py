"""What OptimalThinkingBench asks: domains, prompts, and the questions of OvT-General."""

from importlib import resources

from data.errors import MisuseError


def prompt_text(name: str) -> str:
    """Return one of the prompt files that lie beside this module, without its last line break.

    Raises
    ------
    data.errors.MisuseError
        If there is no such file.
    """
    file = resources.files("data.optimal").joinpath("prompts", f"{name}.txt")
    try:
        return file.read_text(encoding="utf-8").rstrip("\n")
    except FileNotFoundError as error:
        raise MisuseError(f"no prompt file {name}.txt") from error
