"""OTBench: real termination methods against the frontier of their strategy (paper 002, section 5).

The way through this package: ``gather`` and ``release`` (campaigns frozen into tables) → ``load``
(checked and read again) → ``run`` and ``decide`` (a method trained; its stopping positions, handed
out step by step) → ``points`` and ``summary`` (what they cost and reach, beside the frontier) →
``intervals`` (paired bootstrap) → ``leaderboard`` (rows) → ``page`` (the report). ``session`` goes
it whole.

>>> from evaluator.otbench import load_release, run_methods
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.otbench.leaderboard import read_rows
    from evaluator.otbench.load import Release, load_release
    from evaluator.otbench.release import write_release
    from evaluator.otbench.session import regenerate, run_methods

__all__ = ["Release", "load_release", "read_rows", "regenerate", "run_methods", "write_release"]

_HOMES = {
    "Release": "load",
    "load_release": "load",
    "read_rows": "leaderboard",
    "regenerate": "session",
    "run_methods": "session",
    "write_release": "release",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module on first use."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
