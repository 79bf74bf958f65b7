"""Chat templates are programs of strangers: whatever they do is one kind of error."""

import jinja2
import pytest

from stp.chat_templates import render, render_all


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


def test_many_prompts_are_what_each_is_and_fail_as_each_fails():
    template = "{% if messages[0].content == 'bad' %}{{ raise_exception('no') }}{% endif %}"
    template += "{{ messages[0].content }}{{ sign }}"
    talks = [[{"role": "user", "content": f"{number}"}] for number in range(300)]
    found = render_all(template, talks, {"sign": "!"})
    assert found == [render(template, messages, {"sign": "!"}) for messages in talks]
    with pytest.raises(jinja2.TemplateError, match="no"):
        render_all(template, [*talks, [{"role": "user", "content": "bad"}]], {})


def test_the_limits_are_those_of_one_prompt(monkeypatch):
    monkeypatch.setattr("stp.chat_templates._SECONDS", 0.6)
    template = "{% for i in range(20000) %}{% for j in range(4) %}{% endfor %}{% endfor %}{{ x }}"
    talks = [[{"role": "user", "content": "?"}]] * 60
    assert render_all(template, talks, {"x": 7}) == ["7"] * 60
