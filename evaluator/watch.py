"""How long work says how far it is: a stage's name, what is done of it, and all of it."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (done, all) of one piece of work."""

Watch = Callable[[str, int, int], None]
"""Called with (stage, done, all); stages come one after the other."""


def nobody(stage: str, done: int, total: int) -> None:
    """Watch nothing."""


def stage_of(watch: Watch, stage: str) -> Progress:
    """Return what a piece of work calls as one stage; the stage begins at once.

    Examples
    --------
    >>> progress = stage_of(print, "bootstrap")
    bootstrap 0 0
    >>> progress(50, 100)
    bootstrap 50 100
    """
    watch(stage, 0, 0)

    def progress(done: int, total: int) -> None:
        watch(stage, done, total)

    return progress
