"""Models behind an API, through the providers of inspect_ai; nothing here is specific to one.

Token counts are those of the provider's usage; what it does not report stays unknown.
"""

import asyncio
import dataclasses
import fnmatch
import json
import logging
import os
import re
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from data.errors import ConfigError, EngineError, MissingDependencyError, MisuseError
from stp.asking.base import (
    Finish,
    Request,
    RequestGroup,
    Responder,
    Response,
    Settings,
    failed,
    parted_noted,
)
from stp.asking.providers import PROVIDERS
from stp.asking.reach import check_reachable, split_address
from stp.asking.tools import Tool, get_tools, use
from stp.formats import Found, ModelFamily, find_family
from stp.formats.written import written_thinking

_LOG = logging.getLogger(__name__)

DEFAULT_CONNECTIONS = 16
MAX_FAILURES_IN_A_ROW = 10
OWN_SERVER = "openai-api/local/"
"""Provider and service of a model whose OpenAI-compatible server is given by its address alone."""

_ALWAYS_THINKING = (
    "o1*",
    "o3*",
    "o4*",
    "gpt-5",
    "gpt-5-mini*",
    "gpt-5-nano*",
    "gpt-5-20*",
    "gemini-2.5-pro*",
    "gemini-3*",
    "magistral*",
    "deepseek-reasoner*",
    "grok-3-mini*",
    "grok-4",
)
"""Models of providers that have no mode without thinking, by what the providers say of them. What
is not listed here is seen in the usage of each response."""

_MARKUP = re.compile(r"\[/?(?:bold|blue|italic|red)\]")
"""Colours that inspect_ai writes into its errors."""

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Switch:
    """What turns thinking on or off at a server, in its chat template or in words; its tags."""

    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    request: str = ""
    answer_text: Callable[[str], str] = str
    """Takes the family's tags off an answer."""


_Way = tuple[Settings, _Switch, Sequence[Tool]]
"""How the requests of a group are answered."""


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
    family
        Thinking format of the model behind ``base_url``, which says how thinking is turned on and
        off; by default what the model's name says.
    plain
        Whether that model is known not to think.

    Notes
    -----
    Keys are read from the environment by the provider (``OPENAI_API_KEY`` and so on). A server of
    a user gets ``LOCAL_API_KEY``, or no key.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        connections: int = DEFAULT_CONNECTIONS,
        options: dict[str, Any] | None = None,
        family: ModelFamily | None = None,
        plain: bool = False,
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
        named = Found(family, "named", "named") if family is not None or plain else None
        self._found = named or find_family(model)
        self._open()  # A missing package or key is said before anything is asked.

    def respond(self, *groups: RequestGroup) -> None:
        """Answer requests, several at a time; see :meth:`Responder.respond`.

        A server that cannot be reached is an error at once, not after the retries of every request.
        """
        if self._base_url and not self._reached:
            check_reachable(self._base_url)
            self._reached = True
        settings = [group.settings for group in groups]
        ways = [(each, self._switch(each), get_tools(each.tools)) for each in settings]
        with parted_noted(groups) as noted:
            _run(self._respond(noted, ways))

    def describe(self) -> dict[str, str | int | float | None]:
        """Return the model, its address and the version of inspect_ai."""
        from importlib.metadata import version

        return {
            "engine": "api",
            "model": self._model,
            "base_url": self._base_url,
            "inspect_ai": version("inspect_ai"),
            "thinking_off": self._off_switch(),
        }

    @property
    def _own_server(self) -> bool:
        return self._model.startswith(OWN_SERVER)

    def _off_switch(self) -> str | None:
        """Return how thinking is turned off; None if there is no way."""
        name = self._model.rpartition("/")[2].lower()
        if not self._own_server:
            always = any(fnmatch.fnmatchcase(name, pattern) for pattern in _ALWAYS_THINKING)
            return None if always else "reasoning effort none"
        family, pattern = self._found.family, self._found.pattern
        if family is None:
            return "none needed: it does not think" if pattern else None
        # To close an empty thinking takes the prompt's tokens, which a chat server does not take.
        return family.off_switch and f"chat template: {family.off_switch}"

    def _switch(self, settings: Settings) -> _Switch:
        """Return what turns thinking on or off.

        Raises
        ------
        data.errors.ConfigError
            If it is to be off and the model has no such mode, or the way is not known.
        """
        family = self._found.family if self._own_server else None
        if settings.thinking == "off" and self._off_switch() is None:
            unknown = self._own_server and family is None
            raise ConfigError(
                f"thinking of {self._model} cannot be turned off: "
                + (
                    "no model family fits its name; name one (;family=NAME, or none if it does "
                    "not think; `stp families` lists them)"
                    if unknown
                    else "it has no mode without thinking; ask for its least effort or a budget"
                )
            )
        if family is None:
            return _Switch()
        if settings.thinking == "default":
            return _Switch(answer_text=family.answer_text)
        off = settings.thinking == "off"
        options = family.thinking_off_options if off else family.template_options
        request = family.thinking_off_request if off else family.thinking_request
        return _Switch(dict(options), request, family.answer_text)

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

    async def _respond(self, groups: Sequence[RequestGroup], ways: Sequence[_Way]) -> None:
        waiting = deque(
            (group.on_response, request, way)
            for group, way in zip(groups, ways, strict=True)
            for request in group.requests
        )
        failures = 0

        async def work() -> None:
            nonlocal failures
            while waiting:
                on_response, request, way = waiting.popleft()
                # A task of its own: inspect_ai keeps all of a task's exchanges in memory.
                response = await asyncio.create_task(
                    _answer(model, request, *way, self._connections)
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
                    for _ in range(min(self._connections, len(waiting))):
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
    switch: _Switch,
    tools: Sequence[Tool],
    connections: int,
) -> Response:
    started = time.monotonic()
    own_server = str(model).startswith(OWN_SERVER)
    config = _config(request, settings, switch, connections, own_server)
    if switch.request:
        system = " ".join(part for part in (switch.request, request.system) if part)
        request = dataclasses.replace(request, system=system)
    try:
        response = await _conversation(model, request, settings, tools, config)
    # Whatever a provider raises, after its retries, costs this one request its response.
    except Exception as error:  # noqa: BLE001 (it is kept in the response)
        return failed(request, _reason(error), time.monotonic() - started)
    text = switch.answer_text(response.text)
    return dataclasses.replace(response, text=text, seconds=time.monotonic() - started)


def _reason(error: BaseException) -> str:
    """Return the first cause: a retry's error only says that it gave up."""
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


def _config(
    request: Request, settings: Settings, switch: _Switch, connections: int, own_server: bool
) -> Any:
    from inspect_ai.model import GenerateConfig

    effort, budget = settings.reasoning_effort, settings.thinking_tokens
    if settings.thinking == "off":
        effort, budget = None if own_server else "none", None
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
        extra_body={"chat_template_kwargs": switch.options} if switch.options else None,
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
    if settings.thinking == "off" and counted:
        raise EngineError(
            f"thinking was turned off, but the model thought for {counted} tokens: it "
            "has no mode without thinking here"
        )
    # Whoever says that a server's model thinks, and gets no thinking apart, gets it in the text.
    open_from_start = settings.thinking == "on" and own_server and not thoughts and not counted
    text = message.text
    found = written_thinking(text, open_from_start=open_from_start)
    answered = found is None or found.closed
    if found is not None:
        thoughts.append(text[found.start : found.end].strip())
        text = text[found.answer :].strip()
    if any(thoughts):
        # Who left the thinking in the text (inspect_ai parts it too) has counted 0 of it.
        counted = counted or None
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
        parted=found is not None,
    )


def _total(counts: Any) -> int | None:
    """Return the sum, or None if one is unknown."""
    known = list(counts)
    return None if any(count is None for count in known) else sum(known)
