"""Asking what has no response yet: each is kept as it comes, each failure is told."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from data.errors import EngineError
from data.progress import NOBODY, Progress
from stp.asking import (
    ModelSpec,
    OnResponse,
    Request,
    Responder,
    ResponseStore,
    Settings,
    open_responder,
)
from stp.asking.base import Response


def ask_missing(
    responder: Responder,
    store: ResponseStore,
    missing: Sequence[Request],
    settings: Settings,
    *,
    total: int,
    progress: Progress = NOBODY,
    kept: OnResponse | None = None,
) -> list[str]:
    """Ask for responses that are missing from a store; return why some did not come.

    Parameters
    ----------
    responder
        Who answers.
    store
        Gets every response, failed ones included, as soon as it is there.
    missing
        From :meth:`ResponseStore.missing`; with none of them nothing happens.
    settings
        How they are answered.
    total
        How many responses there will be, those that are stored included.
    progress
        Told how many are there, and the total; never fewer than before.
    kept
        Given every response once it is stored.

    Returns
    -------
    list of str
        ``"ID: REASON"`` for each request that failed.

    Raises
    ------
    data.errors.EngineError
        If the model fails on many requests in a row; what was answered is kept.
    """
    if not missing:
        return []
    done = shown = total - len(missing)
    ended = 0
    errors: list[str] = []

    def tell() -> None:
        nonlocal shown
        # A request that takes several passes of the model ends several times.
        shown = max(shown, min(done + ended, total))
        progress(shown, total)

    def take(response: Response) -> None:
        nonlocal done, ended
        writing.append(response)
        ended = max(0, ended - 1)
        if response.error is None:
            done += 1
        else:
            errors.append(f"{response.id}: {response.error}")
        if kept is not None:
            kept(response)
        tell()

    def count(samples: int) -> None:
        nonlocal ended
        ended += samples
        tell()

    tell()
    responder.on_ended = count
    try:
        with store as writing:
            responder.respond(missing, settings, take)
    finally:
        responder.on_ended = None
    return errors


def check_answered(errors: Sequence[str], asked: int, who: str) -> None:
    """Refuse to go on without replies that are needed.

    Raises
    ------
    data.errors.EngineError
        If there are errors: trouble of ours, never a reply.
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
