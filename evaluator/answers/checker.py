"""Grading: responses to verdicts, with what is known already remembered.

Sees questions and the text of responses. One answer goes through: extraction (text) → known
verdicts → exact rules (this process) → other processes (symbolic equality, sandbox) → verdict.
"""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from data.errors import StpError
from data.question import Question
from evaluator.answers.cache import VerdictFile
from evaluator.answers.errors import CheckerError
from evaluator.answers.judge import Judge, ModelVerdict, SlowTools
from evaluator.answers.judges import judge_for
from evaluator.answers.marked import FallbackAnswer
from evaluator.answers.symbolic import RuleFailedError, SymbolicPool
from evaluator.answers.verdict import FALLBACK, NO_ANSWER, RULE_FAILED, Verdict

LIMIT_SECONDS = 3.5
T = TypeVar("T")
logger = logging.getLogger(__name__)


class _Known:
    """One question's judge and the verdicts on its answers so far."""

    __slots__ = ("file_key", "judge", "verdicts")

    def __init__(self, judge: Judge, file_key: bytes | None) -> None:
        self.judge = judge
        self.file_key = file_key
        self.verdicts: dict[str, Verdict] = {}


class Checker:
    r"""Checks answers; a context manager that owns its worker processes and its cache.

    Parameters
    ----------
    cache_path
        File in which verdicts are kept for later runs; none by default. Within one checker they
        are always kept in memory.
    workers
        Worker processes for symbolic equality, and programs run at a time; by default as many as
        there are cores, at most four. They start when first needed.
    limit_seconds
        CPU time for the symbolic comparisons of one answer. An answer that needs more is wrong.
    unsandboxed
        True allows programs to run without a sandbox where bubblewrap is missing. They then run
        with your rights: never say so for programs of a model that you do not trust.
    model_judge
        Judges answers in words (kind ``"judged"``) that no rule decides; called from several
        threads. Without it such an answer is an error.

    Examples
    --------
    >>> question = Question(id="1", prompt="4 + 5?", reference="9", answer_kind="math")
    >>> with Checker() as checker:
    ...     [v.right for v in checker.check_many([(question, r"\boxed{9}"), (question, "hm")])]
    [True, False]
    """

    def __init__(
        self,
        *,
        cache_path: Path | None = None,
        workers: int | None = None,
        limit_seconds: float = LIMIT_SECONDS,
        unsandboxed: bool = False,
        model_judge: ModelVerdict | None = None,
    ) -> None:
        self._workers = workers or min(4, os.cpu_count() or 1)
        self._pool = SymbolicPool(self._workers, limit_seconds)
        self._gym = SymbolicPool(self._workers, limit_seconds, "credit")
        self._unsandboxed = unsandboxed
        self._model_judge = model_judge
        self._file = VerdictFile(cache_path) if cache_path is not None else None
        self._known: dict[Question, _Known] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> "Checker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill the workers and close the cache's file."""
        self._pool.close()
        self._gym.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def check(self, question: Question, response: str) -> Verdict:
        """Check one response. As `check_many` of one pair."""
        return self.check_many([(question, response)])[0]

    def check_many(self, pairs: Sequence[tuple[Question, str]]) -> list[Verdict]:
        """Check many responses; each distinct answer to a question is judged once.

        Parameters
        ----------
        pairs
            Questions and whole responses to them.

        Returns
        -------
        list of Verdict
            One per pair, in their order.

        Raises
        ------
        CheckerError
            A worker or the sandbox could not be started: our own failure, not an answer's.
        BadReferenceError
            A question's reference cannot be used.
        """
        with self._lock:
            verdicts: list[Verdict | None] = [None] * len(pairs)
            waiting: dict[tuple[Question, str], list[int]] = {}
            by_fallback: set[int] = set()
            last: Question | None = None
            for index, (question, response) in enumerate(pairs):
                if question is not last:
                    last, known = question, self._known_of(question)
                answer = _guarded(known.judge.extract, response, None)
                if answer is None or isinstance(answer, Verdict):
                    verdicts[index] = answer or NO_ANSWER
                    continue
                verdict = known.verdicts.get(answer)
                if isinstance(answer, FallbackAnswer):
                    by_fallback.add(index)
                if verdict is not None:
                    verdicts[index] = verdict
                else:
                    waiting.setdefault((question, answer), []).append(index)
            for key, verdict in self._judge_all(list(waiting)).items():
                for index in waiting[key]:
                    verdicts[index] = verdict
            for index in by_fallback:
                verdict = verdicts[index]
                assert verdict is not None
                verdicts[index] = replace(verdict, reason=verdict.reason + FALLBACK)
            return [verdict for verdict in verdicts if verdict is not None]

    def _known_of(self, question: Question) -> _Known:
        known = self._known.get(question)
        if known is not None:
            return known
        file_key = VerdictFile.question_key(question) if self._file is not None else None
        known = _Known(judge_for(question), file_key)
        self._known[question] = known
        return known

    def _judge_all(
        self, answers: list[tuple[Question, str]]
    ) -> dict[tuple[Question, str], Verdict]:
        """Judge answers not in memory: by exact rules, from the file, by other processes."""
        judged: dict[tuple[Question, str], Verdict] = {}
        slow: list[tuple[Question, str]] = []
        fresh: list[tuple[bytes, str, Verdict]] = []
        for key in answers:
            question, answer = key
            known = self._known[question]
            verdict = _guarded(known.judge.quick, answer, answer)
            if verdict is None and self._file is not None and known.file_key is not None:
                verdict = self._file.get(known.file_key, answer)
            if verdict is None:
                slow.append(key)
            else:
                judged[key] = known.verdicts[answer] = verdict
        if slow:
            with ThreadPoolExecutor(max_workers=self._workers) as threads:
                results = threads.map(
                    lambda key: self._judge_slowly(self._known[key[0]].judge, key[1]), slow
                )
                for key, verdict in zip(slow, results, strict=True):
                    question, answer = key
                    judged[key] = self._known[question].verdicts[answer] = verdict
                    file_key = self._known[question].file_key
                    if file_key is not None:
                        fresh.append((file_key, answer, verdict))
        if self._file is not None and fresh:
            self._file.put(fresh)
        return judged

    def _judge_slowly(self, judge: Judge, answer: str) -> Verdict:
        tools = SlowTools(
            symbolic_equal=self._pool.for_one_answer(),
            gym_credit=self._gym.credit,
            unsandboxed=self._unsandboxed,
            model_judge=self._model_judge,
        )
        return _guarded(lambda text: judge.slow(text, tools), answer, answer)


def _guarded(rule: Callable[[str], T], text: str, answer: str | None) -> T | Verdict:
    """Apply a rule; whatever it raises is a verdict of trouble on this text, nothing more."""
    found: T | Verdict
    try:
        found = rule(text)
    except Exception as error:  # noqa: BLE001 (recorded, or raised, there)
        found = _failed(error, answer, f"a rule on a text of {len(text)} characters")
    return _storable(found) if isinstance(found, Verdict) else found


def _failed(error: Exception, answer: str | None, what: str) -> Verdict:
    """Return the verdict where a rule raised what nobody expected: the one place for that.

    It is counted as trouble wherever shares of a campaign are told, and `stp show verdicts
    --trouble` shows it with question and response.

    Raises
    ------
    data.errors.StpError
        Where a worker, the sandbox or the disk failed: that says nothing about an answer.
    """
    if isinstance(error, StpError):
        raise error
    if isinstance(error, OSError):
        raise CheckerError(f"the checker cannot work: {error}") from error
    logger.error("%s failed", what, exc_info=error)
    name = str(error) if isinstance(error, RuleFailedError) else type(error).__name__
    return Verdict(False, answer, f"wrong: {RULE_FAILED} ({name})")


def _storable(verdict: Verdict) -> Verdict:
    """Return a verdict that can be written: half a surrogate pair is not a character."""
    texts = [verdict.reason, *([] if verdict.answer is None else [verdict.answer])]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        reason, *answer = [text.encode("utf-8", "backslashreplace").decode() for text in texts]
        return Verdict(verdict.right, answer[0] if answer else None, reason)
    return verdict


_shared: Checker | None = None
_shared_lock = threading.Lock()


def check(question: Question, response: str) -> Verdict:
    """Check one response with a checker that this process keeps.

    Workers start only if the exact rules do not decide, and are reused by later calls.

    Raises
    ------
    CheckerError
        A worker could not be started.
    BadReferenceError
        The question's reference cannot be used.
    """
    global _shared  # noqa: PLW0603 (one checker for the process, made when first needed)
    with _shared_lock:
        if _shared is None:
            _shared = Checker()
            atexit.register(_shared.close)
        checker = _shared
    return checker.check(question, response)
