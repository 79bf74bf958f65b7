"""Records of what was asked and with which packages, and what two records differ in."""

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

_ABSENT: Final = object()


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those packages that are installed."""
    found = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def differences(
    stored: Mapping[str, Any],
    asked: Mapping[str, Any],
    *,
    free: Collection[str] = (),
    before: str = "in the folder",
    now: str = "now",
) -> list[str]:
    """Return one phrase for every value in which two records differ, in order of their keys.

    Parameters
    ----------
    stored, asked
        Plain values as JSON has them, nested. A key that only one of them has differs: nothing is
        known of it.
    free
        Keys at the top that may differ.
    before, now
        Say where the two stand.

    Examples
    --------
    >>> differences({"seed": 1, "sizes": {"sum": [8]}}, {"seed": 1, "sizes": {"sum": [8, 16]}})
    ['sizes.sum is [8] in the folder and [8, 16] now']
    >>> differences({"seed": 1}, {"seed": 2, "limit": None}, free=["seed"])
    ['limit is not set in the folder and null now']
    """
    flat, other = (
        dict(flattened({key: value for key, value in values.items() if key not in free}))
        for values in (stored, asked)
    )
    return [
        f"{key} is {_shown(flat.get(key, _ABSENT))} {before} and "
        f"{_shown(other.get(key, _ABSENT))} {now}"
        for key in sorted(flat.keys() | other.keys())
        if flat.get(key, _ABSENT) != other.get(key, _ABSENT)
    ]


def flattened(value: object, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its dotted key; tables of a list are counted from 0.

    Examples
    --------
    >>> dict(flattened({"a": {"b": 1}, "c": [{"d": 2}], "e": [3]}))
    {'a.b': 1, 'c[0].d': 2, 'e': [3]}
    """
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from flattened(item, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from flattened(item, f"{key}[{index}]")
    else:
        yield key, value


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "not set"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:197] + "..."
