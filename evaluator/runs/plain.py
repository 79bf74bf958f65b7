"""Frozen dataclasses as the plain values of a record, and back."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from data.errors import ConfigError, MisuseError
from stp.files import json_bytes

T = TypeVar("T")


def to_plain(value: Any) -> dict[str, Any]:
    """Return a dataclass as JSON has it: tables, lists, texts, numbers."""
    values: dict[str, Any] = TypeAdapter(type(value)).dump_python(value, mode="json")
    return values


def from_plain(kind: type[T], values: Mapping[str, Any], where: str) -> T:
    """Return the dataclass that :func:`to_plain` gave these values.

    Parameters
    ----------
    kind
        Which.
    values
        All its fields.
    where
        Names them in errors.

    Raises
    ------
    data.errors.ConfigError
        If a field is missing, unknown, or cannot have its value.
    """
    what = f"{where}: is no {kind.__name__} of this version"
    try:
        made: T = TypeAdapter(kind).validate_json(json_bytes(values), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{what} ({place}: {first['msg']})") from error
    except MisuseError as error:
        raise ConfigError(f"{where}: {error}") from error
    odd = sorted(values.keys() ^ to_plain(made).keys())
    if odd:
        raise ConfigError(f"{what} ({odd[0]} is missing or unknown)")
    return made
