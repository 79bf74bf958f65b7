"""Requests in, responses out, whatever model answers.

A request is plain text with a seed, a response plain text with token counts. What is unknown is
None, never 0: an API that does not say how long its model thought leaves ``thinking_tokens`` None.
Nothing here knows benchmarks, answers or verdicts.
"""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from data.errors import ConfigError
from data.hints import did_you_mean
from stp.engines.base import SamplingParameters

_LOG = logging.getLogger(__name__)

Finish = Literal["stop", "length", "filtered", "error"]
"""``"stop"``: the model ended its turn; ``"length"``: a token limit did; ``"filtered"``: a provider
held the rest back; ``"error"``: nobody answered, see :attr:`Response.error`."""

Thinking = Literal["default", "on", "off"]
"""Whether to ask for thinking; ``"default"`` is what the model does by itself."""

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

TOOL_NAMES: Final = ("calculator", "python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model.

    Attributes
    ----------
    id
        Names the response; unique within a store.
    prompt
        The user's message, whole.
    seed
        Of the sample, non-negative and below 2**63. An API may not keep it.
    system
        The system message; none by default.
    """

    id: str
    prompt: str
    seed: int
    system: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How requests are answered. None leaves a choice to the model or its provider.

    Attributes
    ----------
    max_tokens
        Most tokens of one response, thinking included.
    thinking_tokens
        Most thinking tokens. A local model that reaches them has its thinking closed for it and
        then answers; an API model is given them as its budget.
    temperature, top_p, top_k, presence_penalty
        How tokens are drawn; by default as the model's family or the provider does.
    thinking
        Whether to ask for thinking.
    reasoning_effort
        How hard an API model is to think. Local models have no such dial; their family's chat
        template may, and is then given it.
    prompt_prefix, prompt_suffix
        Put before and after every prompt, separated by an empty line.
    tools
        Names of :data:`TOOL_NAMES` that the model may call.
    tool_rounds
        Most rounds of tool calls in one response.
    timeout_seconds
        Longest wait for one response of an API.
    retries
        How often a request that failed is sent again.
    """

    max_tokens: int | None = None
    thinking_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    thinking: Thinking = "default"
    reasoning_effort: ReasoningEffort | None = None
    prompt_prefix: str = ""
    prompt_suffix: str = ""
    tools: tuple[str, ...] = ()
    tool_rounds: int = 8
    timeout_seconds: float | None = None
    retries: int = 3

    def __post_init__(self) -> None:
        for name in ("max_tokens", "tool_rounds"):
            _check(name, getattr(self, name), least=1)
        for name in ("thinking_tokens", "top_k", "retries"):
            _check(name, getattr(self, name), least=0)
        _check("temperature", self.temperature, least=0, most=100)
        _check("top_p", self.top_p, least=0, most=1)
        _check("presence_penalty", self.presence_penalty, least=-2, most=2)
        _check("timeout_seconds", self.timeout_seconds, least=0.001)
        if self.thinking not in get_args(Thinking):
            raise ConfigError(f"thinking is {self.thinking!r}; it must be default, on or off")
        if self.reasoning_effort not in (None, *get_args(ReasoningEffort)):
            known = ", ".join(get_args(ReasoningEffort))
            raise ConfigError(f"reasoning_effort is {self.reasoning_effort!r}; choose from {known}")
        for tool in self.tools:
            if tool not in TOOL_NAMES:
                raise ConfigError(
                    f"no tool {tool!r}; there are {', '.join(TOOL_NAMES)}"
                    f"{did_you_mean(tool, TOOL_NAMES)}"
                )

    @property
    def greedy(self) -> str | None:
        """What leaves one token to choose from, in words; None if chance decides.

        Only what is set here is known: the family's or the provider's own settings may be greedy.
        """
        return SamplingParameters(
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=1.0 if self.top_p is None else self.top_p,
            top_k=0 if self.top_k is None else self.top_k,
        ).greedy

    def dress(self, prompt: str) -> str:
        """Return a prompt between prefix and suffix."""
        return "\n\n".join(
            part for part in (self.prompt_prefix, prompt, self.prompt_suffix) if part
        )


def _check(
    name: str, value: float | None, *, least: float = -math.inf, most: float = math.inf
) -> None:
    if value is None:
        return
    if not (math.isfinite(value) and least <= value <= most):
        limits = f"{least:g} or more" if most == math.inf else f"from {least:g} to {most:g}"
        raise ConfigError(f"{name} is {value!r}; it must be {limits}")


MOST_TOKENS = 2**40
"""No response has more tokens or words; a larger count is an error of its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back for one request.

    Attributes
    ----------
    id
        The request's.
    text
        The answer's text, without thinking. Empty if thinking did not end: such a response has no
        answer.
    thinking
        The thinking's text; None if the model does not think or its provider keeps it.
    answer_tokens, thinking_tokens
        Token counts of the two parts, each None if unknown. Local engines count ids; a model that
        does not think has 0 thinking tokens; a thinking model whose end of thinking is missing has
        thought for its whole output. APIs are believed.
    output_tokens
        All tokens generated, markers and end of turn included; None if unknown.
    finish
        Why it ended.
    seconds
        From the request's start to its end; requests of one batch overlap.
    tool_calls
        Calls of tools, failed ones included.
    tool_text
        What the model wrote before the last result of a tool, results included; None without.
    parted
        Whether thinking and answer were separated by tags written in the text, where nothing else
        told them apart.
    ran_on
        Whether the answer goes on into the next turn, or into new thinking; None where nobody can
        tell, since the chat template is not at hand.
    error
        Why there is no response, in one line; None if there is one. A failure of this program or of
        a provider is never an answer.

    Raises
    ------
    TypeError
        If a text is not a string, or a count is not a whole number.
    ValueError
        If a count or the seconds are negative, or larger than a model could write, or the end is
        none that there is.
    """

    id: str
    text: str
    thinking: str | None = None
    answer_tokens: int | None = None
    thinking_tokens: int | None = None
    output_tokens: int | None = None
    finish: Finish = "stop"
    seconds: float = 0.0
    tool_calls: int = 0
    tool_text: str | None = None
    parted: bool = False
    ran_on: bool | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        for name in ("id", "text"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} is {getattr(self, name)!r:.60}; a text is needed")
        for name in ("thinking", "tool_text", "error"):
            if not isinstance(getattr(self, name), str | None):
                raise TypeError(f"{name} is {getattr(self, name)!r:.60}; a text or null is needed")
        for name in ("answer_tokens", "thinking_tokens", "output_tokens", "tool_calls"):
            count = getattr(self, name)
            if count is None and name != "tool_calls":
                continue
            if isinstance(count, bool) or not isinstance(count, int):
                raise TypeError(f"{name} is {count!r:.60}; a whole number is needed")
            if not 0 <= count < MOST_TOKENS:
                raise ValueError(f"{name} is {count}; it lies between 0 and 2^40")
        if not isinstance(self.parted, bool):
            raise TypeError(f"parted is {self.parted!r:.60}; true or false is needed")
        if not isinstance(self.ran_on, bool | None):
            raise TypeError(f"ran_on is {self.ran_on!r:.60}; true, false or null is needed")
        if self.finish not in get_args(Finish):
            known = ", ".join(get_args(Finish))
            raise ValueError(f"finish is {self.finish!r:.60}; it must be one of {known}")
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"seconds is {self.seconds}; it must be a number of at least 0")


def failed(request: Request, reason: str, seconds: float = 0.0) -> Response:
    """Return the response to a request that was not answered."""
    line = " ".join(reason.split())[:500] or "unknown failure"
    return Response(id=request.id, text="", finish="error", seconds=seconds, error=line)


OnResponse = Callable[[Response], None]
"""Called once for each request as soon as its response is there, from one thread at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup:
    """Requests that are answered in the same way.

    Attributes
    ----------
    requests
        Their ids are unique within the group.
    settings
        How they are answered.
    on_response
        Takes their responses.
    """

    requests: Sequence[Request]
    settings: Settings
    on_response: OnResponse


@contextmanager
def parted_noted(groups: Sequence[RequestGroup]) -> Iterator[list[RequestGroup]]:
    """Report at the end how many responses had their thinking written in the text."""
    parted = 0

    def noted(on_response: OnResponse) -> OnResponse:
        def take(response: Response) -> None:
            nonlocal parted
            parted += response.parted
            on_response(response)

        return take

    try:
        yield [replace(group, on_response=noted(group.on_response)) for group in groups]
    finally:
        if parted:
            _LOG.warning(
                "%d response(s) had thinking written in the text, between tags: it was separated "
                "from "
                "the answers and counts as thinking",
                parted,
            )


Description = dict[str, str | int | float | None]
"""What :meth:`Responder.describe` says."""


def identity(description: Description) -> dict[str, str | int | float]:
    """Return what makes a model the same one, wherever it lies or is served.

    What is not known of it is left out.

    Examples
    --------
    >>> identity({"engine": "vllm", "model": "m", "path": "/here", "revision": None})
    {'engine': 'vllm', 'model': 'm'}
    """
    known = ("engine", "model", "revision", "weights_hash", "source_hash", "family", "dtype")
    values = ((key, description.get(key)) for key in known)
    return {key: value for key, value in values if value is not None}


def reply_identity(description: Description) -> list[tuple[str, str | int | float | None]]:
    """Return what the names of a judge's stored replies are made from, of its model.

    Replies are found by it: another list here asks every judge again. Whatever runs a model on,
    its replies are the same.

    Examples
    --------
    >>> reply_identity({"engine": "vllm", "model": "m", "weights_hash": "w"})
    [('model', 'm'), ('revision', None), ('weights_hash', 'w')]
    """
    known = [(key, description.get(key)) for key in ("model", "revision", "weights_hash")]
    # Only functions have one: replies of all other judges keep their names.
    return known + [(key, description[key]) for key in ("source_hash",) if key in description]


class Responder(ABC):
    """Answers requests: our own model, an API's, or a function."""

    @abstractmethod
    def respond(self, *groups: RequestGroup) -> None:
        """Answer every request of every group, in any order.

        The groups are one stream of requests: those of the next group are begun while the last
        ones of the group before are still being answered. A request that cannot be answered gets a
        response with an ``error``; it never costs another request its response.

        Raises
        ------
        data.errors.EngineError
            If the model or its provider fails for every request.
        data.errors.ConfigError
            If the settings of a group ask for something that this model does not have; nothing is
            asked then.
        """

    @abstractmethod
    def describe(self) -> dict[str, str | int | float | None]:
        """Return what a run's record should know: model, revision, engine, versions."""

    def close(self) -> None:
        """Free the model. The default has nothing to free."""

    def __enter__(self) -> "Responder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
