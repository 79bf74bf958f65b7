"""How long work reports its progress."""

from collections.abc import Callable

Show = Callable[[str, int, int], None]
"""Shows (stage, done, all) to people; 0 for all means that the total is not known."""


def _nobody(stage: str, done: int, total: int) -> None:
    """Show nothing."""


class Progress:
    """Receives the progress of a piece of work.

    It is called with the amount done and the total. Work that has several stages takes a
    :meth:`stage` for each; they come one after the other.

    Parameters
    ----------
    show
        Shows the progress; left out: nothing does.
    name
        What the piece of work is called.

    Examples
    --------
    >>> progress = Progress(print, "model a")
    >>> stage = progress.stage("bootstrap")
    model a, bootstrap 0 0
    >>> stage(50, 100)
    model a, bootstrap 50 100
    """

    __slots__ = ("_name", "_show")

    def __init__(self, show: Show = _nobody, name: str = "") -> None:
        self._show, self._name = show, name

    def __call__(self, done: int, total: int) -> None:
        """Report the amount done, and the total."""
        self._show(self._name, done, total)

    def within(self, name: str) -> "Progress":
        """Return the progress of a part, whose stages are called by its name too."""
        return Progress(self._show, f"{self._name}, {name}" if self._name else name)

    def stage(self, name: str) -> "Progress":
        """Return the progress of a stage, which begins now."""
        begun = self.within(name)
        begun(0, 0)
        return begun

    def part(self, before: int, total: int) -> "Progress":
        """Return the progress of one of several parts, of which some are done before it.

        Examples
        --------
        >>> Progress(print, "draws").part(200, 300)(50, 100)
        draws 250 300
        """
        return Progress(lambda name, done, _: self._show(name, before + done, total), self._name)


NOBODY = Progress()
"""Shows nothing to anybody."""
