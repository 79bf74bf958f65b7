"""Lines that say how far work is, where no bar can move; nothing heavy is imported here."""

from rich.console import Console

SECONDS_BETWEEN_LINES = 10.0
LEAST_FRACTION = 0.05
"""The first pieces also compile and warm up, and say little about the rest."""


class Lines:
    """When the next line is due, what it may say of the time left, and how it is printed.

    Times are those of one clock, in seconds; the first line is due at once.

    Parameters
    ----------
    console
        Where lines are printed.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: float | None = None
        self._begin = 0.0
        self._start = 0.0

    def begin(self, now: float, done: float = 0) -> None:
        """Begin a piece of work of which some is done already."""
        self._begin, self._start = now, done

    def wait(self, now: float) -> None:
        """Let the next line come as late as if there had been one now."""
        self._last = now

    def due(self, now: float) -> bool:
        """Return whether the last line is long ago."""
        return self._last is None or now - self._last >= SECONDS_BETWEEN_LINES

    def elapsed(self, now: float) -> float:
        """Return for how long the work goes on."""
        return now - self._begin

    def left(self, now: float, done: float, total: float) -> float | None:
        """Return how many seconds are left at the pace so far; None while too little is known."""
        gained = done - self._start
        if gained <= LEAST_FRACTION * total:
            return None
        return self.elapsed(now) * (total - done) / gained

    def say(self, now: float, line: str) -> None:
        """Print a line: as text, whatever a stranger has put into a name of it."""
        self._console.print(printable(line), markup=False, soft_wrap=True)
        self._last = now


def printable(text: str) -> str:
    """Return a text that moves no cursor, with hidden characters made visible."""
    if text.isascii() and text.isprintable():
        return text
    from stp.cli.seen import seen

    return seen(text)


def duration(seconds: float) -> str:
    """Return a time as a person would say it.

    Examples
    --------
    >>> duration(12.3), duration(125), duration(7300)
    ('12 s', '2 min 05 s', '2 h 01 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"
