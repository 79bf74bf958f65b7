"""How a local model is prompted, thinking or not: prompts as ids, outputs separated by ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from data.errors import ConfigError
from stp.engines.base import SamplingParameters
from stp.formats import ModelFamily, ThinkingFormat
from stp.formats.family import NEVER_ASKED
from stp.formats.turn_end import TurnEnd, find_turn_end
from stp.formats.written import part_ids
from stp.tokenizers import Tokenizer, backend, exact_ids, token_bytes, tokenizer_name


@dataclass(frozen=True, slots=True)
class Parts:
    """An output in two parts, as ids; an answer that was not begun has none.

    Attributes
    ----------
    thinking_ids
        The thinking, markers left out.
    answer_ids
        The answer, the id that ended it left out.
    answered
        Whether an answer was begun.
    written
        Whether the two were separated by tags that the model wrote where none were expected.
    """

    thinking_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    answered: bool
    written: bool = False


class Chat(Protocol):
    """What :class:`stp.asking.engine.EngineResponder` needs to know of a model's format."""

    thinks: bool
    stop_ids: frozenset[int]
    close_ids: tuple[int, ...]
    sampling: SamplingParameters

    def prompt_ids(self, prompt: str, system: str | None) -> tuple[int, ...]:
        """Return the prompt, up to where the model begins."""

    def split(self, output_ids: Sequence[int]) -> Parts:
        """Split what the model wrote."""

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""

    def answer_text(self, ids: Sequence[int]) -> str:
        """Return the text of an answer's ids: no special tokens, no tags around it."""

    def runs_on(self, answer_ids: Sequence[int]) -> bool:
        """Return whether an answer goes on into the next turn, or into new thinking."""

    def ids(self, text: str) -> tuple[int, ...]:
        """Return ids that spell a text exactly."""


class ThinkingChat:
    """A model that thinks. With ``off``, it is asked not to."""

    def __init__(self, thinking_format: ThinkingFormat, *, off: bool = False) -> None:
        self._format = thinking_format
        self._off = off
        self.thinks = not off
        self.stop_ids = thinking_format.answer_stop_ids
        self.close_ids = thinking_format.close_ids
        family = thinking_format.family
        self.sampling = (family.sampling_off if off else None) or family.sampling

    def prompt_ids(self, prompt: str, system: str | None) -> tuple[int, ...]:
        """Return the prompt; a system text goes where the family wants instructions."""
        ask = self._format.answer_prompt_ids if self._off else self._format.prompt_ids
        return ask(prompt, system or "")

    def split(self, output_ids: Sequence[int]) -> Parts:
        """Split an output. A model that was asked not to think may still think."""
        if self._off:
            return _by_tags(output_ids, self.stop_ids, self._format.forms)
        parts = self._format.split(output_ids)
        answer_ids = _unstopped(parts.answer_ids, self.stop_ids)
        return Parts(parts.thinking_ids, answer_ids, parts.closed)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        return self._format.decode(ids, skip_special=True)

    def answer_text(self, ids: Sequence[int]) -> str:
        """Return the text of an answer's ids: no special tokens, no tags around it."""
        return self._format.answer_text(ids)

    def runs_on(self, answer_ids: Sequence[int]) -> bool:
        """Return whether an answer goes on into the next turn, or into new thinking."""
        return self._format.turn_end.runs_on(answer_ids, self._format.forms)

    def ids(self, text: str) -> tuple[int, ...]:
        """Return ids that spell a text exactly."""
        return exact_ids(self._format.tokenizer, text)


class PlainChat:
    """A model that does not think: its chat template, or bare text where it has none."""

    thinks = False
    close_ids: tuple[int, ...] = ()

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        turn_end: TurnEnd | None = None,
        sampling: SamplingParameters | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._forms = token_bytes(tokenizer)
        self._turn_end = turn_end or find_turn_end(None, tokenizer)
        self.stop_ids = self._turn_end.ids
        self.sampling = sampling or SamplingParameters()

    def prompt_ids(self, prompt: str, system: str | None) -> tuple[int, ...]:
        """Return the prompt up to where the answer begins."""
        from jinja2 import TemplateError

        if not getattr(self._tokenizer, "chat_template", None):
            text = "\n\n".join(part for part in (system, prompt) if part) + "\n"
            return tuple(self._tokenizer.encode(text))
        messages = [{"role": "user", "content": prompt}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        try:
            text = str(
                self._tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=True
                )
            )
        # A template is a program: it may divide by zero as well.
        except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError) as error:
            name = tokenizer_name(self._tokenizer)
            raise ConfigError(f"the chat template of {name} refuses a prompt: {error}") from error
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def split(self, output_ids: Sequence[int]) -> Parts:
        """Split an output by tags that the model wrote; without any all of it is answer."""
        return _by_tags(output_ids, self.stop_ids, self._forms)

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        return str(backend(self._tokenizer).decode(list(ids), skip_special_tokens=True))

    def answer_text(self, ids: Sequence[int]) -> str:
        """Return the text of an answer's ids: no format, no tags."""
        return self.text(ids)

    def runs_on(self, answer_ids: Sequence[int]) -> bool:
        """Return whether an answer goes on into the next turn, or into new thinking."""
        return self._turn_end.runs_on(answer_ids, self._forms)

    def ids(self, text: str) -> tuple[int, ...]:
        """Return ids that spell a text exactly."""
        return exact_ids(self._tokenizer, text)


def choose_chat(
    tokenizer: Tokenizer,
    family: ModelFamily | None,
    *,
    thinking: str,
    reasoning_effort: str | None,
    turn_end: TurnEnd | None = None,
) -> Chat:
    """Return how a model is prompted under a run's settings.

    Parameters
    ----------
    tokenizer
        The model's.
    family
        Its thinking format; None if it does not think.
    thinking
        ``"on"``, ``"off"`` or ``"default"``, which is what the model does unasked. A family that
        was never trained to think is asked to think only with ``"on"``.
    reasoning_effort
        Given to the family's chat template.
    turn_end
        Where a turn ends of a model that does not think; by default what its tokenizer's folder
        says.

    Raises
    ------
    data.errors.ConfigError
        If thinking or an effort is asked of a model that has none.
    """
    if family is None or (family.off_switch == NEVER_ASKED and thinking != "on"):
        if thinking == "on":
            raise ConfigError(
                "this model has no thinking format, so it cannot be asked to think; choose the "
                "family written-tags to have it think between tags that it writes"
            )
        if reasoning_effort is not None:
            raise ConfigError("this model does not think, and has no reasoning effort to set")
        sampling = None if family is None else family.sampling
        return PlainChat(tokenizer, turn_end=turn_end, sampling=sampling)
    if reasoning_effort is not None:
        if "reasoning_effort" not in family.template_options:
            raise ConfigError(
                f"the chat template of the model family {family.name!r} has no reasoning effort; "
                "limit its thinking tokens instead"
            )
        options = {**family.template_options, "reasoning_effort": reasoning_effort}
        family = family.model_copy(update={"template_options": options})
    off = thinking == "off" or (thinking == "default" and not family.thinks_unasked)
    return ThinkingChat(ThinkingFormat(family, tokenizer), off=off)


def _by_tags(ids: Sequence[int], stop_ids: frozenset[int], forms: Sequence[bytes]) -> Parts:
    thinking_ids, answer_ids, answered = part_ids(_unstopped(ids, stop_ids), forms)
    written = bool(thinking_ids) or not answered
    return Parts(thinking_ids, answer_ids, answered, written)


def _unstopped(ids: Sequence[int], stop_ids: frozenset[int]) -> tuple[int, ...]:
    whole = tuple(ids)
    return whole[:-1] if whole and whole[-1] in stop_ids else whole
