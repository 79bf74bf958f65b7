"""Models behind an API, through the providers of inspect_ai: nothing here is one provider's own.

Token counts are what the provider's usage says; what it does not say stays unknown.
"""

import asyncio
import dataclasses
import json
import logging
import os
import re
import time
from collections import deque
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from data.errors import ConfigError, EngineError, MissingDependencyError, MisuseError
from stp.asking.base import Finish, OnResponse, Request, Responder, Response, Settings, failed
from stp.asking.providers import PROVIDERS
from stp.asking.reach import check_reachable, split_address
from stp.asking.tools import Tool, get_tools, use

_LOG = logging.getLogger(__name__)

DEFAULT_CONNECTIONS = 16
MAX_FAILURES_IN_A_ROW = 10
OWN_SERVER = "openai-api/local/"
"""Provider and service of a model whose OpenAI-compatible server is given by its address alone."""

_MARKUP = re.compile(r"\[/?(?:bold|blue|italic|red)\]")
"""Colours that inspect_ai writes into its errors."""

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
}


class ApiResponder(Responder):
    """Answers requests with a model of any provider that inspect_ai has.

    Parameters
    ----------
    model
        ``"provider/model"`` as inspect_ai names it (``"openai/gpt-4.1-mini"``), or a bare model
        name where ``base_url`` is given.
    base_url
        Address of an OpenAI-compatible server, or another address of the provider.
    connections
        Requests at a time.
    options
        Further arguments of the provider.

    Notes
    -----
    Keys are read from the environment by the provider (``OPENAI_API_KEY`` and so on). A server of
    one's own gets ``LOCAL_API_KEY``, or no key.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        connections: int = DEFAULT_CONNECTIONS,
        options: dict[str, Any] | None = None,
    ) -> None:
        if connections < 1:
            raise MisuseError(f"connections is {connections}; it must be at least 1")
        if "/" not in model or (base_url and model.partition("/")[0] not in PROVIDERS):
            if not base_url:
                raise MisuseError(
                    f"model {model!r} names no provider; write provider/model, such as "
                    "openai/gpt-4.1-mini, or give the base URL of its server"
                )
            model = OWN_SERVER + model
        if base_url:
            split_address(base_url)
        self._model = model
        self._base_url = base_url
        self._reached = False
        self._connections = connections
        self._options = options or {}
        self._open()  # A missing package or key is said before anything is asked.

    def respond(
        self, requests: Sequence[Request], settings: Settings, on_response: OnResponse
    ) -> None:
        """Answer requests, several at a time; see :meth:`Responder.respond`.

        A server that is not there is an error at once, not after the retries of every request.
        """
        if self._base_url and not self._reached:
            check_reachable(self._base_url)
            self._reached = True
        _run(self._respond(requests, settings, on_response))

    def describe(self) -> dict[str, str | int | float | None]:
        """Return the model, its address and the version of inspect_ai."""
        from importlib.metadata import version

        return {
            "engine": "api",
            "model": self._model,
            "base_url": self._base_url,
            "inspect_ai": version("inspect_ai"),
        }

    def _open(self) -> Any:
        try:
            from inspect_ai.model import get_model
        except ImportError as error:
            raise MissingDependencyError(
                "models behind an API need inspect_ai: pip install 'stp-engine[api]'"
            ) from error
        arguments = dict(self._options)
        if self._model.startswith(OWN_SERVER):
            arguments.setdefault("api_key", os.environ.get("LOCAL_API_KEY") or "none")
        try:
            return get_model(self._model, base_url=self._base_url, memoize=False, **arguments)
        # Providers raise what they like about keys, packages and names.
        except Exception as error:
            line = " ".join(_MARKUP.sub("", str(error)).split()) or type(error).__name__
            raise ConfigError(f"model {self._model}: {line}") from error

    async def _respond(
        self, requests: Sequence[Request], settings: Settings, on_response: OnResponse
    ) -> None:
        waiting = deque(requests)
        failures = 0
        tools = get_tools(settings.tools)

        async def work() -> None:
            nonlocal failures
            while waiting:
                # A task of its own: inspect_ai keeps all of a task's exchanges in memory.
                response = await asyncio.create_task(
                    _answer(model, waiting.popleft(), settings, tools, self._connections)
                )
                on_response(response)
                failures = failures + 1 if response.error is not None else 0
                if failures >= MAX_FAILURES_IN_A_ROW:
                    raise EngineError(
                        f"{self._model} failed on {failures} requests in a row: {response.error}; "
                        "what was answered is kept"
                    )

        async with self._open() as model:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._connections, len(requests))):
                        group.create_task(work())
            except BaseExceptionGroup as many:
                raise many.exceptions[0] from None


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end, from a notebook's own loop too."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


async def _answer(
    model: Any,
    request: Request,
    settings: Settings,
    tools: Sequence[Tool],
    connections: int,
) -> Response:
    started = time.monotonic()
    own_server = str(model).startswith(OWN_SERVER)
    config = _config(request, settings, connections, own_server)
    try:
        response = await _conversation(model, request, settings, tools, config)
    # Whatever a provider raises, after its retries, costs this one request its response.
    except Exception as error:  # noqa: BLE001 (it is kept in the response)
        return failed(request, _reason(error), time.monotonic() - started)
    return dataclasses.replace(response, seconds=time.monotonic() - started)


def _reason(error: BaseException) -> str:
    """Return what went wrong at the bottom: a retry's error only says that it gave up."""
    last = getattr(error, "last_attempt", None)
    inner = last.exception() if last is not None and callable(last.exception) else None
    cause = inner or error.__cause__ or error
    return f"{type(cause).__name__}: {cause}"


async def _conversation(
    model: Any, request: Request, settings: Settings, tools: Sequence[Tool], config: Any
) -> Response:
    """Ask, and let the model use its tools until it answers."""
    from inspect_ai.model import ChatMessageSystem, ChatMessageTool, ChatMessageUser

    messages: list[Any] = [ChatMessageUser(content=settings.dress(request.prompt))]
    if request.system:
        messages.insert(0, ChatMessageSystem(content=request.system))
    outputs: list[Any] = []
    written: list[str] = []
    calls = 0
    while True:
        # In the last round there are no tools, so that the model has to answer.
        offered = _described(tools) if calls < settings.tool_rounds else []
        output = await model.generate(messages, tools=offered, config=config)
        if output.error:
            raise EngineError(str(output.error))
        outputs.append(output)
        asked = output.message.tool_calls or []
        if not asked or not offered:
            own_server = str(model).startswith(OWN_SERVER)
            return _response(request, settings, outputs, calls, written, own_server)
        messages.append(output.message)
        written.append(output.message.text)
        for call in asked:
            calls += 1
            argument = _argument(call.arguments)
            result = await asyncio.to_thread(use, tools, call.function, argument)
            written.append(f"{call.function}: {argument}\n{result}")
            messages.append(
                ChatMessageTool(content=result, tool_call_id=call.id, function=call.function)
            )


def _config(request: Request, settings: Settings, connections: int, own_server: bool) -> Any:
    from inspect_ai.model import GenerateConfig

    effort, budget = settings.reasoning_effort, settings.thinking_tokens
    if settings.thinking == "off":
        effort, budget = "none", None
    elif settings.thinking == "on" and not own_server and effort is None and budget is None:
        effort = "medium"
    timeout = settings.timeout_seconds
    return GenerateConfig(
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        presence_penalty=settings.presence_penalty,
        seed=request.seed % 2**31,  # Providers take 32 bits.
        reasoning_effort=effort,
        reasoning_tokens=budget,
        max_retries=settings.retries,
        max_connections=connections,
        attempt_timeout=None if timeout is None else max(1, round(timeout)),
    )


def _described(tools: Sequence[Tool]) -> list[Any]:
    from inspect_ai.tool import ToolInfo, ToolParam, ToolParams

    return [
        ToolInfo(
            name=tool.name,
            description=tool.description,
            parameters=ToolParams(
                properties={tool.parameter: ToolParam(type="string", description=tool.parameter)},
                required=[tool.parameter],
            ),
        )
        for tool in tools
    ]


def _argument(arguments: object) -> str:
    """Return the text that a model gave to a tool, whatever it called the parameter."""
    if isinstance(arguments, dict) and len(arguments) == 1:
        arguments = next(iter(arguments.values()))
    return arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)


def _response(
    request: Request,
    settings: Settings,
    outputs: Sequence[Any],
    calls: int,
    written: Sequence[str],
    own_server: bool,
) -> Response:
    from inspect_ai.model import ContentReasoning

    message = outputs[-1].message
    content = message.content
    blocks = [] if isinstance(content, str) else content
    thoughts = [
        block.summary or "" if block.redacted else block.reasoning
        for block in blocks
        if isinstance(block, ContentReasoning)
    ]
    usage = [output.usage for output in outputs]
    counted = _total(used and used.reasoning_tokens for used in usage)
    # Whoever says that a server's model thinks, and gets no thinking apart, gets it in the text.
    open_from_start = settings.thinking == "on" and own_server and not thoughts and not counted
    text, written_thinking, answered = _written_thinking(message.text, open_from_start)
    if written_thinking is not None:
        thoughts.append(written_thinking)
    output_tokens = _total(used and used.output_tokens for used in usage)
    thinking_tokens = counted if answered else output_tokens
    if thinking_tokens is None and answered and settings.thinking == "off" and not thoughts:
        thinking_tokens = 0
    answer_tokens = None
    if output_tokens is not None and thinking_tokens is not None:
        answer_tokens = max(0, output_tokens - thinking_tokens)
    return Response(
        id=request.id,
        text=text,
        thinking="\n\n".join(thoughts) if thoughts else None,
        answer_tokens=answer_tokens,
        thinking_tokens=thinking_tokens,
        output_tokens=output_tokens,
        finish=_FINISHES.get(outputs[-1].stop_reason, "stop"),
        tool_calls=calls,
        tool_text="\n".join(written) if calls else None,
    )


def _written_thinking(text: str, open_from_start: bool) -> tuple[str, str | None, bool]:
    """Return answer, thinking and whether there is an answer, of a text that may hold tags.

    A server that does not part the two sends them as the model wrote them; the opening tag may
    have been in the prompt, and the closing one is missing where the output broke off.
    """
    before, end, after = text.partition("</think>")
    opened = open_from_start or before.lstrip().startswith("<think>")
    if end:
        return after.strip(), before.strip().removeprefix("<think>").strip(), True
    if opened:
        return "", before.strip().removeprefix("<think>").strip(), False
    return text, None, True


def _total(counts: Any) -> int | None:
    """Return the sum, or None if one is unknown."""
    known = list(counts)
    return None if any(count is None for count in known) else sum(known)
