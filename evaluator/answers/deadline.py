"""A limit by the clock for a process of its own that a busy machine does not make shorter.

Limits of CPU time are kept by the kernel; this is the bound behind them, for what sleeps or hangs.
"""

import contextlib
import os
import time
from collections import defaultdict
from pathlib import Path

MOST_LIMITS = 11
_OWN_CHILDREN = Path("/proc/thread-self/children")


class Deadline:
    """A wall-clock limit of a process, with all processes below it, from now on.

    Time in which one of them could run and had to wait for a processor, which the kernel counts,
    does not count: so the limit is the same on a busy machine. In all it takes at most
    `MOST_LIMITS` times as long.

    Parameters
    ----------
    process_id
        Of the process.
    seconds
        The limit.
    """

    def __init__(self, process_id: int, seconds: float) -> None:
        self._process_id = process_id
        self._begun = time.monotonic()
        self._seconds = seconds
        self._waited = _waited_seconds(process_id)
        self._deadline = self._begun + seconds

    def remaining(self) -> float:
        """Return the seconds after which to ask whether it is over."""
        return max(0.0, self._deadline - time.monotonic())

    def is_over(self) -> bool:
        """Return whether the time is over; what was spent waiting for a processor is given back."""
        if time.monotonic() < self._deadline:
            return False
        waited = max(0.0, _waited_seconds(self._process_id) - self._waited)
        granted = min(self._seconds + waited, MOST_LIMITS * self._seconds)
        self._deadline = self._begun + granted
        return time.monotonic() >= self._deadline


def _waited_seconds(ancestor: int) -> float:
    """Longest that a thread of a process or its descendants has waited for a processor so far.

    0 where the kernel does not count it.
    """
    waited, family = 0, [ancestor]
    # Only kernels with CONFIG_PROC_CHILDREN list them.
    below = None if _OWN_CHILDREN.exists() else _children_by_parent()
    while family:
        process_id = family.pop()
        tasks = Path(f"/proc/{process_id}/task")
        if below is not None:
            family += below[process_id]
        with contextlib.suppress(OSError, IndexError):  # it may end meanwhile
            for thread in os.listdir(tasks):  # noqa: PTH208 (names alone)
                waited = max(waited, int((tasks / thread / "schedstat").read_text().split()[1]))
                if below is None:
                    family += map(int, (tasks / thread / "children").read_text().split())
    return waited / 1e9


def _children_by_parent() -> defaultdict[int, list[int]]:
    """Return the ids of all processes by that of their parent."""
    found = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):  # it may end meanwhile
            # The name before it may hold anything, brackets and spaces too.
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
            found[int(parent)].append(int(stat.parent.name))
    return found
