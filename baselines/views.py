"""What a method is shown of a question that it decides on, handed out step by step.

A prefix's arrays hold rows 0..k and nothing else: they lie in buffers that grow as the thinking
does, so that not even the memory behind them holds a later row, the number of rows to come, or a
verdict. Methods of other people also run in a process of their own that never holds more
(:mod:`baselines.apart`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from data.errors import MisuseError
from stp.ragged import Array, IntArray

_FIRST_ROOM = 8


class QuestionView:
    """What is known of a question before any thinking.

    Attributes
    ----------
    benchmark
        Its benchmark's name.
    lot
        A pseudo-random number in [0, 1), a hash of the question's id: always the same for a
        question. A method that flips coins must use it. With the benchmark at hand, the question
        can be told from it.
    """

    __slots__ = ("_signals", "benchmark", "lot")

    def __init__(self, *, benchmark: str, lot: float, signals: Mapping[str, Array]) -> None:
        self.benchmark = benchmark
        self.lot = lot
        self._signals = {name: _alone(value) for name, value in signals.items()}

    def __getitem__(self, name: str) -> Any:
        """Return a question signal that the method has declared."""
        return _get(self._signals, name)


class Prefix:
    """A trajectory's first k steps, as a method may see them.

    Attributes
    ----------
    k
        The position: how many steps are kept.
    tokens
        L(0..k); int64 ``(k + 1,)``.
    question
        What was known before.
    """

    __slots__ = ("_signals", "k", "question", "tokens")

    def __init__(
        self, *, k: int, tokens: IntArray, question: QuestionView, signals: Mapping[str, Array]
    ) -> None:
        self.k = k
        self.tokens = tokens
        self.question = question
        self._signals = signals

    def __getitem__(self, name: str) -> Any:
        """Return a declared position signal at positions 0..k, k last; ``(k + 1, ...)``."""
        return _get(self._signals, name)


def _get(signals: Mapping[str, Array], name: str) -> Array:
    try:
        return signals[name]
    except KeyError:
        raise MisuseError(
            f"signal {name!r} is not among the method's needs; add it there (it sees "
            f"{', '.join(sorted(signals)) or 'none'} here)"
        ) from None


class _Tape:
    """Rows revealed one by one; the free room after them never holds a later row."""

    __slots__ = ("_rows", "_used")

    def __init__(self, row: Array) -> None:
        self._rows: Array = np.zeros((_FIRST_ROOM, *row.shape), row.dtype)
        self._used = 0

    def reveal(self, row: Array) -> Array:
        if self._used == self._rows.shape[0]:
            wider = np.zeros((2 * self._used, *self._rows.shape[1:]), self._rows.dtype)
            wider[: self._used] = self._rows
            self._rows = wider
        self._rows[self._used] = row
        self._used += 1
        shown = self._rows[: self._used]
        shown.flags.writeable = False
        return shown


class Unfolding:
    """One trajectory as a method sees it: rows go in one by one, prefixes come out.

    Parameters
    ----------
    question
        What was known before.
    """

    __slots__ = ("_question", "_tapes")

    def __init__(self, question: QuestionView) -> None:
        self._question = question
        self._tapes: dict[str, _Tape] = {}

    def reveal(self, tokens: int, signals: Mapping[str, Any]) -> Prefix:
        """Add the next position and return the prefix up to it.

        Parameters
        ----------
        tokens
            L(k).
        signals
            By name, the position's row of each.
        """
        shown = {}
        for name, value in {"": np.int64(tokens), **signals}.items():
            row = np.asarray(value)
            if name not in self._tapes:
                self._tapes[name] = _Tape(row)
            shown[name] = self._tapes[name].reveal(row)
        kept = shown.pop("")
        return Prefix(k=kept.size - 1, tokens=kept, question=self._question, signals=shown)


def _alone(value: npt.ArrayLike) -> Array:
    """Return a copy that shares no memory with anything else, and cannot be written to."""
    copy = np.array(value)
    copy.flags.writeable = False
    return copy
