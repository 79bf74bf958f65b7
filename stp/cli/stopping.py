"""Ctrl-C and SIGTERM: finish the units under way, then stop."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType

from rich.console import Console


@dataclass(slots=True)
class StopAsked:
    """Whether a signal asked to stop, and which."""

    event: threading.Event = field(default_factory=threading.Event)
    signal: int | None = None


def end_stalled(message: str) -> None:
    """Say in one line that the engine hangs, and end the process at once with exit code 1."""
    from stp.campaign.watchdog import end_at_once

    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h\n")  # The bars hide the cursor.
    sys.stderr.write(f"stp: error: {message}\n")
    sys.stderr.flush()
    end_at_once()


@contextlib.contextmanager
def stop_on_signals(console: Console) -> Iterator[StopAsked]:
    """Yield what the two signals set; a second Ctrl-C stops at once.

    The handlers that were there before come back in the end.
    """
    asked = StopAsked()

    def handle(number: int, frame: FrameType | None) -> None:
        if asked.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.signal = number
        asked.event.set()
        console.print("finishing the units under way, then stopping (Ctrl-C again stops at once)")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
