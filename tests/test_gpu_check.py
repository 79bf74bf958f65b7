"""The GPU check runs whole on a CPU, with a tiny model: no GPU is needed to keep it in order."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "gpu_check.py"


@pytest.mark.slow
def test_the_check_runs_on_a_cpu(tmp_path):
    findings = tmp_path / "findings.json"
    run = subprocess.run(
        [sys.executable, SCRIPT, "--tiny", "--device", "cpu", "--json", findings],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(findings.read_text())
    assert found["wrong"] == []
    assert found["prefill amplification of probing"] == 1.0
    assert found["trajectories that came out again"] == 1.0
    assert found["probe: generated"] > 0 and found["signals"] > 0
