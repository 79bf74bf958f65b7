"""Chat templates: messages to the text of a prompt, as Hugging Face tokenizers write it.

A template is a program of strangers: it runs in jinja2's sandbox.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class _Generation(Extension):
    """``{% generation %}`` marks a model's part for training; here its body is all that counts."""

    tags: set[str] = {"generation"}  # noqa: RUF012 (so jinja2 declares it)

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render(
    template: str, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
) -> str:
    """Return the text of a prompt.

    Parameters
    ----------
    template
        Jinja source.
    messages
        Dictionaries with ``role`` and ``content``.
    variables
        What else the template sees; ``strftime_now`` replaces the clock.

    Raises
    ------
    jinja2.TemplateError
        If the template is none, refuses the messages, or fails in any other way.
    """
    values = {"tools": None, "documents": None, **variables}
    try:
        text = _compiled(template).render(messages=messages, **values)
        text.encode()
    except jinja2.TemplateError:
        raise
    except UnicodeEncodeError as error:
        raise jinja2.TemplateError("it writes half of a character") from error
    # A program of strangers raises whatever a program can: it divides by zero, calls itself without
    # end, asks for all of the memory.
    except Exception as error:
        why = str(error).strip() or "it needs more memory than there is"
        raise jinja2.TemplateError(why) from error
    return text


@functools.lru_cache(maxsize=32)
def _compiled(template: str) -> jinja2.Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _now
    return environment.from_string(template)


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _now(pattern: str) -> str:
    return datetime.now().strftime(pattern)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja2's own would escape what HTML needs escaped.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
