"""Tokenizers as this project needs them: loaded from a model folder, and looked at as bytes.

A token of a byte-level vocabulary need not be valid UTF-8 by itself, so whatever is decided about a
single token (does it hold a double newline, where does a written marker start) is decided on its
bytes.
"""

import functools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from data.errors import ConfigError, MissingDependencyError, MisuseError
from stp.folder_tokenizer import FolderTokenizer

Tokenizer: TypeAlias = Any
"""A :class:`FolderTokenizer`, a fast one of transformers, or a ``tokenizers.Tokenizer``."""

MOST_IDS = 10_000_000
"""Ids of a vocabulary; the largest in use have 262,144."""

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def load_tokenizer(model_path: str | Path) -> Tokenizer:
    """Return the tokenizer of a model folder.

    Parameters
    ----------
    model_path
        A folder in the form of the Hugging Face hub. Nothing is fetched, no code of it is run.

    Raises
    ------
    MisuseError
        If the folder is missing or holds no fast tokenizer.
    MissingDependencyError
        If the folder has no tokenizer.json and transformers is not installed.
    """
    folder = Path(model_path)
    if not folder.is_dir():
        raise MisuseError(
            f"model folder {folder} does not exist; give the path of a folder with config.json, "
            "tokenizer.json and the weights"
        )
    try:
        if (folder / "tokenizer.json").is_file():
            # The file as it is: some classes of transformers rebuild the tokenizer from its
            # vocabulary and lose what a model's author changed.
            return FolderTokenizer(folder)
        tokenizer = _from_transformers(folder)
    except MissingDependencyError:
        raise
    # tokenizers raises bare Exception for a file that it cannot read.
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise MisuseError(
            f"model folder {folder} holds no tokenizer that can be read ({reason}); it needs "
            "tokenizer.json and tokenizer_config.json"
        ) from error
    if not getattr(tokenizer, "is_fast", False):
        raise MisuseError(
            f"model folder {folder} holds no fast tokenizer; convert it to tokenizer.json with "
            "AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
    return tokenizer


def _from_transformers(folder: Path) -> Tokenizer:
    """Load an older form of tokenizer, which transformers converts."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingDependencyError(
            "reading a tokenizer needs transformers: pip install stp-engine"
        ) from error
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def backend(tokenizer: Tokenizer) -> Any:
    """Return the ``tokenizers.Tokenizer`` inside, whichever of the two kinds is given.

    Raises
    ------
    data.errors.MisuseError
        If there is none.
    """
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(inner, "get_added_tokens_decoder"):
        raise MisuseError(
            f"{type(tokenizer).__name__} is not a fast tokenizer; a transformers fast tokenizer or "
            "a tokenizers.Tokenizer is needed"
        )
    return inner


def tokenizer_name(tokenizer: Tokenizer) -> str:
    """Return what to call the tokenizer in a message: its folder or repository."""
    return str(getattr(tokenizer, "name_or_path", "") or "this tokenizer")


def token_bytes(tokenizer: Tokenizer) -> tuple[bytes, ...]:
    """Return the decoded form of every vocabulary id by itself, added tokens included.

    Returns
    -------
    tuple of bytes
        Indexed by id; ids that the vocabulary leaves out are empty.

    Raises
    ------
    data.errors.MisuseError
        If an id is so large that no model can have it.
    """
    inner = backend(tokenizer)
    vocabulary: dict[str, int] = inner.get_vocab(with_added_tokens=True)
    largest = max(vocabulary.values(), default=-1)
    if largest >= MOST_IDS:
        raise MisuseError(
            f"{tokenizer_name(tokenizer)}: its tokenizer has the id {largest:,}, and no model has "
            f"{MOST_IDS:,}; restore tokenizer.json"
        )
    forms = [b""] * (largest + 1)
    kinds = set(_decoder_kinds(inner))
    for token, token_id in vocabulary.items():
        if "ByteLevel" in kinds:
            forms[token_id] = _byte_level_form(token)
        elif kinds & {"Metaspace", "ByteFallback", "Replace"}:
            forms[token_id] = _sentence_piece_form(token)
        else:
            forms[token_id] = inner.decode([token_id], skip_special_tokens=False).encode()
    for token_id, added in inner.get_added_tokens_decoder().items():
        forms[token_id] = added.content.encode()
    return tuple(forms)


def unknown_ids(tokenizer: Tokenizer, vocabulary: int) -> tuple[int, ...]:
    """Return the ids below ``vocabulary`` that the tokenizer has no token for.

    A model's embedding is often padded to a round size, and a model may then write ids that stand
    for no text.
    """
    known = backend(tokenizer).get_vocab(with_added_tokens=True).values()
    return tuple(sorted(set(range(vocabulary)).difference(known)))


def padding_ids(folder: Path, vocabulary: int) -> tuple[int, ...]:
    """Return the ids with which a model's vocabulary is padded; none may be sampled.

    None if the folder has no tokenizer, or that of another model, which says nothing.
    """
    if not (folder / "tokenizer.json").is_file():
        return ()
    ids = unknown_ids(load_tokenizer(folder), vocabulary)
    return ids if len(ids) < vocabulary else ()


def exact_ids(
    tokenizer: Tokenizer, text: str | bytes, forms: Sequence[bytes] | None = None
) -> tuple[int, ...]:
    """Return token ids whose bytes are exactly the text: nothing put before, nothing normalised.

    The tokenizer's own encoding is taken where it gives back the text. Where it does not (a
    vocabulary that puts a space before every text, bytes that are not text by themselves), the
    longest tokens that fit are taken from the left. ``forms`` is what :func:`token_bytes` gives;
    whoever encodes many texts makes it once.

    Raises
    ------
    ConfigError
        If the vocabulary cannot spell the text.
    """
    content = text.encode() if isinstance(text, str) else text
    if not content:
        return ()
    inner = backend(tokenizer)
    forms = token_bytes(tokenizer) if forms is None else forms
    try:
        ids = tuple(inner.encode(content.decode(), add_special_tokens=False).ids)
    except UnicodeDecodeError:
        ids = ()
    if b"".join(forms[token_id] for token_id in ids) == content:
        return ids
    return _longest_tokens(forms, content, tokenizer_name(tokenizer))


def _longest_tokens(forms: Sequence[bytes], content: bytes, name: str) -> tuple[int, ...]:
    # The last of equal forms: where bytes have tokens of their own they stand before the words.
    by_form = {form: token_id for token_id, form in enumerate(forms)}
    longest = max(map(len, by_form), default=0)
    ids: list[int] = []
    start = 0
    while start < len(content):
        for end in range(min(len(content), start + longest), start, -1):
            if (found := by_form.get(content[start:end])) is not None:
                ids.append(found)
                start = end
                break
        else:
            raise ConfigError(
                f"the vocabulary of {name} cannot spell {content.decode(errors='replace')!r}; "
                "write a family file with markers that it can spell"
            )
    return tuple(ids)


def _decoder_kinds(inner: Any) -> Iterator[str]:
    """Yield the kinds of the decoder's parts, as its JSON form names them."""
    if inner.decoder is None:
        return
    state = json.loads(inner.decoder.__getstate__())
    pending = [state]
    while pending:
        part = pending.pop()
        yield part["type"]
        pending.extend(part.get("decoders", []))


@functools.cache
def _bytes_of_characters() -> dict[str, int]:
    """Return the byte behind each character of a byte-level vocabulary (the GPT-2 alphabet)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + index): byte for index, byte in enumerate(others)})
    return table


def _byte_level_form(token: str) -> bytes:
    table = _bytes_of_characters()
    try:
        return bytes(table[character] for character in token)
    except KeyError:
        # As the decoder does: a token with a character outside the alphabet stands for itself.
        return token.encode()


def _sentence_piece_form(token: str) -> bytes:
    if (match := _BYTE_FALLBACK.fullmatch(token)) is not None:
        return bytes([int(match[1], 16)])
    return token.replace("\u2581", " ").encode()
