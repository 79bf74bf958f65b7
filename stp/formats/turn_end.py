"""Where a model's turn ends: the ids after which no text belongs to the answer.

And, where a model writes on all the same, how the next turn looks that it writes.

Four places name such ids, and no single one of them is enough: a model may name its end of turn in
``generation_config.json`` alone, while its tokenizer names the end of a document. All are taken:

- the family's ``answer_stops``;
- the tokenizer's end-of-sequence token;
- ``generation_config.json``: ``eos_token_id``, a number or a list, and those of its
  ``stop_strings`` that are one token; and, as transformers does, ``eos_token_id`` of
  ``config.json``, of which only control tokens are believed: small models often have a number there
  that means nothing to their tokenizer;
- the control token that the chat template writes after an assistant's message.
"""

import json
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import ConfigError
from stp.formats.family import ModelFamily
from stp.tokenizers import Tokenizer, backend, tokenizer_name

_LOG = logging.getLogger(__name__)

_CONTROL = re.compile(r"<[^<>\s]+>|\[/?[A-Z_]+\]")
"""What a control token looks like that the tokenizer does not mark as special."""

_SAID = "STPANSWER"
_ASKED = "STPQUESTION"
"""Words that no template holds, to find in what it writes. White space and markup might be changed
by a template, letters are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """The ids that end a model's turn, by the place that names them, and what may follow them.

    Attributes
    ----------
    sources
        ``"family"``, ``"tokenizer"``, ``"generation_config"``, ``"config"``, ``"chat_template"``
        to their ids; places that name none are left out.
    stray_ids
        Control tokens that no answer holds, but one that ran on into the next turn or thinks again.
    next_turn
        Finds in an answer's bytes where the next turn begins that the chat template writes in
        ordinary text, such as a line ``USER:``; None where it writes none.
    """

    sources: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stray_ids: frozenset[int] = frozenset()
    next_turn: re.Pattern[bytes] | None = None

    @property
    def ids(self) -> frozenset[int]:
        """All of them."""
        return frozenset().union(*self.sources.values())

    def runs_on(self, answer_ids: Sequence[int], forms: Sequence[bytes]) -> bool:
        """Return whether an answer runs on into the next turn, or into new thinking.

        Parameters
        ----------
        answer_ids
            The answer's.
        forms
            The bytes of every id, as :func:`stp.tokenizers.token_bytes` has them.
        """
        return not self.stray_ids.isdisjoint(answer_ids) or self.begins_next(answer_ids, forms)

    def begins_next(self, answer_ids: Iterable[int], forms: Sequence[bytes]) -> bool:
        """Return whether an answer's text begins the next turn; as :meth:`runs_on`."""
        if self.next_turn is None:
            return False
        known = (forms[entry] for entry in answer_ids if 0 <= entry < len(forms))
        return self.next_turn.search(b"".join(known)) is not None


def find_turn_end(family: ModelFamily | None, tokenizer: Tokenizer) -> TurnEnd:
    """Return what ends a model's turn.

    Parameters
    ----------
    family
        The model's; None for one that does not think.
    tokenizer
        The model's. The configuration files are looked for in the folder that it was loaded from.

    Raises
    ------
    data.errors.ConfigError
        If the family names a token that the tokenizer lacks, or a configuration file is damaged.
    """
    folder = Path(str(getattr(tokenizer, "name_or_path", "") or ""))
    generation, config = folder / "generation_config.json", folder / "config.json"
    control = backend(tokenizer).get_added_tokens_decoder()
    between = _between_turns(family, tokenizer)
    found: dict[str, Iterable[int]] = {
        "family": () if family is None else _named(family, tokenizer),
        "tokenizer": _own(tokenizer),
        "generation_config": [
            *_configured(generation, tokenizer),
            *_stop_strings(generation, tokenizer),
        ],
        "config": [entry for entry in _configured(config, tokenizer) if entry in control],
        "chat_template": [
            entry for text in between if (entry := _first_control_id(text, tokenizer)) is not None
        ],
    }
    thinking = set() if family is None else _thinking_ids(family, tokenizer)
    sources = {name: tuple(sorted(set(ids) - thinking)) for name, ids in found.items()}
    ends: frozenset[int] = frozenset().union(*sources.values())
    known = {
        int(entry): token.content
        for entry, token in control.items()
        if token.special or entry in thinking or entry in ends
    }
    return TurnEnd(
        sources={name: ids for name, ids in sources.items() if ids},
        stray_ids=frozenset(known) - ends,
        next_turn=_next_turn(between[-1], known.values()),
    )


def require_turn_end(turn_end: TurnEnd, name: str) -> None:
    """Refuse a model without an end of turn: its answers would run on into the next turn.

    Raises
    ------
    data.errors.ConfigError
        Saying where an end of turn can be named.
    """
    if not turn_end.ids:
        raise ConfigError(
            f"nothing says where an answer of {name} ends: no eos_token in tokenizer_config.json, "
            "no eos_token_id in generation_config.json or config.json, no control token after an "
            "answer in the chat template; name one as answer_stops in a family TOML file"
        )


def _named(family: ModelFamily, tokenizer: Tokenizer) -> Iterable[int]:
    for text in family.answer_stops:
        stop_id = backend(tokenizer).token_to_id(text)
        if stop_id is None:
            raise ConfigError(
                f"the tokenizer of {tokenizer_name(tokenizer)} has no token {text!r}, an "
                f"answer_stops entry of the model family {family.name!r}; choose another "
                "family or write a family TOML file"
            )
        yield int(stop_id)


def _own(tokenizer: Tokenizer) -> Iterable[int]:
    if (eos_id := getattr(tokenizer, "eos_token_id", None)) is not None:
        yield int(eos_id)


def _configured(path: Path, tokenizer: Tokenizer) -> list[int]:
    """Return the ids of ``eos_token_id`` in a configuration; of its text part where it has one."""
    values = _read(path)
    found: list[int] = []
    for section in (values, values.get("text_config")):
        named = section.get("eos_token_id") if isinstance(section, dict) else None
        entries = named if isinstance(named, list) else [named]
        found += [_checked_id(entry, path) for entry in entries if entry is not None]
    known = set(backend(tokenizer).get_vocab(with_added_tokens=True).values())
    if outside := sorted(set(found) - known):
        _LOG.warning(
            "%s: eos_token_id %s is not a token of the tokenizer, and ends no answer",
            path,
            ", ".join(map(str, outside)),
        )
    return [entry for entry in found if entry in known]


def _stop_strings(path: Path, tokenizer: Tokenizer) -> list[int]:
    """Return the stop strings of a configuration that are one token."""
    named = _read(path).get("stop_strings") or []
    texts = [named] if isinstance(named, str) else list(named)
    ids = {text: backend(tokenizer).token_to_id(str(text)) for text in texts}
    if unused := [text for text, token_id in ids.items() if token_id is None]:
        _LOG.warning(
            "%s: the stop string %r is not a single token, and ends no answer", path, unused[0]
        )
    return [int(token_id) for token_id in ids.values() if token_id is not None]


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; restore it") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: it is not a configuration of a model; restore it")
    return values


def _checked_id(entry: object, path: Path) -> int:
    if isinstance(entry, bool) or not isinstance(entry, int):
        raise ConfigError(
            f"{path}: eos_token_id holds {entry!r:.60}; it must be a token id or a list of them"
        )
    return entry


def _thinking_ids(family: ModelFamily, tokenizer: Tokenizer) -> set[int]:
    """Return the ids of the thinking's markers: they end a phase, never a turn."""
    markers = (family.thinking_start.strip(), family.thinking_end)
    found = {backend(tokenizer).token_to_id(marker) for marker in markers}
    return {int(token_id) for token_id in found if token_id is not None}


def _between_turns(family: ModelFamily | None, tokenizer: Tokenizer) -> list[str]:
    """Return what the chat template puts after an answer: the last one, and one with a question."""
    asked = {"role": "user", "content": _ASKED}
    said = {"role": "assistant", "content": _SAID}
    later = {"role": "user", "content": _ASKED.lower()}
    found = []
    for messages in ([asked, said], [asked, said, later]):
        text = _rendered(family, tokenizer, messages)
        _, said_there, after = text.rpartition(_SAID)
        found.append(after.partition(later["content"])[0] if said_there else "")
    return found


def _next_turn(between: str, control: Iterable[str]) -> re.Pattern[bytes] | None:
    r"""Return what finds the next turn's beginning, as far as it is ordinary text.

    Parameters
    ----------
    between
        What the template writes between an answer and the next question.
    control
        Tokens that are found by their ids: only what stands behind the last of them is text.

    Examples
    --------
    >>> finds = _next_turn("</s>\nUSER: ", ["</s>"])
    >>> bool(finds.search(b"4.\nUSER: And 3 + 3?")), bool(finds.search(b"The USER: field is 4"))
    (True, False)
    """
    for token in filter(str.strip, control):
        between = between.rpartition(token)[2]
    lines = [line.strip() for line in between.splitlines() if line.strip()]
    if not any(map(str.isalpha, between)) or len(between.strip()) < 2:
        return None
    if words := _CONTROL.findall(between):
        # No prose holds such a word, wherever in a line; the last is the next turn's own.
        return re.compile(re.escape(words[-1].encode()))
    text = rb"\s*\n\s*".join(re.escape(line.encode()) for line in lines)
    # A word that has its line for itself must have that: "user" begins many a sentence.
    alone = rb"[ \t]*(?:\r?\n|\Z)" if between.rstrip(" \t").endswith("\n") else b""
    return re.compile(rb"(?:\A|\n)[ \t]*" + text + alone)


def _rendered(
    family: ModelFamily | None, tokenizer: Tokenizer, messages: Sequence[dict[str, str]]
) -> str:
    """Return a conversation's text; empty if there is no template, or it refuses."""
    template = None if family is None else family.chat_template
    if template is None and not getattr(tokenizer, "chat_template", None):
        return ""
    from jinja2 import TemplateError

    options: dict[str, Any] = {} if family is None else dict(family.template_options)
    try:
        return str(
            tokenizer.apply_chat_template(
                list(messages), tokenize=False, chat_template=template, **options
            )
        )
    # A template is a program: it may divide by zero as well. Whether it can write a prompt is
    # checked where prompts are made.
    except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError):
        return ""


def _first_control_id(text: str, tokenizer: Tokenizer) -> int | None:
    """Return the id of the first control token in a text."""
    inner = backend(tokenizer)
    names = {
        token.content for token in inner.get_added_tokens_decoder().values() if token.special
    } | set(_CONTROL.findall(text))
    places = [
        (text.find(name), -len(name), int(token_id))
        for name in names
        if name.strip() and name in text and (token_id := inner.token_to_id(name)) is not None
    ]
    return min(places)[2] if places else None
