"""The page in a real browser: no error, and choosing a position changes what is read."""

import re
import subprocess

import pytest

from evaluator.report.build import write_report
from tests.evaluator.synthetic import make_curves, make_report
from tests.requirements import require_chromium

pytestmark = pytest.mark.browser

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=2000",
    "--enable-logging=stderr",
    "--window-size=1200,900",
    "--dump-dom",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    curves = make_curves(models=2, questions=3, seed=2)
    data = make_report(
        curves,
        step_text="Thought number {k} </script><img src=x onerror=console.error('run')>\n\n",
        reply="<b>not bold</b>",
    )
    return write_report(data, tmp_path_factory.mktemp("report")).page


@pytest.fixture
def render(page, tmp_path):
    chromium = require_chromium()

    def run(*, fragment="", script=""):
        """Return (DOM, console lines); ``script`` runs after the page's own."""
        address = page
        if script:
            # The policy allows the page's own script alone, so a test's script needs it gone.
            source = page.read_text(encoding="utf-8")
            source = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
            source = source.replace("</body>", f"<script>{script}</script></body>")
            address = tmp_path / "page.html"
            address.write_text(source, encoding="utf-8")
        done = subprocess.run(
            [
                chromium,
                *FLAGS,
                f"--user-data-dir={tmp_path / 'profile'}",
                address.as_uri() + fragment,
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return run


def title_of(dom):
    return re.search(r'<p id="position-title">([^<]*)</p>', dom).group(1)


def test_renders_without_a_console_message(render, page):
    dom, console = render()
    assert console == []
    assert '<div id="explorer-view">' in dom
    assert '<div id="frontier-view" class="card frontier">' in dom
    assert dom.count('class="line ') >= 6
    assert "Thought number 1 &lt;/script&gt;&lt;img" in dom
    assert "<img" not in dom
    assert "&lt;b&gt;not bold&lt;/b&gt;" in dom


def test_choosing_a_step_changes_what_is_read(render):
    chosen = (
        "const steps = document.querySelectorAll('#steps .step');"
        "steps[steps.length - 1].querySelector('button').click();"
    )
    last, console = render(script=chosen)
    first, _ = render(script="document.querySelector('#steps .step').click();")
    assert console == []
    k, n = map(int, re.match(r"k = (\d+) of (\d+)", title_of(last)).groups())
    assert k == n > 0
    assert "100% of its thinking" in title_of(last)
    assert title_of(first).startswith(f"k = 0 of {n}: L(k) = 0 tokens")
    assert len(re.findall(r'class="step dropped"', first)) == n
    assert 'class="step dropped"' not in last


def test_slider_question_and_cell_can_be_chosen(render):
    moved, console = render(
        script="const s = document.getElementById('position'); s.value = 0;"
        "s.dispatchEvent(new Event('input'));"
    )
    assert title_of(moved).startswith("k = 0 of")
    before, _ = render()
    after, errors = render(script="document.getElementById('next').click();")
    other, more = render(
        script="const c = document.getElementById('cell'); c.value = 1;"
        "c.dispatchEvent(new Event('change'));"
    )
    assert console == errors == more == []
    prompt = re.compile(r'<pre id="prompt">([^<]*)</pre>')
    assert prompt.search(before).group(1) != prompt.search(after).group(1)
    facts = re.compile(r'<p id="trajectory-facts" class="facts">(.*?)</p>')
    assert facts.search(before).group(1) != facts.search(other).group(1)


def test_address_names_a_position(render):
    dom, console = render(fragment="#t=1&k=0")
    assert console == []
    assert title_of(dom).startswith("k = 0 of")
    assert '<h3 id="trajectory-title">Trajectory 1</h3>' in dom
    nonsense, console = render(fragment="#t=99999&k=x")
    assert console == []
    assert title_of(nonsense).startswith("k = ")


def test_the_budget_named_is_the_one_that_the_numbers_belong_to(render):
    script = (
        "const v = document.getElementById('frontier-cell'); v.value = {view};"
        "v.dispatchEvent(new Event('change'));"
        "const b = document.getElementById('budget'); b.value = 7;"
        "b.dispatchEvent(new Event('input'));"
    )
    title = re.compile(r'id="readout-title"[^>]*>([^<]*)<')
    average, console = render(script=script.format(view=0))
    cell, errors = render(script=script.format(view=1))
    assert console == errors == []
    # The average is on a grid of thousandths, a cell on one of two hundredths.
    assert title.search(average).group(1).startswith("With 0.7% of the thinking tokens")
    assert title.search(cell).group(1).startswith("With 0.5% of the thinking tokens")
