"""The server engine: prompt trees as token-id requests to a running ``vllm serve``.

Any server will do whose OpenAI-compatible completions route takes token ids as a prompt and gives
token ids back (``return_token_ids``, vLLM 0.10.2 and newer). One that speaks text only cannot be
used: text that is decoded and encoded again is not what the model wrote. What a server can do is
tried out when the engine is opened, not believed.

A sample is a request of its own (:mod:`stp.engines.requests` says why), and requests are sent in
the order in which each finds the most blocks in the server's prefix cache. How much of a prompt was
cached is known where the server was started with ``--enable-prompt-tokens-details``.

Requests are sent by an event loop in a thread of its own. So the place of one that ends is taken at
once, while the engine's owner makes other trees or writes rows. What the two threads share is the
queue of what waits, under a lock, and the queue of what has ended; all else belongs to one of them.
"""

import asyncio
import contextlib
import json
import logging
import os
import queue
import threading
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from data.errors import ConfigError, MisuseError
from stp.engines.base import (
    AnyTree,
    Completion,
    Engine,
    PromptTree,
    RequestError,
    SamplingParameters,
)
from stp.engines.checks import TreeChecker, check_vllm_sampling, config_values, padding_bias
from stp.engines.completions import (
    Client,
    RefusedError,
    Server,
    UnansweredError,
    cache_block_tokens,
    quoted,
    vllm_version,
)
from stp.engines.own_loop import OwnLoop
from stp.engines.requests import RequestQueue, SampleRequest
from stp.engines.stop_texts import StopTextWatcher

_LOG = logging.getLogger(__name__)

_USUAL_BLOCK_TOKENS: Final = 16
_START: Final = "start one with `vllm serve MODEL` (vLLM 0.10.2 or newer)"
# Ids that every vocabulary has, and enough of them to fill a block of any cache.
_PROBE_IDS: Final = [1, 2, 3] * 34
_PROBE_TOKENS: Final = 4
_ROUNDS_WAITING: Final = 4
_STEP_SECONDS: Final = 0.25
"""Longest wait of a step for a request to end."""


_Task: TypeAlias = "asyncio.Task[tuple[Completion, int | None]]"


class ServerEngine(Engine):
    """Runs a model on a server that is running already.

    Parameters
    ----------
    model_path
        Folder of the same Hugging Face model here: its vocabulary is read, its weights are not.
    url
        Where the server is: ``http://HOST:PORT``, with or without ``/v1``.
    model
        The name under which it serves the model. Left out: the one that it serves from a folder
        or under a name that ends as ``model_path`` does.
    concurrency
        Requests under way, always as many while there is work. A server runs some 256 at once and
        queues the rest.
    api_key_env
        Environment variable that holds the server's key. A key never stands in a campaign file.
    timeout_seconds
        For one answer; a long trajectory on a busy server takes its time.
    attempts
        How often one answer is asked for; the waits between double from one second to a minute.
    context_limit
        Most ids of a sample; None for what the server says.

    Raises
    ------
    data.errors.MisuseError
        If the server cannot take or give token ids, or serves another model, or an option is out
        of its range.
    data.errors.EngineError
        If it cannot be reached.
    """

    def __init__(
        self,
        model_path: str | Path,
        *,
        url: str,
        model: str | None = None,
        concurrency: int = 64,
        api_key_env: str | None = None,
        timeout_seconds: float = 3000.0,
        attempts: int = 8,
        context_limit: int | None = None,
    ) -> None:
        super().__init__()
        self._folder = Path(model_path)
        for name, value in {
            "concurrency": concurrency,
            "attempts": attempts,
            "timeout_seconds": timeout_seconds,
        }.items():
            if not value > 0:
                raise ConfigError(f"engine option {name} is {value}, but must be above 0")
        self._server = Server(
            url=_root(url),
            api_key=_key(api_key_env),
            timeout_seconds=timeout_seconds,
            attempts=attempts,
        )
        self._concurrency = concurrency
        self._vocabulary = _vocabulary(self._folder)
        bias = padding_bias(self._folder, self._vocabulary)
        self._bias = {str(token_id): value for token_id, value in (bias or {}).items()}
        self.reports_cache = False
        """Whether the server says how much of a prompt it found in its cache."""
        self.block_tokens: int | None = None
        """Tokens in a block of the server's cache; None if it does not say."""
        self._queue = RequestQueue()
        self._lock = threading.Lock()
        self._tasks: dict[_Task, SampleRequest] = {}
        self._ended: queue.SimpleQueue[tuple[SampleRequest, _Task]] = queue.SimpleQueue()
        self._client: Client | None = None
        self._loop = OwnLoop()
        try:
            self._loop.run(self._try_out(model, context_limit))
        except BaseException:
            self._loop.close()
            raise
        self._check = TreeChecker(context_limit=self._context_limit, vocabulary=self._vocabulary)

    @property
    def context_limit(self) -> int:
        """Most token ids, prompt and generation together, that a sample may have."""
        return self._context_limit

    # -- what the server can do ----------------------------------------------------------------

    async def _try_out(self, model: str | None, context_limit: int | None) -> None:
        """Find the model, and see whether the server does what a campaign needs."""
        async with self._server.client(1) as client:
            self._model, served = await self._find_model(client, model)
            limit = served.get("max_model_len")
            if not isinstance(limit, int) and context_limit is None:
                raise MisuseError(
                    f"the server {self._server.url} does not say how long its context is; set the "
                    f"engine option context_limit {_set('context_limit')}"
                )
            if context_limit is not None and (
                context_limit < 1 or (isinstance(limit, int) and context_limit > limit)
            ):
                raise ConfigError(
                    f"engine option context_limit is {context_limit}, but the server "
                    f"{self._server.url} has {limit}"
                )
            self._context_limit = int(context_limit or limit or 0)
            first = await self._try_ids(client)
            await self._try_stop(client, first)
            await self._try_seed(client)
            self._version = await vllm_version(client)
            self.block_tokens = await cache_block_tokens(client)
        if not self.reports_cache:
            _LOG.warning(
                "the server %s does not say what it found in its prefix cache, so the prefill "
                "amplification stays unknown; start it with --enable-prompt-tokens-details",
                self._server.url,
            )

    async def _find_model(self, client: Client, asked: str | None) -> tuple[str, dict[str, Any]]:
        try:
            reply = await self._server.ask(client, "GET", "/v1/models")
        except RefusedError as error:
            raise self._refused(error, "it does not list its models") from error
        models = [entry for entry in _list(reply.get("data")) if isinstance(entry, dict)]
        names = [str(entry.get("id")) for entry in models]
        folder = self._folder.resolve().name
        for name, entry in zip(names, models, strict=True):
            ends = {
                str(entry.get(key, "")).rstrip("/").rpartition("/")[2] for key in ("id", "root")
            }
            if name == asked or (asked is None and folder in ends):
                return name, entry
        wanted = f"named {asked!r}" if asked is not None else f"that ends in {folder!r}"
        raise MisuseError(
            f"the server {self._server.url} serves no model {wanted}, but "
            f"{', '.join(map(repr, names)) or 'none'}; set the engine option model "
            f"{_set('model')} to the right one"
        )

    async def _try_ids(self, client: Client) -> list[int]:
        """Send ids and see that the same come back, and that what is generated is ids too."""
        reply = await self._ask_probe(client)
        choice = self._choice(reply)
        ids = choice.get("token_ids")
        if not ids:
            raise MisuseError(
                f"the server {self._server.url} gives text, not token ids (no token_ids in its "
                f"completions), and text cannot be turned back into what the model wrote; {_START}"
            )
        if isinstance(echoed := choice.get("prompt_token_ids"), list) and echoed != _PROBE_IDS:
            raise MisuseError(
                f"the server {self._server.url} changed the ids of a prompt: {_PROBE_IDS[:4]} "
                f"became {str(echoed[:4])[:80]}; {_START}"
            )
        return [int(token) for token in ids]

    def _choice(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return what a completion holds. Some servers say of an error that all went well."""
        choices = _list(reply.get("choices"))
        if choices and isinstance(choices[0], dict):
            return choices[0]
        raise MisuseError(
            f"the server {self._server.url} answers with no completion but with "
            f"{quoted(json.dumps(reply))}; see its log, and {_START}"
        )

    async def _try_stop(self, client: Client, first: list[int]) -> None:
        reply = await self._ask_probe(client, stop_token_ids=[first[0]])
        # Of a prompt that was just seen: some versions leave out a count of zero.
        self.reports_cache = _cached_tokens(reply) is not None
        choice = self._choice(reply)
        if choice.get("token_ids") != first[:1] or choice.get("finish_reason") != "stop":
            raise MisuseError(
                f"the server {self._server.url} does not end at stop_token_ids, or leaves the id "
                f"out, so a campaign could not tell where thinking ended; {_START}"
            )

    async def _try_seed(self, client: Client) -> None:
        replies = [await self._ask_probe(client, temperature=1.0, seed=7) for _ in range(2)]
        first, second = (self._choice(reply).get("token_ids") for reply in replies)
        if first != second:
            _LOG.warning(
                "the server %s gave two samples of one seed that differ; a run on it cannot be "
                "repeated to the token",
                self._server.url,
            )

    async def _ask_probe(self, client: Client, **others: Any) -> dict[str, Any]:
        body = {
            **self._body(_PROBE_IDS, SamplingParameters(temperature=0.0), seed=0),
            "max_tokens": _PROBE_TOKENS,
            **others,
        }
        try:
            return await self._server.ask(client, "POST", "/v1/completions", body)
        except RefusedError as error:
            raise self._refused(error, "it does not take token ids as a prompt") from error

    def _refused(self, error: RefusedError, what: str) -> MisuseError:
        if error.status in (401, 403):
            return MisuseError(
                f"the server {self._server.url} wants another key ({error}); set the engine option "
                f"api_key_env to the environment variable that holds it {_set('api_key_env')}"
            )
        return MisuseError(
            f"the server {self._server.url} cannot be used: {what} (HTTP {error.status}: {error}); "
            f"{_START}"
        )

    # -- work ----------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Requests that are under way at once."""
        return self._concurrency

    @property
    def wants_more(self) -> bool:
        """Whether more trees should be submitted, if there are any.

        Requests go on while the owner writes rows and makes prompts, which may take as long as
        several short ones: so several times as many wait here as are under way.
        """
        return self._waiting < _ROUNDS_WAITING * self._concurrency

    @property
    def _waiting(self) -> int:
        return len(self._queue)

    def _take(self, ticket: int, tree: AnyTree) -> None:
        # One to read was refused before it came here.
        assert isinstance(tree, PromptTree)
        self._check(tree)
        check_vllm_sampling(tree.sampling)
        if self.reports_cache:
            self._count(ticket, least=tree.prefill_least_tokens)
        if self._client is None:
            self._client = self._server.client(self._concurrency)
        with self._lock:
            self._queue.add(ticket, tree)
        self._loop.soon(self._send)

    def _work(self) -> None:
        """Wait a little until a request or some have ended."""
        ended = []
        # A server may never answer: whoever steps must be able to drop what is under way.
        with contextlib.suppress(queue.Empty):
            ended.append(self._ended.get(timeout=_STEP_SECONDS))
        ended += [self._ended.get() for _ in range(self._ended.qsize())]
        for request, task in ended:
            if request.tree not in self._flights:
                continue  # It was dropped, or another request of its tree has failed.
            try:
                made, cached = task.result()
            except RequestError as error:
                self._tree_failed(request.tree, error)
                continue
            self._count_sample(request, made, cached)
            self._sample_ended(request.tree, request.branch, request.sample, made)
        if not self._flights:
            self._hang_up()

    def _send(self) -> None:
        """Send what waits while fewer requests are under way than may be; called by the loop."""
        while len(self._tasks) < self._concurrency:
            with self._lock:
                if self._queue.first is None:
                    return
                request, tree = self._queue.pop()
            assert self._client is not None
            task = asyncio.get_running_loop().create_task(self._sample(self._client, request, tree))
            self._tasks[task] = request
            task.add_done_callback(self._answered)

    def _answered(self, task: "_Task") -> None:
        """Take note of a request that ended, and send the next at once; called by the loop."""
        request = self._tasks.pop(task, None)
        if request is None:
            return  # It was dropped.
        self.pulse += 1
        if not task.cancelled():
            task.exception()  # Looked at: that of a tree that has failed already is never raised.
        self._send()
        self._ended.put((request, task))

    def _forget(self, tickets: frozenset[int]) -> None:
        if tickets:
            with self._lock:
                self._queue.drop(tickets)
            self._loop.run(self._cancel(tickets))

    async def _cancel(self, tickets: frozenset[int]) -> None:
        """Cancel the requests of trees, and wait until they are gone."""
        gone = [task for task, request in self._tasks.items() if request.tree in tickets]
        for task in gone:
            del self._tasks[task]
            task.cancel()
        # Their places are free for what waits.
        self._send()
        await asyncio.gather(*gone, return_exceptions=True)

    def _hang_up(self) -> None:
        """Close the connections: a server does not keep idle ones for ever."""
        if self._client is not None:
            client, self._client = self._client, None
            self._loop.run(client.aclose())

    def close(self) -> None:
        """Drop what is under way, and the connections."""
        self.drop()
        self._hang_up()
        self._loop.close()

    async def _sample(
        self, client: Client, request: SampleRequest, tree: PromptTree
    ) -> tuple[Completion, int | None]:
        """Return one sample, and how much of its prompt the server says it had cached."""
        limit = min(tree.max_tokens, self._context_limit - len(request.prompt_ids))
        body = {
            **self._body(request.prompt_ids, tree.sampling, seed=request.seed),
            "max_tokens": limit,
            "stop_token_ids": sorted(tree.stop_ids | tree.pause_ids),
            "stop": list(tree.stop_texts),
        }
        made: list[Completion] = []

        def check(reply: dict[str, Any]) -> None:
            made.append(_completion(reply, request.prompt_ids, limit))

        try:
            reply = await self._server.ask(
                client, "POST", "/v1/completions", body, check=check, on_failure=self._beat
            )
        except RefusedError as error:
            raise RequestError(
                f"the server {self._server.url} refused it (HTTP {error.status}): {error}",
                tree=request.tree,
                branch=request.branch,
            ) from error
        except UnansweredError as error:
            raise RequestError(str(error), tree=request.tree, branch=request.branch) from error
        return self._until_box(made[-1], tree.box_after), _cached_tokens(reply)

    def _until_box(self, made: Completion, before: str | None) -> Completion:
        """Return a sample up to its first box: no server can be told to end it there."""
        if before is None:
            return made
        boxed = self._watcher.until_box(made.token_ids, before)
        return made if boxed is None else Completion(token_ids=boxed, finish="stop")

    @cached_property
    def _watcher(self) -> StopTextWatcher:
        """What finds the ends of boxes."""
        return StopTextWatcher(self._folder)

    def _beat(self) -> None:
        """Show a watchdog that a failure is not a hang: a request has its own time-out."""
        self.pulse += 1

    def _count_sample(self, request: SampleRequest, made: Completion, cached: int | None) -> None:
        prefill = block_least = 0
        if self.reports_cache:
            prefill = len(request.prompt_ids) - (cached or 0)
            block_least = request.block_least_tokens(self.block_tokens or _USUAL_BLOCK_TOKENS)
        self._count(
            request.tree,
            prefill=prefill,
            block_least=block_least,
            generated=len(made.token_ids),
        )

    def _body(
        self, prompt_ids: list[int], sampling: SamplingParameters, *, seed: int
    ) -> dict[str, Any]:
        return {
            "model": self._model,
            "prompt": prompt_ids,
            "return_token_ids": True,
            "add_special_tokens": False,
            "seed": seed,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "presence_penalty": sampling.presence_penalty,
            # A server takes what is left out from the model's generation_config.json.
            "min_p": 0.0,
            "frequency_penalty": 0.0,
            "repetition_penalty": 1.0,
            # Only what the tree names ends a sample, and it stays in its tokens.
            "ignore_eos": True,
            "include_stop_str_in_output": True,
            "skip_special_tokens": False,
            **({"logit_bias": self._bias} if self._bias else {}),
        }

    def describe(self) -> dict[str, str | int | float | None]:
        """Return what a manifest should know. Where the server is may change, and is no part."""
        return {
            "engine": "server",
            "server_version": self._version,
            "model": self._model,
            "context_limit": self._context_limit,
            "block_tokens": self.block_tokens,
        }


def _set(option: str) -> str:
    """Return where an option of the engine is set."""
    return f"(under [engine.options], or by --option {option}=VALUE)"


def _root(url: str) -> str:
    try:
        parts = urlsplit(url)
        can_be = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # Half an IPv6 address, a port above 65,535.
        can_be = False
    if not can_be or not url.isprintable():
        raise ConfigError(f"engine option url is {url!r}, but must be like http://HOST:PORT")
    if parts.username or parts.password:
        raise ConfigError(
            "engine option url holds a user or a password; put the key into an environment "
            "variable and name that in api_key_env"
        )
    return url.rstrip("/").removesuffix("/v1")


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not (key := os.environ.get(variable)):
        raise ConfigError(f"engine option api_key_env names {variable}, which is not set")
    return key


def _vocabulary(folder: Path) -> int:
    """Return how many ids the model knows."""
    values = config_values(folder)
    for section in (values, values.get("text_config")):
        if isinstance(section, dict) and isinstance(section.get("vocab_size"), int):
            return int(section["vocab_size"])
    raise MisuseError(
        f"{folder / 'config.json'}: it does not say how large the vocabulary is (vocab_size)"
    )


def _completion(reply: dict[str, Any], prompt_ids: list[int], limit: int) -> Completion:
    """Read one answer.

    Raises
    ------
    ValueError
        If it is not what was asked for.
    """
    choices = _list(reply.get("choices"))
    if len(choices) != 1 or not isinstance(choices[0], dict):
        raise ValueError(f"an answer with {len(choices)} choices instead of one")
    choice = choices[0]
    ids, finish = choice.get("token_ids"), choice.get("finish_reason")
    if not isinstance(ids, list) or not ids or not all(type(token) is int for token in ids):
        raise ValueError("an answer without token ids")
    if len(ids) > limit:
        raise ValueError(f"an answer of {len(ids)} tokens with a limit of {limit}")
    if (echoed := choice.get("prompt_token_ids")) is not None and echoed != prompt_ids:
        raise ValueError("an answer to another prompt")
    if finish not in ("stop", "length"):
        raise ValueError(f"an answer that ended for the reason {finish!r}")
    return Completion(token_ids=tuple(ids), finish=finish)


def _cached_tokens(reply: dict[str, Any]) -> int | None:
    usage = reply.get("usage")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return cached if isinstance(cached, int) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
