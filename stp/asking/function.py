"""A user's own model: any function from a prompt to a text."""

import inspect
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from data.errors import ConfigError, EngineError, MisuseError
from stp.asking.base import (
    Request,
    RequestGroup,
    Responder,
    Response,
    Settings,
    failed,
    parted_noted,
)
from stp.formats.written import written_thinking

MAX_FAILURES_IN_A_ROW = 10

_KEYS = ("text", "thinking", "thinking_tokens", "answer_tokens", "output_tokens", "finish")


class CallableResponder(Responder):
    """Answers requests with a function.

    Parameters
    ----------
    function
        Takes the whole prompt (a system text before it) and, where it has a second parameter, the
        settings. Returns the answer's text, or a mapping with ``text`` and any of ``thinking``,
        ``thinking_tokens``, ``answer_tokens``, ``output_tokens`` and ``finish``.
    name
        What the model is called in records; by default the function's name.
    workers
        Calls at a time. More than one needs a function that may be called from several threads.
    source_hash
        Digest of the file that the function is from: another one is another model.

    Examples
    --------
    >>> answers = []
    >>> responder = CallableResponder(lambda prompt: "It is 4.")
    >>> requests = [Request(id="1", prompt="2 + 2?", seed=0)]
    >>> responder.respond(
    ...     RequestGroup(requests=requests, settings=Settings(), on_response=answers.append)
    ... )
    >>> answers[0].text, answers[0].thinking_tokens is None
    ('It is 4.', True)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        workers: int = 1,
        source_hash: str | None = None,
    ) -> None:
        if not callable(function):
            raise MisuseError(f"{function!r} cannot be called; give a function of a prompt")
        if workers < 1:
            raise MisuseError(f"workers is {workers}; it must be at least 1")
        self._function = function
        self._name = name or getattr(function, "__name__", type(function).__name__)
        self._workers = workers
        self._source_hash = source_hash
        self._takes_settings = _positional(function) >= 2

    def respond(self, *groups: RequestGroup) -> None:
        """Call the function for every request; see :meth:`Responder.respond`."""
        if any(group.settings.tools for group in groups):
            raise ConfigError("your own function has its own tools; leave tools out")
        failures = 0
        with parted_noted(groups) as noted, ThreadPoolExecutor(self._workers) as threads:
            pending = [
                (group, threads.submit(self._answer, request, group.settings))
                for group in noted
                for request in group.requests
            ]
            try:
                for group, future in pending:
                    response = future.result()
                    group.on_response(response)
                    failures = failures + 1 if response.error is not None else 0
                    if failures >= MAX_FAILURES_IN_A_ROW:
                        raise EngineError(
                            f"{self._name} failed on {failures} requests in a row: "
                            f"{response.error}; what was answered is kept"
                        )
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def describe(self) -> dict[str, str | int | float | None]:
        """Return the function's name, where it is from, and the digest of its file."""
        described: dict[str, str | int | float | None] = {
            "engine": "function",
            "model": self._name,
            "function": f"{getattr(self._function, '__module__', '?')}:{self._name}",
        }
        return described | ({"source_hash": self._source_hash} if self._source_hash else {})

    def _answer(self, request: Request, settings: Settings) -> Response:
        prompt = settings.dress(request.prompt)
        if request.system:
            prompt = f"{request.system}\n\n{prompt}"
        started = time.monotonic()
        try:
            given = (
                self._function(prompt, settings) if self._takes_settings else self._function(prompt)
            )
            return _response(request, given, time.monotonic() - started)
        except KeyboardInterrupt:
            raise
        # Whatever a user's function raises affects only this request, also when it tries to end
        # the process.
        except BaseException as error:  # noqa: BLE001 (it is kept in the response)
            reason = f"{type(error).__name__}: {error}"
            return failed(request, reason, time.monotonic() - started)


def _response(request: Request, given: object, seconds: float) -> Response:
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, Mapping) or not isinstance(given.get("text"), str):
        raise TypeError(f"it returned {type(given).__name__}; a text or a mapping is needed")
    unknown = sorted(set(given) - set(_KEYS))
    if unknown:
        raise TypeError(f"it returned the unknown key {unknown[0]!r}; known are {', '.join(_KEYS)}")
    if given.get("thinking") is None and given.get("thinking_tokens") is None:
        given = {**given, **_parted(given["text"])}
    return Response(id=request.id, seconds=seconds, **given)


def _parted(text: str) -> dict[str, Any]:
    """Return thinking and answer of a text that may hold tags."""
    found = written_thinking(text)
    if found is None:
        return {"text": text}
    thinking = text[found.start : found.end].strip()
    return {"text": text[found.answer :].strip(), "thinking": thinking, "parted": True}


def _positional(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    return len(needed)
