"""The signals that a method may ask for, and what each costs to have.

A signal is known at a position (it may be read there and later) or of a question (before any
thinking). Its cost is the extra work of the model for it, in tokens that it reads or
writes: nothing if thinking itself shows it, a token for a pass of its own, or a stored count.
The paper's cost leaves this out (paper 002, section 5.1); it is reported in a column beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from data.errors import MisuseError

FREE = "free"
PASS = "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One kind of signal.

    Attributes
    ----------
    name
        What methods call it.
    level
        ``"position"`` or ``"question"``.
    cost
        :data:`FREE`, :data:`PASS` (a token a position), or the signal that counts its tokens.
    meaning
        Shape of one entry, and what it is.
    """

    name: str
    level: Literal["position", "question"]
    cost: str
    meaning: str


SIGNALS: dict[str, Signal] = {
    signal.name: signal
    for signal in (
        Signal(
            name="end_logprob",
            level="position",
            cost=FREE,
            meaning="log-probability of the thinking-end right after the prefix",
        ),
        Signal(
            name="other_logprob",
            level="position",
            cost=FREE,
            meaning="log-probability of the best other token after the same prefix",
        ),
        Signal(
            name="end_exact",
            level="position",
            cost=FREE,
            meaning="whether end_logprob is exact; if not, it is an upper bound",
        ),
        Signal(
            name="entropy",
            level="position",
            cost=FREE,
            meaning="entropy of the next token after the prefix, in nats",
        ),
        Signal(
            name="end_entropy",
            level="position",
            cost=PASS,
            meaning="entropy of the next token after the thinking-end, in nats",
        ),
        Signal(
            name="answer_entropy",
            level="position",
            cost=PASS,
            meaning="entropy of the answer's first token, in nats",
        ),
        Signal(
            name="trial_logprob",
            level="position",
            cost="trial_tokens",
            meaning="mean log-probability of the tokens of a greedy trial answer",
        ),
        Signal(
            name="trial_probability",
            level="position",
            cost="trial_tokens",
            meaning="mean probability of the tokens of a greedy trial answer",
        ),
        Signal(
            name="trial_tokens",
            level="position",
            cost="trial_tokens",
            meaning="tokens of the trial answer",
        ),
        Signal(
            name="answer",
            level="position",
            cost="answer_tokens",
            meaning=(
                "number of the first probe's answer, in the order in which a trajectory gives "
                "them; equal answers have equal numbers, -1 is no answer"
            ),
        ),
        Signal(
            name="answer_hedged",
            level="position",
            cost="answer_tokens",
            meaning="whether the first probe's text carries a word of doubt",
        ),
        Signal(
            name="answer_tokens",
            level="position",
            cost="answer_tokens",
            meaning="tokens of the first probe's answer",
        ),
        Signal(
            name="hidden",
            level="position",
            cost=FREE,
            meaning="hidden states (layers, width) at the prefix's last token",
        ),
        Signal(
            name="prompt_hidden",
            level="question",
            cost=FREE,
            meaning="hidden states (layers, width) at the last prompt token",
        ),
        Signal(name="prompt_tokens", level="question", cost=FREE, meaning="tokens of the prompt"),
        Signal(
            name="short_answer_logprob",
            level="question",
            cost="short_answer_tokens",
            meaning="mean log-probability of the tokens of a greedy answer without thinking",
        ),
        Signal(
            name="short_answer_tokens",
            level="question",
            cost="short_answer_tokens",
            meaning="tokens of that answer",
        ),
    )
}


def check_needs(needs: Iterable[str], *, method: str) -> None:
    """Refuse names that are not signals.

    Raises
    ------
    data.errors.MisuseError
        Names the method, the name, and all signals that there are.
    """
    for name in needs:
        if name not in SIGNALS:
            raise MisuseError(
                f"{method}: needs {name!r}, which is not a signal; there are {', '.join(SIGNALS)}"
            )


def cost_sources(needs: Iterable[str], level: Literal["position", "question"]) -> tuple[str, ...]:
    """Return where the costs of the signals of a level come from, each counted once.

    Examples
    --------
    >>> cost_sources(("answer", "answer_hedged", "entropy"), "position")
    ('answer_tokens',)
    """
    sources = dict.fromkeys(SIGNALS[name].cost for name in needs if SIGNALS[name].level == level)
    return tuple(source for source in sources if source != FREE)


def with_costs(needs: Iterable[str]) -> tuple[str, ...]:
    """Return the signals needed and those that count their costs."""
    named = tuple(needs)
    counted = [SIGNALS[name].cost for name in named if SIGNALS[name].cost in SIGNALS]
    return tuple(dict.fromkeys((*named, *counted)))
