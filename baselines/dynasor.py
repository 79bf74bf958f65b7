"""Dynasor's certainty (Fu et al., 2024, arXiv 2412.20993): stop when probes agree without doubt.

Every c tokens the thinking is closed and one answer is taken; the thinking stops when the last m
probes have an answer, the answers are mathematically equal, and none carries a word of doubt. The
published pairs (m, c) are the first five of the grid; the others carry the curve to both ends.

Departures. Probes are taken at STP's positions (k = 1 on) that lie at least c tokens after the one
before, so with steps longer than c at every position; the probe is the first of STP's, with as many
tokens as the campaign gave it. It is one of those that accuracy is counted over.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from baselines.interface import EarlyExit, Setting
from baselines.views import Prefix

DOUBTS = ("wait", "hold", "but", "okay", "no", "hmm")
"""Words of doubt, as whole words in any case."""


@dataclass(frozen=True, slots=True)
class _Probes:
    """Positions 1..k."""

    tokens: npt.NDArray[np.int64]
    answers: npt.NDArray[Any]
    hedged: npt.NDArray[Any]


class Dynasor(EarlyExit):
    """Stop when the last m probes, at least c tokens apart, agree without doubt."""

    name = "dynasor"
    needs = ("answer", "answer_hedged")
    control = "(m probes, every c tokens)"
    grid = (
        *((8, 64), (5, 64), (3, 64), (2, 64), (2, 32), (12, 64), (3, 32), (5, 32), (8, 32)),
        *((2, 16), (3, 16), (2, 128), (3, 128), (5, 128), (1, 16), (1, 64)),
    )
    citation = "Fu et al., 2024, arXiv 2412.20993"

    def score(self, prefix: Prefix) -> _Probes:
        """Return all positions from k = 1 on; which are probed depends on c."""
        return _Probes(prefix.tokens[1:], prefix["answer"][1:], prefix["answer_hedged"][1:])

    def stops(self, score: _Probes, setting: Setting) -> bool:
        """Return whether this position is probed and the last m probes are certain."""
        wanted, apart = setting
        probed = _probed(score.tokens, apart)
        if not probed or probed[-1] != score.tokens.size - 1 or len(probed) < wanted:
            return False
        last = probed[-wanted:]
        answers = score.answers[last]
        same = answers[0] >= 0 and bool((answers == answers[0]).all())
        return same and not bool(score.hedged[last].any())

    def pays(self, score: _Probes, setting: Setting) -> bool:
        """Return whether this position is probed."""
        probed = _probed(score.tokens, setting[1])
        return bool(probed) and probed[-1] == score.tokens.size - 1


def _probed(tokens: npt.NDArray[np.int64], apart: int) -> list[int]:
    """Return the positions, as places in ``tokens``, at least so many tokens apart."""
    places, last = [], 0
    for place, at in enumerate(tokens.tolist()):
        if at - last >= apart:
            places.append(place)
            last = at
    return places
