"""Lines in a log from commands that still load what they need, before they show any progress.

Nothing is imported here that takes time: the lines are about what does.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from stp.cli.lines import duration

SECONDS_BETWEEN_LINES = 1.8
"""Nobody waits two seconds for a word: to look whether a line is due takes time as well."""
LOOKS_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class _Speaker:
    """Who speaks: nobody any more where it has ended. When a line was said, or the work began.

    Whoever says a line or ends them holds ``turn``, so that none is said after the end.
    """

    turn: threading.RLock = field(default_factory=threading.RLock)
    ended: threading.Event = field(default_factory=threading.Event)
    said_at: float | None = None


_speaker = _Speaker()


def progress_is_shown() -> float | None:
    """End the lines: from here on the command shows its own progress.

    Returns
    -------
    float or None
        Since when nothing was said, by the monotonic clock; None where no line was due.
    """
    with _speaker.turn:
        _speaker.ended.set()
        since, _speaker.said_at = _speaker.said_at, None
    return since


@contextlib.contextmanager
def early_lines() -> Iterator[None]:
    """Say now and then that a command is at work, until :func:`progress_is_shown` or the end.

    Only where the error stream is not a terminal: there people see that the prompt is not back.
    """
    _speaker.ended.clear()
    if not sys.stderr.isatty():
        _speaker.said_at = time.monotonic()
        threading.Thread(target=_speak, name="early lines", daemon=True).start()
    try:
        yield
    finally:
        progress_is_shown()


def _speak() -> None:
    begin = said_at = time.monotonic()
    while not _speaker.ended.wait(LOOKS_EVERY_SECONDS):
        now = time.monotonic()
        if now - said_at < SECONDS_BETWEEN_LINES:
            continue
        with _speaker.turn:
            if _speaker.ended.is_set():
                return
            sys.stderr.write(f"at work: {duration(now - begin)} elapsed\n")
            sys.stderr.flush()
            _speaker.said_at = said_at = now
