"""Responses of LLMThinkBench and OptimalThinkingBench runs: rows to choose from, and each to read.

Both kinds of run become the same rows, so that one page and one command show both.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from data.errors import MisuseError
from evaluator.explorer.source import NoPieceError, Piece, whole_numbers
from evaluator.present.names import visible
from stp.asking import Response, ResponseStore
from stp.files import json_bytes

_TEXT = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRow:
    """A graded response, as far as it is sorted and filtered by.

    Attributes
    ----------
    key
        Names the question and the sample.
    asked
        A digest of prompt and reference: a run of another seed has the same keys for others.
    task, group
        Task and category, or benchmark and subset.
    method
        How it was asked; ``""`` if there is one way.
    right
        The verdict; None if there is none.
    answer
        What was extracted; None if nothing was.
    reason
        Why the verdict is as it is.
    error, pattern
        Kind of error of a wrong answer, and pattern of a long trace; ``""`` without.
    tokens, thinking_tokens
        Tokens of the whole response and of its thinking; None if unknown.
    finish
        Why it ended.
    """

    key: str
    asked: str
    task: str
    group: str
    method: str
    right: bool | None
    answer: str | None
    reason: str
    error: str
    pattern: str
    tokens: int | None
    thinking_tokens: int | None
    finish: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseText:
    """What a response says, and what it answers. ``thinking`` is None if it is not known."""

    prompt: str
    reference: str
    thinking: str | None
    text: str


class Responses(Protocol):
    """The graded responses of one run."""

    kind: str
    name: str
    folder: Path
    rows: list[ResponseRow]

    def text(self, row: int) -> ResponseText:
        """Return what a response says."""


class ThinkResponses:
    """Those of ``stp think run``.

    Raises
    ------
    data.errors.StpError
        If there is no graded run in the folder, or it cannot be read.
    """

    kind = "think"

    def __init__(self, folder: Path) -> None:
        from evaluator.thinkbench.questions import plan_questions
        from evaluator.thinkbench.stored import load_run, read_responses

        run = load_run(folder)
        self.folder, self.name = folder, run.name
        self._items = {item.id: item for item in plan_questions(run.config)}
        self._responses = read_responses(folder)
        self.rows = [
            ResponseRow(
                key=row.id,
                asked=asked_digest(
                    self._items[row.id].question.prompt, self._items[row.id].question.reference
                ),
                task=row.task,
                group=row.category,
                method="",
                right=row.right,
                answer=row.answer,
                reason=row.reason,
                error=row.error or "",
                pattern=row.pattern or "",
                tokens=row.tokens,
                thinking_tokens=row.thinking_tokens,
                finish=row.finish,
            )
            for row in run.graded
        ]

    def text(self, row: int) -> ResponseText:
        """Return what a response says."""
        key = self.rows[row].key
        question = self._items[key].question
        return _text(question.prompt, question.reference, self._responses[key])


class OptimalResponses:
    """Those of ``stp optimal run``; raises as :class:`ThinkResponses`."""

    kind = "optimal"

    def __init__(self, folder: Path) -> None:
        from evaluator.optimal.stored import QUESTIONS, load_run, response_file
        from evaluator.optimal.subsets import read_items

        run = load_run(folder)
        self.folder, self.name = folder, run.record.name
        self._prompts = run.plan.prompts
        self._items = {item.key: item for item in read_items(folder / QUESTIONS)}
        self._files = {
            mode: response_file(folder, mode) for mode in run.rows["method"].unique().tolist()
        }
        self._stored: dict[str, Mapping[str, Response]] = {}
        asked = {
            key: asked_digest(item.prompt_in(self._prompts), item.question.reference)
            for key, item in self._items.items()
        }
        self.rows = [
            _optimal_row(row, asked[row["question"]]) for row in run.rows.to_dict("records")
        ]

    def text(self, row: int) -> ResponseText:
        """Return what a response says."""
        found = self.rows[row]
        item = self._items[found.key.rpartition("/")[0]]
        response = self._response(found)
        return _text(item.prompt_in(self._prompts), item.question.reference, response)

    def _response(self, row: ResponseRow) -> Response:
        from evaluator.optimal.methods import NO_THINKING, ROUTERS, THINKING

        # A router's response is one of the two that it chose from: that with the same counts.
        modes = (THINKING, NO_THINKING) if row.method in ROUTERS else (row.method,)
        for mode in modes:
            if mode not in self._stored:
                self._stored[mode] = ResponseStore(self._files[mode]).read()
            found = self._stored[mode].get(row.key)
            same = found is not None and (found.thinking_tokens, found.output_tokens) == (
                row.thinking_tokens,
                row.tokens,
            )
            if found is not None and (same or len(modes) == 1):
                return found
        raise MisuseError(f"{self.folder}: the response {row.key} of {row.method} is gone")


def _optimal_row(row: Mapping[Any, Any], asked: str) -> ResponseRow:
    def known(name: str) -> Any:
        return None if pd.isna(row[name]) else row[name]

    right, thinking, tokens = known("right"), known("thinking_tokens"), known("output_tokens")
    return ResponseRow(
        key=f"{row['question']}/{row['sample']}",
        asked=asked,
        task=row["benchmark"],
        group=f"{row['subset']} ({row['side']})",
        method=row["method"],
        right=None if right is None else bool(right),
        answer=known("answer"),
        reason=row["reason"],
        error="",
        pattern="",
        tokens=None if tokens is None else int(tokens),
        thinking_tokens=None if thinking is None else int(thinking),
        finish=row["finish"],
    )


def asked_digest(*texts: str) -> str:
    """Return a digest of what was asked: two responses with the same one can be compared."""
    return hashlib.sha256(json_bytes({"asked": texts})).hexdigest()[:16]


def _text(prompt: str, reference: str, response: Response) -> ResponseText:
    return ResponseText(
        prompt=prompt,
        reference=reference,
        thinking=response.thinking,
        text=(response.tool_text or "") + response.text,
    )


def open_responses(folder: str | Path) -> Responses:
    """Open the responses of a run of either benchmark.

    Raises
    ------
    data.errors.MisuseError
        If there is no run in the folder.
    data.errors.StoreError
        If it cannot be read.
    """
    from evaluator.optimal.stored import KIND as OPTIMAL
    from evaluator.runs.record import RECORD
    from evaluator.thinkbench.stored import KIND as THINK
    from stp.files import read_json

    path = Path(folder).expanduser()
    try:
        kind = read_json(path / RECORD).get("kind")
    except FileNotFoundError as error:
        raise MisuseError(f"{folder}: no run here (no {RECORD})") from error
    if kind == THINK:
        return ThinkResponses(path)
    if kind == OPTIMAL:
        return OptimalResponses(path)
    raise MisuseError(f"{folder}: holds a run of {kind}, whose responses cannot be shown")


class ResponsesSource:
    """A run as pieces: ``rows`` has its rows in columns, ``r/R`` what the response R says."""

    def __init__(self, responses: Responses) -> None:
        self.kind, self._responses = responses.kind, responses

    def index(self) -> Piece:
        """Return which run it is."""
        return {
            "kind": self.kind,
            "name": visible(self._responses.name),
            "folder": visible(str(self._responses.folder)),
            "responses": len(self._responses.rows),
        }

    def names(self) -> Iterator[str]:
        """Yield the names of all pieces."""
        yield "rows"
        for row in range(len(self._responses.rows)):
            yield f"r/{row}"

    def piece(self, name: str) -> Piece:
        """Return a piece."""
        rows = self._responses.rows
        if name == "rows":
            return {
                each.name: [_plain(getattr(row, each.name)) for row in rows]
                for each in fields(ResponseRow)
            }
        if (at := whole_numbers(name, "r/#")) and at[0] < len(rows):
            found = self._responses.text(at[0])
            return {
                each.name: _plain(getattr(found, each.name), _TEXT) for each in fields(ResponseText)
            }
        raise NoPieceError(f"no piece {name!r}")


def _plain(value: Any, limit: int = 400) -> Any:
    return visible(value, limit) if isinstance(value, str) else value
