"""vLLM's scheduler for ``occupancy.py server``: it counts its steps, and none is too short."""

import os
from typing import Any

from occupancy import COUNTS, STEP_MS, Counts
from vllm.v1.core.sched.scheduler import Scheduler


class PacedScheduler(Scheduler):  # type: ignore[misc]
    """Begins a step when the one before has lasted long enough."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._counts = Counts(os.environ[COUNTS], step_ms=int(os.environ[STEP_MS]))

    def schedule(self, *args: Any, **named: Any) -> Any:
        """Wait, and return what the next step has to do."""
        self._counts.pace()
        output = super().schedule(*args, **named)
        if output.num_scheduled_tokens:
            self._counts.step(len(output.num_scheduled_tokens))
        return output
