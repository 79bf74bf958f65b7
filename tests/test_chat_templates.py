"""Chat templates are programs of strangers: whatever they do is one kind of error."""

import jinja2
import pytest

from stp.chat_templates import render


@pytest.mark.parametrize(
    "template",
    [
        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
        "{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}",
        "{{ 'x' * 10**30 }}",
        "{{ 1 // 0 }}",
        "{{ '\ud800' }}",
        "{{ '\\ud800' }}",
        "{{ 1 + 'a' }}",
        "{{ {}['a'].b }}",
        "{% if",
        "{{ raise_exception('no') }}",
    ],
)
def test_whatever_a_template_does_is_one_kind_of_error(template):
    with pytest.raises(jinja2.TemplateError, match=r"\w"):
        render(template, [{"role": "user", "content": "1 + 1?"}], {})
