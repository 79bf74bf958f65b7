"""An event loop in a thread of its own: it runs on whatever its owner does meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class OwnLoop:
    """Runs coroutines and callbacks that other threads hand over.

    The thread ends with the process if nobody closes it.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event
        started = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._until_closed(started)), name="stp-engine", daemon=True
        )
        self._thread.start()
        started.wait()

    async def _until_closed(self, started: threading.Event) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._over.wait()

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what a coroutine returns, or raise what it raises."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            # Whoever waits may be interrupted; then nobody wants it any more.
            future.cancel()

    def soon(self, callback: Callable[[], None]) -> None:
        """Have the loop call something, and do not wait for it."""
        self._loop.call_soon_threadsafe(callback)

    def close(self) -> None:
        """Cancel what runs, and end the thread."""
        if self._thread.is_alive():
            self.soon(self._over.set)
            self._thread.join()
