"""The command line on a scripted engine."""

from pathlib import Path
from typing import Any

from stp.campaign import run
from tests.campaign.fakes import ScriptedEngine


def use_scripted_engine(seconds: float) -> None:
    """Let every campaign of this process run on a scripted engine."""

    def open_scripted(name: str, folder: Path, **options: Any) -> ScriptedEngine:
        return ScriptedEngine(folder, seconds_per_call=seconds)

    run.open_engine = open_scripted  # type: ignore[assignment]
