"""From a model to its family: by its name, and where no name fits by its chat template."""

import fnmatch
import functools
import importlib.resources
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from data.errors import MisuseError
from stp.engines.base import SamplingParameters
from stp.formats.family import ModelFamily, get_family, packaged_families
from stp.tokenizers import Tokenizer, backend

RECOGNISED: Final = "recognised"
"""Name of a family that was made from a chat template."""

_MARKERS: Final = (
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<thought>", "</thought>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
)
_CHANNEL: Final = "<|channel|>"
_SWITCH: Final = re.compile(r"\b(enable_thinking|thinking)\b(?=[^%}]*[%}]\})")


@dataclass(frozen=True, slots=True)
class Found:
    """What was found out about a model.

    Attributes
    ----------
    family
        Its family; None if it does not think.
    reason
        Why, in words.
    pattern
        The name pattern that decided; empty if none did.
    """

    family: ModelFamily | None
    reason: str
    pattern: str = ""


def family_by_name(model_name: str) -> Found | None:
    """Return what a model's name says, or None if it fits no pattern.

    The last part of a path or hub id counts. If several patterns fit, the one with the most letters
    decides, as the most specific.

    Examples
    --------
    >>> family_by_name("Qwen/Qwen3-8B").family.name
    'qwen3'
    >>> family_by_name("Qwen/Qwen3-Coder-30B-A3B-Instruct").reason
    'it has no thinking mode (model card of Qwen3-Coder)'
    """
    name = model_name.lower().rstrip("/").rpartition("/")[2]
    best: tuple[int, str, ModelFamily | str] | None = None
    for pattern, what in _patterns().items():
        if fnmatch.fnmatchcase(name, pattern):
            letters = len(re.sub(r"\[[^]]*\]|[*?]", "", pattern))
            if best is None or letters > best[0]:
                best = (letters, pattern, what)
    if best is None:
        return None
    _, pattern, what = best
    if isinstance(what, str):
        return Found(None, what, pattern)
    return Found(what, f"its name fits {pattern}", pattern)


def family_for_model(
    model_name: str, tokenizer: Tokenizer | None = None, folder: Path | None = None
) -> ModelFamily:
    """Return the family of a model that is to think.

    Parameters
    ----------
    model_name
        Its name, a hub id or a folder's.
    tokenizer
        Its tokenizer, whose chat template is looked at where the name fits no family.
    folder
        Its folder, whose ``generation_config.json`` then says how it is sampled.

    Raises
    ------
    MisuseError
        If no family fits, or the model does not think.
    """
    found = find_family(model_name, tokenizer, folder)
    if found.family is None:
        raise MisuseError(
            f"no model family for {model_name!r}: {found.reason}; name one as the model's family "
            "(`stp families` lists them; written-tags asks any model to think between tags) or "
            "the path of a family TOML file"
        )
    return found.family


def find_family(
    model_name: str, tokenizer: Tokenizer | None = None, folder: Path | None = None
) -> Found:
    """Find out how a model thinks, by its name and then by its chat template.

    Parameters
    ----------
    model_name, tokenizer, folder
        As in :func:`family_for_model`.

    Raises
    ------
    MisuseError
        If its vocabulary has thinking tokens and nothing says how they are used.
    """
    by_name = family_by_name(model_name)
    if by_name is not None:
        return by_name
    if tokenizer is None:
        return Found(None, "its name fits none")
    template = getattr(tokenizer, "chat_template", None)
    template = template if isinstance(template, str) else ""
    vocabulary = backend(tokenizer).get_vocab(with_added_tokens=True)
    if _CHANNEL in vocabulary and _CHANNEL in template:
        return Found(get_family("gpt-oss"), f"its chat template writes {_CHANNEL}")
    for markers in _MARKERS:
        if any(marker in template for marker in markers):
            return _recognised(template, markers, vocabulary, folder)
    tokens = [end for _, end in _MARKERS if end in vocabulary]
    if tokens or _CHANNEL in vocabulary:
        raise MisuseError(
            f"model {model_name!r} seems to think: its vocabulary has {(tokens or [_CHANNEL])[0]}, "
            "but no family fits its name and its chat template does not say how; choose its family "
            "(`stp families` lists them; a TOML file; or none if it does not think)"
        )
    return Found(None, "its name fits none, and neither its chat template nor its vocabulary has "
                 "thinking in it")  # fmt: skip


def _recognised(
    template: str, markers: tuple[str, str], vocabulary: Mapping[str, int], folder: Path | None
) -> Found:
    """Return a family made from what a chat template shows."""
    start, end = markers
    switch = _SWITCH.search(template)
    options = {} if switch is None else {switch[1]: True}
    kind = "tokens" if start in vocabulary and end in vocabulary else "written"
    settings = _generation_settings(folder)
    ids = settings.get("eos_token_id")
    by_id = {token_id: token for token, token_id in vocabulary.items()}
    stops = [by_id[i] for i in (ids if isinstance(ids, list) else [ids]) if i in by_id]
    family = ModelFamily.model_validate(
        {
            "name": RECOGNISED,
            "thinking_start": f"{start}\n",
            "thinking_end": end,
            "answer_open": "\n\n",
            "markers": kind,
            "instruction_place": "user_after",
            "answer_stops": stops,
            "template_options": options,
            "thinking_off_options": dict.fromkeys(options, False),
            "sampling": _sampling(settings),
            "source": "the model's own chat template and generation_config.json",
        }
    )
    turned = "" if switch is None else f", which {switch[1]} turns on and off"
    return Found(family, f"its name fits none, but its chat template has {start} ({kind}){turned}")


def _generation_settings(folder: Path | None) -> dict[str, Any]:
    if folder is None:
        return {}
    try:
        values = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _sampling(settings: Mapping[str, Any]) -> SamplingParameters:
    own = {
        key: settings[key]
        for key in ("temperature", "top_p", "top_k")
        if isinstance(settings.get(key), int | float)
    }
    return replace(SamplingParameters(), **own)


@functools.cache
def _patterns() -> Mapping[str, ModelFamily | str]:
    """Return all name patterns in lower case, with their family or why there is none."""
    known: dict[str, ModelFamily | str] = {}
    for family in packaged_families().values():
        known |= dict.fromkeys((pattern.lower() for pattern in family.patterns), family)
    file = importlib.resources.files("stp.formats") / "not_thinking.toml"
    for entry in tomllib.loads(file.read_text(encoding="utf-8"))["models"]:
        known |= dict.fromkeys((pattern.lower() for pattern in entry["patterns"]), entry["source"])
    return known
