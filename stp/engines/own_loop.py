"""An event loop of one's own, wherever one is called from.

A notebook runs an event loop in the thread in which its cells run, and no second loop can run
there. Then the loop's work is done in a thread beside it, and waited for.
"""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class OwnLoop:
    """Runs coroutines one after the other in one event loop that stays open between them."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._thread: ThreadPoolExecutor | None = None

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what a coroutine returns, or raise what it raises."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(work)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="stp-engine")
        return self._thread.submit(self._runner.run, work).result()

    def close(self) -> None:
        """End the loop and its thread."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._runner.close()
        else:
            with ThreadPoolExecutor(1) as beside:
                beside.submit(self._runner.close).result()
        if self._thread is not None:
            self._thread.shutdown()
