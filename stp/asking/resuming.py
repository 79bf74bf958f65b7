"""Asking for what a store lacks: every response is kept as it comes, every failure is told."""

from collections.abc import Callable, Sequence

from stp.asking.base import Request, Responder, Response, Settings
from stp.asking.store import ResponseStore


def ask_missing(
    responder: Responder,
    store: ResponseStore,
    missing: Sequence[Request],
    settings: Settings,
    *,
    total: int,
    progress: Callable[[int, int], None] | None = None,
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
        Told how many are there, and the total.

    Returns
    -------
    list of str
        ``"ID: REASON"`` for each request that failed.
    """
    if not missing:
        return []
    done = total - len(missing)
    errors: list[str] = []

    def tell() -> None:
        if progress is not None:
            progress(done, total)

    def take(response: Response) -> None:
        nonlocal done
        writing.append(response)
        if response.error is None:
            done += 1
        else:
            errors.append(f"{response.id}: {response.error}")
        tell()

    tell()
    with store as writing:
        responder.respond(missing, settings, take)
    return errors
