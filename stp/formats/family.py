r"""Model families: what models of one kind have in common, read from TOML files.

The families of this package and a user's own are read by the same code. One file, whole::

    patterns = ["*my-thinker*"]
    thinking_start = "<think>\n"
    thinking_end = "</think>"
    answer_open = "\n\n"
    instruction_place = "system"
    answer_stops = ["<|im_end|>"]

    [sampling]
    temperature = 0.6
    top_p = 0.95
"""

import functools
import importlib.resources
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from data.errors import ConfigError, MisuseError
from data.files import plain_file
from stp.engines.base import SamplingParameters

NEVER_ASKED: Final = "not asked to think"
"""The off switch of models that were never trained to think."""


class ModelFamily(BaseModel):
    """What models of one kind have in common.

    Attributes
    ----------
    name
        What the family is called. In a user's file the default is the file's name.
    patterns
        Shell patterns of model names, compared in lower case with the name's last part.
    thinking_start
        Text that opens thinking. It is put at the end of a prompt unless the chat template has
        put it there already.
    thinking_end
        Text that ends thinking.
    answer_open
        Text between the end of thinking and the answer, such as a channel's header.
    answer_close
        Tag that closes the answer, such as ``</answer>``. It and the tag of ``answer_open`` are
        taken off an answer's text; their tokens count as the answer's.
    markers
        ``"tokens"``: the end is one token of the vocabulary and is looked for by its id; the same
        characters spelled in other tokens are not the end. ``"written"``: the vocabulary has no
        such tokens, and the model writes the markers as text. ``"either"``: tokens where the
        vocabulary has them, else written, for models whose releases differ.
    thinks_unasked
        Whether the model thinks where nobody says anything about it.
    end_needs_answer_open
        Whether thinking ends only where ``answer_open`` follows the end. Set for models that think
        in several messages, each closed by the same token.
    instruction_place
        Where a benchmark's instruction goes: the system role, or the user's message before or
        after the question.
    instruction_separator
        Between instruction and question in the user's message.
    thinking_request
        What asks for thinking in words, such as ``/think``; by default it stands before the
        instruction.
    thinking_off_request
        What turns thinking off in words, such as ``/no_think``.
    request_place
        Where the two requests go, if not with the instruction.
    answer_stops
        Tokens that end the model's turn, beside the tokenizer's own end-of-sequence token.
    sampling
        How thinking, answers and probes are sampled.
    sampling_off
        The same where thinking is off; by default no other.
    chat_template
        A Jinja template instead of the tokenizer's own.
    template_options
        Further variables of the chat template.
    thinking_off_options
        Those that take their place where thinking is turned off, such as ``enable_thinking``.
    source
        Where the settings are from: a model card or a paper.
    template_date
        What a template that writes today's date gets instead, so that the same question is the
        same prompt on every day.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    patterns: tuple[str, ...] = ()
    thinking_start: str = Field(min_length=1)
    thinking_end: str = Field(min_length=1)
    answer_open: str = ""
    answer_close: str = ""
    markers: Literal["tokens", "written", "either"] = "tokens"
    thinks_unasked: bool = True
    end_needs_answer_open: bool = False
    instruction_place: Literal["system", "user_before", "user_after"] = "user_before"
    instruction_separator: str = "\n\n"
    thinking_request: str = ""
    thinking_off_request: str = ""
    request_place: Literal["system", "user_before", "user_after"] | None = None
    answer_stops: tuple[str, ...] = ()
    sampling: SamplingParameters = Field(default_factory=SamplingParameters)
    sampling_off: SamplingParameters | None = None
    chat_template: str | None = None
    template_options: dict[str, str | bool | int] = Field(default_factory=dict)
    thinking_off_options: dict[str, str | bool | int] = Field(default_factory=dict)
    template_date: date = date(2026, 1, 1)
    source: str = ""

    @field_validator("thinking_end")
    @classmethod
    def _no_blank_end(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must hold more than white space")
        return value

    @field_validator("end_needs_answer_open")
    @classmethod
    def _header_to_look_for(cls, value: bool, info: ValidationInfo) -> bool:
        if value and (info.data.get("markers") != "tokens" or not info.data.get("answer_open")):
            raise ValueError("needs markers = 'tokens' and an answer_open that is not empty")
        return value

    @field_validator("sampling", "sampling_off")
    @classmethod
    def _sampling_in_range(cls, value: SamplingParameters | None) -> SamplingParameters | None:
        if value is None:
            return None
        if not 0 <= value.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more, not {value.temperature}")
        if not 0 < value.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {value.top_p}")
        if value.top_k < 0:
            raise ValueError(f"top_k must be 0 (off) or more, not {value.top_k}")
        if not -2 <= value.presence_penalty <= 2:
            raise ValueError(
                f"presence_penalty must lie between -2 and 2, not {value.presence_penalty}"
            )
        return value

    @property
    def off_switch(self) -> str | None:
        """How the model's own mode without thinking is asked for; None if it has none.

        Examples
        --------
        >>> get_family("qwen3").off_switch, get_family("deepseek-r1-distill-qwen").off_switch
        ('enable_thinking = false', None)
        """
        if self.thinking_off_options:
            options = self.thinking_off_options.items()
            return ", ".join(f"{key} = {str(value).lower()}" for key, value in options)
        if self.thinking_off_request:
            return f'"{self.thinking_off_request}"'
        return None if self.thinks_unasked else NEVER_ASKED

    def answer_text(self, text: str) -> str:
        """Return an answer's text without the family's tags around it.

        A closing tag that text follows is left: what follows it may be the answer.

        Examples
        --------
        >>> get_family("granite-3.3").answer_text("<response>It is 4.</response>")
        'It is 4.'
        >>> get_family("qwen3").answer_text("It is 4.</response>")
        'It is 4.</response>'
        """
        if not self.answer_close:
            return text
        opening = self.answer_open.strip()
        if opening and text.lstrip().startswith(opening):
            text = text.lstrip().removeprefix(opening)
        if text.rstrip().endswith(self.answer_close):
            text = text.rstrip().removesuffix(self.answer_close)
        return text

    def settings(self) -> dict[str, Any]:
        """Return what decides over prompts and samples, as JSON has it: no names, no sources."""
        # What a model does unasked is nothing to who asks, and tags are taken off what is sampled.
        left_out = {"name", "patterns", "source", "thinks_unasked", "answer_close"}
        return self.model_dump(mode="json", exclude=left_out)


def family_names() -> tuple[str, ...]:
    """Return the names of the families in this package, in alphabetical order."""
    return tuple(packaged_families())


def get_family(name_or_path: str | Path) -> ModelFamily:
    """Return a family of this package by its name, or a user's own from a TOML file.

    Parameters
    ----------
    name_or_path
        A name of :func:`family_names`, or a path that ends in ``.toml``.

    Raises
    ------
    MisuseError
        If there is no such family or file.
    ConfigError
        If the file is not TOML, has an unknown key or a bad value; the message names each.
    """
    if str(name_or_path).endswith(".toml"):
        path = Path(name_or_path)
        try:
            text = plain_file(path).read_text(encoding="utf-8")
        except OSError as error:
            raise MisuseError(f"family file {path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"family file {path} is not UTF-8 text") from error
        return _read_family(text, where=f"family file {path}", default_name=path.stem)
    families = packaged_families()
    if str(name_or_path) not in families:
        raise MisuseError(
            f"unknown model family {str(name_or_path)!r}; known are {', '.join(families)}, and a "
            "family of your own is given by the path of a .toml file"
        )
    return families[str(name_or_path)]


@functools.cache
def packaged_families() -> Mapping[str, ModelFamily]:
    """Return the families of this package by name, in alphabetical order."""
    folder = importlib.resources.files("stp.formats") / "families"
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=lambda entry: entry.name,
    )
    families = [
        _read_family(
            entry.read_text(encoding="utf-8"),
            where=f"packaged family file {entry.name}",
            default_name=entry.name.removesuffix(".toml"),
        )
        for entry in files
    ]
    return {family.name: family for family in families}


def _read_family(text: str, *, where: str, default_name: str) -> ModelFamily:
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid TOML: {error}") from error
    try:
        return ModelFamily.model_validate({"name": default_name, **values})
    except ValidationError as error:
        problems = "; ".join(_problem(dict(item)) for item in error.errors())
        raise ConfigError(f"{where}: {problems}") from error


def _problem(item: dict[str, Any]) -> str:
    """Return one finding of pydantic in words, with the field's dotted name first."""
    field = ".".join(str(part) for part in item["loc"])
    if item["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{field}: unknown key"
    if item["type"] == "missing":
        return f"{field}: missing"
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{field}: {message[:1].lower()}{message[1:]}"
