"""Which responses of a run may mislead: cut, without an answer, thinking unasked.

The same for every benchmark that is asked in responses; campaigns have their own kinds
(:mod:`stp.campaign.shares`).
"""

from collections.abc import Iterable
from typing import Final

from stp.campaign.shares import Kind, Share

CUT: Final = Kind(
    name="cut",
    of="responses",
    noun="responses",
    words="were cut at their token limit, and what they had not said yet counts as wrong",
    advice="raise --max-tokens",
)
UNREAD: Final = Kind(
    name="unread",
    of="responses",
    noun="responses",
    words="hold nothing that can be read as an answer",
    advice="read some; they may be cut, or give their answer in another form than was asked for",
    noticed_from=0.05,
)
RAN_ON: Final = Kind(
    name="ran_on",
    of="responses",
    noun="responses",
    words="go on into the next turn or into new thinking, and that text is judged with them",
    advice="name the model's end of turn as answer_stops in a family TOML file",
)
THINKS_ANYWAY: Final = Kind(
    name="thinks_anyway",
    of="responses",
    noun="responses without thinking",
    words="think although their thinking is off",
    advice="the model or server does not turn thinking off; give it a switch, or leave the method "
    "out",
)
TROUBLED: Final = Kind(
    name="troubled",
    of="responses",
    noun="verdicts",
    words="were decided by trouble of the checker, not by the answer",
    advice="grade again where there is time, memory and a sandbox",
)


def cautions(name: str, shares: Iterable[Share]) -> list[str]:
    """Return what must be said of a run before its figures: every share that is large enough."""
    return [
        f"{name}: {share.sentence()}: {share.kind.advice}." for share in shares if share.noticed
    ]
