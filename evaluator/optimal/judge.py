"""A model as a judge of whether an answer says the same as the reference.

Sees questions, references and answers as text. A verdict is the last "Verdict: yes" or
"Verdict: no" of the judge's reply; a reply without one is asked for again, and if none ever comes
the answer stays *undecided*: it is never silently counted as wrong. How replies are
kept is in :mod:`evaluator.runs.judge`.
"""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

from data.optimal import prompt_text
from data.progress import NOBODY, Progress
from data.question import Question
from evaluator.answers import CheckerError, Verdict
from evaluator.runs.judge import Absent, KeptJudge
from stp.asking import Responder, ResponseStore, Settings

SETTINGS = Settings(max_tokens=1024, temperature=0.6, thinking="default")
ATTEMPTS = 4
REPLIES_FILE = "judge-replies.jsonl"
MAX_ANSWER_CHARACTERS = 4000

_VERDICT = re.compile(
    r"\bverdict\b[\s*_`\"':=\-{]*(?:\\boxed\{)?[\s*_`\"'{]*(yes|no)\b(?!\"?\s*(?:/|\||or\b|and\b))",
    re.IGNORECASE,
)
_ALONE = re.compile(r"[\s*_`\"'({\[]*(?:\\boxed\{)?(yes|no)[\s*_`\"')}\].!]*", re.I)


def read_verdict(reply: str) -> bool | None:
    """Read a judge's verdict: the last one that it states; None if it states none.

    "yes" and "no" are words: "now", "not" and "yesterday" are neither. Without a labelled verdict,
    a reply that is one of the two words and nothing else counts, and so does such a last line.

    Examples
    --------
    >>> read_verdict("Verdict: no ... on second thought, they agree. Verdict: YES.")
    True
    >>> read_verdict("I know that it is not.") is None
    True
    """
    found = _VERDICT.findall(reply)
    if found:
        return bool(found[-1].lower() == "yes")
    lines = [line for line in reply.strip().splitlines() if line.strip()]
    alone = _ALONE.fullmatch(lines[-1]) if lines else None
    return None if alone is None else alone.group(1).lower() == "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is to be judged.

    Attributes
    ----------
    question
        As it was asked, options included.
    reference
        The right answer as text.
    answer
        What is compared with it.
    """

    question: str
    reference: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a judge said of a case.

    Attributes
    ----------
    votes
        One for each repetition: True for yes, False for no, None if no verdict could be read.
    """

    votes: tuple[bool | None, ...]

    @property
    def right(self) -> bool | None:
        """What most votes say; None on a tie or without a vote."""
        yes, no = self.votes.count(True), self.votes.count(False)
        return None if yes == no else yes > no

    @property
    def unanimous(self) -> bool:
        """Whether every repetition gave the same verdict."""
        return None not in self.votes and len(set(self.votes)) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedWith:
    """What a judge's kept replies depend on: with it they are found again without the judge.

    Attributes
    ----------
    identity
        What it said of itself, and how it answered.
    prompt
        What it was asked with.
    repeats, attempts
        Votes for each case, and how often each was asked for.
    """

    identity: tuple[str, str]
    prompt: str
    repeats: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How much repeated judgements of the same cases agree.

    Attributes
    ----------
    cases
        Cases judged by the model at least twice.
    unanimous
        Of these, with one verdict throughout.
    pairs, agreeing_pairs
        Pairs of readable votes on one case, and those that agree.
    undecided
        Cases without a verdict in the end, single judgements included.
    """

    cases: int
    unanimous: int
    pairs: int
    agreeing_pairs: int
    undecided: int


def agreement(judgements: Sequence[Judgement]) -> Agreement:
    """Count how repeated judgements agree."""
    repeated = [j for j in judgements if len(j.votes) > 1]
    pairs = agreeing = 0
    for judgement in repeated:
        yes, no = judgement.votes.count(True), judgement.votes.count(False)
        pairs += (yes + no) * (yes + no - 1) // 2
        agreeing += yes * (yes - 1) // 2 + no * (no - 1) // 2
    return Agreement(
        cases=len(repeated),
        unanimous=sum(judgement.unanimous for judgement in repeated),
        pairs=pairs,
        agreeing_pairs=agreeing,
        undecided=sum(judgement.right is None for judgement in judgements),
    )


class ModelJudge:
    """Judges whether answers say the same as their references, and remembers what the model said.

    Parameters
    ----------
    responder
        The model.
    store
        File of replies; it may be shared by runs.
    repeats
        Votes for each case.
    attempts
        How often a reply is asked for until it holds a verdict.
    settings
        How the judge answers.
    prompt
        The prompt's text, with ``$question``, ``$reference`` and ``$answer``; by default
        ``data/optimal/prompts/judge.txt``.
    identity
        Of a judge that is not here; see :class:`evaluator.runs.judge.KeptJudge`.
    """

    def __init__(
        self,
        responder: Responder,
        store: Path,
        *,
        repeats: int = 1,
        attempts: int = ATTEMPTS,
        settings: Settings = SETTINGS,
        prompt: str | None = None,
        identity: tuple[str, str] | None = None,
    ) -> None:
        self._kept = KeptJudge(
            responder,
            settings,
            read_verdict,
            repeats=repeats,
            attempts=attempts,
            identity=identity,
        )
        self._store = ResponseStore(store)
        self._recalled = False
        self._repeats, self._attempts = repeats, attempts
        # One reply after the other: a checker asks from several threads.
        self._lock = threading.Lock()
        self._prompt = Template(prompt_text("judge") if prompt is None else prompt)

    @property
    def judged_with(self) -> JudgedWith:
        """What its replies depend on."""
        return JudgedWith(
            identity=self._kept.identity,
            prompt=self._prompt.template,
            repeats=self._repeats,
            attempts=self._attempts,
        )

    def key(self, case: Case) -> str:
        """Return the hash under which a case's replies are stored."""
        return self._kept.key(self._prompt.template, case.question, case.reference, case.answer)

    def judge(self, cases: Sequence[Case], progress: Progress = NOBODY) -> list[Judgement]:
        """Judge cases, each distinct one once.

        Parameters
        ----------
        cases
            What is to be judged.
        progress
            Told how many of the distinct votes are there, and of how many.

        Returns
        -------
        list of Judgement
            One for each case, in their order.

        Raises
        ------
        data.errors.EngineError
            If the judge did not answer: our own failure, never a verdict.
        """
        if not self._recalled:
            # Read once: a checker asks for one answer at a time.
            self._kept.recall(self._store)
            self._recalled = True
        prompts = {self.key(case): self._text(case) for case in cases}
        votes = self._kept.judge(prompts, self._store, progress)
        return [Judgement(votes=votes[self.key(case)]) for case in cases]

    def verdict(self, question: Question, answer: str) -> Verdict:
        """Judge one answer; for :class:`evaluator.answers.Checker`.

        Raises
        ------
        evaluator.answers.CheckerError
            If the judge gives no verdict that can be read.
        """
        case = Case(question=question.prompt, reference=question.reference, answer=answer)
        with self._lock:
            (judgement,) = self.judge([case])
        if judgement.right is None:
            raise CheckerError(
                f"question {question.id}: the judge gave no verdict that can be read in "
                f"{self._attempts} attempts; use a judge that follows its instructions"
            )
        return Verdict(judgement.right, answer, reason_of(judgement.right))

    def _text(self, case: Case) -> str:
        answer = case.answer
        if len(answer) > MAX_ANSWER_CHARACTERS:
            answer = "... " + answer[-MAX_ANSWER_CHARACTERS:]
        return self._prompt.substitute(
            question=case.question, reference=case.reference, answer=answer
        )


def open_judge(
    responder: Responder,
    folder: Path,
    *,
    repeats: int = 1,
    max_tokens: int | None = None,
    prompt: str | None = None,
) -> ModelJudge:
    """Return a judge whose replies are kept in a run's folder; ``prompt`` as in its class."""
    settings = SETTINGS if max_tokens is None else replace(SETTINGS, max_tokens=max_tokens)
    return ModelJudge(
        responder, folder / REPLIES_FILE, repeats=repeats, settings=settings, prompt=prompt
    )


def absent_judge(folder: Path, judged_with: JudgedWith) -> ModelJudge:
    """Return a judge that gives the kept replies of a run's folder, and has no others."""
    return ModelJudge(
        Absent(),
        folder / REPLIES_FILE,
        repeats=judged_with.repeats,
        attempts=judged_with.attempts,
        prompt=judged_with.prompt,
        identity=judged_with.identity,
    )


def reason_of(right: bool) -> str:
    """Return the line that a verdict of the judge gives as its reason."""
    return f"{'right' if right else 'wrong'}: by the judge"
