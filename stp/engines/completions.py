"""HTTP of an OpenAI-compatible completions route: one reply, with retries.

Temporary failures (no connection, a time-out, 429, 5xx, an answer that is cut off or not JSON) are
tried again after a wait that doubles and is jittered; a refusal of the server is not.
"""

import email.utils
import functools
import json
import random
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import tenacity

from data.errors import EngineError, MissingDependencyError

try:
    import httpx
except ImportError as error:
    raise MissingDependencyError(
        "the server engine needs httpx; install it with: pip install httpx"
    ) from error

_PASSING_STATUS: Final = frozenset({408, 409, 425, 429})
_FIRST_WAIT_SECONDS: Final = 1.0
_LONGEST_WAIT_SECONDS: Final = 60.0
_LONGEST_ASKED_WAIT_SECONDS: Final = 600.0
_CONNECT_SECONDS: Final = 30.0
_LONGEST_QUOTE: Final = 300


_BLOCK_SIZE: Final = re.compile(r'vllm:cache_config_info\{(?:[^}]*,)?block_size="(\d+)"')

Client: TypeAlias = httpx.AsyncClient
"""Connections to a server; made by :meth:`Server.client`."""


class RefusedError(EngineError):
    """The server understood and said no; asking again would not help. ``status`` is HTTP's."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class UnansweredError(EngineError):
    """The server could not be reached, or gave nothing that can be used, every time."""


class _PassingError(Exception):
    """A temporary failure: why, and how long the server asks to wait."""

    def __init__(self, reason: str, *, wait_seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a server is, with time limit and attempts.

    Attributes
    ----------
    url
        Its root, without ``/v1``.
    api_key
        Sent as a bearer token; None sends none.
    timeout_seconds
        For one answer.
    attempts
        How often one answer is asked for.
    """

    url: str
    api_key: str | None
    timeout_seconds: float
    attempts: int

    def client(self, connections: int) -> httpx.AsyncClient:
        """Return a client that keeps a number of connections."""
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        return httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            verify=_certificates() if self.url.startswith("https:") else False,
            timeout=httpx.Timeout(self.timeout_seconds, connect=_CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
        )

    async def ask(
        self,
        client: httpx.AsyncClient,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        check: Callable[[dict[str, Any]], None] = lambda reply: None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Return the JSON object that the server answers with.

        Parameters
        ----------
        client
            As :meth:`client` makes it.
        method, path, body
            The request; the body is sent as JSON.
        check
            Raises ValueError for an answer that cannot be used; it is then asked for again.
        on_failure
            Called after every attempt that failed.

        Raises
        ------
        RefusedError
            If the server refuses.
        UnansweredError
            If every attempt failed.
        """

        async def ask() -> dict[str, Any]:
            reply = await _once(client, method, path, body)
            try:
                check(reply)
            except ValueError as error:
                raise _PassingError(str(error)) from error
            return reply

        begin = time.monotonic()
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(_PassingError),
            stop=tenacity.stop_after_attempt(self.attempts),
            wait=_pause_seconds,
            before_sleep=lambda _: on_failure(),
            reraise=True,
        )
        try:
            return await retrying(ask)
        except _PassingError as error:
            on_failure()
            spent = time.monotonic() - begin
            raise UnansweredError(
                f"the server {self.url} failed {self.attempts} times in {spent:.0f} seconds, "
                f"last: {error}"
            ) from error


def _pause_seconds(state: tenacity.RetryCallState) -> float:
    """Return how long to wait after a failure: doubled each time, or what the server asks for."""
    wait = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** (state.attempt_number - 1))
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.wait_seconds if isinstance(error, _PassingError) else 0.0
    # Jittered: many requests that failed together must not come back together.
    return max(wait * random.uniform(0.5, 1.0), asked)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Return what certificates are checked with; reading them takes as long as many requests."""
    return httpx.create_ssl_context()


async def _once(
    client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None
) -> dict[str, Any]:
    try:
        response = await client.request(method, path, json=body)
    except httpx.TimeoutException as error:
        raise _PassingError(f"no answer in time ({type(error).__name__})") from error
    except httpx.TransportError as error:
        raise _PassingError(quoted(str(error)) or type(error).__name__) from error
    if response.status_code in _PASSING_STATUS or response.status_code >= 500:
        raise _PassingError(
            f"HTTP {response.status_code}: {_complaint(response)}",
            wait_seconds=_asked_wait(response.headers.get("retry-after", "")),
        )
    if not response.is_success:
        raise RefusedError(_complaint(response), status=response.status_code)
    try:
        reply = json.loads(response.content)
    except (ValueError, RecursionError) as error:
        raise _PassingError(f"an answer that is not JSON: {quoted(response.text)!r}") from error
    if not isinstance(reply, dict):
        raise _PassingError(f"an answer that is not a JSON object: {quoted(response.text)!r}")
    return reply


def _asked_wait(text: str) -> float:
    """Return the seconds that a Retry-After header asks for: a number or a date; else 0."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError):
            return 0.0
    return min(max(0.0, seconds), _LONGEST_ASKED_WAIT_SECONDS) if seconds == seconds else 0.0


def _complaint(response: httpx.Response) -> str:
    """Return what a server says of an error, as one line."""
    try:
        values = json.loads(response.content)
        inner = values["error"] if isinstance(values.get("error"), dict) else values
        message = inner.get("message") or inner.get("detail")
    except (ValueError, AttributeError, RecursionError):
        message = None
    return quoted(str(message or response.text)) or response.reason_phrase


def quoted(text: str) -> str:
    """Return a server's text as one short line without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST_QUOTE else line[:_LONGEST_QUOTE] + "..."


async def vllm_version(client: Client) -> str | None:
    """Return vLLM's version, where the server tells it."""
    try:
        values = (await client.get("/version")).json()
    except (httpx.HTTPError, ValueError):
        return None
    return str(values["version"]) if isinstance(values, dict) and "version" in values else None


async def cache_block_tokens(client: Client) -> int | None:
    """Return the tokens in a block of vLLM's cache, from its metrics, where the server has them."""
    try:
        found = _BLOCK_SIZE.search((await client.get("/metrics")).text)
    except httpx.HTTPError:
        return None
    return int(found[1]) if found else None
