"""What a checker says about one answer."""

from dataclasses import dataclass

CHECKER_VERSION = "2.1"
"""Stored with every verdict. It changes whenever some answer may be judged differently."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one response answers its question.

    Attributes
    ----------
    right
        The verdict.
    answer
        What was extracted from the response, or None if nothing was marked as an answer. For code
        it is the program.
    reason
        One line that starts with ``"right: "`` or ``"wrong: "`` and says why.
    """

    right: bool
    answer: str | None
    reason: str


NO_ANSWER = Verdict(right=False, answer=None, reason="wrong: no answer found")
TIME_LIMIT = "time limit"
"""How the reason ends of each verdict that a time limit decided."""
TIME_LIMIT_REASON = f"wrong: {TIME_LIMIT}"
"""The answer made the symbolic worker, or the program its tests, run out of its limit."""
RULE_FAILED = "a rule failed on it"
"""What is in the reason where a rule raised: our own failure, never a finding."""
TROUBLES = (TIME_LIMIT, RULE_FAILED)
"""What reasons say of verdicts that something else than the answer decided.

A worker that dies counts as :data:`TIME_LIMIT`: it ran out of its time or memory on this pair. A
sandbox or a worker that does not start gives no verdict: it is a
:class:`evaluator.answers.errors.CheckerError`, and the run stops.
"""
FALLBACK = " (fallback, the only value of the last sentence)"
"""How the reason ends where nothing in the response marked the answer.

No colon: what troubled a verdict is looked for after the last one.
"""
