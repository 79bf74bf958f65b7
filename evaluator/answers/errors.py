"""Errors of the checker: our own failure, never a verdict."""

from data.errors import BadReferenceError, MisuseError, StpError

__all__ = ["BadReferenceError", "CheckerError", "SandboxMissingError"]


class CheckerError(StpError):
    """The checker itself could not work: a worker process does not start, a cache is unreadable."""


class SandboxMissingError(MisuseError):
    """A program has to be run, there is no sandbox, and nobody said to run it without one."""
