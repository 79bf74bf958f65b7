"""The tokenizer of a model folder, without transformers.

What a campaign needs of a tokenizer is its vocabulary, its encoding and its chat template; loading
transformers for that would load PyTorch too, 400 MB in a process that runs no model. The names of
attributes and methods are those of transformers, so that either can be given.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from stp.chat_templates import render_all

# One thread: several take nearly twice the work, and where threads were begun a fork (an engine's
# worker, Ray's) may hang, of which newer Pythons warn. Whoever wants threads sets it before.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

_SPECIAL = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


class FolderTokenizer:
    """A fast tokenizer and its chat template.

    Parameters
    ----------
    folder
        Holds ``tokenizer.json``; ``tokenizer_config.json``, ``special_tokens_map.json`` and
        ``chat_template.jinja`` are read where they are there.

    Attributes
    ----------
    name_or_path
        The folder.
    backend_tokenizer
        The ``tokenizers.Tokenizer``.
    chat_template
        Jinja source, or None.
    special_tokens
        ``eos_token`` and the like, as templates see them.

    Raises
    ------
    OSError, ValueError
        If a file cannot be read. ``tokenizers`` raises bare Exception for its own.
    """

    is_fast = True

    def __init__(self, folder: Path) -> None:
        self.name_or_path = str(folder)
        config = {
            **_json(folder / "special_tokens_map.json"),
            **_json(folder / "tokenizer_config.json"),
        }
        self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.backend_tokenizer.no_truncation()
        self.backend_tokenizer.no_padding()
        _add_missing(self.backend_tokenizer, config.get("added_tokens_decoder"))
        self.chat_template = _template(folder, config)
        self.special_tokens = {
            f"{kind}_token": text
            for kind in _SPECIAL
            if (text := _content(config.get(f"{kind}_token"))) is not None
        }

    @property
    def eos_token(self) -> str | None:
        """The token that ends a text."""
        return self.special_tokens.get("eos_token")

    @property
    def eos_token_id(self) -> int | None:
        """Its id."""
        return self._id("eos_token")

    @property
    def pad_token_id(self) -> int | None:
        """The id of the token that fills batches."""
        return self._id("pad_token")

    def _id(self, name: str) -> int | None:
        text = self.special_tokens.get(name)
        found = None if text is None else self.backend_tokenizer.token_to_id(text)
        return None if found is None else int(found)

    def get_vocab(self) -> dict[str, int]:
        """Return ids by token, added tokens included."""
        return dict(self.backend_tokenizer.get_vocab(with_added_tokens=True))

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return the ids of a text."""
        encoding = self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return list(encoding.ids)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts, without special tokens around them."""
        found = self.backend_tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [list(encoding.ids) for encoding in found]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of ids."""
        return str(
            self.backend_tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens)
        )

    def apply_chat_template(
        self,
        messages: Sequence[Any],
        *,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        tokenize: bool = False,
        **variables: Any,
    ) -> str | list[int] | list[str] | list[list[int]]:
        """Return the text of a prompt, or its ids; those of several for several conversations.

        Raises
        ------
        ValueError
            If there is no template.
        jinja2.TemplateError
            As :func:`stp.chat_templates.render_all`.
        """
        template = self.chat_template if chat_template is None else chat_template
        if template is None:
            raise ValueError(f"{self.name_or_path} has no chat template")
        values = {
            **self.special_tokens,
            "add_generation_prompt": add_generation_prompt,
            **variables,
        }
        several = bool(messages) and not isinstance(messages[0], Mapping)
        texts = render_all(template, messages if several else [messages], values)
        found = self.encode_all(texts) if tokenize else texts
        return found if several else found[0]


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise ValueError(f"{path.name} is not a JSON object")
    return values


def _content(token: object) -> str | None:
    """Return a special token's text, written as a string or as an added token."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _template(folder: Path, config: Mapping[str, Any]) -> str | None:
    """Return the chat template: of a file of its own, else of the configuration."""
    if (path := folder / "chat_template.jinja").is_file():
        return path.read_text(encoding="utf-8")
    found = config.get("chat_template") or _json(folder / "chat_template.json").get("chat_template")
    if isinstance(found, list):
        by_name = {entry["name"]: entry["template"] for entry in found}
        found = by_name.get("default")
    return found if isinstance(found, str) else None


def _add_missing(tokenizer: Tokenizer, added: object) -> None:
    """Add tokens that only the configuration names, in the order of their ids."""
    if not isinstance(added, dict):
        return
    for _, entry in sorted(added.items(), key=lambda item: int(item[0])):
        if tokenizer.token_to_id(entry["content"]) is None:
            flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
            token = AddedToken(
                entry["content"], **{flag: bool(entry[flag]) for flag in flags if flag in entry}
            )
            add = tokenizer.add_special_tokens if token.special else tokenizer.add_tokens
            add([token])
