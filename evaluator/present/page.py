"""Pages: one jinja2 environment, one base, one style sheet; see the package for how one is made."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from evaluator.present.names import visible
from evaluator.present.palette import DARK, LIGHT, css_variables
from evaluator.present.views import View, view_json
from stp.files import write_durably
from stp.records import package_versions

CHART_SCRIPTS = (
    "explorer/vendor/echarts.common.min.js",
    "explorer/app/core.js",
    "explorer/app/charts.js",
    "explorer/app/views.js",
)
"""What draws charts in a page that is one file: the explorer's own scripts, and its library."""


@cache
def environment() -> Environment:
    """Return the environment of all pages.

    Templates are named from ``evaluator``: ``present/templates/base.html``, ``report/page.html``.
    Every text is escaped, and its hidden characters are made visible
    (:func:`evaluator.present.names.visible`); a value that a template lacks is an error.
    """
    made = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"style": style, "version": version}
    made.filters |= {"numbers": _with_numbers_marked, "whole_words": _with_whole_words}
    return made


def resource(name: str) -> str:
    """Return a text file of this package's, named from ``evaluator``."""
    return resources.files("evaluator").joinpath(name).read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _with_numbers_marked(sentence: str) -> Markup:
    """Return a sentence as HTML, its percentages and points emphasised."""
    marked = re.sub(r"\d[\d.,]*(?:%| points)", r"<b>\g<0></b>", str(escape(visible(sentence))))
    return Markup(marked)


def _with_whole_words(heading: str) -> Markup:
    """Return a heading as HTML that breaks at spaces only: not at a hyphen, nor before a unit."""
    words = visible(heading).replace(", %", ",\u00a0%").split(" ")
    whole = Markup('<span class="word">{}</span>')
    return Markup(" ").join(whole.format(word) if "-" in word else word for word in words)


def render(
    template: str,
    *,
    views: Sequence[View] = (),
    page_data: Mapping[str, Any] | None = None,
    code: Sequence[str] = (),
    **values: Any,
) -> str:
    """Return a page.

    Parameters
    ----------
    template
        Its name; it extends ``present/templates/base.html``.
    views
        What the page draws where ``parts.view`` stands in its template, which has them too.
    page_data
        What further scripts of the page find in ``stp.data``.
    code
        Names of these scripts, which run after those of the charts.
    values
        What the template reads. Untrusted texts go in as they are.
    """
    script, payload = "", Markup("")
    if views or code:
        script = "\n".join(resource(name) for name in (*CHART_SCRIPTS, *code))
        drawn = {view.stem: view_json(view) for view in views}
        payload = script_json({"views": drawn, **(page_data or {})})
    return (
        environment()
        .get_template(template)
        .render(
            script=Markup(script),
            script_hash=_digest(script) if script else "",
            payload=payload,
            views=views,
            **values,
        )
    )


def write_page(path: Path, page: str) -> Path:
    """Write a page whole or not at all; returns where it is.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written.
    """
    write_durably(path, page.encode())
    return path


@cache
def style() -> Markup:
    """Return the style sheet of all pages, with the palette in light and dark."""
    dark = css_variables(DARK)
    return Markup(
        f":root {{ {css_variables(LIGHT)} }}\n"
        "@media (prefers-color-scheme: dark) { "
        f':root:not([data-theme="light"]) {{ color-scheme: dark; {dark} }} }}\n'
        f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}\n'
        ':root[data-theme="light"] { color-scheme: light; }\n'
        f"{resource('present/templates/style.css')}"
    )


def script_json(value: Any) -> Markup:
    """Return ``value`` as JSON that may stand inside a ``<script>`` element.

    Nothing in it can end the element or start a comment: ``<``, ``>`` and ``&`` are escaped, as
    are the two line separators that older scripts take for line ends.

    Raises
    ------
    ValueError
        If the value holds NaN or an infinity, which are not JSON.
    """
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        dumped = dumped.replace(character, f"\\u{ord(character):04x}")
    return Markup(dumped)


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def version() -> str:
    """Return this project's version."""
    return package_versions(["stp-engine"]).get("stp-engine", "(not installed)")
