"""Many trajectories under way over one engine.

Whoever is waiting for trees does not keep others from going on: each is asked for what it wants
next as soon as its own trees have ended.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from data.errors import StpError
from stp.campaign.asks import Ask, Asking
from stp.engines.base import EndedTree, Engine, Made, RequestError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Generic[Result]):
    """One that ended: with a result, or with why there is none."""

    key: Hashable
    result: Result | None = None
    error: StpError | None = None


@dataclass(slots=True, eq=False)
class _Member(Generic[Result]):
    """One under way: what it asks now, the trees in the engine, and what has come of them."""

    asking: Asking[Result]
    ask: Ask | None = None
    tickets: dict[int, int] = field(default_factory=dict)
    made: dict[int, Made] = field(default_factory=dict)


class Crew(Generic[Result]):
    """Runs what is added to it, all at once; used from one thread.

    Parameters
    ----------
    engine
        What works on the trees.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._members: dict[Hashable, _Member[Result]] = {}
        self._owner: dict[int, Hashable] = {}
        self._ended: list[Ended[Result]] = []

    def __len__(self) -> int:
        """Return how many are under way."""
        return len(self._members)

    def add(self, key: Hashable, asking: Asking[Result]) -> None:
        """Begin one."""
        self._members[key] = _Member(asking)
        self._go_on(key)

    def cancel(self, key: Hashable) -> None:
        """Forget one; the engine stops to work for it at once."""
        member = self._members.pop(key, None)
        if member is not None:
            self._engine.drop(list(member.tickets))
            for ticket in member.tickets:
                del self._owner[ticket]
            member.asking.close()

    def step(self) -> list[Ended[Result]]:
        """Let the engine work a little; return those that ended.

        Raises
        ------
        data.errors.EngineError
            If the model or its server failed: all that are under way are lost.
        """
        if self._engine.busy:
            for entry in self._engine.step().trees:
                self._take(entry)
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        """Forget all."""
        for key in list(self._members):
            self.cancel(key)

    def _take(self, entry: EndedTree) -> None:
        key = self._owner.pop(entry.ticket, None)
        if key is None:
            return
        member = self._members[key]
        index = member.tickets.pop(entry.ticket)
        if entry.error is not None:
            self._engine.drop(list(member.tickets))
            for ticket in member.tickets:
                del self._owner[ticket]
            member.tickets.clear()
            self._go_on(
                key, error=RequestError(str(entry.error), tree=index, branch=entry.error.branch)
            )
            return
        assert entry.made is not None
        member.made[index] = entry.made
        if not member.tickets:
            self._go_on(key)

    def _go_on(self, key: Hashable, error: StpError | None = None) -> None:
        """Send one what it asked for, and submit what it asks next."""
        member = self._members[key]
        try:
            while True:
                if error is not None:
                    member.ask = member.asking.throw(error)
                elif member.ask is None:
                    member.ask = next(member.asking)
                else:
                    made = [member.made[index] for index in range(len(member.ask.trees))]
                    member.ask = member.asking.send(made)
                error, member.made = None, {}
                try:
                    for index, tree in enumerate(member.ask.trees):
                        ticket = self._engine.submit(tree)
                        member.tickets[ticket] = index
                        self._owner[ticket] = key
                except StpError as refused:
                    self._engine.drop(list(member.tickets))
                    for ticket in member.tickets:
                        del self._owner[ticket]
                    member.tickets.clear()
                    error = refused
                    continue
                if member.ask.trees:
                    return
        except StopIteration as end:
            self._ended.append(Ended(key=key, result=end.value))
        except StpError as failed:
            self._ended.append(Ended(key=key, error=failed))
        del self._members[key]
