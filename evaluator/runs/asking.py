"""Asking what has no response yet: each is kept as it comes, each failure is told."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from data.errors import EngineError
from data.progress import NOBODY, Progress
from stp.asking import (
    ModelSpec,
    OnResponse,
    Request,
    RequestGroup,
    Responder,
    ResponseStore,
    Settings,
    open_responder,
)
from stp.asking.base import Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Responses that a store lacks, and how they are asked for.

    Attributes
    ----------
    store
        Gets every response, failed ones included, as soon as it is there.
    requests
        From :meth:`ResponseStore.missing`.
    settings
        How they are answered.
    total
        How many responses there will be, those that are stored included.
    progress
        Told how many are there, and the total; nothing if none is missing.
    kept
        Given every response once it is stored.
    """

    store: ResponseStore
    requests: Sequence[Request]
    settings: Settings
    total: int
    progress: Progress = NOBODY
    kept: OnResponse | None = None


def ask_missing(responder: Responder, *parts: Missing) -> list[list[str]]:
    """Ask for what is missing, all parts in one stream; return why some responses did not come.

    Parameters
    ----------
    responder
        Who answers; asked only if something is missing.
    *parts
        What to ask. Their progress is told one after the other, each part's from when those
        before it have all their responses.

    Returns
    -------
    list of list of str
        For each part ``"ID: REASON"`` of each request that failed.

    Raises
    ------
    data.errors.EngineError
        If the model fails on many requests in a row; what was answered is kept.
    """
    asked = [_Asked(part) for part in parts]
    waiting = deque(part for part in asked if part.left)
    if not waiting:
        return [part.errors for part in asked]

    def taking(part: _Asked) -> OnResponse:
        def take(response: Response) -> None:
            part.take(response)
            if part is not waiting[0]:
                return
            part.tell()
            while not waiting[0].left and len(waiting) > 1:
                waiting.popleft()
                waiting[0].tell()

        return take

    waiting[0].tell()
    with contextlib.ExitStack() as stack:
        for part in waiting:
            stack.enter_context(part.missing.store)
        responder.respond(
            *(
                RequestGroup(
                    requests=part.missing.requests,
                    settings=part.missing.settings,
                    on_response=taking(part),
                )
                for part in waiting
            )
        )
    return [part.errors for part in asked]


class _Asked:
    """How far a part is."""

    def __init__(self, missing: Missing) -> None:
        self.missing = missing
        self.left = len(missing.requests)
        self.errors: list[str] = []

    def take(self, response: Response) -> None:
        """Keep a response."""
        self.missing.store.append(response)
        self.left -= 1
        if response.error is not None:
            self.errors.append(f"{response.id}: {response.error}")
        if self.missing.kept is not None:
            self.missing.kept(response)

    def tell(self) -> None:
        """Say how many responses are there."""
        total = self.missing.total
        self.missing.progress(total - self.left - len(self.errors), total)


def check_answered(errors: Sequence[str], asked: int, who: str) -> None:
    """Refuse to continue without replies that are needed.

    Raises
    ------
    data.errors.EngineError
        If there are errors: our own failure, never a reply.
    """
    if errors:
        raise EngineError(
            f"{who} failed on {len(errors):,} of {asked:,} requests, the first {errors[0]}; run "
            "again, what was answered is kept"
        )


@contextlib.contextmanager
def opened_once() -> Iterator[Callable[[ModelSpec | Responder | str], Responder]]:
    """Yield what opens models, each of them once, and close them all at the end.

    Whoever is open already is given back as it is, and stays open.
    """
    opened: dict[str, Responder] = {}
    with contextlib.ExitStack() as stack:

        def opening(model: ModelSpec | Responder | str) -> Responder:
            if isinstance(model, Responder):
                return model
            key = repr(model)
            if key not in opened:
                opened[key] = stack.enter_context(open_responder(model))
            return opened[key]

        yield opening
