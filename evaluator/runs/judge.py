"""A model as a judge: every reply is kept under a hash of all that it depends on.

So the same question to the same judge is asked once, by whatever run. Replies are untrusted text:
one that cannot be read is asked for again, as often as the judge's owner says, and then there is no
verdict. A request that failed is not a reply.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.runs.asking import Missing, ask_missing, check_answered
from stp.asking import Request, RequestGroup, Responder, Response, ResponseStore, Settings
from stp.asking.base import reply_identity
from stp.seeds import sample_seed

V = TypeVar("V")
_Place = tuple[str, int]
"""The key of a question to the judge, and which of its votes."""


class Absent(Responder):
    """A judge that is not present: its kept replies can be read, and nothing can be asked."""

    def respond(self, *groups: RequestGroup) -> None:
        """Refuse."""
        count = sum(len(group.requests) for group in groups)
        raise MisuseError(f"{count:,} replies of the judge are not kept")

    def describe(self) -> dict[str, str | int | float | None]:
        """Return nothing: the caller gives the identity."""
        return {}


class KeptJudge(Generic[V]):
    """Asks a model for verdicts, and remembers what it said.

    Parameters
    ----------
    responder
        The model.
    settings
        How it answers.
    read
        Returns the verdict that a reply states; None if it states none.
    repeats
        Votes on each question.
    attempts
        How often a reply is asked for until it can be read.
    identity
        What a judge that is not here said of itself, :attr:`identity`; by default the responder's.
    """

    def __init__(
        self,
        responder: Responder,
        settings: Settings,
        read: Callable[[str], V | None],
        *,
        repeats: int = 1,
        attempts: int = 1,
        identity: tuple[str, str] | None = None,
    ) -> None:
        if repeats < 1 or attempts < 1:
            raise MisuseError(f"repeats {repeats} and attempts {attempts} must be at least 1")
        self._responder, self._settings, self._read = responder, settings, read
        self._repeats, self._attempts = repeats, attempts
        self._replies: dict[str, Response] = {}
        # Where a model is served from, and how long it may take, say nothing of what it says.
        waiting = replace(settings, timeout_seconds=None, retries=0)
        own = (repr(reply_identity(responder.describe())), repr(waiting))
        self.identity = own if identity is None else identity

    def key(self, *parts: str) -> str:
        """Return the hash under which the replies to a question are kept.

        Parameters
        ----------
        *parts
            All that the question is made of.
        """
        digest = hashlib.blake2b(digest_size=16)
        for part in (*self.identity, *parts):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return digest.hexdigest()

    def recall(self, store: ResponseStore) -> None:
        """Take in the replies of a file; it is not looked at again unless it is named again."""
        self._replies |= store.read()

    def asks(self, prompts: Mapping[str, str]) -> bool:
        """Whether the model has to be asked something, after what was recalled."""
        return bool(self._missing(prompts, self._attempts - 1))

    def judge(
        self, prompts: Mapping[str, str], store: ResponseStore, progress: Progress = NOBODY
    ) -> dict[str, tuple[V | None, ...]]:
        """Judge questions, those whose replies were recalled without the model.

        Parameters
        ----------
        prompts
            What to ask, by :meth:`key`.
        store
            Gets new replies.
        progress
            Told how many votes are there, and of how many.

        Returns
        -------
        dict
            The votes on each question; None if no reply could be read.

        Raises
        ------
        data.errors.EngineError
            If the judge did not answer: our own failure, never a verdict.
        """
        total = len(prompts) * self._repeats
        for attempt in range(self._attempts):
            requests = [
                Request(
                    id=_name(key, vote, attempt),
                    prompt=prompts[key],
                    seed=_seed(key, vote, attempt),
                )
                for key, vote in self._missing(prompts, attempt)
            ]
            (errors,) = ask_missing(
                self._responder,
                Missing(
                    store=store,
                    requests=requests,
                    settings=self._settings,
                    total=total,
                    progress=progress,
                    kept=lambda reply: self._replies.__setitem__(reply.id, reply),
                ),
            )
            check_answered(errors, len(requests), "the judge")
        return {
            key: tuple(self._vote(key, vote, self._attempts - 1) for vote in range(self._repeats))
            for key in prompts
        }

    def _missing(self, prompts: Mapping[str, str], attempt: int) -> list[_Place]:
        """Return the votes that an attempt has to ask for: earlier replies give none."""
        return [
            (key, vote)
            for key in prompts
            for vote in range(self._repeats)
            if self._vote(key, vote, attempt) is None and not self._has(key, vote, attempt)
        ]

    def _vote(self, key: str, vote: int, last: int) -> V | None:
        for attempt in range(last + 1):
            if self._has(key, vote, attempt):
                verdict = self._read(self._replies[_name(key, vote, attempt)].text)
                if verdict is not None:
                    return verdict
        return None

    def _has(self, key: str, vote: int, attempt: int) -> bool:
        reply = self._replies.get(_name(key, vote, attempt))
        return reply is not None and reply.error is None


def _name(key: str, vote: int, attempt: int) -> str:
    return f"{key}-{vote}-{attempt}"


def _seed(key: str, vote: int, attempt: int) -> int:
    return sample_seed(
        0,
        model="judge",
        benchmark="judge",
        question=key,
        trajectory=vote,
        phase="judge",
        sample=attempt,
    )
