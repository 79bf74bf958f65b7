"""How a model is named on the command line: ``MODEL[@URL][;KEY=VALUE...]``, or a TOML file.

>>> spec = parse_model("smol@http://127.0.0.1:8000/v1;batch=4")
>>> spec.model, spec.base_url, spec.batch
('smol', 'http://127.0.0.1:8000/v1', 4)

The file holds the same in its own lines::

    model = "smol"
    base_url = "http://127.0.0.1:8000/v1"
    batch = 4

    [options]
    threads = 2
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from data.errors import ConfigError, MisuseError
from data.hints import did_you_mean
from stp.asking.opening import ModelSpec

_FIELDS = ("engine", "family", "revision", "batch")
_TEXT = (str, "a text")
_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    **dict.fromkeys(("model", "base_url", "engine", "family", "revision"), _TEXT),
    "batch": (int, "a whole number"),
    "options": (dict, "a table"),
}


def parse_model(text: str) -> ModelSpec:
    """Return which model a text names.

    Parameters
    ----------
    text
        ``MODEL``, then ``@URL`` of an OpenAI-compatible server if it is served by one, then
        ``;KEY=VALUE`` for engine, family, revision and batch, and for options of the engine or the
        provider; a value is JSON, or else a text. Or the path of a TOML file, ``*.toml``, with the
        fields of :class:`stp.asking.ModelSpec`.

    Raises
    ------
    data.errors.MisuseError
        If it cannot be read.
    """
    if text.endswith(".toml"):
        return _read(Path(text).expanduser())
    name, *further = text.split(";")
    model, at, url = name.partition("@")
    if at and not url.startswith(("http://", "https://")):
        # An at sign may be part of a name; an address always has its scheme.
        model, url = name, ""
    known: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for entry in further:
        key, equals, value = entry.partition("=")
        if not equals or not key.strip():
            raise MisuseError(f"model {text!r}: {entry!r} is not KEY=VALUE")
        target = known if key.strip() in _FIELDS else options
        target[key.strip()] = _value(value.strip())
    known |= {"model": model.strip(), "base_url": url.strip() or None, "options": options}
    return _spec(known, f"model {text!r}")


def _read(path: Path) -> ModelSpec:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise MisuseError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is not a TOML file ({error})") from error
    return _spec(values, str(path))


def _spec(values: dict[str, Any], where: str) -> ModelSpec:
    for key, value in values.items():
        if key not in _KINDS:
            raise ConfigError(
                f"{where}: unknown key {key!r}{did_you_mean(key, _KINDS)} (allowed: "
                f"{', '.join(_KINDS)})"
            )
        kind, said = _KINDS[key]
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ConfigError(f"{where}: {key} must be {said}")
    if not values.get("model", "").strip():
        raise MisuseError(f"{where} names no model; write MODEL, MODEL@URL or MODEL;KEY=VALUE")
    if (values.get("batch") or 1) < 1:
        raise ConfigError(f"{where}: batch must be at least 1")
    return ModelSpec(**values)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
