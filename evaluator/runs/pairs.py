"""Two models on the same questions: responses side by side, by the ratio of their tokens.

The same for every benchmark that is asked in responses (paper 000, Tables 3 and 8, Figure 3).
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Counted(Protocol):
    """A response with its tokens; None if nobody counted them."""

    @property
    def tokens(self) -> int | None:
        """Tokens of the whole response."""


Row = TypeVar("Row", bound=Counted)
"""Graded rows of LLMThinkBench, or a run's rows of the explorer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair(Generic[Row]):
    """Two responses to one question.

    Attributes
    ----------
    key
        Names the question and the sample.
    first, second
        The two responses.
    ratio
        Tokens of the second over those of the first; None if one is unknown or the first is
        empty.
    """

    key: str
    first: Row
    second: Row
    ratio: float | None


def pair_responses(first: Mapping[str, Row], second: Mapping[str, Row]) -> list[Pair[Row]]:
    """Pair the responses of two runs, or of two methods of one run.

    Parameters
    ----------
    first, second
        Graded responses by question and sample. Keys that one of them lacks are left out.

    Returns
    -------
    list of Pair
        By falling ratio; pairs without one last, in the order of ``first``.
    """
    pairs = [
        Pair(key=key, first=row, second=second[key], ratio=_ratio(row, second[key]))
        for key, row in first.items()
        if key in second
    ]
    return sorted(pairs, key=lambda pair: (pair.ratio is None, -(pair.ratio or 0.0)))


def _ratio(first: Counted, second: Counted) -> float | None:
    if not first.tokens or second.tokens is None:
        return None
    return second.tokens / first.tokens


def median_ratio(pairs: Sequence[Pair[Row]]) -> float | None:
    """Return the median of the ratios that there are; None without one."""
    known = [pair.ratio for pair in pairs if pair.ratio is not None]
    return statistics.median(known) if known else None
