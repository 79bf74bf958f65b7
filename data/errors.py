"""The errors of this project, under one base class.

They live in ``data`` because it is the lowest package: every package may import it. A message is
one line that says what is wrong, where, and how to fix it; the command line prints it as it is.
"""


def one_line(error: BaseException) -> str:
    """Return the text of any error on one line; its class if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


class StpError(Exception):
    """Base of every error that this project raises on purpose.

    ``exit_code`` is what the command line ends with: 2 where the user asked for something that
    cannot be done as asked, 1 if something failed on the way.
    """

    exit_code = 1


class MisuseError(StpError):
    """The request itself is wrong: an unknown name, a bad value, a missing file."""

    exit_code = 2


class ConfigError(MisuseError):
    """A campaign file, a family file or an option holds a value that cannot be used."""


class BadReferenceError(MisuseError):
    """A question's reference cannot be used to judge an answer (no tests, no such letter)."""


class StoreError(StpError):
    """A campaign's folder cannot be read or written: a torn shard, a full disk."""


class StoreMismatchError(MisuseError):
    """The folder holds a campaign with another configuration."""


class EngineError(StpError):
    """An engine failed on a request. Never an answer, never graded."""


class MissingDependencyError(MisuseError):
    """An optional package is not installed; the message names the extra that brings it."""
