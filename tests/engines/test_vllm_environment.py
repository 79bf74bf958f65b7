"""Runs the tests that need vLLM where a real vLLM is: in an environment of its own."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.requirements import require_vllm_python

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "engines/test_vllm.py",
        "engines/test_vllm_signals.py",
        "engines/test_engines_agree.py",
        "live/test_vllm.py",
    ],
)
def test_on_a_real_vllm(module) -> None:
    python = require_vllm_python()
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    run = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{module}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-4000:]
    assert "skipped" not in run.stdout.splitlines()[-1], run.stdout[-2000:]
