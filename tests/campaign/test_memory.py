"""The driver's memory does not grow with the campaign, and stays under 500 MB."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaign.conftest import TEMPLATE
from tests.campaign.fakes import write_questions

ROOT = Path(__file__).resolve().parents[2]

# In a process of its own: what other tests have loaded does not count.
PROGRAM = """
import json, sys
from pathlib import Path
from stp.campaign.config import load_config
from stp.campaign.run import SilentObserver, run_campaign
from tests.campaign import fakes

class Counting(SilentObserver):
    probes = 0
    def unit_finished(self, stage, unit, work):
        self.probes += work.samples if stage == "probe" else 0

measured = []
engine = getattr(fakes, sys.argv[1])
for path in sys.argv[2:]:
    observer = Counting()
    run_campaign(
        load_config(path),
        Path(path).with_suffix(""),
        open_model=lambda name, folder: engine(folder),
        observer=observer,
    )
    # Of this program: the system's own count begins with what its parent had.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    measured.append({"probes": observer.probes, "bytes": peak})
print(json.dumps(measured))
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ScriptedEngine", "StreamingEngine"])
def test_a_hundred_thousand_probes_take_the_memory_of_ten_thousand(engine, model_folder, tmp_path):
    """With one unit at a time, and with as many under way as the engine wants."""
    files = []
    for name, count in (("few", 4), ("many", 44)):
        path = tmp_path / f"{name}.toml"
        settings = {
            "model": model_folder,
            "name": "scripted",
            "benchmark": write_questions(tmp_path / f"questions-{name}", count),
            "trajectories": 12,
            "unit_trajectories": 12,
            "thinking_limit": 60,
            "context_limit": 600,
            "step_tokens": 8,
            "probes": 40,
            "questions": 2,
        }
        path.write_text(TEMPLATE.format(**settings))
        files.append(str(path))
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, engine, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    few, many = json.loads(run.stdout.splitlines()[-1])
    assert many["probes"] >= 100_000 > 8 * few["probes"]
    assert many["bytes"] < 500e6
    grown_bytes = many["bytes"] - few["bytes"]
    # All probes at once, as Python numbers, would be some 1 kB each.
    assert grown_bytes < 200 * many["probes"], f"{grown_bytes / 1e6:.0f} MB more"
    print(f"{many['probes']:,} probes: {many['bytes'] / 1e6:.0f} MB, {grown_bytes / 1e6:.0f} more")


DRY_RUN = """
import sys
from pathlib import Path
from stp.campaign.config import load_config
from stp.campaign.dry_run import plan_campaign
from tests.campaign.fakes import ScriptedEngine

for path in sys.argv[1:]:
    plan_campaign(load_config(path), open_model=lambda name, folder: ScriptedEngine(folder))
    status = Path("/proc/self/status").read_text()
    print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)
"""


@pytest.mark.slow
def test_a_dry_run_has_the_prompts_of_a_large_benchmark_in_memory_once(model_folder, tmp_path):
    files = []
    for count in (400, 20_400):
        path = tmp_path / f"{count}.toml"
        settings = {
            "model": model_folder,
            "name": "scripted",
            "benchmark": write_questions(
                tmp_path / f"q{count}", prompts=["x" * 250 + str(i) for i in range(count)]
            ),
            "trajectories": 2,
            "unit_trajectories": 2,
            "thinking_limit": 60,
            "context_limit": 600,
            "step_tokens": 8,
            "probes": 2,
            "questions": 2,
        }
        path.write_text(TEMPLATE.format(**settings))
        files.append(str(path))
    run = subprocess.run(
        [sys.executable, "-c", DRY_RUN, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    few, many = map(int, run.stdout.split())
    # A prompt has 270 ids, 1 kB; with its question, and while the file is written, some 7 kB
    # (measured 136 MB; 233 MB where all prompts were copied several times).
    assert many - few < 20_000 * 8_500, f"{(many - few) / 1e6:.0f} MB more"
    print(f"20,000 questions more: {(many - few) / 1e6:.0f} MB more")
