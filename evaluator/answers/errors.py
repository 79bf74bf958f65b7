"""Errors of the checker: trouble of ours, never a verdict."""

from data.errors import MisuseError, StpError


class CheckerError(StpError):
    """The checker itself could not work: a worker process does not start, a cache is unreadable."""


class BadReferenceError(MisuseError):
    """A question's reference cannot be used to judge an answer (no tests, no such letter)."""


class SandboxMissingError(MisuseError):
    """A program has to be run, there is no sandbox, and nobody said to run it without one."""
