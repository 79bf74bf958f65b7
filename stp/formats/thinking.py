"""A family bound to a tokenizer: prompts as token ids, and outputs split into thinking and answer.

Ids are copied here, never decoded and encoded again. Text is made once for a prompt, and looked at
(through the bytes of each token) only where a model writes its markers in ordinary tokens.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from data.errors import ConfigError
from stp.folder_tokenizer import FolderTokenizer
from stp.formats.family import ModelFamily
from stp.formats.turn_end import find_turn_end
from stp.tokenizers import Tokenizer, backend, exact_ids, token_bytes, tokenizer_name

ThinkingFinish = Literal["end", "limit", "stop"]
"""``"end"``: the end of thinking was met; ``"limit"``: the output broke off inside thinking;
``"stop"``: the model ended its turn inside thinking."""


_AT_ONCE = 256
"""Prompts that are made together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitOutput:
    """An output's two parts; markers belong to neither.

    Attributes
    ----------
    thinking_ids
        All of the thinking. Messages within it keep the ids between them.
    answer_ids
        What followed the opening of the answer, the id that stopped it included. Empty without an
        end of thinking.
    thinking_finish
        Why the thinking ended.
    """

    thinking_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    thinking_finish: ThinkingFinish

    @property
    def closed(self) -> bool:
        """Whether the end of thinking was met; without it the thinking is cut."""
        return self.thinking_finish == "end"


class ThinkingFormat:
    """How one model's prompts, thinking and answers look in token ids.

    Parameters
    ----------
    family
        What models of this kind have in common.
    tokenizer
        A fast tokenizer of transformers. A ``tokenizers.Tokenizer`` serves for everything but
        :meth:`prompt_ids`, for it has no chat template, nor an end-of-sequence token.

    Attributes
    ----------
    family, tokenizer
        As given.
    written
        Whether thinking and answer are separated by their text, not by ids.
    forms
        The bytes of every id.
    thinking_stop_ids
        Ids that end the sampling of thinking: the end of thinking and the ends of a turn.
    thinking_stop_texts
        Texts that do; empty unless the family's markers are written.
    answer_stop_ids
        Ids that end the sampling of an answer.
    turn_end
        The same with the places that name them, and how the next turn begins.
    end_ids
        The end of thinking alone: one id, unless the model writes it in ordinary tokens.
    close_ids
        The end of thinking and the opening of the answer: what follows a prefix in a probe.

    Raises
    ------
    data.errors.ConfigError
        If the tokenizer lacks a token that the family needs.
    """

    def __init__(self, family: ModelFamily, tokenizer: Tokenizer) -> None:
        self.family = family
        self.tokenizer = tokenizer
        self.forms = token_bytes(tokenizer)
        self._start_ids = exact_ids(tokenizer, family.thinking_start.lstrip(), self.forms)
        markers = (family.thinking_start.strip(), family.thinking_end)
        self._control_tokens = tuple(
            added.content
            for added in backend(tokenizer).get_added_tokens_decoder().values()
            if added.special or added.content in markers
        )
        end_id = backend(tokenizer).token_to_id(family.thinking_end)
        missing = self._missing_marker(end_id)
        if family.markers == "tokens" and missing is not None:
            raise ConfigError(
                f"the tokenizer of {tokenizer_name(tokenizer)} has no token {missing!r}, which the "
                f"model family {family.name!r} needs; choose the family written-tags or write a "
                "family TOML file"
            )
        self.written = family.markers == "written" or missing is not None
        self._end_id: int | None = end_id
        self.end_ids = exact_ids(tokenizer, family.thinking_end, self.forms)
        self.close_ids = exact_ids(tokenizer, family.thinking_end + family.answer_open, self.forms)
        self.turn_end = find_turn_end(family, tokenizer)
        self.answer_stop_ids = self.turn_end.ids
        ends = () if end_id is None else (end_id,)
        self.thinking_stop_ids = self.answer_stop_ids.union(ends)
        stop_texts = (family.thinking_end,) if self.written else ()
        self.thinking_stop_texts: tuple[str, ...] = stop_texts

    def control_token_in(self, text: str) -> str | None:
        """Return a special token or a marker that the tokenizer reads in a text, or None."""
        return next((token for token in self._control_tokens if token in text), None)

    def opening_ids(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text that an answer is to begin with; none for an empty one.

        Raises
        ------
        data.errors.ConfigError
            If the tokenizer reads a special token or a marker in it, or cannot spell it.
        """
        if not text:
            return ()
        token = self.control_token_in(text)
        if token is not None:
            raise ConfigError(
                f"the opening of answers holds {token!r}, a control token of "
                f"{tokenizer_name(self.tokenizer)}; write one of ordinary text"
            )
        return exact_ids(self.tokenizer, text, self.forms)

    def knows(self, token_ids: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Return which ids stand for some text; bool of the ids' shape."""
        has_text = np.array([bool(form) for form in self.forms] + [False])
        inside = (token_ids >= 0) & (token_ids < len(self.forms))
        return has_text[np.where(inside, token_ids, len(self.forms))]

    def _missing_marker(self, end_id: int | None) -> str | None:
        """Return a marker that is not a token of the tokenizer, or None."""
        family, inner = self.family, backend(self.tokenizer)
        start = family.thinking_start.strip()
        if end_id is None:
            return family.thinking_end
        # A start may be several tokens, but it must begin with one of its own, such as <|channel|>.
        if inner.token_to_id(start) is not None:
            return None
        return None if self._start_ids[0] in inner.get_added_tokens_decoder() else start

    def prompt_ids(self, question_text: str, instruction: str = "") -> tuple[int, ...]:
        """Return a prompt that ends just after the start of thinking.

        Parameters
        ----------
        question_text
            What is asked.
        instruction
            What the benchmark asks for beside it, put where the family wants it.

        Raises
        ------
        data.errors.ConfigError
            If there is no chat template, or it cannot be used.
        """
        request = self.family.thinking_request
        return self.chat_prompt_ids(self._messages(question_text, instruction, request))

    def prompts_ids(
        self, question_texts: Sequence[str], instruction: str = ""
    ) -> Iterator[npt.NDArray[np.int32]]:
        """Yield :meth:`prompt_ids` of many questions, in a fraction of the time.

        A template runs in a process of its own, and what it costs to ask it is paid once for many.
        """
        request = self.family.thinking_request
        for start in range(0, len(question_texts), _AT_ONCE):
            texts = question_texts[start : start + _AT_ONCE]
            asked = [self._messages(text, instruction, request) for text in texts]
            for ids in self._encoded(self._rendered(asked)):
                yield np.array(ids, np.int32)

    def chat_prompt_ids(self, messages: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
        """Return the prompt of a conversation; it ends just after the start of thinking.

        Parameters
        ----------
        messages
            Each with ``role`` and ``content``, as chat templates take them; nothing is added.

        Raises
        ------
        data.errors.ConfigError
            As :meth:`prompt_ids`.
        """
        (ids,) = self._encoded(self._rendered([[dict(message) for message in messages]]))
        return tuple(ids)

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of rendered prompts, each followed by the start of thinking."""
        start = self.family.thinking_start
        # A template may open thinking with other white space around the marker than the family.
        opened = [
            text if text.rstrip().endswith(start.rstrip()) else text + start for text in texts
        ]
        if isinstance(self.tokenizer, FolderTokenizer):
            return self.tokenizer.encode_all(opened)
        return [self.tokenizer.encode(text, add_special_tokens=False) for text in opened]

    def answer_prompt_ids(self, question_text: str, instruction: str = "") -> tuple[int, ...]:
        """Return a prompt that ends just before the answer: no thinking is asked for.

        Where the model has a mode without thinking (:attr:`ModelFamily.off_switch`), the prompt is
        that mode's as the chat template writes it. If it has none, an empty thinking is put
        after the prompt. Every "no thinking" of this project is made by this function.

        Parameters
        ----------
        question_text, instruction
            As :meth:`prompt_ids`.

        Raises
        ------
        data.errors.ConfigError
            If there is no chat template, or it cannot be used, or it does not know the options
            that turn thinking off.
        """
        family = self.family
        asked = self._messages(question_text, instruction, family.thinking_off_request)
        (text,) = self._rendered([asked], off=True)
        end = text.rstrip()
        if family.thinking_off_options and not end.endswith(family.thinking_end):
            asked = self._messages(question_text, instruction, family.thinking_request)
            if [text] == self._rendered([asked]):
                raise ConfigError(
                    f"the chat template of {tokenizer_name(self.tokenizer)} does not know "
                    f"{family.off_switch}, by which the model family {family.name!r} turns "
                    "thinking off; give a family TOML file with its own thinking_off_options"
                )
        opened = end.endswith(family.thinking_start.rstrip())
        if end.endswith(family.thinking_end) or (family.off_switch is not None and not opened):
            return tuple(self.tokenizer.encode(text, add_special_tokens=False))
        if not opened:
            text += family.thinking_start
        return tuple(self.tokenizer.encode(text, add_special_tokens=False)) + self.close_ids

    def _messages(self, question_text: str, instruction: str, request: str) -> list[dict[str, str]]:
        """Return the messages, each text at its family's place."""
        family = self.family
        places: dict[str, list[str]] = {"system": [], "user_before": [], "user_after": []}
        places[family.request_place or family.instruction_place].append(request)
        places[family.instruction_place].append(instruction)
        texts = {place: " ".join(filter(None, parts)) for place, parts in places.items()}
        user = family.instruction_separator.join(
            filter(None, (texts["user_before"], question_text, texts["user_after"]))
        )
        messages = [{"role": "user", "content": user}]
        if texts["system"]:
            messages.insert(0, {"role": "system", "content": texts["system"]})
        return messages

    def _rendered(
        self, conversations: list[list[dict[str, str]]], *, off: bool = False
    ) -> list[str]:
        family, name = self.family, tokenizer_name(self.tokenizer)
        if family.chat_template is None and not getattr(self.tokenizer, "chat_template", None):
            raise ConfigError(
                f"{name} has no chat template; add chat_template.jinja to its folder, or a "
                "chat_template to a family TOML file"
            )
        from jinja2 import TemplateError

        day = datetime.combine(family.template_date, time())
        try:
            texts: list[str] = self.tokenizer.apply_chat_template(
                conversations,
                tokenize=False,
                add_generation_prompt=True,
                chat_template=family.chat_template,
                strftime_now=day.strftime,
                **{**family.template_options, **(family.thinking_off_options if off else {})},
            )
        # A template is a program: it may divide by zero as well.
        except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError) as error:
            raise ConfigError(
                f"the chat template of {name} refuses the model family {family.name!r}: {error}; "
                "another instruction_place in a family TOML file may suit it"
            ) from error
        if not off and any(text.rstrip().endswith(family.thinking_end) for text in texts):
            raise ConfigError(
                f"the chat template of {name} closes the thinking in the prompt; set the option "
                "that turns thinking on under [template_options] in a family TOML file"
            )
        return texts

    def split(self, output_ids: Sequence[int]) -> SplitOutput:
        """Split an output into thinking and answer.

        The output follows a prompt of :meth:`prompt_ids`; a start of thinking that it repeats is
        dropped. Without an end of thinking all of it is thinking.
        """
        ids = tuple(int(token_id) for token_id in output_ids)
        stopped = bool(ids) and ids[-1] in self.answer_stop_ids
        body = ids[:-1] if stopped else ids
        if self.written:
            start, end = self._written_start(body), self._written_end(body)
        else:
            start, end = self._start(body), self._end(body)
        if end is None:
            return SplitOutput(
                thinking_ids=body[start:],
                answer_ids=(),
                thinking_finish="stop" if stopped else "limit",
            )
        thinking_stop, answer_start = end
        return SplitOutput(
            thinking_ids=ids[start:thinking_stop],
            answer_ids=ids[answer_start:],
            thinking_finish="end",
        )

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        """Return the text of ids; by default as the model sees it, special tokens written out."""
        text = backend(self.tokenizer).decode(
            [int(token_id) for token_id in ids], skip_special_tokens=skip_special
        )
        return str(text)

    def answer_text(self, ids: Sequence[int]) -> str:
        """Return an answer's text, without special tokens and the family's tags around it."""
        return self.family.answer_text(self.decode(ids, skip_special=True))

    def _form(self, token_id: int) -> bytes:
        """Return a token's bytes; none for an id of padding, which stands for no text."""
        return self.forms[token_id] if 0 <= token_id < len(self.forms) else b""

    def _start(self, ids: tuple[int, ...]) -> int:
        """Return where thinking starts: 0, or after a start marker that the output repeats."""
        first = next((at for at, token in enumerate(ids) if self._form(token).strip()), len(ids))
        after = first + len(self._start_ids)
        if ids[first:after] == self._start_ids:
            return after
        blank = not b"".join(self.forms[token] for token in self._start_ids[1:]).strip()
        return first + 1 if blank and ids[first : first + 1] == self._start_ids[:1] else 0

    def _end(self, ids: tuple[int, ...]) -> tuple[int, int] | None:
        """Return where thinking stops and where the answer starts."""
        open_ids = self.close_ids[1:]
        for at, token in enumerate(ids):
            if token != self._end_id:
                continue
            rest = ids[at + 1 : at + 1 + len(open_ids)]
            if rest == open_ids:
                return at, at + 1 + len(open_ids)
            if not self.family.end_needs_answer_open:
                return at, at + 1
            if rest == open_ids[: len(ids) - at - 1]:
                # The output broke off in the answer's header.
                return at, len(ids)
        return None

    def _written_start(self, ids: tuple[int, ...]) -> int:
        text = b"".join(map(self._form, ids))
        marker = self.family.thinking_start.strip().encode()
        at = len(text) - len(text.lstrip())
        if not text.startswith(marker, at):
            return 0
        offsets = self._offsets(ids)
        return next(index for index, offset in enumerate(offsets) if offset >= at + len(marker))

    def _written_end(self, ids: tuple[int, ...]) -> tuple[int, int] | None:
        """Return the tokens wholly before the end marker, and the first that says some answer."""
        text = b"".join(map(self._form, ids))
        at = text.find(self.family.thinking_end.encode())
        if at < 0:
            return None
        after = at + len(self.family.thinking_end.encode())
        opening = self.family.answer_open.encode()
        if text.startswith(opening, after):
            after += len(opening)
        offsets = self._offsets(ids)
        thinking_stop = sum(offset <= at for offset in offsets[1:])
        for index, (begin, end) in enumerate(itertools.pairwise(offsets)):
            # A token across the marker's end is kept if it holds text of the answer: better a
            # stray ">" in an answer than an answer without its first word.
            if begin >= after or (end > after and text[after:end].strip()):
                return thinking_stop, index
        return thinking_stop, len(ids)

    def _offsets(self, ids: tuple[int, ...]) -> list[int]:
        """Return where each token's bytes start, and the end of the last."""
        return [0, *itertools.accumulate(len(self._form(token)) for token in ids)]
