"""The page in a real browser: nothing on the console, every figure drawn, no table cut."""

import json
import re
import subprocess
from html import unescape

import pytest

from evaluator.otbench.session import run_methods
from tests.explorer.browser import FLAGS as SHARED_FLAGS
from tests.otbench.campaigns import campaign, released, with_signals
from tests.requirements import require_chromium

pytestmark = pytest.mark.browser

FLAGS = (
    *SHARED_FLAGS,
    "--disable-quic",
    "--virtual-time-budget=2000",
    "--enable-logging=stderr",
    "--dump-dom",
)

METHOD = """
from dataclasses import dataclass

from baselines import Router


@dataclass
class Named(Router):
    text: str = ""

    name = "named"
    grid = (0.2, 0.6)

    def score(self, question):
        return question.lot
"""


@pytest.mark.slow
def test_renders_without_a_console_message(tmp_path, monkeypatch):
    chromium = require_chromium()
    with_signals(monkeypatch)
    url = campaign(tmp_path / "c", models=1)
    folder = released(tmp_path / "r", url, name="<script>alert(1)</script>")
    (tmp_path / "named.py").write_text(METHOD)
    named = f"{tmp_path}/named.py:Named(text='<img src=x onerror=console.error[1]>')"
    methods = ["think_brake", "deer", named]
    page = run_methods(folder, methods, tmp_path / "o", replicates=20).page
    done = subprocess.run(
        [
            chromium,
            *FLAGS,
            "--window-size=1200,900",
            f"--user-data-dir={tmp_path / 'profile'}",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert "&lt;script&gt;alert(1)" in done.stdout
    # The page's own script and its data are the only ones.
    markup = done.stdout.rpartition("<script>")[0]
    assert markup.count("<script") == markup.count('<script type="application/json"') == 1
    assert "<img src=x" not in markup
    assert "&lt;img src=x" in markup
    assert done.stdout.count("data-drawn") == 1
    assert "Against the best trivial line" in done.stdout


MEASURE = """
const wide = [...document.querySelectorAll('.scroll')].map(
  box => [box.scrollWidth - box.clientWidth, box.getBoundingClientRect().right]);
document.body.dataset.measured = JSON.stringify({
  wide, page: document.documentElement.scrollWidth - innerWidth, window: innerWidth,
  cut: [...document.querySelectorAll('.scroll th')].filter(
    cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)});
"""
# No window of a headless browser is narrower than 500.
FRAME = '<!DOCTYPE html><iframe src="{page}" style="width:{width}px;height:3000px;border:0">'


def laid_out(chromium, page, folder, width):
    """Return what a page measures of itself at a width, without its policy of one script."""
    source = re.sub(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8")
    )
    script = MEASURE + "parent.document.title = document.body.dataset.measured;"
    measured = folder / "measured.html"
    body, end, rest = source.rpartition("</body>")
    measured.write_text(f"{body}<script>{script}</script>{end}{rest}")
    framed = folder / "framed.html"
    framed.write_text(FRAME.format(page=measured.name, width=width))
    done = subprocess.run(
        [
            chromium,
            *FLAGS,
            "--window-size=1400,900",
            "--allow-file-access-from-files",
            f"--user-data-dir={folder / 'profile'}",
            framed.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r"<title>(.*?)</title>", done.stdout)
    assert found, done.stderr
    return json.loads(unescape(found[1]))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1100, 390])
def test_tables_fit_their_cards_and_nothing_is_cut(tmp_path, monkeypatch, width):
    chromium = require_chromium()
    with_signals(monkeypatch)
    folder = released(tmp_path / "r", campaign(tmp_path / "c", models=1))
    methods = ["think_brake", "deer(mean='arithmetic')", "predictive_scheduling(epochs=5)"]
    page = run_methods(folder, methods, tmp_path / "o", replicates=20).page
    found = laid_out(chromium, page, tmp_path, width)
    assert found["window"] == width
    assert found["page"] <= 0
    assert found["cut"] == []
    assert len(found["wide"]) == 2
    for beyond, right in found["wide"]:
        # On a telephone the card scrolls, within the page.
        assert beyond <= 0 or width < 1100
        assert right <= width
