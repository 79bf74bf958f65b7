"""The chat-completions protocol: what a request may say, and what is said back.

Only the protocol's fields and the extra field ``stp`` are read; what this server cannot do (tools,
several choices) is refused, unless the field asks for nothing.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from baselines.interface import Setting
from data.errors import MisuseError
from evaluator.live.policy import Policy, find_setting
from evaluator.live.thinking import Outcome
from stp.formats import ThinkingFormat

_ASKS_NOTHING: Final[Mapping[str, tuple[Any, ...]]] = {
    "n": (1,),
    "stop": ([], ""),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "logit_bias": ({},),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "top_k": (0, -1),
    "min_p": (0,),
    "include_reasoning": (True,),
}
"""Fields that this server does not have, with the values that ask for nothing, as clients send."""
_NO_MATTER: Final = frozenset(
    {
        "user",
        "metadata",
        "store",
        "service_tier",
        "parallel_tool_calls",
        "safety_identifier",
        "prompt_cache_key",
    }
)
"""Fields of the protocol that change no reply."""
_SHOWN: Final = 40
"""Most characters of a request's text that an error holds."""
_FINISH: Final = {"stop": "stop", "length": "length", "none": "stop"}


class Message(BaseModel):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str

    @field_validator("content", mode="before")
    @classmethod
    def _joined(cls, content: Any) -> Any:
        """Return the text of a message that comes in parts."""
        if isinstance(content, list):
            for part in content:
                known = isinstance(part, Mapping)
                kind = part.get("type") if known else part
                if not known or kind != "text" or not isinstance(part.get("text"), str):
                    what = f"'{shown(kind)}'" if isinstance(kind, str) else "what names no type"
                    raise ValueError(f"{what} is not a text part, and only text is read here")
            content = "".join(part["text"] for part in content)
        if isinstance(content, str) and any("\ud800" <= c <= "\udfff" for c in content):
            raise ValueError("it holds half a character (a lone surrogate)")
        return content

    def plain(self) -> dict[str, str]:
        """Return it as chat templates take it."""
        role = "system" if self.role == "developer" else self.role
        return {"role": role, "content": self.content}


class StpOptions(BaseModel):
    """The extra field ``stp``: another setting, the method off, decisions in the reply."""

    model_config = ConfigDict(extra="forbid")

    method: Literal["on", "off"] = "on"
    setting: Any = None
    decisions: bool = False


class StreamOptions(BaseModel):
    """The protocol's ``stream_options``."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """A request, as far as it is read."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    messages: Annotated[list[Message], Field(min_length=1)]
    model: str = ""
    stream: bool = False
    stream_options: StreamOptions | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    stp: StpOptions = Field(default_factory=StpOptions)

    @property
    def answer_tokens(self) -> int | None:
        """Most tokens of the answer; thinking has a limit of its own."""
        return self.max_completion_tokens or self.max_tokens


def read_request(values: Any) -> ChatRequest:
    """Return a request from its JSON.

    Raises
    ------
    data.errors.MisuseError
        In one line: the field, and what is wrong with it.
    """
    if not isinstance(values, Mapping):
        raise MisuseError("the body is not a JSON object")
    read = {}
    for name, value in values.items():
        # Clients send null for what they leave out.
        if value is None or name in _NO_MATTER or value in _ASKS_NOTHING.get(name, ()):
            continue
        if name not in ChatRequest.model_fields:
            raise MisuseError(f"{shown(name)}: this server does not have it; leave it out")
        read[name] = value
    try:
        return ChatRequest.model_validate(read)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = first["msg"].removeprefix("Value error, ")
        where = ".".join(shown(str(part)) for part in first["loc"])
        raise MisuseError(f"{where}: {what}") from error


def shown(text: str) -> str:
    r"""Return a request's text as an error may hold it: cut, and on one line.

    It may be as long as the body, and hold half a character, which no reply can.

    Examples
    --------
    >>> print(shown("\ud800\n"), shown("x" * 50))
    \ud800\n xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    """
    return repr(text[:_SHOWN])[1:-1][:_SHOWN]


def setting_of(
    request: ChatRequest, policy: Policy | None, allowed: Sequence[Setting] | None = None
) -> Setting:
    """Return the setting that a request names; None for the policy's own.

    Parameters
    ----------
    request, policy
        What is asked for, and the method that runs.
    allowed
        The settings that a request may name; None for the whole grid.

    Raises
    ------
    data.errors.MisuseError
        If there is no method, or it is not a setting of its grid, or not one that is allowed.
    """
    if request.stp.setting is None:
        return None
    if policy is None:
        raise MisuseError("stp.setting needs a method, and this server runs none")
    setting = find_setting(policy.label, policy.settings, str(request.stp.setting))
    if allowed is not None and setting not in allowed:
        raise MisuseError(
            f"stp.setting: {setting} is outside the bounds of this server, {allowed[0]} to "
            f"{allowed[-1]}"
        )
    return setting


class TextStream:
    """Token ids to text as they come; what is half of a character waits for its other half.

    Parameters
    ----------
    format
        The model's.
    answer
        Whether it is an answer: the family's tags around it are left out, and what may become one
        waits until it is known. All parts together are :meth:`ThinkingFormat.answer_text`.
    """

    def __init__(self, format: ThinkingFormat, *, answer: bool = False) -> None:
        self._format = format
        family = format.family
        self._closing = family.answer_close if answer else ""
        self._opening = family.answer_open.strip() if self._closing else ""
        self._ids: list[int] = []
        self._told = ""

    def add(self, ids: tuple[int, ...], *, last: bool = False) -> str:
        """Return the text that ids add."""
        self._ids += ids
        text = self._format.decode(self._ids, skip_special=True)
        begins = bool(self._opening) and self._opening.startswith(text.lstrip())
        if not last and (begins or text.endswith("\N{REPLACEMENT CHARACTER}")):
            return ""
        if self._opening and text.lstrip().startswith(self._opening):
            text = text.lstrip().removeprefix(self._opening)
        if last and self._closing and text.rstrip().endswith(self._closing):
            text = text.rstrip().removesuffix(self._closing)
        told = text if last else text[: len(text) - self._held(text)]
        new = told[len(self._told) :]
        self._told = told
        if told == text and text.endswith("\n") and len(self._ids) > 256:
            # The text after a line break is decoded alone: decoding the whole would take ever
            # longer.
            self._ids, self._told, self._opening = [], "", ""
        return new

    def _held(self, text: str) -> int:
        """Return how many of the last characters may be the closing tag, or its beginning."""
        if not self._closing:
            return 0
        bare = text.rstrip()
        if bare.endswith(self._closing):
            return len(text) - len(bare) + len(self._closing)
        sizes = range(min(len(self._closing) - 1, len(text)), 0, -1)
        return next((n for n in sizes if text.endswith(self._closing[:n])), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What all parts of a reply have in common."""

    id: str
    model: str
    policy: Policy | None
    setting: Setting
    prompt_tokens: int
    decisions: bool

    def head(self, kind: str) -> dict[str, Any]:
        """Return the fields of every object."""
        return {"id": self.id, "object": kind, "created": int(time.time()), "model": self.model}

    def whole(self, outcome: Outcome, thinking: str, answer: str) -> dict[str, Any]:
        """Return the reply to a request that does not stream."""
        message = {
            "role": "assistant",
            "content": answer,
            "reasoning_content": thinking,
            "reasoning": thinking,
        }
        choice = {"index": 0, "message": message, "finish_reason": self.finish(outcome)}
        return {
            **self.head("chat.completion"),
            "choices": [choice],
            "usage": self.usage(outcome),
            "stp": self.stopped(outcome),
        }

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return a part of a reply that streams."""
        choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
        return {**self.head("chat.completion.chunk"), "choices": [choice]}

    @staticmethod
    def finish(outcome: Outcome) -> str:
        """Return the protocol's reason for the end."""
        return _FINISH[outcome.answer_finish]

    def usage(self, outcome: Outcome) -> dict[str, Any]:
        """Return the tokens: thinking, signals and answer are all completion tokens."""
        thinking, answer = len(outcome.thinking_ids), len(outcome.answer_ids)
        completion = thinking + answer + outcome.signal_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
            "completion_tokens_details": {
                "reasoning_tokens": thinking,
                "signal_tokens": outcome.signal_tokens,
                "answer_tokens": answer,
            },
        }

    def stopped(self, outcome: Outcome) -> dict[str, Any]:
        """Return why and where the thinking ended."""
        policy = self.policy
        shown: dict[str, Any] = {
            "reason": outcome.reason,
            "position": outcome.position,
            "tokens": outcome.tokens,
            "method": None if policy is None else policy.label,
            "setting": None if policy is None else _plain(self.setting),
        }
        if self.decisions:
            shown["decisions"] = [
                {
                    "position": entry.position,
                    "tokens": entry.tokens,
                    "score": None if entry.score is None else _plain(entry.score),
                    "stops": entry.stops,
                }
                for entry in outcome.decisions
            ]
        return shown


def _plain(value: Any) -> Any:
    """Return a value that JSON has: it knows no infinity."""
    if isinstance(value, float) and abs(value) == float("inf"):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
