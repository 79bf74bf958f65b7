"""Lines in a log from commands that still load what they need, before they show any progress.

Nothing is imported here that takes time: the lines are about what does.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from stp.cli.lines import duration

CPU_SECONDS = 2.0
"""Work of the process between lines. Short commands on a busy machine say nothing."""
WAIT_SECONDS = 10.0
"""Time between lines of a command that only waits."""
_LOOKS_EVERY_SECONDS = 0.2

_ended = threading.Event()


def progress_is_shown() -> None:
    """End the lines: from here on the command shows its own progress."""
    _ended.set()


@contextlib.contextmanager
def early_lines() -> Iterator[None]:
    """Say now and then that a command is at work, until :func:`progress_is_shown` or the end.

    Only where the error stream is not a terminal: there people see that the prompt is not back.
    """
    _ended.clear()
    if not sys.stderr.isatty():
        threading.Thread(target=_speak, name="early lines", daemon=True).start()
    try:
        yield
    finally:
        _ended.set()


def _speak() -> None:
    begin = said_at = time.monotonic()
    worked = time.process_time()
    while not _ended.wait(_LOOKS_EVERY_SECONDS):
        now, work = time.monotonic(), time.process_time()
        if work - worked >= CPU_SECONDS or now - said_at >= WAIT_SECONDS:
            sys.stderr.write(f"at work: {duration(now - begin)} elapsed\n")
            sys.stderr.flush()
            said_at, worked = now, work
