"""An engine without a model: samples have known lengths, and time is counted, not spent.

It batches continuously, as the real ones do: a row that ends is taken by the next sample at once.
How long a step takes depends on the rows in it. So a campaign can be run through the driver that
will run it, to see what it will take (:mod:`stp.campaign.simulation`).
"""

import bisect
import functools
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from data.errors import MisuseError
from stp.engines.base import AnyTree, Completion, Engine, PromptTree
from stp.engines.requests import RequestQueue, SampleRequest


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast an engine is.

    Attributes
    ----------
    rows
        Batch sizes at which it was measured, rising.
    step_seconds
        What a step took at each. Between them it is interpolated; beyond the last, a step grows as
        the rows do.
    prefill_seconds
        For a prompt token.
    """

    rows: tuple[int, ...]
    step_seconds: tuple[float, ...]
    prefill_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not self.rows or len(self.rows) != len(self.step_seconds):
            raise MisuseError("a pace needs a step's seconds at one batch size or more")
        if list(self.rows) != sorted(set(self.rows)) or self.rows[0] < 1:
            raise MisuseError(f"the batch sizes of a pace must rise from 1: {self.rows}")

    def step(self, rows: int) -> float:
        """Return the seconds of a step with a number of rows.

        Examples
        --------
        >>> pace = Pace((1, 3), (1.0, 2.0))
        >>> pace.step(1), pace.step(2), pace.step(6)
        (1.0, 1.5, 4.0)
        """
        place = bisect.bisect_left(self.rows, rows)
        if place == len(self.rows):
            return self.step_seconds[-1] * rows / self.rows[-1]
        if place == 0 or self.rows[place] == rows:
            return self.step_seconds[place]
        low, high = self.rows[place - 1], self.rows[place]
        share = (rows - low) / (high - low)
        return (1 - share) * self.step_seconds[place - 1] + share * self.step_seconds[place]

    def times(self, factor: float) -> "Pace":
        """Return a pace that takes ``factor`` times as long."""
        steps = tuple(factor * seconds for seconds in self.step_seconds)
        return Pace(self.rows, steps, factor * self.prefill_seconds)


STEPS: Final = Pace((1, 1 << 20), (1.0, 1.0))
"""A second for each step, whatever is in it."""


class ClockEngine(Engine):
    """Counts the steps that samples of known lengths take.

    Parameters
    ----------
    rows
        Samples that run at once.
    length_of
        Tells how many tokens a sample has, given its seed.
    pace
        How long steps and prefill take.
    repeats_exactly
        Whether to be treated as an engine that repeats exactly: one unit at a time.

    Attributes
    ----------
    steps, row_steps
        Steps so far, and rows in use summed over them.
    prefilled
        Prompt tokens that were prefilled.
    seconds
        The clock. Whoever has several engines may set it forward.
    """

    def __init__(
        self,
        *,
        rows: int,
        length_of: Callable[[int], int],
        pace: Pace = STEPS,
        repeats_exactly: bool = False,
    ) -> None:
        super().__init__()
        if rows < 1:
            raise MisuseError(f"rows is {rows}, but must be at least 1")
        self._rows = rows
        self._length_of = length_of
        self._pace = pace
        self._repeats_exactly = repeats_exactly
        self._queue = RequestQueue()
        self._running: list[tuple[int, int, SampleRequest]] = []
        self._begun = 0
        self.steps = self.row_steps = self.prefilled = 0
        self.seconds = 0.0

    @property
    def context_limit(self) -> int:
        """No sample is too long."""
        return 1 << 40

    @property
    def rows(self) -> int:
        """Samples that run at once."""
        return self._rows

    @property
    def repeats_exactly(self) -> bool:
        """As it was asked for."""
        return self._repeats_exactly

    @property
    def _waiting(self) -> int:
        return len(self._queue)

    def _take(self, ticket: int, tree: AnyTree) -> None:
        assert isinstance(tree, PromptTree)
        self._queue.add(ticket, tree)

    def _work(self) -> None:
        """Continue to the next step in which a sample ends."""
        while len(self._running) < self._rows and self._queue.first is not None:
            request, _ = self._queue.pop()
            fresh = max(0, len(request.prompt_ids) - request.shared_tokens)
            self.prefilled += fresh
            self.seconds += self._pace.prefill_seconds * fresh
            end = self.steps + max(1, self._length_of(request.seed))
            heapq.heappush(self._running, (end, self._begun, request))
            self._begun += 1
        self.pulse += 1
        rows, steps = len(self._running), self._running[0][0] - self.steps
        self.row_steps += rows * steps
        self.seconds += steps * self._pace.step(rows)
        self.steps += steps
        while self._running and self._running[0][0] <= self.steps:
            _, _, request = heapq.heappop(self._running)
            tokens = max(1, self._length_of(request.seed))
            self._count(request.tree, generated=tokens)
            made = _made(tokens)
            self._sample_ended(request.tree, request.branch, request.sample, made)

    def _forget(self, tickets: frozenset[int]) -> None:
        self._queue.drop(tickets)
        self._running = [entry for entry in self._running if entry[2].tree not in tickets]
        heapq.heapify(self._running)

    def describe(self) -> dict[str, str | int | float | None]:
        """Return what it is."""
        return {"engine": "clock", "rows": self._rows}


@functools.lru_cache(maxsize=1 << 16)
def _made(tokens: int) -> Completion:
    """Return a sample of a number of tokens; samples of one length share them."""
    return Completion(token_ids=(0,) * tokens, finish="stop")
