"""What a report is made from: curves, and the texts of the trajectories that it shows.

No store and no engine is known here, so a page can be made (and tested) from plain values.
"""

from dataclasses import dataclass

from stp.curves import Curves


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCount:
    """An answer that probes gave at one position.

    Attributes
    ----------
    answer
        What was extracted, or None where nothing could be.
    right
        The verdict.
    count
        Probes that gave it.
    reply
        The full reply of the first of them.
    """

    answer: str | None
    right: bool
    count: int
    reply: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryText:
    """The readable side of one trajectory.

    Attributes
    ----------
    trajectory
        Its index in the curves.
    steps
        The text of each step, n of them; step i lies between positions i and i + 1.
    answers
        For every position k = 0..n, the answers given there, most frequent first.
    final_reply
        The model's own final answer, as it was written after full thinking.
    final_answer
        What was extracted from it, or None.
    thinking_finish
        Why thinking stopped: ``"end"``, ``"limit"`` or ``"stop"``.
    """

    trajectory: int
    steps: tuple[str, ...]
    answers: tuple[tuple[AnswerCount, ...], ...]
    final_reply: str = ""
    final_answer: str | None = None
    thinking_finish: str = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionText:
    """A question as the page shows it.

    Attributes
    ----------
    question
        Its index in the curves.
    id, prompt, reference
        As in :class:`data.Question`.
    """

    question: int
    id: str
    prompt: str
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportData:
    """Everything that a report shows.

    Attributes
    ----------
    name
        The campaign's name, the page's title.
    curves
        All measured curves.
    questions, trajectories
        Texts of the selected questions and trajectories.
    selection_note
        How these were selected, in a sentence.
    warnings
        What a reader must know before believing a number: what is missing.
    step_tokens
        b, the target length of a step, or None where it is not known.
    settings, provenance
        What was asked and what it ran on, as (name, value) pairs in reading order.
    """

    name: str
    curves: Curves
    questions: tuple[QuestionText, ...] = ()
    trajectories: tuple[TrajectoryText, ...] = ()
    selection_note: str = ""
    warnings: tuple[str, ...] = ()
    step_tokens: int | None = None
    settings: tuple[tuple[str, str], ...] = ()
    provenance: tuple[tuple[str, str], ...] = ()
