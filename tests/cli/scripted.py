"""The command line on a scripted engine."""

from pathlib import Path
from typing import Any

from stp.campaign import run, signals
from tests.campaign.fakes import ScriptedEngine


def use_scripted_engine(seconds: float) -> None:
    """Let every campaign of this process run on a scripted engine."""

    def open_scripted(name: str, folder: Path, **options: Any) -> ScriptedEngine:
        return ScriptedEngine(folder, seconds_per_call=seconds)

    def check(name: str, options: object) -> None:
        """Take everything, and import no library that could run a model."""

    run.open_engine = open_scripted  # type: ignore[assignment]
    run.check_engine = signals.check_engine = check  # type: ignore[assignment]
