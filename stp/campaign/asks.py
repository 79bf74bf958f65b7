"""A job's questions to an engine: lists of trees, each asked when the answers before are there.

A job does not call an engine. It is a generator that yields what it asks next and is sent what
came of it, so that the owner of the engine can have many jobs under way at once
(:mod:`stp.campaign.stream`), or one alone.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from stp.engines.base import AnyTree, Engine, Made

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Ask:
    """Trees that a job wants worked on.

    Attributes
    ----------
    trees
        They may be worked on in any order and beside those of others.
    on_ended
        Called with the number of samples that ended since the last call, and their tokens.
    """

    trees: Sequence[AnyTree]
    on_ended: Callable[[int, int], None]


Asking: TypeAlias = Generator[Ask, "list[Made]", Result]
"""Asks until it has its result. A tree that failed is thrown in as a
:class:`stp.engines.base.RequestError`, whose ``tree`` is its index; what comes out says more
precisely where that was."""


def answered(asking: Asking[Result], engine: Engine) -> Result:
    """Return the result of a job that is alone with an engine; no progress is reported.

    Raises
    ------
    data.errors.EngineError
        If the engine fails.
    """
    try:
        ask = next(asking)
        while True:
            ask = asking.send(engine.run(ask.trees))
    except StopIteration as end:
        result: Result = end.value
        return result
