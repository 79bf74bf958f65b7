"""A watchdog for engines that hang: a library call cannot be stopped from outside.

So the process ends. What is written is whole, and the same command continues the units that were
under way.
"""

import contextlib
import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator

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
    """Checks whether an engine still gets results from its model.

    Parameters
    ----------
    stall_seconds
        How long it may get no result.
    on_stall
        Called then, once, from a thread of its own, with one line that says so.
    """

    def __init__(
        self, stall_seconds: float, *, on_stall: Callable[[str], None] = end_process
    ) -> None:
        self._seconds = stall_seconds
        self._on_stall = on_stall

    @contextlib.contextmanager
    def watching(
        self, signs: Callable[[], Hashable | None], what: Callable[[], str]
    ) -> Iterator[None]:
        """Watch while the block runs.

        Parameters
        ----------
        signs
            What changes whenever an engine gets something; None while none is at work. Called from
            another thread.
        what
            Names the work in the message. Called from another thread.
        """
        over = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(signs, what, over), name="watchdog", daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _watch(
        self,
        signs: Callable[[], Hashable | None],
        what: Callable[[], str],
        over: threading.Event,
    ) -> None:
        seen = signs()
        since = time.monotonic()
        while not over.wait(self._seconds / _LOOKS):
            now = signs()
            if now is None or now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since >= self._seconds:
                self._on_stall(
                    f"the engine gave nothing for {self._seconds:g} seconds on {what()} and seems "
                    "to hang; nothing that was finished is lost: run the same command again to go "
                    "on there ([engine] stall_seconds sets how long is too long)"
                )
                return
