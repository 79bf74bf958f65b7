"""How a model is named in one text where a command needs several: ``MODEL[@URL][;KEY=VALUE...]``.

>>> spec = parse_model("smol@http://127.0.0.1:8000/v1;batch=4")
>>> spec.model, spec.base_url, spec.batch
('smol', 'http://127.0.0.1:8000/v1', 4)
"""

import json
from typing import Any

from data.errors import MisuseError
from stp.asking.opening import ModelSpec

_FIELDS = ("engine", "family", "revision", "batch")


def parse_model(text: str) -> ModelSpec:
    """Return which model a text names.

    Parameters
    ----------
    text
        ``MODEL``, then ``@URL`` of an OpenAI-compatible server if it is served by one, then
        ``;KEY=VALUE`` for engine, family, revision and batch, and for options of the engine or the
        provider; a value is JSON, or else a text.

    Raises
    ------
    data.errors.MisuseError
        If it cannot be read.
    """
    name, *further = text.split(";")
    model, at, url = name.partition("@")
    if at and not url.startswith(("http://", "https://")):
        # An at sign may be part of a name; an address always has its scheme.
        model, url = name, ""
    if not model.strip():
        raise MisuseError(f"{text!r} names no model; write MODEL, MODEL@URL or MODEL;KEY=VALUE")
    known: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for entry in further:
        key, equals, value = entry.partition("=")
        if not equals or not key.strip():
            raise MisuseError(f"model {text!r}: {entry!r} is not KEY=VALUE")
        target = known if key.strip() in _FIELDS else options
        target[key.strip()] = _value(value.strip())
    if not isinstance(known.get("batch", 1), int):
        raise MisuseError(f"model {text!r}: batch must be a whole number")
    return ModelSpec(model=model.strip(), base_url=url.strip() or None, options=options, **known)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
