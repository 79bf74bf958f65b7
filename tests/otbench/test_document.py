"""docs/otbench.md: its method runs as it stands, and its tables name what there is."""

import re
from pathlib import Path

import pytest

from baselines.registry import BUILT_IN
from baselines.signals import SIGNALS
from evaluator.otbench.session import run_methods
from stp.campaign.config import load_config
from tests.evaluator.synthetic import undrawn
from tests.otbench.campaigns import campaign, released, with_signals

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "otbench.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def _undrawn():
    with undrawn():
        yield


@pytest.mark.slow
def test_the_method_of_the_page_runs_as_it_stands(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (code,) = [block for block in blocks if "class " in block]
    assert len(code.strip().splitlines()) <= 20
    (tmp_path / "sure_twice.py").write_text(code)
    with_signals(monkeypatch)
    folder = released(tmp_path / "r", campaign(tmp_path / "c", models=1))
    spec = f"{tmp_path}/sure_twice.py:SureTwice"
    session = run_methods(folder, [spec], tmp_path / "o", replicates=0)
    row = next(row for row in session.rows if row.label == "sure_twice")
    assert len({point.tokens_fraction for point in row.points}) > 1
    assert row.method.origin.startswith("sure_twice.py sha256:")


@pytest.mark.parametrize("name", [*BUILT_IN, *SIGNALS])
def test_every_method_and_signal_is_in_a_table(name):
    assert re.search(rf"^\|.*`{name}`", TEXT, re.MULTILINE)


def test_the_campaign_of_the_page_is_large_enough():
    config = load_config(str(ROOT / "docs" / "examples" / "otbench_demo.toml"))
    assert config.benchmarks[0].limit >= 200
