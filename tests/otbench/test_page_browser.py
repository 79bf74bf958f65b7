"""The page in a real browser: no message on the console, every figure drawn, names escaped."""

import re
import subprocess

import pytest

from evaluator.otbench.session import run_methods
from tests.evaluator.test_report_browser import FLAGS
from tests.otbench.campaigns import campaign, released, with_signals
from tests.requirements import require_chromium

pytestmark = pytest.mark.browser

METHOD = """
from baselines import Router


class Named(Router):
    name = "<img src=x onerror=console.error(1)>"
    grid = (0.2, 0.6)

    def score(self, question):
        return question.lot
"""


def test_renders_without_a_console_message(tmp_path, monkeypatch):
    chromium = require_chromium()
    with_signals(monkeypatch)
    url = campaign(tmp_path / "c", models=1)
    folder = released(tmp_path / "r", url, name="<script>alert(1)</script>")
    (tmp_path / "named.py").write_text(METHOD)
    methods = ["think_brake", "deer", f"{tmp_path}/named.py:Named"]
    page = run_methods(folder, methods, tmp_path / "o", replicates=20).page
    done = subprocess.run(
        [chromium, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert "&lt;script&gt;alert(1)" in done.stdout
    assert re.findall(r"<script|<img src=x", done.stdout) == []
    assert done.stdout.count('<img alt="') == 4
    assert "Against the best trivial line" in done.stdout
