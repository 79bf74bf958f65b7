"""A model as a judge of whether an answer says the same as the reference.

Sees questions, references and answers as text. A verdict is the last "Verdict: yes" or
"Verdict: no" of the judge's reply; a reply without one is asked for again, and if none ever comes
the answer stays *undecided*: it is never counted as wrong in silence. Every reply is stored under
a hash of all that it depends on, so the same question to the same judge is asked once.
"""

import hashlib
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

from data.errors import EngineError, MisuseError
from data.optimal import prompt_text
from data.question import Question
from evaluator.answers import CheckerError, Verdict
from stp.asking import Request, Responder, Response, ResponseStore, Settings
from stp.asking.base import reply_identity
from stp.seeds import sample_seed

SETTINGS = Settings(max_tokens=1024, temperature=0.6, thinking="default")
ATTEMPTS = 4
REPLIES_FILE = "judge-replies.jsonl"
MAX_ANSWER_CHARACTERS = 4000

_VERDICT = re.compile(
    r"\bverdict\b[\s*_`\"':=\-{]*(?:\\boxed\{)?[\s*_`\"'{]*(yes|no)\b(?!\"?\s*(?:/|\||or\b|and\b))",
    re.IGNORECASE,
)
_ALONE = re.compile(r"[\s*_`\"'({\[]*(?:\\boxed\{)?(yes|no)[\s*_`\"')}\].!]*", re.I)

Progress = Callable[[int, int], None]


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
        One for each repetition: True for yes, False for no, None where no verdict could be read.
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
    """Judges cases with a model, and remembers what it said.

    Parameters
    ----------
    responder
        The model.
    store
        File of replies; it is also the cache, and may be shared by runs.
    repeats
        Votes for each case.
    attempts
        How often a reply is asked for until it holds a verdict.
    settings
        How the judge answers.
    prompt
        The prompt's text, with ``$question``, ``$reference`` and ``$answer``; by default
        ``data/optimal/prompts/judge.txt``.
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
    ) -> None:
        if repeats < 1 or attempts < 1:
            raise MisuseError(f"repeats {repeats} and attempts {attempts} must be at least 1")
        self._responder = responder
        self._store = ResponseStore(store)
        self._stored: dict[str, Response] | None = None
        self._repeats = repeats
        self._attempts = attempts
        self._settings = settings
        # One reply after the other: a checker asks from several threads.
        self._lock = threading.Lock()
        self._prompt = Template(prompt_text("judge") if prompt is None else prompt)
        # Where a model is served from says nothing of what it says.
        self._identity = repr(reply_identity(responder.describe()))

    def key(self, case: Case) -> str:
        """Return the hash under which a case's replies are stored."""
        digest = hashlib.blake2b(digest_size=16)
        settings = replace(self._settings, timeout_seconds=None, retries=0)
        parts = (self._identity, repr(settings), self._prompt.template)
        for part in (*parts, case.question, case.reference, case.answer):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return digest.hexdigest()

    def judge(self, cases: Sequence[Case], progress: Progress | None = None) -> list[Judgement]:
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
            If the judge did not answer: trouble of ours, never a verdict.
        """
        keyed = {self.key(case): case for case in cases}
        wanted = [(key, repeat) for key in keyed for repeat in range(self._repeats)]
        votes: dict[tuple[str, int], bool] = {}
        # Read once: a checker asks for one answer at a time.
        stored = self._stored = self._stored if self._stored is not None else self._store.read()
        for attempt in range(self._attempts):
            for place in wanted:
                reply = stored.get(_id(*place, attempt))
                verdict = read_verdict(reply.text) if reply and reply.error is None else None
                if verdict is not None and place not in votes:
                    votes[place] = verdict
            waiting = [place for place in wanted if place not in votes]
            if not waiting:
                break
            self._ask(keyed, waiting, attempt, stored, votes, progress, len(wanted))
        return [
            Judgement(
                votes=tuple(votes.get((self.key(case), repeat)) for repeat in range(self._repeats))
            )
            for case in cases
        ]

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

    def _ask(
        self,
        keyed: dict[str, Case],
        waiting: Sequence[tuple[str, int]],
        attempt: int,
        stored: dict[str, Response],
        votes: dict[tuple[str, int], bool],
        progress: Progress | None,
        total: int,
    ) -> None:
        """Ask for the replies of one attempt that are not stored, and read their verdicts."""
        places = {_id(key, repeat, attempt): (key, repeat) for key, repeat in waiting}
        requests = [
            Request(id=name, prompt=self._text(keyed[key]), seed=_seed(key, repeat, attempt))
            for name, (key, repeat) in places.items()
            if name not in stored or stored[name].error is not None
        ]
        errors: list[str] = []

        def take(reply: Response) -> None:
            store.append(reply)
            stored[reply.id] = reply
            if reply.error is not None:
                errors.append(reply.error)
                return
            verdict = read_verdict(reply.text)
            if verdict is not None:
                votes[places[reply.id]] = verdict
            if progress is not None:
                progress(len(votes), total)

        if requests:
            with self._store as store:
                self._responder.respond(requests, self._settings, take)
        if errors:
            raise EngineError(
                f"the judge failed on {len(errors)} of {len(requests)} requests: {errors[0]}; "
                "run again, what was judged is kept"
            )

    def _text(self, case: Case) -> str:
        answer = case.answer
        if len(answer) > MAX_ANSWER_CHARACTERS:
            answer = "... " + answer[-MAX_ANSWER_CHARACTERS:]
        return self._prompt.substitute(
            question=case.question, reference=case.reference, answer=answer
        )


def open_judge(
    responder: Responder, folder: Path, *, repeats: int = 1, max_tokens: int | None = None
) -> ModelJudge:
    """Return a judge whose replies are kept in a run's folder."""
    settings = SETTINGS if max_tokens is None else replace(SETTINGS, max_tokens=max_tokens)
    return ModelJudge(responder, folder / REPLIES_FILE, repeats=repeats, settings=settings)


def reason_of(right: bool) -> str:
    """Return the line that a verdict of the judge gives as its reason."""
    return f"{'right' if right else 'wrong'}: by the judge"


def _id(key: str, repeat: int, attempt: int) -> str:
    return f"{key}-{repeat}-{attempt}"


def _seed(key: str, repeat: int, attempt: int) -> int:
    return sample_seed(
        0,
        model="judge",
        benchmark="judge",
        question=key,
        trajectory=repeat,
        phase="judge",
        sample=attempt,
    )
