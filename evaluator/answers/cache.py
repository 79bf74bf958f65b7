"""Verdicts that are known already, by question and extracted answer; on disk if asked for."""

import hashlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from data.question import Question
from evaluator.answers.errors import CheckerError
from evaluator.answers.verdict import CHECKER_VERSION, TROUBLES, Verdict

_SCHEMA = """CREATE TABLE IF NOT EXISTS verdicts (
    question BLOB NOT NULL, answer BLOB NOT NULL, correct INTEGER NOT NULL, reason TEXT NOT NULL,
    PRIMARY KEY (question, answer)) WITHOUT ROWID"""


def _digest(*texts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.digest()


class VerdictFile:
    """A file of verdicts (SQLite) that several runs may share.

    A question's key holds everything that a verdict depends on (the checker's version, answer
    kind, reference, choices, prompt) but not its id. Verdicts by trouble (a time limit, a rule that
    failed) are not kept: they may say more about the machine than about the answer.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=60.0)
            self._connection.execute(_SCHEMA)
            self._connection.commit()
        except (sqlite3.Error, OSError) as error:
            raise CheckerError(f"verdict cache {path}: {error}; name another file") from error

    @staticmethod
    def question_key(question: Question) -> bytes:
        """Key of a question: a hash of all that a verdict depends on."""
        return _digest(
            CHECKER_VERSION,
            question.answer_kind,
            question.reference,
            question.prompt,
            question.language,
            *question.choices,
        )

    def get(self, question_key: bytes, answer: str) -> Verdict | None:
        """Look up one verdict."""
        try:
            row = self._connection.execute(
                "SELECT correct, reason FROM verdicts WHERE question = ? AND answer = ?",
                (question_key, _digest(answer)),
            ).fetchone()
        except sqlite3.Error as error:
            raise CheckerError(f"verdict cache {self._path}: {error}; delete the file") from error
        return None if row is None else Verdict(bool(row[0]), answer, str(row[1]))

    def put(self, verdicts: Iterable[tuple[bytes, str, Verdict]]) -> None:
        """Store verdicts: (question key, answer, verdict), in one transaction."""
        rows = [
            (key, _digest(answer), int(verdict.right), verdict.reason)
            for key, answer, verdict in verdicts
            if not verdict.reason.rpartition(": ")[2].startswith(TROUBLES)
        ]
        try:
            with self._connection:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)", rows
                )
        except sqlite3.Error as error:
            raise CheckerError(f"verdict cache {self._path}: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
