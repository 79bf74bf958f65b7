"""Chat templates: messages to the text of a prompt, as Hugging Face tokenizers write it.

A template is third-party code: it runs in jinja2's sandbox, in a separate process with
limits, since nested loops, powers of powers and texts that double may never end.
"""

import atexit
import functools
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from data.errors import one_line
from evaluator.answers.symbolic import RuleFailedError, SymbolicTimeoutError, SymbolicWorker
from evaluator.answers.symbolic_worker import serve

_SECONDS = 5.0
_MEMORY_BYTES = 2**30
_MOST_CHARACTERS = 2**24
_LONGEST_ERROR = 300
_MOMENT = "%Y-%m-%dT%H:%M:%S"
_DATES = re.compile(r"""strftime_now\(\s*["']([^"'\\]{0,80})["']\s*\)""")
_LOCK = threading.Lock()


class _Generation(Extension):
    """``{% generation %}`` marks a model's part for training; here its body is all that counts."""

    tags: set[str] = {"generation"}  # noqa: RUF012 (so jinja2 declares it)

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render(
    template: str, messages: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
) -> str:
    """Return the text of a prompt, as :func:`render_all`; ``messages`` are one conversation."""
    return render_all(template, [messages], variables)[0]


def render_all(
    template: str,
    conversations: Sequence[Sequence[Mapping[str, Any]]],
    variables: Mapping[str, Any],
) -> list[str]:
    """Return the texts of prompts; what one costs, in time and memory, is limited.

    Parameters
    ----------
    template
        Jinja source.
    conversations
        Of each prompt the messages, dictionaries with ``role`` and ``content``.
    variables
        What else the template sees; ``strftime_now`` replaces the clock.

    Raises
    ------
    jinja2.TemplateError
        If the template is not valid, refuses the messages, or fails in any other way.
    """
    values = dict(variables)
    now = values.pop("strftime_now", datetime.now().strftime)
    # A function does not go to the worker; what it says of the forms that are asked for does.
    dates = {form: now(form) for form in (_MOMENT, *_DATES.findall(template))}
    job = {
        "template": template,
        "conversations": [list(messages) for messages in conversations],
        "variables": values,
        "dates": dates,
    }
    try:
        with _LOCK:
            texts, _ = _worker(os.getpid()).ask(job, _SECONDS)
    except SymbolicTimeoutError as error:
        if len(conversations) > 1:  # The limits are those of one.
            return [render(template, messages, variables) for messages in conversations]
        raise jinja2.TemplateError(
            f"it needs more than {_SECONDS:g} seconds, or more than {_MEMORY_BYTES >> 20} MiB of "
            "memory"
        ) from error
    except RuleFailedError as error:
        raise jinja2.TemplateError(str(error)) from error
    return list(texts)


@functools.lru_cache(maxsize=1)
def _worker(process: int) -> SymbolicWorker:
    """Return this process's worker: one that was forked needs another than its parent."""
    worker = SymbolicWorker("text", module="stp.chat_templates", memory_bytes=_MEMORY_BYTES)
    atexit.register(worker.kill)
    return worker


def _renderer() -> Callable[[dict[str, Any]], list[str]]:
    """Return what writes the texts of a job's conversations, in the worker."""

    def texts(job: dict[str, Any]) -> list[str]:
        dates = job["dates"]

        def now(form: str) -> str:
            known: str | None = dates.get(form)
            return datetime.fromisoformat(dates[_MOMENT]).strftime(form) if known is None else known

        values = {"tools": None, "documents": None, "strftime_now": now, **job["variables"]}
        template = _compiled(job["template"])
        found = []
        for messages in job["conversations"]:
            rendered = template.render(messages=messages, **values)
            if len(rendered) > _MOST_CHARACTERS:
                raise jinja2.TemplateError(f"it writes {len(rendered):,} characters")
            rendered.encode()
            found.append(rendered)
        return found

    return texts


def _why(error: Exception) -> str:
    """Return why a template failed: it may raise any exception."""
    if isinstance(error, UnicodeEncodeError):
        return "it writes half of a character"
    return one_line(error)[:_LONGEST_ERROR]


@functools.lru_cache(maxsize=32)
def _compiled(template: str) -> jinja2.Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    return environment.from_string(template)


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


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


if __name__ == "__main__":
    serve(sys.argv[1], _renderer, int(sys.argv[2]), _why)
