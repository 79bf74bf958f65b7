"""The 72 domains of OvT-General and their disciplines."""

import tomllib
from functools import cache
from importlib import resources


@cache
def disciplines() -> dict[str, tuple[str, ...]]:
    """Return the domains of each discipline.

    Examples
    --------
    >>> len(disciplines()), sum(map(len, disciplines().values()))
    (13, 72)
    """
    file = resources.files("data.optimal").joinpath("domains.toml")
    return {name: tuple(fields) for name, fields in tomllib.loads(file.read_text("utf-8")).items()}


def domain_names() -> tuple[str, ...]:
    """Return all domains, discipline by discipline."""
    return tuple(domain for fields in disciplines().values() for domain in fields)


def discipline_of(domain: str) -> str:
    """Return the discipline of a domain, or ``""`` for a user's own domain."""
    return next((name for name, fields in disciplines().items() if domain in fields), "")
