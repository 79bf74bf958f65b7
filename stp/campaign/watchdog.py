"""A watchdog for engines that hang: no call of a library can be ended from outside it.

So the process ends. What is written is whole, and the same command goes on with the unit that was
in work.
"""

import contextlib
import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator

from stp.engines.base import Engine

_LOG = logging.getLogger(__name__)

_LOOKS = 8
"""How often a watchdog looks within the time that it allows."""


def end_process(message: str) -> None:
    """Log a message, and end the process as :func:`end_at_once` does."""
    _LOG.critical("%s", message)
    end_at_once()


def end_at_once() -> None:
    """End the process with exit code 1, and its subprocesses with it.

    Nothing is closed: whatever hangs would hang in that too.
    """
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(1)


class Watchdog:
    """Looks whether an engine still gets something from its model.

    Parameters
    ----------
    stall_seconds
        How long it may get nothing.
    on_stall
        Called then, once, from a thread of its own, with one line that says so.
    """

    def __init__(
        self, stall_seconds: float, *, on_stall: Callable[[str], None] = end_process
    ) -> None:
        self._seconds = stall_seconds
        self._on_stall = on_stall

    @contextlib.contextmanager
    def watching(self, engine: Engine, what: str) -> Iterator[None]:
        """Watch an engine while the block runs; ``what`` names the work in the message."""
        over = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(engine, what, over), name="watchdog", daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _watch(self, engine: Engine, what: str, over: threading.Event) -> None:
        seen = _signs(engine)
        since = time.monotonic()
        while not over.wait(self._seconds / _LOOKS):
            now = _signs(engine)
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since >= self._seconds:
                self._on_stall(
                    f"the engine gave nothing for {self._seconds:g} seconds on {what} and seems to "
                    "hang; nothing that was finished is lost: run the same command again to go on "
                    "there ([engine] stall_seconds sets how long is too long)"
                )
                return


def _signs(engine: Engine) -> tuple[int, int, int]:
    return engine.pulse, engine.usage.prefill_tokens, engine.usage.generated_tokens
